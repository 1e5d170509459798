"""Spans of OpenTelemetry's conventions for GenAI, as OTLP JSON (one export, or one on each line) or as the SDKs print
them (`to_json`).

Attributes are those of gen_ai in open-telemetry/semantic-conventions@104713c0 and what pydantic-ai 2.68 writes. Older
instrumentations put messages into the events of a span, or into numbered attributes (`gen_ai.prompt.0.content`,
`llm.input_messages.0.message.content`); Vercel's AI SDK into `ai.prompt.messages`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from .._platform.units import counted
from .fields import Fields
from .framework_messages import ROLES, messages_in, parsed
from .json_values import items, mapping, word
from .protocol import Imported, Origin
from .traces import Span, TraceReader
from .transcript import Line, Transcript, json_document
from .unread import named

_USAGE = {
    "input": "input_tokens|prompt_tokens|prompt",
    "output": "output_tokens|completion_tokens|completion",
    "cached": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}
"""Attributes below `gen_ai.usage` and `llm.token_count`, with `_` for dots; the input includes what was cached."""
_GENAI = ("gen_ai.", "llm.", "ai.", "openinference.", "traceloop.")
_KINDS: dict[str, Literal["model", "tool"]] = {
    **dict.fromkeys(("chat", "text_completion", "generate_content", "completion", "llm"), "model"),
    **dict.fromkeys(("ai.generateText.doGenerate", "ai.streamText.doStream"), "model"),
    **dict.fromkeys(("execute_tool", "tool", "ai.toolCall"), "tool"),
}
"""What a span is, by the words for its operation."""
_OPERATION = ("ai.operationId", "openinference.span.kind", "traceloop.span.kind", "llm.request.type")
_LEVELS = (*("resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "instrumentationLibrarySpans", "spans"),)
"""Keys of lists in an export, from the outside in."""
_ABOUT = (
    *("trace_id", "traceId", "spanId", "span_id", "parentSpanId", "parent_id", "name", "kind", "context", "flags"),
    *("startTimeUnixNano", "endTimeUnixNano", "start_time", "end_time", "status", "resource", "links", "traceState"),
    *("start_time_unix_nano", "end_time_unix_nano", "parent_span_id"),
)


def read(origin: Origin) -> list[Imported]:
    """A session for each conversation, or each trace, and for each history in it that is another one."""
    file = Transcript(origin)
    spans = list(_spans(file))
    conversations = {_trace(line.value): group for line in spans if (group := _conversation(line.value))}
    known = [line for line in spans if any(key.startswith(_GENAI) for key in mapping(line.value.get("attributes")))]
    if len(known) < len(spans):
        other = next(line.number for line in spans if line not in known)
        file.warn(other, f"not read: {counted(len(spans) - len(known), 'span')} without attributes of GenAI", "nothing")
    reader = TraceReader(file, "otel-genai", _USAGE)
    return reader.read(_span(line, conversations) for line in known)


def _spans(file: Transcript) -> Iterator[Line]:
    """Every span as the SDK prints it: with an object of attributes."""
    number = 0
    for line in _documents(file):
        exported = Fields(line.value)
        for span in _within(exported):
            number += 1
            place = line.number if span is line.value else number
            yield Line(place, {**span, "attributes": _flat(span.get("attributes"))})
        if rest := exported.unread():
            file.warn(line.number, f"not read: {named(list(rest))} of an export")


def _within(export: Fields) -> Iterator[Mapping[str, Any]]:
    """The spans in an export, or the span itself."""
    levels = [key for key in _LEVELS if key in export.value]
    export.skip(*(("resource", "scope", "schemaUrl") if levels else export.value))
    if not levels:
        yield export.value
    for key in levels:
        for inner in export.each(key):
            yield from _within(inner)


def _documents(file: Transcript) -> list[Line]:
    """The exports of a file: one document, JSON lines, or documents of several lines, as the console exporters print
    them."""
    whole = file.document_or_none()
    if isinstance(whole, dict):
        return [Line(1, whole)]
    if isinstance(whole, list) or file.data.lstrip()[:2].strip() != b"{" or b'"resourceSpans"' in file.data[:1000]:
        return file.entries("span", "spans")
    printed = (piece + b"\n}" for piece in file.data.split(b"\n}"))
    return file.objects("span", (line for piece in printed if piece.strip() != b"}" for line in _printed(file, piece)))


def _printed(file: Transcript, piece: bytes) -> Iterator[Line]:
    try:
        yield Line(0, json_document(piece))
    except ValueError as error:
        file.warn(0, f"left out: a span is not JSON ({error})", "entry")


def _flat(attributes: Any) -> dict[str, Any]:
    """Attributes as an object; as OTLP has them, they are a list of keys and typed values."""
    if not isinstance(attributes, list):
        return attributes if isinstance(attributes, dict) else {"attributes": attributes}
    flat = {each["key"]: _plain(each.get("value")) for each in map(mapping, attributes) if word(each.get("key"))}
    if rest := [each for each in attributes if not word(mapping(each).get("key"))]:
        flat["attributes"] = rest
    return flat


def _plain(value: Any) -> Any:
    kind, inner = next(iter(mapping(value).items()), ("", value))
    match kind.replace("_", "").lower():
        case "intvalue" if isinstance(inner, str) and inner.lstrip("-").isdecimal():
            return int(inner)
        case "arrayvalue":
            return [_plain(each) for each in items(mapping(inner).get("values"))]
        case "kvlistvalue":
            return _flat(mapping(inner).get("values"))
    return inner


def _trace(span: Mapping[str, Any]) -> str:
    return word(span.get("traceId")) or word(span.get("trace_id")) or word(mapping(span.get("context")).get("trace_id"))


def _conversation(span: Mapping[str, Any]) -> str:
    return Fields(span.get("attributes")).text(
        "gen_ai.conversation.id", "session.id", "ai.telemetry.metadata.sessionId"
    )


def _span(line: Line, conversations: Mapping[str, str]) -> Span:
    fields = Fields(line.value)
    at = fields.inside("attributes")
    at.text("gen_ai.conversation.id", "session.id")
    words = [at.text("gen_ai.operation.name"), *(at.text(key) for key in _OPERATION)]
    kind = next((_KINDS[each] for each in (*words, *map(str.lower, words)) if each in _KINDS), None)
    trace = _trace(line.value)
    span = Span(
        kind=kind or "step",
        group=_conversation(line.value) or conversations.get(trace, trace) or "otel-genai",
        line=line.number,
        fields=fields,
        start=_time(fields, "startTimeUnixNano", "start_time_unix_nano", "start_time"),
        end=_time(fields, "endTimeUnixNano", "end_time_unix_nano", "end_time"),
        name=at.text("gen_ai.tool.name", "ai.toolCall.name") or fields.text("name"),
        error=_error(fields, at),
        model=at.text("gen_ai.response.model", "ai.response.model", "gen_ai.request.model", "llm.model_name"),
        vendor=at.text("gen_ai.provider.name", "gen_ai.system", "llm.provider", "ai.model.provider"),
        response_id=at.text("gen_ai.response.id", "ai.response.id"),
        stop=word(next(iter(items(at.get("gen_ai.response.finish_reasons"))), "")),
        call_id=at.text("gen_ai.tool.call.id", "ai.toolCall.id"),
    )
    fields.skip(*_ABOUT)
    at.skip("logfire.json_schema", "logfire.msg", "gen_ai.tool.type", "gen_ai.tool.description")
    if span.kind == "model":
        _called(span, fields, at)
    elif span.kind == "tool":
        span.output = at.get("gen_ai.tool.call.result", "tool_response", "ai.toolCall.result", "output.value")
    return span


def _time(fields: Fields, *keys: str) -> Any:
    value = fields.get(*keys)
    if isinstance(value, int) or (isinstance(value, str) and value.isdecimal()):
        return int(value) // 1_000_000
    return value


def _error(fields: Fields, at: Fields) -> str:
    status = fields.inside("status")
    code, message = status.get("code", "status_code"), status.text("message", "description")
    kind = at.text("error.type")
    return message or kind or "failed" if code in (2, "STATUS_CODE_ERROR", "ERROR") else kind


def _called(span: Span, fields: Fields, at: Fields) -> None:
    """The messages and usage of a model's call, from whatever attributes or events have them."""
    system = parsed(at.get("gen_ai.system_instructions"))
    parts = [{"role": "system", "parts" if isinstance(system, list) else "content": system}] if system else []
    given = at.get("gen_ai.input.messages", "ai.prompt.messages")
    given = given or _numbered(at, "gen_ai.prompt.", "llm.input_messages.")
    answer = at.get("gen_ai.output.messages") or _numbered(at, "gen_ai.completion.", "llm.output_messages.")
    if "ai.response.text" in at.value or "ai.response.toolCalls" in at.value:
        calls = items(parsed(at.get("ai.response.toolCalls")))
        answer = {"role": "assistant", "content": [{"type": "text", "text": at.text("ai.response.text")}, *calls]}
    said, chosen = _events(fields)
    span.input = [*parts, *messages_in(given or said or at.get("input.value"), "user")]
    span.output = messages_in(answer or chosen or at.get("output.value"), "assistant")
    billed = [key for key in at.value if key.startswith(("gen_ai.usage.", "llm.token_count."))]
    usage = {".".join(key.split(".")[2:]).replace(".", "_"): at.get(key) for key in billed}
    span.usages = [usage] if usage else []


def _numbered(at: Fields, *prefixes: str) -> list[Any]:
    """The messages in attributes `PREFIX.0.role`, `PREFIX.0.tool_calls.0.name`."""
    found: dict[str, Any] = {}
    for key in [key for key in at.value if key.startswith(prefixes)]:
        path = next(key[len(prefix) :] for prefix in prefixes if key.startswith(prefix)).split(".")
        place = found
        for step in path[:-1]:
            inner = place.setdefault(step, {})
            place = inner if isinstance(inner, dict) else place.setdefault(f"{step}.", {})
        place[path[-1]] = at.get(key)
    return [mapping(message).get("message", message) for message in items(_listed(found))]


def _listed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _listed(each) for key, each in value.items()}
    return [inner[key] for key in sorted(inner, key=int)] if inner and all(map(str.isdecimal, inner)) else inner


def _events(fields: Fields) -> tuple[list[Any], list[Any]]:
    """The messages in the events of a span: what the model was given, and what it chose."""
    given: list[Any] = []
    chosen: list[Any] = []
    for event in fields.each("events"):
        about = _flat(event.value.get("attributes") or event.value.get("body"))
        about = {key: parsed(value) for key, value in about.items()}
        kind = word(event.value.get("name")).removeprefix("gen_ai.").removesuffix(".message")
        if kind == "choice":
            chosen += messages_in(about.get("message", about), "assistant")
        elif kind in ROLES:
            given.append({"role": kind, **about})
        else:
            continue
        event.skip(*event.value)
    return given, chosen
