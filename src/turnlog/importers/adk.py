"""Sessions of Google's Agent Development Kit: what `adk run --save_session` and `adk web` write, in either spelling of
keys, lists of events, and SQLite databases of its `DatabaseSessionService`.

An event holds a content of Google's API. Events that are `partial` are repeated whole. Databases before version 1.16
keep what an event did as a Python pickle, which is never loaded. Checked against google-adk 2.13.0, 1.39.1 and 1.15.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from .._platform.units import counted
from ..providers.google import PROVIDER
from ..providers.google.keys import snake
from .databases import SqliteTranscript, is_database, read_database
from .drafting import as_utc
from .fields import Fields
from .json_values import mapping, word
from .messages import read_message
from .protocol import Imported, Origin, hashed_id
from .transcript import Transcript
from .writing import Handler, SessionWriter

_USAGE = {
    "input": "prompt_token_count tool_use_prompt_token_count",
    "output": "candidates_token_count thoughts_token_count",
    "cached": "cached_content_token_count",
    "reasoning": "thoughts_token_count",
}
_snake = lru_cache(maxsize=256)(snake)
_ENVELOPE = (
    *("id", "invocation_id", "timestamp", "turn_complete", "session_id", "app_name", "user_id", "last_update_time"),
)


def read(origin: Origin) -> list[Imported] | Iterator[Imported]:
    """The session; every session of a database, one after the other."""
    if is_database(origin):
        return read_database(origin, ("sessions", "events"), _sessions)
    file = Transcript(origin)
    session = Fields(_named(file.document_or_none()))
    session.skip("events", "last_update_time")
    lines = file.entries("event", "events")
    if not any("author" in line.value for line in lines):
        raise file.refused("event of ADK", "give a session with its `events`")
    writer = SessionWriter(file, "adk", PROVIDER, envelope=_ENVELOPE)
    writer.id = session.text("id") or hashed_id("adk", lines[0].value)
    writer.note("session", session.unread())
    for line in lines:
        _take(writer, line.value, line.number)
    return [writer.done()]


def _sessions(file: SqliteTranscript) -> Iterator[Imported]:
    order = "app_name = ? AND user_id = ? AND session_id = ? ORDER BY timestamp, rowid"
    for number, row in enumerate(file.rows("SELECT * FROM sessions ORDER BY create_time, rowid")):
        writer = SessionWriter(file, "adk", PROVIDER, envelope=_ENVELOPE)
        writer.id = word(row.get("id")) or f"adk-{number}"
        writer.at(row.get("create_time"))
        state = file.json(row.get("state"), "the state of a session") if row.get("state") else None
        writer.note("session", {"app_name": row.get("app_name"), "user_id": row.get("user_id"), "state": state})
        keys = (row.get("app_name"), row.get("user_id"), row.get("id"))
        for line, event in enumerate(file.rows(f"SELECT * FROM events WHERE {order}", *keys), 1):
            _take(writer, _row(writer, file, event, line), line)
        yield writer.done()
    known = "app_name = each.app_name AND user_id = each.user_id AND id = each.session_id"
    query = f"SELECT count(*) AS number FROM events AS each WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE {known})"
    for row in file.rows(query):
        if row["number"]:
            file.warn(0, f"left out: {counted(row['number'], 'event')} of sessions that are not there", "entry")


def _row(writer: SessionWriter, file: SqliteTranscript, row: dict[str, Any], line: int) -> dict[str, Any]:
    """An event of a row: the JSON of newer versions, or a column for each field."""
    if row.get("event_data") is not None:
        return {"timestamp": row.get("timestamp"), **mapping(file.json(row["event_data"], "an event"))}
    if row.pop("actions", None):
        writer.log.count("`actions` of an event, which older versions pickle", line, "nothing")
    texts = {key: value for key, value in row.items() if isinstance(value, str) and value[:1] in ("{", "[")}
    return {**row, **{key: file.json(value, f"`{key}` of an event") for key, value in texts.items()}}


def _named(values: Any) -> dict[str, Any]:
    """An object with its keys in snake case, as newer files have them."""
    return {_snake(key): value for key, value in mapping(values).items()}


def _take(writer: SessionWriter, value: Mapping[str, Any], line: int) -> None:
    names = ("actions", "usage_metadata", "usageMetadata", "node_info", "nodeInfo")
    event = Fields(_named({key: _named(each) if key in names and each else each for key, each in value.items()}))
    author, invocation, time = event.text("author"), event.text("invocation_id"), event.get("timestamp")
    is_piece = event.get("partial") is True
    writer.at(time)
    first = writer.state.setdefault("first", {})
    if invocation and invocation not in first and not is_piece:
        writer.turn(invocation)
        first[invocation] = writer.log.last
    if author and author != "user":
        node = event.inside("node_info").text("path")
        writer.facts("agent", {"author": author, "node": node, "branch": event.text("branch")})
    before = writer.log.last
    writer.take(event, line, "partial" if is_piece else "event" if author else "unknown", _HANDLERS)
    writer.state.setdefault("written", []).append((as_utc(time), before + 1, writer.log.last))


def _said(writer: SessionWriter, event: Fields, line: int) -> None:
    model = writer.model = event.text("model_version") or writer.model
    wire = _content(writer, event.get("content"), line)
    if wire:
        stop = event.text("finish_reason")
        writer.message(wire, line, stop=stop if wire.get("role") == "model" else "")
    if usage := event.get("usage_metadata"):
        writer.usage(usage, _USAGE, model=model)
    code = event.text("error_code")
    writer.note("error", {"message": event.text("error_message"), "code": code})
    _acted(writer, event)


def _content(writer: SessionWriter, content: Any, line: int) -> dict[str, Any]:
    """A content of Google's API, without the nulls that some versions write; {} if it says nothing."""
    parts = mapping(content).get("parts")
    if not isinstance(parts, list):
        if content:
            writer.log.unreadable(line, "the content of an event", content, "entry")
        return {}
    plain = [
        {key: each for key, each in part.items() if each is not None} if isinstance(part, dict) else part
        for part in parts
    ]
    return {**mapping(content), "parts": plain} if plain else {}


def _acted(writer: SessionWriter, event: Fields) -> None:
    """Record that earlier events were compacted, or that the user took some back."""
    actions = event.inside("actions")
    compaction = _named(actions.get("compaction"))
    wire = _content(writer, compaction.get("compacted_content"), 0)
    if wire and (summary := read_message(PROVIDER, wire, writer.log)) is not None:
        began, ended = as_utc(compaction.get("start_timestamp")), as_utc(compaction.get("end_timestamp"))
        inside = [(first, last) for time, first, last in writer.state.get("written", ()) if began <= time <= ended]
        inside = [(first, last) for first, last in inside if last >= first]
        if inside:
            writer.log.compacted(inside[0][0], inside[-1][1], "ADK compacted the events", {}, [summary])
        else:
            writer.note("compaction", actions.value.get("compaction"))
    back = actions.text("rewind_before_invocation_id")
    if (number := writer.state["first"].get(back, 0)) and number < writer.log.last:
        writer.log.rewound(number, "the user took an invocation back")


_HANDLERS: dict[str, Handler | None] = {"event": _said, "partial": None}
