"""Messages of LangChain and LangGraph: what `messages_to_dict`, `model_dump` and `dumps` write, also under `messages`.

The three differ in what is around a message: `data` and `type`, nothing, or `kwargs` and the name of its class in `id`.
Content is text or blocks of Anthropic's and OpenAI's APIs, or LangChain's own; blocks repeat what is in `tool_calls`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..log.messages import Media, Outcome, Part, ToolCall
from ..models.makers import maker_of
from ..providers import PROVIDERS
from .conversations import take_rest
from .fields import Fields
from .json_values import items, mapping, word
from .parts import called, shown, texts, thoughts
from .protocol import Imported, Origin, hashed_id
from .transcript import Transcript
from .writing import Handler, SessionWriter

_ENVELOPE = ("lc", "type", "id", "example")
_MAKERS = {"claude": "anthropic", "gemini": "google", "gpt": "openai", "o": "openai"}
_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "input_token_details.cache_read",
    "cache_write": "input_token_details.cache_creation",
    "reasoning": "output_token_details.reasoning",
}
_OLDER_USAGE = {"input": "prompt_tokens", "output": "completion_tokens"}
_CALLS = ("tool_use", "tool_call", "function_call", "input_json_delta", "tool_call_chunk")


def read(origin: Origin) -> list[Imported]:
    """The one session of a list of messages."""
    file = Transcript(origin)
    lines = file.entries("message", "messages")
    kinds = [_kind(line.value) for line in lines]
    if not any(kind in _HANDLERS for kind in kinds):
        raise file.refused("message of LangChain", "give what messages_to_dict() or dumps() returned")
    about = [mapping(_inside(Fields(line.value)).value.get("response_metadata")) for line in lines]
    vendors = [_vendor(each) for each in about]
    maker = maker_of(next(filter(None, vendors), ""))
    writer = SessionWriter(file, "langchain", PROVIDERS[maker.provider if maker else "openai-chat"], envelope=_ENVELOPE)
    asked = kinds.index("human") if "human" in kinds else 0
    writer.id = hashed_id("langchain", [_inside(Fields(line.value)).value for line in lines[: asked + 1]])
    take_rest(writer, "messages")
    for line, kind in zip(lines, kinds, strict=True):
        writer.take(Fields(line.value), line.number, kind, _HANDLERS)
    return [writer.done()]


def _inside(entry: Fields) -> Fields:
    """The message in what is around it."""
    return next((entry.inside(key) for key in ("data", "kwargs") if entry.inside(key).value), entry)


def _kind(value: dict[str, Any]) -> str:
    """The type of a message, the same in all forms: of `AIMessageChunk` that of an `ai` message."""
    path = items(value.get("id"))
    named = path[-1] if value.get("type") == "constructor" and path else value.get("type")
    return word(named).removesuffix("Chunk").removesuffix("Message").lower() or "unknown"


def _vendor(about: dict[str, Any]) -> str:
    model = word(about.get("model_name")) or word(about.get("model"))
    return word(about.get("model_provider")) or _MAKERS.get(model.partition("-")[0].rstrip("0123456789"), "")


def _said(writer: SessionWriter, entry: Fields, line: int) -> None:
    message = _inside(entry)
    message.skip(*_ENVELOPE)
    kind = _kind(dict(entry.value))
    role = {"system": "system", "chat": message.text("role")}.get(kind, "user")
    role = role if role in ("system", "assistant") else "user"
    writer.say(role, _content(writer, message, line), line)


def _answered(writer: SessionWriter, entry: Fields, line: int) -> None:
    message = _inside(entry)
    message.skip(*_ENVELOPE)
    about, more = message.inside("response_metadata"), message.inside("additional_kwargs")
    vendor = _vendor(dict(about.value))
    writer.model = about.text("model_name", "model") or writer.model
    about.text("model_provider")
    stop, answer = about.text("finish_reason", "stop_reason"), about.text("id")
    about.skip("stop_sequence", "role", "type", "service_tier", "system_fingerprint", "object", "created", "logprobs")
    calls = _calls(message, more)
    thinking = thoughts(more.text("reasoning_content"), writer.api_of(vendor))
    parts = (*thinking, *_content(writer, message, line, calls), *texts(more.text("refusal")))
    writer.flush()
    writer.say("assistant", (*parts, *calls), line, stop=stop, response_id=answer)
    _bill(writer, message, about, vendor)


def _bill(writer: SessionWriter, message: Fields, about: Fields, vendor: str) -> None:
    billed = mapping(message.get("usage_metadata"))
    older = mapping(about.get("token_usage", "usage"))
    about.skip("usage", "token_usage")
    if billed:
        writer.usage(billed, _USAGE, vendor=vendor)
    else:
        writer.usage(older, _OLDER_USAGE if "prompt_tokens" in older else _USAGE, vendor=vendor)


def _calls(message: Fields, more: Fields) -> list[ToolCall]:
    calls: list[ToolCall] = []
    for call in (*message.each("tool_calls"), *message.each("invalid_tool_calls")):
        calls.append(called(call.text("id"), call.text("name"), call.get("args")))
        call.skip("type", "index")
    for wire in more.each("tool_calls"):  # the same, as OpenAI's API wrote them
        function = wire.inside("function")
        if not message.value.get("tool_calls"):
            calls.append(called(wire.text("id"), function.text("name"), function.get("arguments")))
        wire.skip("id", "type", "index", "function")
    function = more.inside("function_call")
    if function.value and not calls:
        calls.append(called("", function.text("name"), function.get("arguments")))
    elif calls:
        more.skip("function_call")
    return calls


def _content(writer: SessionWriter, message: Fields, line: int, calls: Sequence[ToolCall] = ()) -> tuple[Part, ...]:
    content = message.value.get("content")
    parts: list[Part] = [*texts(content)]
    for item in items(content):
        block = Fields(item)
        if isinstance(item, str):
            parts += texts(item)
        elif (given := _block(writer, block, calls)) is not None:
            parts += given
            writer.note("block", block.unread())
        else:
            writer.log.count(f"a block of type {block.text('type') or 'unknown'!r}", line)
            writer.note("block", item if isinstance(item, dict) else [item])
    if isinstance(content, (str, list)):
        message.skip("content")
    return tuple(parts)


def _block(writer: SessionWriter, block: Fields, calls: Sequence[ToolCall]) -> Sequence[Part] | None:
    """The parts of a block; None if it is of no known type."""
    kind = block.text("type")
    block.skip("index", "id")
    if kind in ("text", "text-plain", "refusal"):
        return texts(block.text("text", "refusal"))
    if kind in ("thinking", "redacted_thinking"):
        return thoughts(
            block.text("thinking"), "anthropic", signature=block.text("signature"), encrypted=block.text("data")
        )
    if kind == "reasoning":
        summaries = [each.text("text") for each in block.each("summary")]
        text = block.text("reasoning") or "\n".join(summaries)
        return thoughts(text, writer.provider.name, encrypted=block.text("encrypted_content"))
    if kind in _CALLS:
        call = called(str(block.value.get("id") or ""), block.text("name"), block.get("input", "args", "arguments"))
        block.skip("call_id")
        is_known = any(call.id in ("", each.id) for each in calls)
        return () if is_known or not call.name else (call,)
    given = shown([block.value], writer.log.blob)
    if not isinstance(given[0], Media):
        return None
    block.skip(*block.value)
    return given


def _returned(writer: SessionWriter, entry: Fields, line: int) -> None:
    message = _inside(entry)
    message.skip(*_ENVELOPE)
    outcome: Outcome = "failed" if message.text("status") == "error" else "ok"
    content, name = message.get("content"), message.text("name")
    writer.result(message.text("tool_call_id"), content, line, name=name, outcome=outcome)


def _removed(writer: SessionWriter, entry: Fields, line: int) -> None:
    """A message of LangGraph's that was to be taken out of the list."""
    writer.note("remove", {"message": _inside(entry).text("id")})


_HANDLERS: dict[str, Handler | None] = {
    "human": _said,
    "system": _said,
    "chat": _said,
    "ai": _answered,
    "tool": _returned,
    "function": _returned,
    "remove": _removed,
}
