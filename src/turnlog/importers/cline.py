"""cline sessions: `~/.cline/data/sessions/<id>/<id>.messages.json`, with `<id>.json` beside it.

Messages are in the shape of Anthropic's API with keys of cline's own around them, blocks of its own
(`file`) and tool results of its own (`[{query, result, success}]`). A compaction file holds the
conversation as it stood after a compaction, under the id of its session. Older versions and their
descendants (Roo Code, Kilo Code) wrote a bare list: `tasks/<id>/api_conversation_history.json`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from .._platform.encoding import plain_utf8
from ..errors import ImportFailed
from ..log.messages import Message, ToolResult, compact_json, sha256_hex
from ..log.records import MessageRecord, Usage, UsageRecord, tokens_billed
from ..providers.anthropic import PROVIDER
from .drafting import Drafting, title_from
from .lines import json_document
from .protocol import Damage, Imported, Origin, contents, hashed_id, origin_name, session_id_of
from .salvage import document_or_rest
from .wire_message import read_message

_FORMAT = "cline-session"

_HISTORY = "api_conversation_history.json"
_MESSAGES = ".messages.json"
_SESSION = re.compile(rb'"session_id"\s*:')
_SESSION_ID = re.compile(rb'"sessionId"\s*:\s*"([A-Za-z0-9_-]+)"')
_SESSION_KEYS = (b'"messages_path"', b'"enable_tools"', b'"workspace_root"', b'"started_at"')
_FILE_KEYS = (b'"sessionId"', b'"updated_at"', b'"agent"', b'"modelInfo"', b'"system_prompt"')
_BLOCKS = frozenset({"text", "image", "document"})
_MESSAGE_KEYS = frozenset({"role", "content", "id", "ts", "modelInfo", "metrics"})
_COMPACTED = frozenset({"compaction", "compaction_summary"})


class Cline:
    """Imports cline sessions, new and old."""

    name = "cline"

    def sniff(self, head: bytes, path: Path | None) -> int:
        """By the keys around the messages; of a bare list only the file's name tells."""
        plain = head.lstrip(b"\0 \t\r\n")
        if path is not None and path.name == _HISTORY and plain.startswith(b"["):
            return 80
        if not plain.startswith(b"{"):
            return 0
        if _SESSION.search(plain) and sum(key in plain for key in _SESSION_KEYS) >= 3:
            return 80
        return 80 if b'"messages"' in plain and sum(key in plain for key in _FILE_KEYS) >= 4 else 0

    def read(self, origin: Origin) -> list[Imported]:
        """The session that the file is of: its messages file and the facts beside it are one."""
        file = origin_name(origin)
        warnings: list[Damage] = []
        value = _document(origin, file, warnings)
        files = [file]
        facts: Mapping[str, Any] = {}
        if isinstance(value, list):
            own = origin.parent.name if isinstance(origin, Path) and origin.name == _HISTORY else ""
            value = {"sessionId": own, "messages": value}
        elif "messages" not in value and isinstance(value.get("session_id"), str):
            facts, value = value, {"sessionId": value["session_id"], "messages": []}
            beside = _messages_of(facts, origin)
            if beside is None:
                warnings.append(Damage(file, 0, "the session's facts only: no messages file beside it"))
            else:
                value, file = _document(beside, str(beside), warnings), str(beside)
                files = [str(beside), *files]
        elif isinstance(origin, Path) and not _compaction_of(value):
            beside = origin.with_name(origin.name.removesuffix(_MESSAGES) + ".json")
            if origin.name.endswith(_MESSAGES) and beside.is_file():
                facts = _facts_of(beside, value, warnings)
                files += [str(beside)] if facts else []
        return [_imported(value, facts, file, files, warnings)]


IMPORTER = Cline()


def _document(origin: Origin, file: str, warnings: list[Damage]) -> Any:
    data = contents(origin)
    listed = plain_utf8(data).lstrip(b"\0 \t\r\n").startswith(b"[")
    value = document_or_rest(data, "" if listed else "messages", file, warnings)
    if isinstance(value, dict) and "sessionId" not in value and (named := _SESSION_ID.search(data)):
        value = {**value, "sessionId": named[1].decode()}  # a broken document still names its session
    if isinstance(value, list) or (isinstance(value, dict) and ("messages" in value or "session_id" in value)):
        return value
    raise ImportFailed(f"{file}: no messages of a cline session in it; give a .messages.json of ~/.cline/data/sessions")


def _messages_of(facts: Mapping[str, Any], origin: Origin) -> Path | None:
    """The messages file that a session's facts belong to: in the same folder, whatever its path was."""
    if not isinstance(origin, Path):
        return None
    named = facts.get("messages_path")
    names = [named.replace("\\", "/").rpartition("/")[2]] if isinstance(named, str) else []
    for name in (*names, origin.stem + _MESSAGES):
        if name.endswith(_MESSAGES) and origin.with_name(name).is_file():
            return origin.with_name(name)
    return None


def _facts_of(beside: Path, value: Mapping[str, Any], warnings: list[Damage]) -> Mapping[str, Any]:
    try:
        facts = json_document(contents(beside))
    except (ValueError, ImportFailed) as error:
        warnings.append(Damage(str(beside), 0, f"left out, the session's facts cannot be read ({error})"))
        return {}
    same = isinstance(facts, dict) and facts.get("session_id") == value.get("sessionId")
    return facts if same else {}


def _compaction_of(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first message of a file that holds a compacted conversation, else nothing."""
    messages = value.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    metadata = first.get("metadata") if isinstance(first, dict) else None
    kind = metadata.get("kind") if isinstance(metadata, dict) else None
    return first if isinstance(kind, str) and kind in _COMPACTED and isinstance(first, dict) else {}


def _imported(value: Any, facts: Mapping[str, Any], file: str, files: list[str], warnings: list[Damage]) -> Imported:
    value = {"messages": value} if isinstance(value, list) else value
    log = Drafting(file, warnings)
    messages = value.get("messages")
    if not isinstance(messages, list) or (not messages and not facts):
        raise ImportFailed(f"{file}: no messages of a cline session in it")
    own = _word(value.get("sessionId")) or _word(facts.get("session_id"))
    own = own or hashed_id("cline", messages[:1])
    session, parent = session_id_of(own), ""
    compacted = _compaction_of(value)
    if compacted:
        mark = sha256_hex(compact_json(compacted).encode("utf-8", "surrogatepass"))[:12]
        session, parent = session_id_of(f"{own}.compaction-{mark}"), session
    else:
        metadata = facts.get("metadata")
        fork = metadata.get("fork") if isinstance(metadata, dict) else None
        forked = _word(fork.get("forkedFromSessionId")) if isinstance(fork, dict) else ""
        parent = session_id_of(forked) if forked else ""
    title = _draft(value, facts, messages, log)
    return Imported(
        session_id=session,
        format=_FORMAT,
        title=title,
        parent=parent,
        drafts=log.finished(),
        blobs=log.blobs,
        warnings=tuple(log.warnings),
        files=tuple(files),
    )


def _draft(value: Mapping[str, Any], facts: Mapping[str, Any], messages: list[Any], log: Drafting) -> str:
    """Fill `log`; returns the title. What changes while a session goes on is not kept, so that a file
    that grew begins as before."""
    log.at(facts.get("started_at"))
    prompt = value.get("system_prompt")
    if isinstance(prompt, str) and prompt:
        message = read_message(PROVIDER, {"role": "system", "content": prompt}, log, 0)
        if message is not None:
            log.add(MessageRecord(message=message, source="system_prompt"))
    log.opened(compact_json(facts.get("interactive")), {"true": "interactive", "false": "non-interactive"})
    kept = {key: facts[key] for key in _LASTING if key in facts}
    if kept:
        log.note("session", kept)
    title = ""
    for index, wire in enumerate(messages):
        if isinstance(wire, dict):
            message = _message(wire, index, log)
            if message is not None and message.role == "user":
                title = title or title_from(message)
        else:
            log.warn(0, f"messages[{index}] left out, no message: a JSON object was expected")
    metadata = facts.get("metadata")
    named = metadata.get("title") if isinstance(metadata, dict) else None
    return named if isinstance(named, str) and named else title


_LASTING = ("session_id", "source", "interactive", "cwd", "workspace_root", "team_name", "enable_tools")
"""Facts of a session that stay as they are from its first message on."""


def _message(wire: Mapping[str, Any], index: int, log: Drafting) -> Message | None:
    log.at(wire.get("ts"))
    info = wire.get("modelInfo")
    model = _word(info.get("id")) or _word(info.get("modelId")) if isinstance(info, dict) else ""
    if model:
        log.note_changes("model", {"modelInfo": info})
    content = wire.get("content")
    plain = [_block(block) for block in content] if isinstance(content, list) else content
    message = read_message(PROVIDER, {"role": wire.get("role"), "content": plain}, log, 0)
    if message is None:
        return None
    message = msgspec.structs.replace(message, parts=tuple(_judged(part, content, log) for part in message.parts))
    own = _word(wire.get("id"))
    source = f"messages[{index}]" + (f" id {own}" if own else "")
    log.add(MessageRecord(message=message, model=model, source=source))
    _usage(wire.get("metrics"), _word(info.get("provider")) if isinstance(info, dict) else "", model, log)
    rest = {key: item for key, item in wire.items() if key not in _MESSAGE_KEYS}
    if rest:
        metadata = rest.get("metadata")
        kind = metadata.get("kind") if isinstance(metadata, dict) else None
        log.note("compaction" if isinstance(kind, str) and kind in _COMPACTED else "message", rest)
    return message


def _block(block: Any) -> Any:
    """The block as Anthropic's API has it."""
    if not isinstance(block, dict):
        return block
    kind, content = block.get("type"), block.get("content")
    if kind == "file" and isinstance(content, str):
        text = f'<file_content path="{_word(block.get("path"))}">\n{content}\n</file_content>'
        return {"type": "text", "text": text}
    if kind == "tool_result":
        if not isinstance(content, (str, type(None))) and not _are_blocks(content):
            content = compact_json(content)
        kept = {key: item for key, item in block.items() if key not in ("name", "content")}
        return {**kept, "content": content}
    return block


def _are_blocks(content: Any) -> bool:
    return isinstance(content, list) and all(isinstance(b, dict) and b.get("type") in _BLOCKS for b in content)


def _judged(part: Any, content: Any, log: Drafting) -> Any:
    """A tool result with its tool's name, and failed if all that it did failed."""
    if not isinstance(part, ToolResult):
        return part
    blocks = content if isinstance(content, list) else []
    seen = next((b for b in blocks if isinstance(b, dict) and b.get("tool_use_id") == part.call_id), {})
    content = seen.get("content")
    done = content if isinstance(content, list) else []
    failed = bool(done) and all(isinstance(item, dict) and item.get("success") is False for item in done)
    name = _word(seen.get("name")) or log.call_name(part.call_id)
    return msgspec.structs.replace(part, name=name, outcome="failed" if failed else part.outcome)


def _usage(metrics: Any, provider: str, model: str, log: Drafting) -> None:
    if not isinstance(metrics, dict):
        return
    if not isinstance(metrics.get("inputTokens"), int):
        log.note("usage", metrics)
        return
    # `inputTokens` counts cached ones in.
    usage = Usage(
        input=tokens_billed(metrics.get("inputTokens")),
        output=tokens_billed(metrics.get("outputTokens")),
        cached=tokens_billed(metrics.get("cacheReadTokens")),
        cache_write=tokens_billed(metrics.get("cacheWriteTokens")),
    )
    log.add(UsageRecord(provider=provider, model=model, usage=usage, raw=metrics))


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""
