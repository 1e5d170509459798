"""Small transcripts for tests, and the shared real ones."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from turnlog.importers import Imported
from turnlog.log.messages import Message
from turnlog.log.records import Body, MessageRecord

__all__ = [
    "SESSION",
    "bodies_of",
    "claude",
    "claude_answer",
    "item",
    "jsonl",
    "messages_of",
    "of_kind",
    "real_transcripts",
]

_Kind = TypeVar("_Kind")

SESSION = "11111111-2222-3333-4444-555555555555"


def jsonl(records: Iterable[Any]) -> bytes:
    """Records as JSON lines."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def claude(n: int, kind: str, content: Any = None, **more: Any) -> dict[str, Any]:
    """A Claude Code record, number `n` of its file, the child of the one before."""
    record: dict[str, Any] = {
        "parentUuid": f"u{n - 1}" if n > 1 else None,
        "isSidechain": False,
        "sessionId": SESSION,
        "uuid": f"u{n}",
        "timestamp": f"2026-01-01T00:00:{n:02}.000Z",
        "type": kind,
    }
    if content is not None:
        record["message"] = {"role": kind, "content": content}
    return {**record, **more}


def claude_answer(n: int, message_id: str, block: dict[str, Any], **more: Any) -> dict[str, Any]:
    """One block of an assistant's message, as Claude Code writes it."""
    record = claude(n, "assistant", [block], **more)
    usage = {"input_tokens": 3, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 7, "output_tokens": n}
    record["message"].update(id=message_id, model="claude-x", stop_reason=None, usage=usage)
    return record


def item(payload: dict[str, Any], kind: str = "response_item", second: int = 0) -> dict[str, Any]:
    """A line of a Codex rollout."""
    return {"timestamp": f"2026-01-01T00:00:{second:02}.000Z", "type": kind, "payload": payload}


def bodies_of(imported: Imported) -> list[Body]:
    """The record bodies of a session."""
    return [draft.body for draft in imported.drafts]


def messages_of(imported: Imported) -> list[Message]:
    """The messages of a session."""
    return [body.message for body in bodies_of(imported) if isinstance(body, MessageRecord)]


def of_kind(imported: Imported, kind: type[_Kind]) -> list[_Kind]:
    """The bodies of one kind."""
    return [body for body in bodies_of(imported) if isinstance(body, kind)]


def real_transcripts(shared: Path) -> list[tuple[Path, str, dict[str, int]]]:
    """The shared Claude Code and Codex files: path, format, and what the manifest counted in each."""
    found = []
    for entry in json.loads((shared / "data/manifest.json").read_text("utf-8")):
        path = shared / "data" / entry["file"]
        if path.name == "codex.jsonl":
            found.append((path, "codex-rollout", entry["stats"]))
        elif path.suffix == ".jsonl" and entry["format"] in ("claude-code-jsonl", "codex-rollout"):
            found.append((path, entry["format"], entry["stats"]))
    return found
