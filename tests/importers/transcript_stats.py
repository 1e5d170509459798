"""What an imported session holds, counted as the shared manifest counts transcripts."""

from __future__ import annotations

import re

from turnlog.importers import Imported
from turnlog.log.messages import Media, Message, Reasoning, ToolCall, ToolResult, media_parts
from turnlog.log.records import Decision, MessageRecord, TurnClosed

__all__ = ["message_lines", "stats_of"]


def message_lines(source: str) -> list[int]:
    """The lines that a message's source names."""
    place = re.match(r"lines? ([\d, -]+)", source)
    lines: list[int] = []
    for piece in place[1].split(",") if place else []:
        first, _, last = piece.strip().partition("-")
        lines.extend(range(int(first), int(last or first) + 1))
    return lines


def stats_of(imported: Imported) -> dict[str, int]:
    """Counts of one session. `messages` are lines that became messages, `canonical` the messages."""
    bodies = [draft.body for draft in imported.drafts]
    records = [body for body in bodies if isinstance(body, MessageRecord)]
    parts = [part for record in records for part in record.message.parts]
    waiting: dict[str, int] = {}
    orphans = 0
    for part in parts:
        if isinstance(part, ToolCall):
            waiting[part.id] = waiting.get(part.id, 0) + 1
        elif isinstance(part, ToolResult):
            orphans += waiting.get(part.call_id, 0) == 0
            waiting[part.call_id] = max(0, waiting.get(part.call_id, 0) - 1)
    media = [item for record in records for item in media_parts(record.message)]
    return {
        "messages": sum(len(message_lines(record.source)) for record in records),
        "canonical": len(records),
        "calls": sum(isinstance(part, ToolCall) for part in parts),
        "results": sum(isinstance(part, ToolResult) for part in parts),
        "errors": sum(isinstance(part, ToolResult) and part.outcome != "ok" for part in parts),
        "thinking": sum(isinstance(part, Reasoning) for part in parts),
        "parallel": _parallel([record.message for record in records]),
        "images": sum(isinstance(item, Media) and item.kind == "image" for item in media),
        "unanswered": sum(waiting.values()),
        "orphans": orphans,
        "compactions": sum(isinstance(body, Decision) and body.action == "compact" for body in bodies),
        "interrupted": sum(isinstance(body, TurnClosed) and body.status == "cancelled" for body in bodies),
        "sidechain": sum(len(message_lines(r.source)) for r in records) if ".agent-" in imported.session_id else 0,
    }


def _parallel(messages: list[Message]) -> int:
    """How often several calls were open at once: calls in one message, or in a row before a result."""
    found = run = 0
    for message in messages:
        if message.role == "assistant":
            run += sum(isinstance(part, ToolCall) for part in message.parts)
            continue
        found += run > 1
        run = 0
    return found + (run > 1)
