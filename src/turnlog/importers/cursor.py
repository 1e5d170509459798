"""Agent transcripts of Cursor: `~/.cursor/projects/<folder>/agent-transcripts/<id>.jsonl` or `<id>/<id>.jsonl`, with
`subagents/` beside it; before, `<id>.txt`.

A line is a message in the shape of Anthropic's API, without ids of calls, results, model, usage and times: only a
user's text may begin with the time at which it was sent. (Read off Cursor's TranscriptStore of 2026-10-01.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from .._platform.lazy import lazy_pattern
from ..providers.anthropic import PROVIDER
from ..session.titles import title_from
from .fields import Fields, kind_of
from .protocol import Imported, Origin, hashed_id, with_subagents
from .transcript import Line, Transcript
from .writing import Handler, SessionWriter

_QUERY = lazy_pattern(r"<user_query>\s*(.*?)\s*(?:</user_query>|\Z)", re.DOTALL)
_SENT = lazy_pattern(
    r"<timestamp>\s*\w+, (\w{3} \d+, \d{4}, \d+:\d+ [AP]M) \(UTC(?:([+-])(\d+))?(?::(\d+))?\)",
)
_SPEAKER = lazy_pattern(r"(?m)^(user|assistant):[ \t]*$")
_MARK = lazy_pattern(r"(?m)^\[(Thinking|Tool call|Tool result)\] ?(.*)$")
_STATUSES = {"success": "completed", "aborted": "cancelled", "error": "failed"}


def read(origin: Origin) -> list[Imported]:
    """The session, then those of its subagents."""
    main = _read_one(origin)
    if not isinstance(origin, Path) or origin.parent.name != origin.stem:
        return [main]
    return with_subagents([main], (origin.parent / "subagents").glob("*.jsonl"), lambda path: [_read_one(path)])


def _read_one(origin: Origin) -> Imported:
    file = Transcript(origin)
    lines = list(_blocks(file)) if _is_text(file) else file.objects("line")
    if not any(isinstance(line.value.get("message"), (dict, str)) for line in lines):
        raise file.refused("message of Cursor", "give a file of ~/.cursor/projects/*/agent-transcripts")
    writer = SessionWriter(file, "cursor", PROVIDER, is_silent=True)
    path = file.path
    is_own = path is not None and ("agent-transcripts" in path.parts or path.parent.name in (path.stem, "subagents"))
    writer.id = path.stem if path is not None and is_own else hashed_id("cursor", lines[0].value)
    for line in lines:
        entry = Fields(line.value)
        kind = kind_of(entry, "role", "type") if "message" in entry.value else kind_of(entry, "type")
        writer.take(entry, line.number, kind, _HANDLERS)
    return writer.done()


def _said(writer: SessionWriter, entry: Fields, line: int) -> None:
    role = entry.text("role", "type")
    message = entry.inside("message")
    content: Any = message.get("content") if message.value else entry.get("message")
    said = content if isinstance(content, list) else [content]
    blocks = [Fields({"text": block} if isinstance(block, str) else block) for block in said]
    if role == "user" and not any(block.text("type") == "tool_result" for block in blocks):
        text = "\n".join(block.text("text") for block in blocks)
        writer.at(_time(text))
        writer.turn(f"line-{line}")
        query = _QUERY.search(text)
        writer.title = writer.title or title_from(query[1] if query else text)
    writer.message({"role": role, "content": content}, line)


def _time(text: str) -> str:
    """The time at the beginning of a user's text: `Wednesday, Oct 7, 2026, 1:20 PM (UTC+3)`; "" if it has none."""
    sent = _SENT.search(text[:200])
    if sent is None:
        return ""
    zone = f"{sent[2] or '+'}{int(sent[3] or 0):02}{int(sent[4] or 0):02}"
    try:
        return datetime.strptime(f"{sent[1]} {zone}", "%b %d, %Y, %I:%M %p %z").isoformat()
    except ValueError:
        return ""


def _ended(writer: SessionWriter, entry: Fields, line: int) -> None:
    status = entry.text("status")
    writer.end(_STATUSES.get(status, status or "completed"), entry.text("error"))


def _named(writer: SessionWriter, entry: Fields, line: int) -> None:
    writer.title = writer.title or title_from(entry.inside("metadata").text("overview"))


_HANDLERS: dict[str, Handler | None] = {"user": _said, "assistant": _said, "turn_ended": _ended, "metadata": _named}


# -- text ------------------------------------------------------------------------------------------


def _is_text(file: Transcript) -> bool:
    return _SPEAKER.match(file.data.lstrip()[:20].decode("utf-8", "replace")) is not None


def _blocks(file: Transcript) -> Iterator[Line]:
    """The messages of a text transcript, in the shape of the lines of newer ones."""
    text = file.data.decode("utf-8", "replace")
    _, *pieces = _SPEAKER.split(text)
    line = text[: text.find(pieces[0])].count("\n") + 1 if pieces else 1
    for role, said in zip(pieces[::2], pieces[1::2], strict=True):
        blocks = list(_marked(said)) if role == "assistant" else _text(said)
        answers = [block for block in blocks if block["type"] != "tool_result"]
        results = [block for block in blocks if block["type"] == "tool_result"]
        for speaker, content in ((role, answers), ("user", results)):
            if content:
                yield Line(line, {"role": speaker, "message": {"content": content}})
        line += said.count("\n")


def _marked(said: str) -> Iterator[dict[str, Any]]:
    """The blocks of an answer: thinking, calls with indented arguments, results with an indented body, and text."""
    before, *pieces = _MARK.split(said)
    yield from _text(before)
    for mark, head, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        indented = re.match(r"(?:\n(?:[ \t]+.*|[ \t]*(?=\n[ \t])))*", body)
        inside, after = (indented[0], body[indented.end() :]) if indented else ("", body)
        if mark == "Thinking":
            yield {"type": "thinking", "thinking": head + inside}
        elif mark == "Tool call":
            yield {"type": "tool_use", "name": head.strip(), "input": _arguments(inside)}
        else:
            yield {"type": "tool_result", "content": inside.strip("\n")}
        yield from _text(after)


def _text(said: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": said.strip()}] if said.strip() else []


def _arguments(text: str) -> Any:
    """The indented lines `key: value` or `key=value` as an object; text of another shape under `input`."""
    pairs = [re.match(r"\s*(\w+)(?:: ?|=)(.*)", line) for line in text.strip("\n").split("\n")]
    if text.strip() and all(pairs):
        return {pair[1]: pair[2] for pair in pairs if pair is not None}
    return {"input": text.strip()} if text.strip() else {}
