"""cline sessions: `~/.cline/data/sessions/<id>/<id>.messages.json`, with `<id>.json` beside it.

Messages have the shape of Anthropic's API, with additional keys, a block type of cline's own (`file`) and tool results
of its own (`[{query, result, success}]`). A compaction file contains the conversation as it was after a compaction,
with the id of its session. Older versions and forks of cline (Roo Code, Kilo Code) wrote a bare list:
`tasks/<id>/api_conversation_history.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from .._platform.lazy import lazy_pattern
from ..errors import ImportFailed
from ..log.messages import ToolResult, compact_json
from ..log.records import MessageRecord, UsageRecord
from ..providers.anthropic import PROVIDER
from .drafting import Drafting, billed
from .json_values import items, mapping, objects, within, without, word
from .messages import read_message
from .protocol import Imported, Origin, digest_of, hashed_id
from .transcript import Transcript

_FORMAT = "cline-session"

_HISTORY = "api_conversation_history.json"
_WANTED = "give a .messages.json of ~/.cline/data/sessions"
_MESSAGES = ".messages.json"
_SESSION_ID = lazy_pattern(rb'"sessionId"\s*:\s*"([A-Za-z0-9_-]+)"')
_BLOCKS = frozenset({"text", "image", "document"})
_MESSAGE_KEYS = frozenset({"role", "content", "id", "ts", "modelInfo", "metrics"})
_COMPACTED = frozenset({"compaction", "compaction_summary"})


def read(origin: Origin) -> list[Imported]:
    """The session of the file: the messages, together with the session facts in the file beside it."""
    file = Transcript(origin)
    value = _document(file)
    path, files = file.path, []
    facts: Mapping[str, Any] = {}
    if isinstance(value, list):
        session_id = path.parent.name if path and path.name == _HISTORY else ""
        value = {"sessionId": session_id, "messages": value}
    elif "messages" not in value and isinstance(value.get("session_id"), str):
        facts, value = value, {"sessionId": value["session_id"], "messages": []}
        beside = _messages_of(facts, path) if path else None
        if beside is None:
            file.warn(0, "only the session's facts were read: no messages file is beside them")
        else:
            files.append(file.name)
            warnings, file = file.warnings, Transcript(beside)
            file.warnings += warnings
            value = _document(file)
    elif path and path.name.endswith(_MESSAGES) and not _compaction_of(value):
        beside = path.with_name(path.name.removesuffix(_MESSAGES) + ".json")
        facts = _facts_of(beside, value, file) if beside.is_file() else {}
        files += [str(beside)] if facts else []
    return [_imported(value, facts, file, files)]


def _document(file: Transcript) -> Any:
    listed = file.data.lstrip(b"\0 \t\r\n").startswith(b"[")
    value = file.document_or_rest("" if listed else "messages")
    if isinstance(value, dict) and "sessionId" not in value and (named := _SESSION_ID.search(file.data)):
        value = {**value, "sessionId": named[1].decode()}  # a broken document may still contain the session's id
    if isinstance(value, list) or mapping(value).keys() & {"messages", "session_id"}:
        return value
    raise file.refused("messages of a cline session", _WANTED)


def _messages_of(facts: Mapping[str, Any], path: Path) -> Path | None:
    """The messages file that belongs to a session's facts. It is in the same folder, even if the facts name another
    path."""
    named = word(facts.get("messages_path")).replace("\\", "/").rpartition("/")[2]
    for name in (named, path.stem + _MESSAGES):
        if name.endswith(_MESSAGES) and path.with_name(name).is_file():
            return path.with_name(name)
    return None


def _facts_of(beside: Path, value: Mapping[str, Any], file: Transcript) -> Mapping[str, Any]:
    facts = Transcript(beside)
    try:
        fields = mapping(facts.document())
    except (ValueError, ImportFailed) as error:
        facts.warn(0, f"left out: the session's facts cannot be read ({error})")
        file.warnings += facts.warnings
        return {}
    return fields if fields.get("session_id") == value.get("sessionId") else {}


def _compaction_of(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first message if the file contains a compacted conversation, else an empty object."""
    first = mapping(next(iter(items(value.get("messages"))), None))
    return first if word(within(first, "metadata", "kind")) in _COMPACTED else {}


def _imported(value: Mapping[str, Any], facts: Mapping[str, Any], file: Transcript, files: list[str]) -> Imported:
    messages = value.get("messages")
    if not isinstance(messages, list) or (not messages and not facts):
        raise file.refused("messages of a cline session", _WANTED)
    session = word(value.get("sessionId")) or word(facts.get("session_id")) or hashed_id("cline", messages[:1])
    parent = word(within(facts, "metadata", "fork", "forkedFromSessionId"))
    if compacted := _compaction_of(value):
        session, parent = f"{session}.compaction-{digest_of(compacted)[:12]}", session
    log = Drafting(file, edits=True)
    title = _draft(value, facts, messages, log)
    return log.imported(session, _FORMAT, title, parent=parent, files=files)


def _draft(value: Mapping[str, Any], facts: Mapping[str, Any], messages: list[Any], log: Drafting) -> str:
    """Add the session to `log`; returns the title that somebody gave it. Facts that change while a session continues
    are left out, so that the records of a file that grew begin as before."""
    log.at(facts.get("started_at"))
    log.files.work_in(facts.get("cwd"))
    if prompt := word(value.get("system_prompt")):
        message = read_message(PROVIDER, {"role": "system", "content": prompt}, log)
        if message is not None:
            log.add(MessageRecord(message=message, source="system_prompt"))
    log.opened(compact_json(facts.get("interactive")), {"true": "interactive", "false": "non-interactive"})
    lasting = {key: facts[key] for key in _LASTING if key in facts}
    if lasting:
        log.note("session", lasting)
    for index, wire in enumerate(messages):
        if isinstance(wire, dict):
            _message(wire, index, log)
        else:
            log.warn(0, f"messages[{index}] left out: a message must be a JSON object", "entry")
    return word(within(facts, "metadata", "title"))


_LASTING = ("session_id", "source", "interactive", "cwd", "workspace_root", "team_name", "enable_tools")
"""Session facts that do not change after the first message."""


def _message(wire: Mapping[str, Any], index: int, log: Drafting) -> None:
    """Add a message to `log`."""
    log.at(wire.get("ts"))
    info = mapping(wire.get("modelInfo"))
    model = word(info.get("id")) or word(info.get("modelId"))
    if model:
        log.note_changes("model", {"modelInfo": info})
    content = wire.get("content")
    plain = [_block(block) for block in content] if isinstance(content, list) else content
    message = read_message(PROVIDER, {"role": wire.get("role"), "content": plain}, log)
    if message is None:
        return
    message = log.with_results(message, lambda result: _judged(result, content))
    message_id = word(wire.get("id"))
    source = f"messages[{index}]" + (f" id {message_id}" if message_id else "")
    log.add(MessageRecord(message=message, model=model, source=source))
    _usage(wire.get("metrics"), word(info.get("provider")), model, log)
    if rest := without(wire, _MESSAGE_KEYS):
        log.left_unread(0, f"messages[{index}]", rest, is_empty=not message.parts)
        kind = word(within(rest, "metadata", "kind"))
        log.note("compaction" if kind in _COMPACTED else "message", rest)


def _block(block: Any) -> Any:
    """The block in the shape of Anthropic's API."""
    if not isinstance(block, dict):
        return block
    kind, content = block.get("type"), block.get("content")
    if kind == "file" and isinstance(content, str):
        text = f'<file_content path="{word(block.get("path"))}">\n{content}\n</file_content>'
        return {"type": "text", "text": text}
    if kind != "tool_result":
        return block
    are_blocks = isinstance(content, list) and all(word(within(b, "type")) in _BLOCKS for b in content)
    if not are_blocks and not isinstance(content, (str, type(None))):
        content = compact_json(content)
    return {**without(block, ("name",)), "content": content}


def _judged(result: ToolResult, content: Any) -> ToolResult:
    """A tool result with its tool's name; its outcome is `failed` if every operation of the tool failed."""
    seen = next((block for block in objects(content) if block.get("tool_use_id") == result.call_id), {})
    done = items(seen.get("content"))
    failed = bool(done) and all(within(item, "success") is False for item in done)
    return replace(result, name=word(seen.get("name")), outcome="failed" if failed else result.outcome)


def _usage(metrics: Any, provider: str, model: str, log: Drafting) -> None:
    if not isinstance(metrics, dict):
        return
    if not isinstance(metrics.get("inputTokens"), int):
        log.note("usage", metrics)
        return
    # `inputTokens` includes cached tokens.
    log.add(UsageRecord(provider, model, billed(metrics, _USAGE), metrics))


_USAGE = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cached": "cacheReadTokens",
    "cache_write": "cacheWriteTokens",
}
