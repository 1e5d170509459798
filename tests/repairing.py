"""A whole view repaired, as requests do it in two stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from turnlog.view.repair.arrange import Fate
from turnlog.view.repair.clean import contains_word
from turnlog.view.repair.repair import close
from turnlog.view.repair.repair import repair as repair_stretch
from turnlog.view.rules import Rules
from turnlog.view.types import Edit, Loss, Shown

__all__ = ["Whole", "repair"]


class Whole(NamedTuple):
    """A repaired view with legal ends, and all that changed."""

    view: tuple[Shown, ...]
    edits: tuple[Edit, ...]
    losses: tuple[Loss, ...]
    thinking_off: bool


def repair(
    view: Sequence[Shown], rules: Rules, fate: Fate | None = None, blob: Callable[[str], bytes] | None = None
) -> Whole:
    """The view repaired, with legal ends."""
    repaired = repair_stretch(view, rules, fate or {}, blob)
    closed = close(repaired.view, rules, has_word=contains_word(repaired.view, rules))
    return Whole(closed.view, (*repaired.edits, *closed.edits), repaired.losses, closed.thinking_off)
