"""A whole view repaired, as requests do it in two stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from turnlog.view.repair.arrange import Fate
from turnlog.view.repair.repair import Repaired, close
from turnlog.view.repair.repair import repair as repair_stretch
from turnlog.view.rules import Rules
from turnlog.view.types import Shown


def repair(
    view: Sequence[Shown], rules: Rules, fate: Fate | None = None, blob: Callable[[str], bytes] | None = None
) -> Repaired:
    """The view repaired, with legal ends, and all that changed."""
    repaired = repair_stretch(view, rules, fate or {}, blob)
    closed = close(repaired.view, rules)
    return Repaired(
        closed.view, (*repaired.edits, *closed.edits), repaired.losses, closed.thinking_off, repaired.strays
    )
