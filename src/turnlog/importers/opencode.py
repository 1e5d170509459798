"""Sessions of opencode, and of Kilo CLI, which is made from it.

A session is in one of four shapes. Since 1.2 in SQLite, tables `session`, `message` and `part`; since 2.0 in the tables
`session_v2` and `session_message`; before 1.2 in files, `storage/session/<project>/<id>.json` with
`storage/message/<session>/*.json` and `storage/part/<message>/*.json`; and what `opencode export` prints, of either
generation. (packages/opencode/src/session/message-v2.ts, packages/schema/src/session-message.ts of anomalyco/opencode.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .._platform.lazy import lazy_pattern
from ..providers.openai_chat import PROVIDER
from .databases import SqliteTranscript, is_database, read_database
from .fields import Fields, kind_of
from .json_values import mapping, objects, within, word
from .opencode_words import ENTRIES, NOISE
from .protocol import Imported, Origin, hashed_id
from .transcript import Transcript
from .writing import SessionWriter

_UNNAMED = lazy_pattern(r"(?:New|Child) session - \d{4}-\d\d-\d\dT")
_LASTING = ("slug", "project_id", "projectID", "workspace_id", "version")
"""Facts of a session that do not change while it runs: a session whose beginning changed would be imported again."""
_ADVICE = "give opencode.db, a file of storage/session, or what `opencode export` printed"


def read(origin: Origin) -> Iterable[Imported]:
    """Every session of a database; the one session of a file."""
    if is_database(origin):
        return read_database(origin, (), _stored)
    file = Transcript(origin)
    value = mapping(file.document_or_rest("messages"))
    value = mapping(value.get("data")) or value
    messages = objects(value.get("messages"))
    if messages:
        return [_exported(file, mapping(value.get("info")), messages)]
    if file.path is not None and file.path.is_file() and "projectID" in value:
        return [_from_files(file, file.path.parents[2], value)]
    raise file.refused("message of opencode", _ADVICE)


def _stored(file: SqliteTranscript) -> Iterator[Imported]:
    seen: set[str] = set()
    has_parts = "data" in file.columns("part") and "data" in file.columns("message")
    tables = [table for table in ("session_v2", "session") if file.columns(table)]
    entries = "session_message" if file.columns("session_message") else ""
    for table in tables:
        owned = entries if table == "session_v2" or not has_parts else "message"
        for row in file.owners(table, owned) if owned else ():
            if row["id"] in seen:
                continue  # sessions of before 2.0 are in both tables
            seen.add(row["id"])
            writer = _begun(file, row)
            if entries:
                _write_entries(writer, file, row["id"])
            if has_parts and not writer.log.messages:
                _write_rows(writer, file, row["id"])
            yield _done(writer, row)


def _write_entries(writer: SessionWriter, file: SqliteTranscript, session: str) -> None:
    order = "seq, id" if "seq" in file.columns("session_message") else "time_created, id"
    query = f"SELECT id, type, time_created, data FROM session_message WHERE session_id = ? ORDER BY {order}"
    for row in file.rows(query, session):
        if data := mapping(file.json(row.pop("data"), f"message {row['id']!r} of session {session!r}")):
            _entry(writer, {**data, **row})


def _write_rows(writer: SessionWriter, file: SqliteTranscript, session: str) -> None:
    messages = "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY time_created, id"
    parts = "SELECT id, data FROM part WHERE message_id = ? ORDER BY id"
    for row in file.rows(messages, session):
        what = f"message {row['id']!r} of session {session!r}"
        info = mapping(file.json(row["data"], what))
        found = [file.json(part["data"], f"a part of {what}") for part in file.rows(parts, row["id"])]
        time = {"created": row["time_created"]}
        _message(writer, {"time": time, **info, "id": row["id"]}, objects(found))
    there = "SELECT 1 FROM message WHERE id = part.message_id"
    alone = f"SELECT data FROM part WHERE session_id = ? AND NOT EXISTS ({there})"
    for part in file.rows(alone, session):
        writer.note("part", file.json(part["data"], "a part"))
        writer.log.count("a part of a message that is not there; it is kept as a note", 0)


def _exported(file: Transcript, info: Mapping[str, Any], messages: list[dict[str, Any]]) -> Imported:
    session = word(info.get("id")) or word(within(messages[0], "info", "sessionID"))
    writer = _begun(file, {**info, "id": session or hashed_id("opencode", messages[0])})
    for number, message in enumerate(messages, 1):
        if isinstance(message.get("info"), dict):
            parts = message.get("parts")
            _message(writer, message["info"], objects(parts), number)
            if not isinstance(parts, list) or len(objects(parts)) < len(parts):
                writer.log.count("a message without parts, or a part that is no object", number)
        else:
            _entry(writer, message, number)
    return _done(writer, info)


def _from_files(file: Transcript, storage: Path, info: Mapping[str, Any]) -> Imported:
    session = file.path.stem if file.path is not None else ""
    writer = _begun(file, {**info, "id": info.get("id") or session})
    folder = word(info.get("id"))
    messages = _loaded(writer, storage / "message" / (folder if _is_name(folder) else session))
    for message in sorted(messages, key=lambda each: (_number(within(each, "time", "created")), str(each.get("id")))):
        name = word(message.get("id"))
        _message(writer, message, _loaded(writer, storage / "part" / name) if _is_name(name) else [])
    return _done(writer, info)


def _is_name(name: str) -> bool:
    return bool(name) and name == Path(name).name and "\0" not in name


def _number(value: Any) -> float:
    return value if isinstance(value, (int, float)) else 0


def _loaded(writer: SessionWriter, folder: Path) -> list[dict[str, Any]]:
    """The objects in the files of a folder, by the names of the files."""
    loaded = {path.name: writer.beside(path) for path in sorted(folder.glob("*.json"))}
    for name in (name for name, value in loaded.items() if not value):
        writer.log.warn(0, f"left out: {name} is no JSON object, or cannot be read", "entry")
    return [value for value in loaded.values() if value]


def _begun(file: Transcript, facts: Mapping[str, Any]) -> SessionWriter:
    envelope = ("type", "role", "id", "sessionID", "messageID")
    writer = SessionWriter(file, "opencode", PROVIDER, envelope=envelope, noise=NOISE)
    writer.id = word(facts.get("id"))
    writer.parent = word(facts.get("parent_id")) or word(facts.get("parentID"))
    title = word(facts.get("title"))
    writer.title = "" if _UNNAMED.match(title) else title
    writer.at(facts.get("time_created") or within(facts, "time", "created"))
    writer.place(facts.get("directory"), "opencode", **{key: facts.get(key) for key in _LASTING})
    return writer


def _done(writer: SessionWriter, facts: Mapping[str, Any]) -> Imported:
    """The session; if the user went back and has said nothing since, without what came after that."""
    revert = facts.get("revert")
    if isinstance(revert, str) and isinstance(writer.file, SqliteTranscript):
        revert = writer.file.json(revert, "the point that the user went back to")
    writer.flush()
    first = writer.state.get("first", {}).get(word(within(revert, "messageID")), 0)
    if 0 < first <= writer.log.last:
        writer.log.rewound(first, "the user went back to before this message")
    return writer.done()


def _message(writer: SessionWriter, info: Mapping[str, Any], parts: list[dict[str, Any]], line: int = 0) -> None:
    """Record a message of before 2.0 with its parts."""
    _entry(writer, {**info, "type": word(info.get("role")) or "unknown", "content": parts}, line)


def _entry(writer: SessionWriter, value: Mapping[str, Any], line: int = 0) -> None:
    entry = Fields(value)
    writer.flush()
    writer.at(within(value, "time", "created") or value.get("time_created"))
    name = writer.state["id"] = entry.text("id")
    writer.state.setdefault("first", {}).setdefault(name, writer.log.last + 1)
    writer.take(entry, line, kind_of(entry, "type"), ENTRIES)
