"""Messages in pi's format (github.com/badlogic/pi-mono, packages/ai/src/types.ts)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ...log.messages import Media, Message, Part, Reasoning, Text, ToolCall, ToolResult, compact_json, is_finite_json
from ...log.records import UsageRecord
from ...log.usage import Usage
from ...models.makers import makers
from ..drafting import Drafting, billed
from ..json_values import items, mapping, objects, without, word
from ..parts import media

CUT_SHORT = frozenset({"aborted", "error"})
"""Stop reasons of incomplete answers."""

_RESULT_KEYS = frozenset({"role", "toolCallId", "toolName", "isError", "timestamp", "details"})
_CALL_KEYS = frozenset({"type", "id", "name", "thoughtSignature"})

_APIS = {
    "anthropic-messages": "anthropic",
    "bedrock-converse-stream": "anthropic",
    "openai-completions": "openai-chat",
    "openai-responses": "openai-responses",
    "openai-codex-responses": "openai-responses",
    "azure-openai-responses": "openai-responses",
    "google-generative-ai": "google",
    "google-gemini-cli": "google",
    "google-vertex": "google",
}


def provider_of(api: str, vendor: str) -> str:
    """turnlog's name for the provider, from pi's names of the API and the vendor."""
    maker = makers().get(vendor)
    return _APIS.get(api) or (maker.provider if maker else vendor or api)


def read_entry(wire: Mapping[str, Any], log: Drafting, line: int) -> Message | None:
    """A message that no model wrote. None if it is recorded as a note, because pi does not send it or it cannot be
    read."""
    role = word(wire.get("role"))
    if role == "toolResult":
        return _result(wire, log, line)
    if role == "bashExecution":
        return _bash(wire, log)
    content = wire.get("content") if "content" in wire else wire.get("summary")
    if role in ("user", "custom", "hookMessage", "branchSummary", "compactionSummary") and _is_content(content):
        return Message("user", _parts(content, "", log, line), by_program=role != "user")
    log.unreadable(line, f"a message of role {wire.get('role')!r}", dict(wire), "entry")
    return None


def read_answer(wire: Mapping[str, Any], log: Drafting, line: int) -> tuple[Message, tuple[Part, ...]]:
    """A model's answer, and its calls whose arguments are incomplete."""
    provider = provider_of(word(wire.get("api")), word(wire.get("provider")))
    whole = wire.get("content")
    # pi deletes `partialJson` when a call is complete.
    broken = [block for block in objects(whole) if "partialJson" in block]
    fragments = [
        ToolCall(id=_call_id(block.get("id")), name=word(block.get("name")), raw=word(block["partialJson"]))
        for block in broken
    ]
    if broken:
        whole = [block for block in items(whole) if block not in broken]
    if not _is_content(whole):
        log.unreadable(line, "the content of an answer", dict(wire), "entry")
        whole = []
    return Message("assistant", _parts(whole, provider, log, line)), tuple(fragments)


def usage_of(wire: Mapping[str, Any], model: str) -> UsageRecord | None:
    """The usage of the answer, None if it was aborted before the provider reported usage."""
    raw = wire.get("usage")
    if not isinstance(raw, dict):
        return None
    usage = billed(raw, {"input": "input", "output": "output", "cached": "cacheRead", "cache_write": "cacheWrite"})
    # pi does not include cached tokens in `input`.
    usage = replace(usage, input=usage.input + usage.cached + usage.cache_write)
    if usage == Usage():
        return None
    provider = provider_of(word(wire.get("api")), word(wire.get("provider")))
    return UsageRecord(provider=provider, model=model, usage=usage, raw=raw)


def _is_content(content: Any) -> bool:
    return isinstance(content, (str, list))


def _call_id(value: Any) -> str:
    """The id of a call; pi writes `call_id|item_id` for OpenAI's Responses."""
    return word(value).partition("|")[0]


def _bash(wire: Mapping[str, Any], log: Drafting) -> Message | None:
    """A command that the user ran. pi sends it as a user message unless told not to."""
    if wire.get("excludeFromContext") is True:
        log.note("bash", dict(wire))
        return None
    code = wire.get("exitCode")
    end = "\n(cancelled)" if wire.get("cancelled") is True else f"\n(exit code {code})" if code else ""
    return Message("user", (Text(f"$ {word(wire.get('command'))}\n{word(wire.get('output'))}{end}"),), by_program=True)


def _result(wire: Mapping[str, Any], log: Drafting, line: int) -> Message:
    content = wire.get("content")
    if not _is_content(content):
        log.left_unread(line, "", without(wire, _RESULT_KEYS), is_empty=True, of="a tool result")
    parts = _parts(content, "", log, line) if _is_content(content) else ()
    result = ToolResult(
        call_id=_call_id(wire.get("toolCallId")),
        name=word(wire.get("toolName")),
        parts=tuple(part for part in parts if isinstance(part, (Text, Media))),
        outcome="failed" if wire.get("isError") is True else "ok",
    )
    return Message("user", (result,))


def _parts(content: Any, provider: str, log: Drafting, line: int) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(content),)
    parts: list[Part] = []
    for block in content:
        part = _part(block, provider, log) if isinstance(block, dict) else None
        if isinstance(part, ToolCall) and "arguments" not in block:
            log.left_unread(line, "", without(block, _CALL_KEYS), is_empty=True, of="a tool call")
        if part is None:
            log.unreadable(line, "a content block", block)
        else:
            parts.append(part)
    return tuple(parts)


def _part(block: Mapping[str, Any], provider: str, log: Drafting) -> Part | None:
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return Text(block["text"])
    if kind == "image" and isinstance(block.get("data"), str):
        return media(block["data"], word(block.get("mimeType")) or "image/png", log.blob)
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        return _thinking(block, provider)
    if kind == "toolCall" and isinstance(block.get("name"), str):
        return _call(block, provider)
    return None


def _thinking(block: Mapping[str, Any], provider: str) -> Reasoning:
    text, proof = block["thinking"], word(block.get("thinkingSignature"))
    if provider == "openai-responses" and proof.startswith("{"):
        try:
            item = mapping(json.loads(proof))  # the whole reasoning item
        except (ValueError, RecursionError):
            item = {}
        return Reasoning(
            provider=provider, summary=(text,) if text else (),
            encrypted=word(item.get("encrypted_content")), id=word(item.get("id")),
        )  # fmt: skip
    if provider == "openai-chat":  # here the signature is the name of the field that contained the text
        return Reasoning(provider=provider, text=text)
    if block.get("redacted") is True:
        return Reasoning(provider=provider, encrypted=proof)
    return Reasoning(provider=provider, text=text, signature=proof)


def _call(block: Mapping[str, Any], provider: str) -> ToolCall:
    call_id, item_id = _call_id(block.get("id")), word(block.get("id")).partition("|")[2]
    arguments, signature = block.get("arguments"), word(block.get("thoughtSignature"))
    is_json = is_finite_json(arguments)
    return ToolCall(
        id=call_id, name=block["name"],
        arguments=(arguments if arguments is not None else {}) if is_json else None,
        raw=None if is_json else compact_json(arguments),
        signature=signature, provider=provider if signature or item_id else "", item_id=item_id,
    )  # fmt: skip
