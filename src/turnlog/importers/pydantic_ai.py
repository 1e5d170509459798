"""Message histories of pydantic-ai 0.2 to 2: what `all_messages_json()` and `ModelMessagesTypeAdapter` write.

A message is a request or a response of parts, which `part_kind` names. A tool's result that the model has to mend is a
`retry-prompt` in versions 0 and 1, a `tool-return` with an outcome in 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..log.messages import Outcome, Part, compact_json
from ..models.makers import maker_of
from ..providers import PROVIDERS
from .conversations import take_rest
from .fields import Fields, kind_of
from .json_values import items, mapping, word
from .parts import called, media, shown, texts, thoughts
from .protocol import Imported, Origin, hashed_id
from .transcript import Transcript
from .writing import Handler, SessionWriter

_ENVELOPE = ("kind", "run_id", "conversation_id", "timestamp", "state", "model_id")
_SHAPE = ("part_kind", "timestamp", "id", "dynamic_ref", "scope", "context_id", "tool_kind", "provider_name", "retry")
_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
    "reasoning": "details.reasoning_tokens",
}
_OLDER_USAGE = {"input": "request_tokens", "output": "response_tokens"}


def read(origin: Origin) -> list[Imported]:
    """The one session of a history."""
    file = Transcript(origin)
    lines = file.entries("message", "messages")
    if not any(isinstance(line.value.get("parts"), list) for line in lines):
        raise file.refused("message of pydantic-ai", "give what all_messages_json() returned")
    vendors = (word(line.value.get("provider_name")) for line in lines)
    maker = maker_of(next(filter(None, vendors), ""))
    writer = SessionWriter(
        file, "pydantic-ai", PROVIDERS[maker.provider if maker else "openai-chat"], envelope=_ENVELOPE
    )
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
    _read_parts(writer, entry, line, _REQUEST_PARTS)


def _answered(writer: SessionWriter, entry: Fields, line: int) -> None:
    vendor, model = entry.text("provider_name"), entry.text("model_name")
    answer = entry.text("provider_response_id", "vendor_id")
    writer.model = model or writer.model
    writer.state["api"] = writer.api_of(vendor)
    entry.skip("provider_url", "history_digest")
    writer.flush()
    _read_parts(writer, entry, line, _RESPONSE_PARTS, stop=entry.text("finish_reason"), response_id=answer)
    usage = mapping(entry.get("usage"))
    keys = _USAGE if "input_tokens" in usage else _OLDER_USAGE
    keys = {**keys, "reasoning": "output_reasoning_tokens"} if usage.get("output_reasoning_tokens") else keys
    writer.usage(usage, keys, vendor=vendor, cost=usage.get("cost"), response_id=answer)


def _read_parts(
    writer: SessionWriter, entry: Fields, line: int, handlers: dict[str, Callable[..., None]], **about: Any
) -> None:
    for part in entry.each("parts"):
        kind = kind_of(part, "part_kind")
        writer.at(part.value.get("timestamp"))
        if handler := handlers.get(kind):
            part.skip(*_SHAPE)
            handler(writer, part, line, **about)
        else:
            writer.log.count(f"a part of kind {kind!r}", line)
            writer.note(kind, dict(part.value))
            part.skip(*part.value)


def _system(writer: SessionWriter, part: Fields, line: int) -> None:
    writer.say("system", texts(part.text("content")), line)


def _user(writer: SessionWriter, part: Fields, line: int) -> None:
    content = part.get("content")
    said = [
        each
        for item in ([content] if isinstance(content, str) else items(content))
        for each in _item(writer, item, line)
    ]
    writer.say("user", said, line)


def _item(writer: SessionWriter, item: Any, line: int) -> tuple[Part, ...]:
    if isinstance(item, str):
        return texts(item)
    fields = Fields(item)
    kind, mime = fields.text("kind"), fields.text("media_type")
    given = media(fields.text("data", "url"), mime, writer.log.blob)
    if kind == "text-content" or given is not None:
        return (given,) if given is not None else texts(fields.text("content"))
    if kind != "cache-point":
        writer.log.count(f"content of kind {kind!r}", line)
        writer.note("content", item)
    return ()


def _returned(writer: SessionWriter, part: Fields, line: int) -> None:
    outcome: Outcome = "ok" if part.text("outcome") in ("", "success") else "failed"
    writer.result(part.text("tool_call_id"), _content(part), line, name=part.text("tool_name"), outcome=outcome)


def _retried(writer: SessionWriter, part: Fields, line: int) -> None:
    """What the model has to mend: a call, or its answer if no tool is named."""
    call, name = part.text("tool_call_id"), part.text("tool_name")
    if name:
        writer.result(call, _content(part), line, name=name, outcome="failed")
    else:
        writer.say("user", shown(_content(part), writer.log.blob), line, by_program=True)


def _content(part: Fields) -> Any:
    content = part.get("content")
    return compact_json(content) if isinstance(content, (int, float)) else content


def _say_text(writer: SessionWriter, part: Fields, line: int, **about: Any) -> None:
    writer.say("assistant", texts(part.text("content")), line, joined=True, **about)


def _think(writer: SessionWriter, part: Fields, line: int, **about: Any) -> None:
    api, proof = writer.api_of(word(part.value.get("provider_name"))), part.text("signature")
    api = api if part.value.get("provider_name") else writer.state["api"]
    how = {"encrypted" if api.startswith("openai") else "signature": proof}
    writer.say("assistant", thoughts(part.text("content"), api, **how), line, joined=True, **about)


def _call(writer: SessionWriter, part: Fields, line: int, **about: Any) -> None:
    call = called(part.text("tool_call_id"), part.text("tool_name"), part.get("args"))
    writer.say("assistant", [call], line, joined=True, **about)


def _file(writer: SessionWriter, part: Fields, line: int, **about: Any) -> None:
    writer.say("assistant", _item(writer, part.get("content"), line), line, joined=True, **about)


def _builtin(writer: SessionWriter, part: Fields, line: int, **about: Any) -> None:
    _returned(writer, part, line)


_REQUEST_PARTS: dict[str, Callable[..., None]] = {
    "system-prompt": _system,
    "user-prompt": _user,
    "tool-return": _returned,
    "retry-prompt": _retried,
}
_RESPONSE_PARTS: dict[str, Callable[..., None]] = {
    "text": _say_text,
    "thinking": _think,
    "tool-call": _call,
    "builtin-tool-call": _call,
    "builtin-tool-return": _builtin,
    "file": _file,
}
_HANDLERS: dict[str, Handler | None] = {"request": _asked, "response": _answered}
