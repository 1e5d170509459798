"""Which turns a request shows: the newest whole ones that fit.

A turn starts with a user's own words and ends before the next. The first user message and whatever
was pinned stay; calls and their results are in one turn and leave together.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ..content import ToolResult
from ..errors import BudgetError
from .shown import Edit, Shown

__all__ = ["Windowed", "starts_turn", "window"]


class Windowed(Struct, frozen=True):
    """What fits, its size in tokens (fixed parts included), and what had to be left out."""

    view: tuple[Shown, ...]
    tokens: int
    edits: tuple[Edit, ...]


def starts_turn(shown: Shown) -> bool:
    """Whether this is a user speaking, not a tool."""
    message = shown.message
    return message.role == "user" and not any(isinstance(part, ToolResult) for part in message.parts)


def window(
    view: Sequence[Shown],
    tokens: Sequence[int],
    *,
    limit: int,
    fixed: int = 0,
    pinned: frozenset[int] = frozenset(),
) -> Windowed:
    """The newest whole turns of `view` that fit into `limit` tokens together with `fixed` ones (tools).

    `tokens` are the sizes of the messages; `pinned` record numbers that always stay. Raises
    BudgetError if system text, tools, pinned messages and the newest turn do not fit.
    """
    starts = [i for i, shown in enumerate(view) if starts_turn(shown)] or [0]
    first_user = next((i for i, shown in enumerate(view) if shown.message.role == "user"), None)
    stays = {
        i
        for i, shown in enumerate(view)
        if shown.message.role == "system" or i == first_user or pinned.intersection(shown.records)
    }
    cut = starts[-1]
    size = sum(tokens[cut:]) + sum(tokens[i] for i in stays if i < cut) + fixed
    if size > limit:
        raise BudgetError(limit, _floor(view, tokens, stays, cut, fixed))
    for start in reversed(starts[:-1]):
        turn = sum(tokens[i] for i in range(start, cut) if i not in stays)
        if size + turn > limit:
            break
        size += turn
        cut = start
    if cut == starts[0]:
        ahead = sum(tokens[i] for i in range(cut) if i not in stays)
        if size + ahead <= limit:
            size += ahead
            cut = 0
    out = tuple(shown for i, shown in enumerate(view) if i >= cut or i in stays)
    gone = tuple(n for i, shown in enumerate(view[:cut]) if i not in stays for n in shown.records)
    edits = (Edit("window", f"{len(gone)} older messages left out to fit {limit:,} tokens", gone),) if gone else ()
    return Windowed(out, size, edits)


def _floor(view: Sequence[Shown], tokens: Sequence[int], stays: set[int], cut: int, fixed: int) -> dict[str, int]:
    ahead = [i for i in stays if i < cut]
    system = sum(tokens[i] for i in ahead if view[i].message.role == "system")
    return {
        "tools": fixed,
        "system text": system,
        "pinned messages": sum(tokens[i] for i in ahead) - system,
        "the newest turn": sum(tokens[cut:]),
    }
