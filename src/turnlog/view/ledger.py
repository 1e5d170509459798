"""What the log knows of calls without a result: the ledger of tools started and finished."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..content import Outcome, ToolCall, ToolResult
from ..records import Approval, Record, ToolFinished, ToolStarted

__all__ = ["LEDGER", "fate_after", "fate_of", "open_calls"]

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


def fate_of(records: Iterable[Record]) -> dict[tuple[int, str], Outcome]:
    """How each call in the ledger stands, by the record of the call and its id.

    A call that started and never finished was `aborted`: it may have run. One that was denied, or that nobody has
    allowed yet, was `canceled`: it did not run. Calls that the ledger does not name are not in the result.
    """
    fate: dict[tuple[int, str], Outcome] = {}
    for record in records:
        fate.update(fate_after(record, fate))
    return fate


def fate_after(record: Record, fate: Mapping[tuple[int, str], Outcome]) -> dict[tuple[int, str], Outcome]:
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
            if state == "denied" or (state == "asked" and before is None):
                return {(call_record, call_id): "canceled"}
            if state == "given" and before == "canceled":  # what came of it is not known
                return {(call_record, call_id): "lost"}
    return {}
