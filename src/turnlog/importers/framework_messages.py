"""Messages as frameworks and traces write them: any word for the role, and blocks of any of the common shapes.

Blocks of OpenTelemetry's conventions, of Vercel's AI SDK, LangChain, Bedrock Converse and of the APIs differ in how
they call the same few things, so that one list of words reads them all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

from ..log.messages import Outcome, Part, Reasoning, ToolCall, ToolResult, compact_json
from ..models.makers import maker_of
from ..providers import PROVIDERS
from ..providers.protocol import Provider
from .fields import Fields
from .json_values import items, mapping, word
from .parts import called, media, shown, texts, thoughts
from .writing import SessionWriter

Blob = Callable[[bytes], str]

ROLES = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("assistant", "ai", "model", "agent"), "assistant"),
    **dict.fromkeys(("user", "human", "generic", "chat"), "user"),
    **dict.fromkeys(("tool", "function"), "tool"),
}
"""turnlog's roles, and `tool`, by the words for them."""
LANGCHAIN_USAGE = {
    "input": "input_tokens|prompt_tokens",
    "output": "output_tokens|completion_tokens",
    "cached": "input_token_details.cache_read",
    "cache_write": "input_token_details.cache_creation",
    "reasoning": "output_token_details.reasoning",
}
"""Keys of LangChain's `usage_metadata`, in older versions of OpenAI's API; the input includes what was cached."""
_MAKERS = {
    **dict.fromkeys(("anthropic", "claude"), "anthropic"),
    **dict.fromkeys(("gemini", "google"), "google"),
    **dict.fromkeys(("openai", "gpt"), "openai"),
}
_TEXTS = {"text", "input_text", "output_text", "plaintext", "text-plain", "refusal", "text-content", "voice_note"}
_THINKING = {"thinking", "reasoning", "redacted_thinking", "reasoningContent", "reasoning_content"}
_CALLS = {"tool_use", "tool_call", "tool-call", "toolUse", "server_tool_call", "server_tool_use", "function_call"}
_RESULTS = {"tool_result", "tool_call_response", "tool-result", "toolResult", "server_tool_call_response"}
_MEDIA = {
    *("image", "image_url", "image-url", "input_image", "file", "blob", "uri", "document", "video", "audio", "binary"),
    *("document-url", "audio-url", "video-url"),
}
_ENDED: dict[str, Outcome] = {
    **dict.fromkeys(("output-available", "result"), "ok"),
    "output-error": "failed",
    "output-denied": "canceled",
}
"""States of the calls of Vercel's AI SDK that have a result, which stands with them in one block."""
_BESIDE = ("source-", "data-")
"""Blocks for the page, not for the model."""
_KEYED = ("toolUse", "toolResult", "reasoningContent", "image", "document", "video")
"""Blocks of Bedrock Converse: an object with one key, which names what it is."""

_MESSAGE = ("id", "type", "example", "index", "weight", "createdAt", "lc")
_AROUND = "around"
"""Under this key, a message has what stood beside it in an envelope."""


def message_of(value: Any) -> Fields:
    """A message without the envelope that LangChain puts around it (`{"lc", "kwargs"}` or `{"type", "data"}`), and that
    answers have (`{"message", "finish_reason"}`)."""
    outer = mapping(value)
    for key in ("kwargs", "data", "message"):
        inner = outer.get(key)
        if isinstance(inner, dict) and "content" not in outer and "role" not in outer:
            kind = items(outer.get("id"))[-1:] or [outer.get("type")] if key != "message" else []
            message = message_of(inner).value
            around = {name: each for name, each in outer.items() if name not in (key, "lc", "id", "type")}
            stop = {"finish_reason": around.pop("finish_reason", None)}
            beside = {_AROUND: around} if around else {}
            return Fields({**stop, **({"type": kind[0]} if kind else {}), **beside, **message})
    return Fields(value)


def provider_of(vendors: Iterable[str]) -> Provider:
    """The API of the first of these vendors that is named."""
    maker = maker_of(next(filter(None, vendors), ""))
    return PROVIDERS[maker.provider if maker else "openai-chat"]


def maker_named(*names: str) -> str:
    """Who made a model, by words in the names of the model and its vendor; "" if it is unknown."""
    named = " ".join(names).lower()
    return next((maker for name, maker in _MAKERS.items() if name in named), "")


def role_of(message: Fields) -> str:
    """turnlog's role of a message, or `tool`; "" if it has none that is known. LangChain's types are names of classes,
    too: `AIMessageChunk`."""
    words = (message.text(key).lower().removesuffix("chunk").removesuffix("message") for key in ("role", "type"))
    return next((ROLES[each] for each in words if each in ROLES), "")


def read_parts(message: Fields, blob: Blob, thinker: str) -> tuple[str, list[Part], list[str]]:
    """The role of a message ("" if it has none), its parts, and the kinds of its blocks that are not known; fields that
    are not read stay in `message`. `thinker` is the provider of the API that the model was spoken to in."""
    unknown: list[str] = []
    role, more = role_of(message), message.inside("additional_kwargs")
    key = "parts" if isinstance(message.value.get("parts"), list) else "content"
    content, blocks = message.value.get(key), message.each(key, "text")
    is_result = role == "tool" and not any(kind_of_block(block) in _RESULTS for block in blocks)
    parts: list[Part] = []
    if isinstance(content, list) and not is_result:
        waiting: list[Part] = []
        for block in blocks:
            made, kind = block_parts(block, blob, thinker), kind_of_block(block)
            if kind == "step-start":
                parts, waiting = [*parts, *waiting], []
                block.skip("type")
            if made is None:
                unknown += [] if kind.startswith(_BESIDE) else [kind]
            elif len(made) > 1 and isinstance(made[1], ToolResult):  # results stand behind all that the step said
                parts += made[:1]
                waiting += made[1:]
            else:
                parts += made
        parts += waiting
    elif isinstance(content, (str, dict, list)):
        message.skip(key)
        parts = [*shown(content, blob)]
    thinking = message.text("reasoning_content", "reasoning") or more.text("reasoning_content")
    refused = texts(message.text("refusal"), more.text("refusal"))
    parts = _with_calls(message, [*thoughts(thinking, thinker), *parts, *refused])
    if is_result:
        call_id = message.text("tool_call_id", "toolCallId", *["id"] * ("type" not in message.value))
        outcome: Outcome = "failed" if message.text("status") == "error" else "ok"
        parts = [ToolResult(call_id, message.text("name"), tuple(parts), outcome)]  # type: ignore[arg-type]
    message.skip(*_MESSAGE, "role")
    return "user" if role == "tool" else role, parts, unknown


def add_message(writer: SessionWriter, message: Fields, line: int, thinker: str = "", **about: Any) -> list[Part]:
    """Add a message to a session, the results in it as a message of their own; returns its parts."""
    role, parts, unknown = read_parts(message, writer.log.blob, thinker or writer.provider.name)
    for kind in unknown:
        writer.log.count(f"a block of type {kind!r}", line, "part" if parts else "entry")
    for is_result, group in groupby(parts, lambda part: isinstance(part, ToolResult)):
        writer.say("user" if is_result else role or "user", group, line, joined=is_result, **about)
    return parts


def _with_calls(message: Fields, parts: list[Part]) -> list[Part]:
    """The parts with the calls beside the content, of OpenAI's shape or LangChain's. Calls that the content has already
    get their arguments, if they have none; other arguments of these stay unread."""
    known = {part.id: place for place, part in enumerate(parts) if isinstance(part, ToolCall)}
    extra = message.inside("additional_kwargs")
    for source in (message, extra):
        calls = [*source.each("tool_calls"), *source.each("invalid_tool_calls")]
        for call in calls or [source.inside("function_call")]:
            function = call.inside("function") if "function" in call.value else call
            value, call_id = function.value, call.text("id")
            made = called(call_id, word(value.get("name")), value.get("arguments", value.get("args")))
            same = parts[known[call_id]] if call_id in known else None
            if not value or (isinstance(same, ToolCall) and same.arguments and same.arguments != made.arguments):
                continue
            call.skip("type", "index", "thought_signature")
            function.skip("name", "arguments", "args")
            if not isinstance(same, ToolCall) or not call_id:
                parts.append(made)
            elif not same.arguments:
                parts[known[call_id]] = made
        if any(isinstance(part, ToolCall) for part in parts):
            extra.skip("tool_calls", "function_call")
            break
    return parts


def kind_of_block(block: Fields) -> str:
    """What a block of a message says that it is."""
    return _named_kind(block) or next((key for key in block.value if key != "cachePoint"), "")


def _named_kind(block: Fields) -> str:
    return word(block.value.get("type", block.value.get("kind")))


def block_parts(block: Fields, blob: Blob, thinker: str) -> list[Part] | None:
    """The parts that a block of a message is; None if it is of no known kind or cannot be read, and then it stays
    unread."""
    kind = _named_kind(block) or next((key for key in _KEYED if key in block.value), "")
    inner = block.inside(kind) if kind in _KEYED and isinstance(block.value.get(kind), dict) else block
    found: list[Part] = []
    call = block.inside("toolInvocation") if "toolInvocation" in block.value else block
    if "toolCallId" in call.value and "state" in call.value:
        found = _invocation(block, call, blob)
    elif kind in _TEXTS or (not kind and isinstance(block.value.get("text"), str)):
        found = [*texts(inner.text("text", "content", "value", "refusal"))]
    elif kind in _THINKING:
        found = [*_thinking(inner, thinker)]
    elif kind in _CALLS:
        call_id = inner.text("call_id", "id", "toolCallId", "toolUseId")
        found = [called(call_id, inner.text("name", "toolName"), inner.get("input", "arguments", "args", kind))]
    elif kind in _RESULTS:
        found = [_result(inner, kind, blob)]
    elif kind in _MEDIA:
        found = [*_media(inner, kind, blob)]
    block.skip("cachePoint")
    if found:
        block.skip("type", "kind", "id", "index", "state", "cache_control", "modality", "format")
    elif any(key != "type" for key in block.unread()):
        return None
    return found


def _invocation(block: Fields, call: Fields, blob: Blob) -> list[Part]:
    """A call, and its result if it has one."""
    block.skip("type", "step", "title", "providerExecuted", "preliminary")
    call.skip("step")
    call_id, state = call.text("toolCallId"), call.text("state")
    name = call.text("toolName") or block.text("type").removeprefix("tool-")
    made = called(call_id, name, call.get("input", "args", "rawInput"))
    if state not in _ENDED:
        return [made]
    content = shown(call.get("output", "result", "errorText"), blob)
    return [made, ToolResult(call_id, name, content, _ENDED[state])]


def _thinking(block: Fields, thinker: str) -> tuple[Reasoning, ...]:
    inner = block.inside("reasoningText") if "reasoningText" in block.value else block
    signature = inner.text("signature", "thought_signature")
    for key in ("providerMetadata", "providerOptions"):
        vendor = block.inside(key, "anthropic")
        if vendor.value and (signature := signature or vendor.text("signature")):
            thinker = "anthropic"
    for detail in block.each("details"):  # version 4 of Vercel's AI SDK, which had signatures for Anthropic only
        if signature := signature or detail.text("signature"):
            thinker = "anthropic"
        detail.skip("type", "text")
    text = inner.text("text", "content", "thinking", "reasoning")
    text = text or "\n".join(each.text("text") for each in block.each("summary"))
    encrypted = block.text("data", "redactedContent", "encrypted_content")
    return thoughts(text, thinker, signature=signature, encrypted=encrypted)


def _result(block: Fields, kind: str, blob: Blob) -> ToolResult:
    call_id = block.text("tool_use_id", "id", "toolCallId", "toolUseId", "tool_call_id")
    content = block.get("content", "response", "result", "output", kind)
    failed = block.get("is_error", "isError") is True or block.text("status") == "error"
    if isinstance(content, dict) and "value" in content and isinstance(content.get("type"), str):
        failed = failed or content["type"] in ("error-text", "error-json", "execution-denied")
        content = content["value"]
    if isinstance(content, list):
        content = [
            compact_json(each["json"]) if isinstance(each, dict) and "json" in each else each for each in content
        ]
    block.skip("status")
    parts = shown(content, blob)
    return ToolResult(call_id, block.text("name", "toolName"), parts, "failed" if failed else "ok")


def _media(block: Fields, kind: str, blob: Blob) -> list[Part]:
    """The media of a block, whatever it calls the bytes or their place."""
    source = next((block.inside(key) for key in ("source", "image_url", "file") if block.inside(key).value), block)
    inner = source.inside("bytes") if source.inside("bytes").value else source  # Strands' bytes are an object
    inner = inner.inside("s3Location") if inner.inside("s3Location").value else inner
    mime = next((text for each in (source, block) if (text := _mime(each))), "")
    if not mime and (form := block.text("format")):
        mime = f"{'image' if kind == 'image' else 'application'}/{form}"
    keys = ("data", "bytes", "base64", "url", "uri", "image_url", "image", "content", "file_data")
    key = next((key for key in keys if isinstance(inner.value.get(key), str) and inner.value[key]), "")
    found = media(inner.value[key], mime, blob, block.text("filename", "name")) if key else None
    if found is None:
        return []
    inner.skip(key, "__bytes_encoded__", "detail", "type")
    return [found]


def _mime(block: Fields) -> str:
    return block.text("mediaType", "mime_type", "media_type", "mimeType")


def messages_in(value: Any, role: str) -> list[Any]:
    """The messages in what a model was given or gave, in whatever an integration logged: a list, an object around one,
    one message, a text (of `role`), or JSON text of these. What is beside a list goes with its first message."""
    if isinstance(value := parsed(value), str):
        return _as_said(value, role)
    if isinstance(value, list):
        if value and all(isinstance(each, list) for each in value):
            return [message for each in value for message in messages_in(each, role)]
        return [each if isinstance(each, dict) else _as_said(each, role)[0] for each in value if each]
    if not isinstance(value, dict) or not value:
        return []
    if not value.keys().isdisjoint(("role", "lc", "content", "tool_calls")) or word(value.get("type")) in ROLES:
        return [value if "role" in value or "type" in value else {"role": role, **value}]
    for key in ("messages", "choices", "generations", "message", "output"):
        inner = value.get(key)
        if isinstance(inner, (list, dict)) and inner:
            first, *others = messages_in(inner, role) or [{}]
            around = {name: each for name, each in value.items() if name != key}
            return [{**first, **({_AROUND: around} if around else {})}, *others]
    text = word(value.get("text")) if value.keys() <= {"text", "type"} else ""
    return _as_said(text or compact_json(value), role)


def json_in(text: str) -> Any:
    """The JSON object or list that a text is; None if it is none."""
    try:
        return json.loads(text) if text[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return None


def parsed(value: Any) -> Any:
    """The value of JSON text; anything else as it is."""
    inner = json_in(value) if isinstance(value, str) else None
    return value if inner is None else inner


def _as_said(value: Any, role: str) -> list[Any]:
    return [{"role": role, "content": value if isinstance(value, str) else compact_json(value)}] if value else []
