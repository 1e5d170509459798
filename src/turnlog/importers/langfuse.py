"""Traces of Langfuse: what its API returns (a trace with its observations, or a list of observations), downloads of its
pages, JSON lines of a batch export, and batches as they were ingested.

Keys are those of the public API, in either spelling (`traceId`, `trace_id`). No real export was found to check them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from .fields import Fields
from .framework_messages import messages_in, parsed
from .json_values import mapping, objects
from .protocol import Imported, Origin
from .traces import Span, TraceReader
from .transcript import Line, Transcript

_CACHE_READ = "cache_read_input_tokens|input_cached_tokens|input_cache_read"
_CACHE_WRITE = "cache_creation_input_tokens|input_cache_creation"
_USAGE = {
    "input": f"input|input_tokens|promptTokens|prompt_tokens {_CACHE_READ} {_CACHE_WRITE}",
    "output": "output|output_tokens|completionTokens|completion_tokens",
    "cached": _CACHE_READ,
    "cache_write": _CACHE_WRITE,
}
"""Keys of `usageDetails`, whose buckets are disjoint."""
_KINDS: dict[str, Literal["model", "tool"]] = {"GENERATION": "model", "TOOL": "tool"}
_ABOUT = (
    *("id", "traceId", "trace_id", "type", "startTime", "start_time", "endTime", "end_time", "completionStartTime"),
    *("parentObservationId", "parent_observation_id", "level", "projectId", "createdAt", "updatedAt", "timestamp"),
    *("htmlPath", "latency", "totalCost", "environment", "promptId", "observations", "usage", "costDetails"),
)


def read(origin: Origin) -> list[Imported]:
    """A session for each session of Langfuse, or each trace, and for each history in it that is another one."""
    file = Transcript(origin)
    steps = list(_steps(file))
    sessions = {Fields(line.value).text("id"): Fields(line.value).text("sessionId", "session_id") for line in steps}
    models = {_trace(line.value) for line in steps if _kind(line.value) == "model"}
    return TraceReader(file, "langfuse", _USAGE).read(_span(line, sessions, models) for line in steps)


def _steps(file: Transcript) -> Iterator[Line]:
    """Every observation, and behind those of a trace the trace."""
    number = 0
    updates: dict[str, dict[str, Any]] = {}
    whole = file.document_or_none()
    is_trace = isinstance(whole, dict) and "observations" in whole
    for line in [Line(1, whole)] if is_trace else file.entries("observation", "data", "batch", "observations"):
        value = line.value
        if isinstance(value.get("body"), dict):  # as it was ingested: an update has what changed
            kind = str(value.get("type")).partition("-")[0].upper()
            body = updates.setdefault(str(value["body"].get("id")), {"type": kind, "timestamp": value.get("timestamp")})
            body.update({key: each for key, each in value["body"].items() if each is not None})
            continue
        trace = {**value, **mapping(value.get("trace"))}
        for inner in (*objects(trace.get("observations")), trace):
            number += 1
            yield Line(number, inner)
    yield from (Line(number, body) for number, body in enumerate(updates.values(), number + 1))


def _kind(step: Mapping[str, Any]) -> str:
    return _KINDS.get(str(step.get("type")).upper(), "step")


def _trace(step: Mapping[str, Any]) -> str:
    return Fields(step).text("traceId", "trace_id") or Fields(step).text("id")


def _span(line: Line, sessions: Mapping[str, str], models: set[str]) -> Span:
    fields = Fields(line.value)
    trace, kind = _trace(line.value), _kind(line.value)
    if kind == "step" and trace not in models and "input" in fields.value and trace == fields.value.get("id"):
        kind = "model"  # a trace of which only the whole is known
    span = Span(
        kind=kind,  # type: ignore[arg-type]
        group=sessions.get(trace) or fields.text("sessionId", "session_id") or trace or "langfuse",
        line=line.number,
        fields=fields,
        start=fields.get("startTime", "start_time", "timestamp"),
        end=fields.get("endTime", "end_time"),
        name=fields.text("name"),
        error=fields.text("statusMessage", "status_message") if fields.value.get("level") == "ERROR" else "",
        model=fields.text("model", "providedModelName", "model_name"),
        cost=mapping(fields.get("costDetails", "cost_details")).get("total", fields.get("calculatedTotalCost")),
    )
    span.error = span.error or ("failed" if fields.value.get("level") == "ERROR" else "")
    fields.skip(*_ABOUT)
    if kind == "step":
        return span
    span.output = fields.get("output")
    if kind == "model":
        span.input, span.output = messages_in(fields.get("input"), "user"), messages_in(span.output, "assistant")
        usage = fields.get("usageDetails", "usage_details", "usage")
        span.usages = [mapping(parsed(usage))]
    return span
