"""Which result answers which call, by position.

Ids are not unique in real logs: a result answers the nearest call before it that has its id and is
still open. Results without an id (some providers give none) go by name, then by order.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ..content import ToolCall, ToolResult
from .shown import Shown

__all__ = ["At", "Pairs", "pair"]

At = tuple[int, int]
"""Where a part stands: index of the message in the view, index of the part in the message."""


class Pairs(Struct, frozen=True, gc=False):
    """`answers` maps each answered call to its result; `orphans` are results of no call,
    `duplicates` further results of a call that has one, `waiting` the calls that have none."""

    answers: dict[At, At]
    orphans: frozenset[At]
    duplicates: frozenset[At]
    waiting: tuple[At, ...]


def pair(view: Sequence[Shown]) -> Pairs:
    """Pair all calls and results of a view."""
    open_calls: list[tuple[At, ToolCall]] = []
    answered: dict[str, At] = {}
    answers: dict[At, At] = {}
    orphans: set[At] = set()
    duplicates: set[At] = set()
    for i, shown in enumerate(view):
        for j, part in enumerate(shown.message.parts):
            if isinstance(part, ToolCall) and shown.message.role == "assistant":
                open_calls.append(((i, j), part))
            elif isinstance(part, ToolResult):
                at = (i, j)
                call = _open_call(open_calls, part)
                if call is not None:
                    answers[call[0]] = at
                    answered[call[1].id] = call[0]
                    open_calls.remove(call)
                elif part.call_id and part.call_id in answered:
                    _another(view, answers, duplicates, answered[part.call_id], at, part)
                else:
                    orphans.add(at)
    return Pairs(answers, frozenset(orphans), frozenset(duplicates), tuple(at for at, _ in open_calls))


def _open_call(open_calls: list[tuple[At, ToolCall]], result: ToolResult) -> tuple[At, ToolCall] | None:
    fitting = [entry for entry in open_calls if entry[1].id == result.call_id]
    if not fitting and not result.call_id:
        fitting = [entry for entry in open_calls if not result.name or entry[1].name == result.name]
        if fitting:
            return fitting[0]
    if not fitting:
        return None
    latest = fitting[-1][0][0]
    return next(entry for entry in fitting if entry[0][0] == latest)


def _another(
    view: Sequence[Shown], answers: dict[At, At], duplicates: set[At], call: At, at: At, result: ToolResult
) -> None:
    """A second result of one call: a real one takes the place of a synthetic one, else it goes."""
    first = answers[call]
    standing = view[first[0]].message.parts[first[1]]
    if isinstance(standing, ToolResult) and standing.synthetic and not result.synthetic:
        answers[call] = at
        duplicates.add(first)
    else:
        duplicates.add(at)
