"""Chat Completions responses and conversations that agents keep whole inside transcripts of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..errors import FormatError
from ..log.messages import Message, Opaque, Reasoning, Text, ToolCall, ToolResult, text_of
from ..log.records import Configuration, MessageRecord, Usage, UsageRecord, tokens_billed
from ..log.texts import strings_in
from ..providers.openai_chat import PROVIDER
from ..providers.openai_chat.response import usage_of
from ..redaction import cut_title
from .drafting import Drafting, result_text, without_repeats

_READ = frozenset({"id", "object", "created", "model", "usage", "choices"})
_READ_OF_CHOICE = frozenset({"message", "index", "finish_reason"})
_DETAILS = "reasoning_details"
"""OpenRouter's key for reasoning in pieces, readable and encrypted. The readable part stands in
`reasoning` too; the rest is of use only to who sends it back, and these agents do not."""
_SETTINGS = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop", "reasoning_effort")
"""Settings that agents keep under the names that requests have. What else they keep is for their client."""


class Answer(Struct, frozen=True):
    """A recorded answer: the number of its record, the id of its response, and what it said."""

    number: int
    response_id: str
    message: Message


def add_answer(response: Any, source: str, log: Drafting) -> Answer | None:
    """Record the message and usage of a whole response; the rest of it becomes a note.

    None, and nothing recorded, if it holds no answer that can be read.
    """
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
        log.add(usage_record(reply.model, reply.raw_usage))
    if details:
        log.note(_DETAILS, details[0], source)
    if reply.fragments:
        log.note("fragments", [call.raw for call in reply.fragments if isinstance(call, ToolCall)], source)
    rest = {key: value for key, value in response.items() if key not in _READ}
    choices = response.get("choices")
    for index, choice in enumerate(choices if isinstance(choices, list) else ()):
        if isinstance(choice, dict):
            rest[f"choice {index}"] = {
                key: value for key, value in choice.items() if key not in _READ_OF_CHOICE or index
            }
    rest = without_repeats(rest, (), {})
    if rest is not None:
        log.note_changes("answer", rest)
    return Answer(number, reply.response_id, message)


def _without_echoes(message: Message) -> Message:
    """The message without what agents do not send back: keys of a response that repeat its own texts
    in another shape, and the encrypted side of its reasoning."""
    said = texts_of(message)
    parts = [part for part in message.parts if not (isinstance(part, Opaque) and _is_echo(part, said))]
    return replace(message, parts=tuple(parts))


def _is_echo(part: Opaque, said: list[str]) -> bool:
    return part.kind == _DETAILS or (part.kind == "response" and {*strings_in(part.data)} <= {*said, "text"})


def usage_record(model: str, raw: Any) -> UsageRecord:
    """The record of a response's own usage object. What is no usage is kept, with no tokens counted."""
    usage = usage_of(raw) or Usage()
    written = tokens_billed(raw.get("cache_creation_input_tokens")) if isinstance(raw, Mapping) else 0
    if written and not usage.cache_write:  # LiteLLM, for Anthropic's models
        usage = replace(usage, cache_write=written)
    return UsageRecord(provider=PROVIDER.name, model=model, usage=usage, raw=raw)


def add_configuration(model: Any, settings: Any, tools: Any, log: Drafting) -> Configuration:
    """Record what requests were made with, as far as a transcript says, if it says anything.

    `tools` in any other shape than a request's are not taken.
    """
    body: dict[str, Any] = {"messages": []}
    if isinstance(model, str) and model:
        body["model"] = model
    if isinstance(settings, Mapping):
        body |= {key: settings[key] for key in _SETTINGS if settings.get(key) not in (None, [], "")}
    if isinstance(tools, list) and tools and all(isinstance(tool, dict) and "function" in tool for tool in tools):
        body["tools"] = tools
    try:
        parsed = PROVIDER.parse(body)
    except FormatError:  # tools that no request could have
        parsed = PROVIDER.parse({key: item for key, item in body.items() if key != "tools"})
    configuration = replace(parsed.configuration, form=None)
    if configuration != Configuration(provider=PROVIDER.name):
        log.add(configuration)
    return configuration


def texts_of(message: Message) -> list[str]:
    """Every text that a message holds, those inside the arguments of its calls included."""
    texts: list[str] = []
    for part in message.parts:
        if isinstance(part, (Text, Reasoning)):
            texts.append(part.text)
        elif isinstance(part, ToolResult):
            texts.append(result_text(part.parts))
        elif isinstance(part, ToolCall):
            texts += [part.raw_arguments, *strings_in(part.arguments)]
    return [text for text in texts if text]


def task_title(messages: Iterable[Message]) -> str:
    """A title from the first user message of an agent's run.

    Its prompt comes from a template: markup, paths, and lines that lead to the task ("... the
    following issue:") say nothing. At most 80 characters.
    """
    asked = (text_of(message) for message in messages if message.role == "user")
    lines = next((text for text in asked if text), "").splitlines()
    plain = [line.strip().lstrip("#").strip() for line in lines]
    plain = [line for line in plain if line and not line.startswith("<")]
    told = [line for line in plain if not line.endswith(":") and not line.startswith("/")]
    title = next(iter(told or plain), "")
    return cut_title(title)
