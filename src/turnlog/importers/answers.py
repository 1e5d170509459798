"""Whole responses and conversations of Chat Completions inside the transcripts of agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..errors import FormatError
from ..log.messages import Message, Opaque, ToolCall
from ..log.records import Configuration, MessageRecord, UsageRecord
from ..log.texts import strings_in
from ..log.usage import Usage, tokens_billed
from ..providers.openai_chat import PROVIDER
from ..providers.openai_chat.response import usage_of
from .drafting import Drafting
from .json_values import items, mapping, without
from .repeats import texts_of, without_repeats

_READ = frozenset({"id", "object", "created", "model", "usage", "choices"})
_READ_OF_CHOICE = frozenset({"message", "index", "finish_reason"})
_DETAILS = "reasoning_details"
"""OpenRouter's key for reasoning in parts, readable and encrypted. `reasoning` repeats the readable part; the encrypted
part is useful only when it is sent back, which these agents do not do."""
_SETTINGS = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop", "reasoning_effort")
"""Settings that agents store under the names of request keys. Their other settings are for the client library."""


class ImportedAnswer(Struct, frozen=True):
    """A recorded answer: its record number, the id of its response, and its message."""

    number: int
    response_id: str
    message: Message


def add_answer(response: Any, source: str, log: Drafting) -> ImportedAnswer | None:
    """Record the message and usage of a whole response; its other keys become a note. Returns None and records nothing
    if the response has no readable answer."""
    if not isinstance(response, Mapping):
        return None
    try:
        reply = PROVIDER.parse_response(response)
    except FormatError:
        return None
    details = [part.data for part in reply.message.parts if isinstance(part, Opaque) and part.kind == _DETAILS]
    message = _without_echoes(reply.message)
    if not message.parts:
        return None
    log.blobs.update(reply.blobs)
    body = MessageRecord(
        message=message, model=reply.model, stop=reply.stop, response_id=reply.response_id, source=source
    )
    number = log.add(body)
    if reply.usage is not None:
        add_usage(reply.model, reply.raw_usage, log)
    if details:
        log.note(_DETAILS, details[0], source)
    if reply.fragments:
        log.note("fragments", [call.raw for call in reply.fragments if isinstance(call, ToolCall)], source)
    rest = without(response, _READ)
    for index, choice in enumerate(items(response.get("choices"))):
        rest[f"choice {index}"] = without(mapping(choice), () if index else _READ_OF_CHOICE)
    log.note_changes("answer", without_repeats(rest, (), {}) or {})
    return ImportedAnswer(number, reply.response_id, message)


def _without_echoes(message: Message) -> Message:
    """The message without parts that agents do not send back: keys of the response that repeat its texts in another
    shape, and encrypted reasoning."""
    texts = texts_of(message)
    parts = [part for part in message.parts if not (isinstance(part, Opaque) and _is_echo(part, texts))]
    return replace(message, parts=tuple(parts))


def _is_echo(part: Opaque, texts: list[str]) -> bool:
    return part.kind == _DETAILS or (part.kind == "response" and {*strings_in(part.data)} <= {*texts, "text"})


def add_usage(model: str, raw: Any, log: Drafting) -> None:
    """Record a response's usage object. If it cannot be read, it is recorded with zero tokens."""
    usage = usage_of(raw) or Usage()
    written = tokens_billed(mapping(raw).get("cache_creation_input_tokens"))
    if written and not usage.cache_write:  # LiteLLM, for Anthropic's models
        usage = replace(usage, cache_write=written)
    log.add(UsageRecord(provider=PROVIDER.name, model=model, usage=usage, raw=raw))


def add_configuration(model: Any, settings: Any, tools: Any, log: Drafting) -> Configuration:
    """Record the model, settings and tools of requests, if the transcript has any of them. `tools` are used only if
    they have the shape of requests."""
    body: dict[str, Any] = {"messages": []}
    if isinstance(model, str) and model:
        body["model"] = model
    values = mapping(settings)
    body |= {key: values[key] for key in _SETTINGS if values.get(key) not in (None, [], "")}
    if isinstance(tools, list) and tools and all(isinstance(tool, dict) and "function" in tool for tool in tools):
        body["tools"] = tools
    try:
        parsed = PROVIDER.parse(body)
    except FormatError:  # the tools do not have the shape of a request's
        parsed = PROVIDER.parse(without(body, ("tools",)))
    configuration = replace(parsed.configuration, form=None)
    if configuration != Configuration(provider=PROVIDER.name):
        log.add(configuration)
    return configuration
