"""Sessions of crush, in the database `.crush/crush.db` of a project.

A message has its parts as JSON, `{type, data}` (internal/message/content.go of charmbracelet/crush). Of usage, the
database has what a session cost, its subagents included, and the tokens of its last request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from ..log.messages import Outcome, Text
from ..providers.openai_chat import PROVIDER
from .databases import SqliteTranscript, read_database
from .edits import KnownChange
from .fields import Fields, kind_of
from .json_values import items, mapping, without, word
from .parts import called, media, texts
from .protocol import Imported, Origin
from .writing import DEAREST, Handler, SessionWriter, kinds

_NOISE = "created_at updated_at finished_at started_at provider model type finished provider_executed detail"
_UNNAMED = ("New Session", "Untitled Session", "New Agent Session")
_ENDS = {"end_turn": "completed", "max_tokens": "completed", "canceled": "cancelled"}
_FAILED = ("error", "content_filter", "permission_denied")
_BEFORE = """
    SELECT earlier.content FROM files AS earlier JOIN files AS later
      ON later.session_id = earlier.session_id AND later.path = earlier.path AND later.version = earlier.version + 1
    WHERE later.session_id = ? AND later.content = ? AND later.path LIKE '%' || ? LIMIT 1
"""


def read(origin: Origin) -> Iterable[Imported]:
    """Every session of a database."""
    return read_database(origin, ("sessions", "messages"), _stored)


def _stored(file: SqliteTranscript) -> Iterator[Imported]:
    path = file.path
    folder = str(path.absolute().parent.parent) if path is not None and path.parent.name == ".crush" else ""
    for row in file.owners("sessions", "messages"):
        writer = SessionWriter(file, "crush", PROVIDER, envelope=("id", "session_id"), noise=_NOISE)
        writer.id, writer.parent = row["id"], word(row.get("parent_session_id"))
        title = word(row.get("title"))
        writer.title = "" if title.startswith(_UNNAMED) else title
        writer.at(row.get("created_at"))
        writer.place(folder, "crush")
        writer.state["summary"] = row.get("summary_message_id")
        messages = "SELECT * FROM messages WHERE session_id = ? ORDER BY created_at, rowid"
        for message in file.rows(messages, row["id"]):
            parts = file.json(message.pop("parts", None), f"message {message['id']!r} of session {row['id']!r}")
            if not isinstance(parts, list):
                writer.log.count("a message whose parts are no list", 0, "entry")
            _message(writer, message, items(parts))
        _bill(writer, file, row)
        yield writer.done()


def _bill(writer: SessionWriter, file: SqliteTranscript, row: Mapping[str, Any]) -> None:
    """Record what the session cost without its subagents, by the model that it began with. How many tokens that were
    is not known."""
    query = "SELECT sum(cost) AS cost FROM sessions WHERE parent_session_id = ?"
    children = next(file.rows(query, row["id"]), {})
    own, of_children = [
        each if isinstance(each, (int, float)) else 0 for each in (row.get("cost"), children.get("cost"))
    ]
    cost = round(own - of_children, 9)
    if "first" in writer.state:
        told = {key: row.get(key) for key in ("cost", "prompt_tokens", "completion_tokens")}
        writer.model, writer.vendor = writer.state["first"]
        writer.usage(told, {}, cost=cost, incomplete=True)
    elif 0 < cost < DEAREST:
        writer.log.count("what a session without an answer cost", 0, "nothing")


def _message(writer: SessionWriter, row: Mapping[str, Any], parts: list[Any]) -> None:
    role = word(row.get("role"))
    entry = Fields(row if role in _ROLES else {**row, "parts": parts})
    writer.flush()
    writer.at(row.get("created_at"))
    is_summary = bool(entry.get("is_summary_message")) or row.get("id") == writer.state["summary"]
    entry.skip("role")
    if role == "assistant":
        writer.model, writer.vendor = word(row.get("model")) or writer.model, word(row.get("provider"))
        writer.state.setdefault("first", (writer.model, writer.vendor))
    blocks = [(kind_of(Fields(part), "type"), Fields(mapping(part).get("data"))) for part in parts]
    stop = next((word(block.value.get("reason")) for kind, block in blocks if kind == "finish"), "")
    about = {"source": word(row.get("id")), "stop": stop if role == "assistant" and not is_summary else ""}
    writer.state |= {"role": role, "about": about, "has_calls": any(kind == "tool_call" for kind, _ in blocks)}
    asked = [block for kind, block in blocks if kind in ("text", "binary", "image_url")]
    if role == "user" and any(block.value.get("hidden") is not True for block in asked):
        writer.turn(about["source"])
    if is_summary and role == "assistant" and writer.log.last > 1:
        writer.log.compacted(1, writer.log.last, "crush compacted", {"summary": writer.log.last + 2})
        writer.state["role"] = "summary"
    writer.take(entry, 0, role, dict.fromkeys(_ROLES))
    for kind, block in blocks if role in _ROLES else ():
        writer.take(block, 0, kind, _PARTS)


def _put(writer: SessionWriter, parts: Iterable[Any], *, by_program: bool = False) -> None:
    role, about = writer.state["role"], writer.state["about"]
    is_program = by_program or role == "summary"
    role = role if role in ("assistant", "system") else "user"
    writer.say(role, parts, joined=True, by_program=is_program and role == "user", **about)


def _text(writer: SessionWriter, block: Fields, line: int) -> None:
    _put(writer, texts(block.text("text")), by_program=block.get("hidden") is True)


def _thought(writer: SessionWriter, block: Fields, line: int) -> None:
    if writer.state["role"] == "assistant":
        _put(writer, writer.thinking(block.text("thinking"), signature=block.text("signature")))


def _called(writer: SessionWriter, block: Fields, line: int) -> None:
    call = called(block.text("id"), block.text("name"), block.get("input"))
    writer.say("assistant", [call], joined=True, **writer.state["about"])


def _returned(writer: SessionWriter, block: Fields, line: int) -> None:
    call_id, content, metadata = block.text("tool_call_id"), block.text("content"), block.text("metadata")
    media_given = media(block.text("data"), block.text("mime_type"), writer.log.blob)
    told = mapping(_database(writer).json(metadata, "what is said of a result")) if metadata else {}
    known = without(told, ("old_content", "new_content", "diff", "additions", "removals", "output"))
    writer.note("tool_result", {"call_id": call_id, **known} if known else None)
    outcome: Outcome = "failed" if block.get("is_error") is True else "ok"
    parts = (*texts(content), *((media_given,) if media_given else ()))
    about = {"name": block.text("name"), "source": writer.state["about"]["source"]}
    writer.result(call_id, parts, outcome=outcome, change=_change(writer, call_id, told), **about)


def _database(writer: SessionWriter) -> SqliteTranscript:
    return cast(SqliteTranscript, writer.file)


def _change(writer: SessionWriter, call_id: str, told: Mapping[str, Any]) -> KnownChange | None:
    """What a call did to its file: what its result says, and else the version of the file before."""
    before, after = told.get("old_content"), told.get("new_content")
    if isinstance(after, str):
        return KnownChange(before if isinstance(before, str) else "", after, is_new=not before)
    call = writer.log.call(call_id)
    written = mapping(call.arguments) if call is not None else {}
    path, content = written.get("file_path"), written.get("content")
    file = _database(writer)
    if isinstance(path, str) and isinstance(content, str) and file.columns("files"):
        for row in file.rows(_BEFORE, writer.id, content, path):
            return KnownChange(word(row["content"]), content, is_new=not row["content"])
    return KnownChange(diff=word(told.get("diff"))) if told.get("diff") else None


def _media(writer: SessionWriter, block: Fields, line: int) -> None:
    """A file that the user gave; text ones are sent as text."""
    mime, path = block.text("MIMEType", "mime_type"), block.text("Path", "path")
    given = block.text("url", "Data", "data")
    found = media(given, mime, writer.log.blob, path)
    if found is not None and writer.state["role"] in ("user", "summary"):
        _put(writer, [found])
    elif given:
        writer.note("file", {"path": path, "mime": mime, "data": given})
        writer.log.count("a file that cannot be read; it is kept as a note", line)


def _ran(writer: SessionWriter, block: Fields, line: int) -> None:
    """A command that the user ran; the model sees it as the user's words."""
    said = "\n".join(filter(None, (f"$ {block.text('command')}", block.text("output"))))
    _put(writer, [Text(said)])


def _finished(writer: SessionWriter, block: Fields, line: int) -> None:
    reason, time = block.text("reason"), block.get("time")
    said = ": ".join(filter(None, (block.text("message"), block.text("details"))))
    if writer.state["role"] != "assistant":
        return
    is_cut = reason == "canceled" or reason in _FAILED
    writer.flush((said or reason) if is_cut and not writer.state["has_calls"] else "")
    writer.at(time or None)
    if writer.log.turn and (is_cut or reason in _ENDS):
        writer.end(_ENDS.get(reason, "failed"), said)
    elif said:
        writer.note("finish", {"message": said})


_ROLES = ("user", "assistant", "tool", "system")
_PARTS: dict[str, Handler | None] = {
    "text": _text,
    "reasoning": _thought,
    "tool_call": _called,
    "tool_result": _returned,
    **kinds("binary image_url", _media),
    "shell_command": _ran,
    "finish": _finished,
}
