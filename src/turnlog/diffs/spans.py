"""Which records belong to which turn: from what a user put in to before the next."""

from __future__ import annotations

from collections.abc import Iterable

from ..content import ToolResult
from ..records import MessageRecord, Record, TurnOpened

__all__ = ["turn_spans"]


def turn_spans(records: Iterable[Record], last: int) -> list[tuple[int, int]]:
    """The first and the last record of each turn of a log that ends with record `last`.

    Where turns are on record they count; else each message begins one that a user wrote, which results
    of tools are not. `records` may leave out what is neither.
    """
    opened: list[int] = []
    asked: list[int] = []
    for record in records:
        if isinstance(record.body, TurnOpened):
            opened.append(record.n)
        elif isinstance(record.body, MessageRecord) and record.body.message.role == "user":
            if not all(isinstance(part, ToolResult) for part in record.body.message.parts):
                asked.append(record.n)
    starts = opened or asked
    return list(zip(starts, [*(start - 1 for start in starts[1:]), last], strict=False))
