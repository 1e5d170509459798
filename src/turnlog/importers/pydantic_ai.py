"""Message histories of pydantic-ai 0.2 to 2: what `all_messages_json()` and `ModelMessagesTypeAdapter` write.

A message is a request or a response of parts, which `part_kind` names. A tool's result that the model has to mend is a
`retry-prompt` in versions 0 and 1, a `tool-return` with an outcome in 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..log.messages import Part, ToolResult
from ..providers.openai_chat import PROVIDER
from .conversations import take_rest
from .fields import Fields, kind_of
from .framework_messages import provider_of, read_parts
from .json_values import mapping, word
from .parts import called, shown, texts, thoughts
from .protocol import Imported, Origin, hashed_id
from .transcript import Transcript
from .writing import Handler, SessionWriter

_ENVELOPE = ("kind", "run_id", "conversation_id", "timestamp", "state", "model_id")
_SHAPE = ("part_kind", "timestamp", "id", "dynamic_ref", "scope", "context_id", "tool_kind", "provider_name", "retry")
_USAGE = {
    "input": "input_tokens|request_tokens",
    "output": "output_tokens|response_tokens",
    "cached": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
    "reasoning": "output_reasoning_tokens|details.reasoning_tokens",
}


def read(origin: Origin) -> list[Imported]:
    """The one session of a history."""
    file = Transcript(origin)
    lines = file.entries("message", "messages")
    if not any(isinstance(line.value.get("parts"), list) for line in lines):
        raise file.refused("message of pydantic-ai", "give what all_messages_json() returned")
    vendors = (word(line.value.get("provider_name")) for line in lines)
    writer = SessionWriter(file, "pydantic-ai", provider_of(vendors), envelope=_ENVELOPE)
    conversations = (word(line.value.get("conversation_id")) for line in lines)
    writer.id = next(filter(None, conversations), "") or hashed_id("pydantic-ai", lines[0].value)
    take_rest(writer, "messages")
    for line in lines:
        entry = Fields(line.value)
        writer.at(entry.value.get("timestamp"))
        writer.take(entry, line.number, kind_of(entry, "kind"), _HANDLERS)
    return [writer.done()]


def _asked(writer: SessionWriter, entry: Fields, line: int) -> None:
    instructions = entry.text("instructions")
    if instructions and writer.state.get("instructions") != instructions:
        writer.state["instructions"] = instructions
        writer.say("system", texts(instructions), line)
    _read_parts(writer, entry, line)


def _answered(writer: SessionWriter, entry: Fields, line: int) -> None:
    vendor = writer.state["vendor"] = entry.text("provider_name")
    answer = entry.text("provider_response_id", "vendor_id")
    writer.model = entry.text("model_name") or writer.model
    entry.skip("provider_url", "history_digest")
    writer.flush()
    _read_parts(writer, entry, line, stop=entry.text("finish_reason"), response_id=answer)
    usage = mapping(entry.get("usage"))
    writer.usage(usage, _USAGE, vendor=vendor, cost=usage.get("cost"), response_id=answer)


def _read_parts(writer: SessionWriter, entry: Fields, line: int, **about: Any) -> None:
    for part in entry.each("parts"):
        kind = kind_of(part, "part_kind")
        writer.at(part.value.get("timestamp"))
        if kind not in _PARTS:
            writer.log.count(f"a part of kind {kind!r}", line)
            writer.note(kind, dict(part.value))
            part.skip(*part.value)
            continue
        role, maker = _PARTS[kind]
        parts = maker(writer, part, line)
        part.skip(*_SHAPE)
        is_result = any(isinstance(each, ToolResult) for each in parts)
        by_program = kind == "retry-prompt" and not is_result
        writer.say(role, parts, line, joined=is_result or role == "assistant", by_program=by_program, **about)


def _content(writer: SessionWriter, part: Fields, line: int) -> Iterable[Part]:
    """A text, or a list of texts and media."""
    _, parts, unknown = read_parts(part, writer.log.blob, PROVIDER.name)
    for kind in unknown:
        if kind != "cache-point":
            writer.log.count(f"content of kind {kind!r}", line)
    return parts


def _think(writer: SessionWriter, part: Fields, line: int) -> Iterable[Part]:
    api = writer.api_of(part.text("provider_name") or writer.state.get("vendor", ""))
    how = {"encrypted" if api.startswith("openai") else "signature": part.text("signature")}
    return thoughts(part.text("content"), api, **how)


def _call(writer: SessionWriter, part: Fields, line: int) -> Iterable[Part]:
    return (called(part.text("tool_call_id"), part.text("tool_name"), part.get("args")),)


def _returned(writer: SessionWriter, part: Fields, line: int) -> Iterable[Part]:
    """A result; also what the model has to mend, which is a call, or its answer if no tool is named."""
    call_id, name = part.text("tool_call_id"), part.text("tool_name")
    content, is_retry = shown(part.get("content"), writer.log.blob), kind_of(part, "part_kind") == "retry-prompt"
    if is_retry and not name:
        return content
    is_failed = is_retry or part.text("outcome") not in ("", "success")
    return (ToolResult(call_id, name, content, "failed" if is_failed else "ok"),)


_PARTS: dict[str, tuple[str, Callable[[SessionWriter, Fields, int], Iterable[Part]]]] = {
    "system-prompt": ("system", _content),
    "user-prompt": ("user", _content),
    **dict.fromkeys(("text", "file"), ("assistant", _content)),
    **dict.fromkeys(("tool-return", "builtin-tool-return", "retry-prompt"), ("user", _returned)),
    **dict.fromkeys(("tool-call", "builtin-tool-call"), ("assistant", _call)),
    "thinking": ("assistant", _think),
}
"""Who says a part, and what makes it one of turnlog's."""
_HANDLERS: dict[str, Handler | None] = {"request": _asked, "response": _answered}
