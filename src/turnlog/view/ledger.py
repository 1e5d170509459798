"""What the log knows of calls without a result: the ledger of tools started and finished."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from ..log.messages import Outcome, ToolCall, ToolResult
from ..log.records import Approval, Record, ToolFinished, ToolStarted

__all__ = ["LEDGER", "Standing", "fate_after", "fate_of", "open_calls"]

Standing = Outcome | Literal["asked", "approved"]
"""How a call without a result stands: as it ended, or it waits for approval, or has it and did not start."""

LEDGER = ("approval", "tool_finished", "tool_started")
"""The kinds of records that say what became of calls."""


def open_calls(records: Iterable[Record]) -> set[tuple[int, str]]:
    """The calls in messages that no result behind them answers, by the record of the call and its id."""
    waiting: dict[str, list[int]] = {}
    for record in records:
        message = record.message
        for part in message.parts if message is not None else ():
            if isinstance(part, ToolCall):
                waiting.setdefault(part.id, []).append(record.n)
            elif isinstance(part, ToolResult) and waiting.get(part.call_id):
                waiting[part.call_id].pop()
    return {(n, call_id) for call_id, numbers in waiting.items() for n in numbers}


def fate_of(records: Iterable[Record]) -> dict[tuple[int, str], Standing]:
    """How each call in the ledger stands, by the record of the call and its id.

    A call that started and never finished was `aborted`: it may have run. One that was denied was `canceled`: it did
    not run. Nor has one that was `asked` for and not allowed yet, nor, if all is on record, one that was `approved`
    and did not start. Calls that the ledger does not name are not in the result.
    """
    fate: dict[tuple[int, str], Standing] = {}
    for record in records:
        fate.update(fate_after(record, fate))
    return fate


def fate_after(record: Record, fate: Mapping[tuple[int, str], Standing]) -> dict[tuple[int, str], Standing]:
    """What one more record changes in how calls stand. What stands before its call says nothing of it."""
    if isinstance(record.body, (ToolStarted, ToolFinished, Approval)) and record.body.call_record > record.n:
        return {}
    match record.body:
        case ToolStarted(call_id=call_id, call_record=call_record):
            return {(call_record, call_id): "aborted"}
        case ToolFinished(call_id=call_id, call_record=call_record, outcome=outcome):
            return {(call_record, call_id): outcome}
        case Approval(call_id=call_id, call_record=call_record, state=state):
            before = fate.get((call_record, call_id))
            if state == "denied":
                return {(call_record, call_id): "canceled"}
            if before in (None, "asked", "approved"):
                return {(call_record, call_id): "asked" if state == "asked" else "approved"}
            if state == "given" and before == "canceled":  # what came of it is not known
                return {(call_record, call_id): "lost"}
    return {}
