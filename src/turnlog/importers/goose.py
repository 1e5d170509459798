"""Sessions of goose: its database, `goose session export --format json`, the files of before 1.10 (`<id>.jsonl`, the
first line of which tells of the session), and what `goose run --output-format stream-json` printed.

All have one form of message (crates/goose/src/conversation/message.rs of aaif-goose/goose). Its content is for the
model, for the user, or for both: what was compacted stays in the file, and only the model no longer sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .._platform.lazy import lazy_pattern
from ..log.messages import Outcome
from ..providers.openai_chat import PROVIDER
from .databases import SqliteTranscript, is_database, read_database
from .fields import Fields, as_text, kind_of
from .json_values import items, mapping, within, without, word
from .parts import called, shown, texts
from .printed import read_printed
from .protocol import Imported, Origin, hashed_id
from .transcript import Line, Transcript
from .writing import Handler, SessionWriter, ends, kinds

_UNNAMED = lazy_pattern(r"(?i)new (?:session|chat)\b|cli session\b")
_USAGE = {
    "input": "input_tokens|inputTokens",
    "output": "output_tokens|outputTokens",
    "cached": "cache_read_tokens|cacheReadTokens",
    "cache_write": "cache_write_tokens|cacheWriteTokens",
}
_WHOLE = {field: f"accumulated_{keys.partition('|')[0]}" for field, keys in _USAGE.items()}
_LASTING = ("session_type", "working_dir", "schedule_id", "project_id", "recipe_json")
"""Facts of a session that do not change while it runs: a session whose beginning changed would be imported again."""


def read(origin: Origin) -> Iterable[Imported]:
    """Every session of a database; the one session of a file; a session for each run."""
    if is_database(origin):
        return read_database(origin, ("sessions", "messages"), _stored)
    file = Transcript(origin)
    value = mapping(file.document_or_rest("conversation"))
    lines = [Line(number, each) for number, each in enumerate(items(value.get("conversation")), 1)]
    if not lines:
        lines = file.objects("line", file.lines(among_text=True))
        if any(within(line.value, "message", "content") is not None for line in lines):
            return read_printed(origin, "goose", "goose", PROVIDER, ("message", ""), _EVENTS, ends="complete")
        value = lines.pop(0).value if lines and "working_dir" in lines[0].value else {}
    lines = [line for line in lines if isinstance(line.value, dict)]
    if not any(isinstance(line.value.get("content"), list) for line in lines):
        raise file.refused("message of goose", "give sessions.db, an export as JSON, or a file of its sessions folder")
    name = file.path.stem if file.path is not None and "conversation" not in value else ""
    writer = _begun(file, {**value, "id": word(value.get("id")) or name or hashed_id("goose", lines[0].value)})
    for line in lines:
        _take(writer, line.value, line.number)
    return [_done(writer, value)]


def _stored(file: SqliteTranscript) -> Iterator[Imported]:
    has_ledger = "session_id" in file.columns("usage_ledger")
    for row in file.owners("sessions", "messages"):
        writer = _begun(file, {**row, "model_config": _json(file, row.get("model_config_json"), "a model")})
        ledger = "SELECT * FROM usage_ledger WHERE session_id = ? ORDER BY id"
        bills = list(file.rows(ledger, row["id"])) if has_ledger else []
        writer.state["has_bills"] = bool(bills)
        query = "SELECT * FROM messages WHERE session_id = ? ORDER BY created_timestamp, id"
        for message in file.rows(query, row["id"]):
            what, created = f"message {message['id']} of session {row['id']!r}", message["created_timestamp"]
            while bills and _number(bills[0]["created_timestamp"]) < _number(created):
                _bill(writer, bills.pop(0))
            content = file.json(message["content_json"], f"the content of {what}")
            if not isinstance(content, list):
                writer.log.count("a message whose content is no list", 0, "entry")
            metadata = _json(file, message.get("metadata_json"), f"the metadata of {what}")
            facts = {"id": message.get("message_id") or f"message {message['id']}", "role": message["role"]}
            _take(writer, {**facts, "created": created, "content": content, "metadata": metadata})
        for bill in bills:
            _bill(writer, bill)
        yield _done(writer, row)


def _json(file: SqliteTranscript, text: Any, what: str) -> Any:
    return file.json(text, what) if text else None


def _number(value: Any) -> float:
    number = value if isinstance(value, (int, float)) else 0
    return number / 1000 if number > 1e11 else number


def _bill(writer: SessionWriter, bill: Mapping[str, Any]) -> None:
    writer.at(bill.get("created_timestamp"))
    told = without(bill, ("id", "session_id"))
    writer.usage(told, _USAGE, model=word(bill.get("model")), cost=bill.get("cost"))


def _begun(file: Transcript, facts: Mapping[str, Any]) -> SessionWriter:
    writer = SessionWriter(file, "goose", PROVIDER, envelope=("id", "type"))
    name = word(facts.get("name")) or word(facts.get("description"))
    writer.id, writer.parent = word(facts.get("id")), word(facts.get("parent_session_id"))
    writer.title = "" if _UNNAMED.match(name) else name
    writer.model = word(within(facts.get("model_config"), "model_name"))
    writer.vendor = word(facts.get("provider_name"))
    writer.at(facts.get("created_at"))
    writer.log.files.work_in(facts.get("working_dir"))
    writer.facts("goose", {key: facts.get(key) for key in _LASTING})
    return writer


def _done(writer: SessionWriter, facts: Mapping[str, Any]) -> Imported:
    """The session. If only it has sums, these are one bill."""
    _hide(writer)
    if not writer.state.get("has_bills"):
        known = {key: value for key, value in facts.items() if key.endswith("_tokens") and value}
        writer.usage(known, _WHOLE, cost=facts.get("accumulated_cost"))
    return writer.done()


def _hide(writer: SessionWriter) -> None:
    """Record that the model no longer sees the messages since the first that it does not see."""
    if first := writer.state.pop("hidden", 0):
        writer.flush()
        if first <= writer.log.last:
            writer.log.compacted(first, writer.log.last, "goose compacted", {})


# -- messages --------------------------------------------------------------------------------------


def _take(writer: SessionWriter, message: Mapping[str, Any], line: int = 0) -> None:
    entry = Fields(message)
    role = entry.text("role").lower()
    writer.at(entry.get("created"))
    writer.take(entry, line, role if role in ("user", "assistant") else kind_of(entry, "role", "type"), _MESSAGES)


def _said(writer: SessionWriter, entry: Fields, line: int) -> None:
    role, metadata = entry.text("role").lower(), entry.inside("metadata")
    is_seen, is_hidden = metadata.get("agentVisible") is not False, metadata.get("userVisible") is False
    if is_seen:
        _hide(writer)
    name = as_text(entry.value.get("id")) or f"line {line}"
    is_new = name != writer.state.get("message") or role != writer.state.get("role")
    if is_new:
        writer.flush()
    blocks = [Fields(block) for block in items(entry.get("content"))]
    kinds_here = {kind_of(block, "type") for block in blocks}
    if is_new and role == "user" and kinds_here & {"text", "image"} and not is_hidden:
        writer.state["turns"] = writer.state.get("turns", 0) + 1
        writer.turn(f"turn-{writer.state['turns']}")  # older files have no ids, and are read by the database, too
    inference, usage = metadata.inside("inference"), metadata.get("usage")
    model = inference.text("resolvedModel", "requestedModel")
    if role == "assistant":
        writer.model = model or writer.model
    writer.vendor = inference.text("provider") or writer.vendor
    about = {"source": name, "by_program": is_hidden}
    writer.state |= {"message": name, "role": role, "about": about}
    if not is_seen and any(_BLOCKS.get(kind) for kind in kinds_here):
        writer.state.setdefault("hidden", writer.log.last + 1)
    for block in blocks:
        writer.take(block, line, kind_of(block, "type"), _BLOCKS)
    if usage and not writer.state.get("has_bills"):
        writer.usage(usage, _USAGE, model=model, cost=within(usage, "cost"))
        writer.state["is_billed"] = True


def _put(writer: SessionWriter, parts: Any) -> None:
    is_piece = writer.state.get("is_printed", False)
    writer.say(writer.state["role"], parts, joined=True, piece=is_piece, **writer.state["about"])


def _text(writer: SessionWriter, block: Fields, line: int) -> None:
    if _is_for_model(block.value):
        _put(writer, texts(block.text("text")))
    else:
        writer.note("text", {"for_user": block.text("text")})
        block.skip("annotations")


def _image(writer: SessionWriter, block: Fields, line: int) -> None:
    found = shown([{key: block.value.get(key) for key in ("type", "data", "mimeType")}], writer.log.blob)
    block.skip("data", "mimeType")
    if writer.state["role"] == "user":
        _put(writer, found)
    else:
        writer.log.count("an image of an answer; it is kept as a note", line)
        writer.note("image", dict(block.value))


def _thought(writer: SessionWriter, block: Fields, line: int) -> None:
    text, signature = block.text("thinking", "text"), block.text("signature")
    if writer.state["role"] == "assistant":
        _put(writer, writer.thinking(text, signature=signature, encrypted=block.text("data")))
    else:
        writer.note("thinking", {"text": text})


def _called(writer: SessionWriter, block: Fields, line: int) -> None:
    call = block.inside("toolCall")
    value = next((call.inside(key) for key in ("value", "Ok") if call.inside(key).value), call)
    call.skip("status")
    name, error = value.text("name"), call.get("error", "Err")
    arguments = value.get("arguments")
    part = called(as_text(block.value.get("id")), name or "unknown", arguments)
    if name.partition("__")[0] == within(block.value, "_meta", "goose_extension"):
        block.skip("_meta")
    if error:
        writer.note("toolRequest", {"call_id": part.id, "error": error})
    writer.say("assistant", [part], joined=True, **{**writer.state["about"], "by_program": False})


def _returned(writer: SessionWriter, block: Fields, line: int) -> None:
    result = block.inside("toolResult")
    given = result.get("value", "Ok") if result.value else block.get("toolResult")
    error, status = result.get("error", "Err"), result.text("status")
    content, rest = given, {}
    if isinstance(given, dict):
        rest = without(given, ("content", "isError"))
        content = given.get("content") or rest.pop("structuredContent", None)
    writer.note("toolResponse", rest)
    said = [_plain(each) for each in items(content) if _is_for_model(each)]
    for each in items(content):
        if not _is_for_model(each) and _plain(each) not in said:
            writer.note("toolResponse", {"for_user": each})
    said += [each for each in (None if isinstance(content, list) else content, error) if each]
    is_failed = bool(error) or within(given, "isError") is True or status == "error"
    outcome: Outcome = "failed" if is_failed else "ok"
    writer.result(as_text(block.value.get("id")), said, outcome=outcome, source=writer.state["message"])


def _is_for_model(block: Any) -> bool:
    audience = within(block, "annotations", "audience")
    return not isinstance(audience, list) or not audience or "assistant" in audience


def _plain(block: Any) -> Any:
    """A block of a result, without what is only said of it; the text of a resource."""
    text = within(block, "resource", "text") if isinstance(block, dict) else None
    if isinstance(text, str):
        return {"type": "text", "text": text}
    return without(block, ("annotations", "_meta")) if isinstance(block, dict) else block


_MESSAGES = kinds("user assistant", _said)
_BLOCKS: dict[str, Handler | None] = {
    "text": _text,
    "image": _image,
    **kinds("thinking redactedThinking reasoning", _thought),
    **kinds("toolRequest frontendToolRequest", _called),
    "toolResponse": _returned,
    **kinds("toolConfirmationRequest actionRequired systemNotification contextLengthExceeded"),
    **kinds("summarizationRequested conversationCompacted"),
}


# -- what a run printed ----------------------------------------------------------------------------


def _printed(writer: SessionWriter, event: Fields, line: int) -> None:
    message = event.get("message")
    writer.state["is_printed"] = True
    if isinstance(message, dict):
        _take(writer, message, line)


def _completed(writer: SessionWriter, event: Fields, line: int) -> None:
    usage = {key: event.get(key) for key in ("input_tokens", "output_tokens", "total_tokens")}
    if not writer.state.get("is_billed"):
        writer.usage(usage, _USAGE)
    ends("completed")(writer, event, line)


def _failed(writer: SessionWriter, event: Fields, line: int) -> None:
    error = event.get("error")
    if writer.log.turn:
        writer.end("failed", str(error))
    else:
        writer.note("error", {"error": error})


_EVENTS: dict[str, Handler | None] = {
    "message": _printed,
    "complete": _completed,
    "error": _failed,
    "notification": None,
}
