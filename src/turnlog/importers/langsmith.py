"""Runs of LangSmith: dumps of `list_runs` (JSON lines, a list, or runs with `child_runs`).

Runs are as langchain-core 1.8.3 and langsmith 0.15.1 make them; what only the web service adds (costs, counts of
tokens) was not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from .fields import Fields
from .framework_messages import LANGCHAIN_USAGE, message_of, messages_in
from .json_values import items, mapping, objects, within, word
from .protocol import Imported, Origin
from .traces import Span, TraceReader
from .transcript import Line, Transcript

_KINDS: dict[str, Literal["model", "tool"]] = {"llm": "model", "chat_model": "model", "tool": "tool"}
_ABOUT = (
    *("id", "run_type", "start_time", "end_time", "events", "parent_run_id", "trace_id", "dotted_order", "session_id"),
    *("child_runs", "child_run_ids", "serialized", "session_name", "app_path", "status", "first_token_time"),
    *("dangerously_allow_filesystem", "parent_run_ids", "total_tokens", "prompt_tokens", "completion_tokens", "extra"),
    *("manifest_id", "reference_example_id", "total_cost", "prompt_cost", "completion_cost"),
)


def read(origin: Origin) -> list[Imported]:
    """A session for each thread, or each trace, and for each history in it that is another one."""
    file = Transcript(origin)
    runs = list(_runs(file.entries("run", "runs", "data")))
    threads = {_trace(line.value): thread for line in runs if (thread := _thread(line.value))}
    whole = {_trace(line.value): line.number for line in runs if _is_whole(line.value)}
    billed: dict[int, list[Mapping[str, Any]]] = {}
    for line in runs:  # calls that hold their prompt as one text: the history is in what the chain returned
        if _is_prompt(line.value) and (number := whole.get(_trace(line.value))):
            billed.setdefault(number, []).extend(_usages(line.value))
    return TraceReader(file, "langsmith", LANGCHAIN_USAGE).read(_span(line, threads, whole, billed) for line in runs)


def _runs(lines: Iterable[Line]) -> Iterator[Line]:
    """Every run, those inside another before it."""
    stack = [line.value for line in reversed(list(lines))]
    number = 0
    while stack:
        run = stack.pop()
        children = objects(run.get("child_runs"))
        if children:
            stack += [{**run, "child_runs": None}, *reversed(children)]
            continue
        number += 1
        yield Line(number, run)


def _trace(run: Mapping[str, Any]) -> str:
    return word(run.get("trace_id")) or word(run.get("id"))


def _thread(run: Mapping[str, Any]) -> str:
    metadata = Fields(within(run, "extra", "metadata"))
    return metadata.text("thread_id", "conversation_id", "session_id")


def _is_prompt(run: Mapping[str, Any]) -> bool:
    return run.get("run_type") in ("llm", "chat_model") and isinstance(within(run, "inputs", "prompts"), list)


def _is_whole(run: Mapping[str, Any]) -> bool:
    """Whether what a chain returned is a history."""
    said = messages_in(within(run, "outputs", "messages"), "user") if run.get("run_type") == "chain" else []
    return any(message_of(each).text("type", "role") in ("human", "user") for each in said)


def _usages(run: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What a call was billed, from its answer or its metadata, or in LangSmith's own counts."""
    answers = messages_in(run.get("outputs"), "assistant")
    found: list[Mapping[str, Any]] = [mapping(message_of(answer).get("usage_metadata")) for answer in answers]
    for place in (("outputs", "usage_metadata"), ("extra", "metadata", "usage_metadata")):
        found.append(mapping(within(run, *place)))
    found.append({"input_tokens": run.get("prompt_tokens"), "output_tokens": run.get("completion_tokens")})
    return [usage for usage in found if any(usage.values())][:1]


def _span(line: Line, threads: Mapping[str, str], whole: Mapping[str, int], billed: Mapping[int, list[Any]]) -> Span:
    fields = Fields(line.value)
    trace = _trace(line.value)
    metadata = mapping(within(line.value, "extra", "metadata"))
    inputs, outputs = line.value.get("inputs"), line.value.get("outputs")
    span = Span(
        kind=_KINDS.get(fields.text("run_type"), "step"),
        group=_thread(line.value) or threads.get(trace, trace) or "langsmith",
        line=line.number,
        fields=fields,
        start=fields.get("start_time"),
        end=fields.get("end_time"),
        name=fields.text("name"),
        error=fields.text("error"),
        vendor=word(metadata.get("ls_provider")),
        model=word(metadata.get("ls_model_name")),
        cost=fields.get("total_cost"),
        call_id=word(within(line.value, "extra", "tool_call_id")),
    )
    fields.skip(*_ABOUT)
    if span.kind == "tool":
        output = fields.inside("outputs").get("output")
        message = message_of(output if isinstance(output, dict) else {"content": output or outputs})
        span.call_id = span.call_id or message.text("tool_call_id")
        span.output = message.get("content") or output
        span.error = span.error or ("failed" if message.text("status") == "error" else "")
    elif line.number in billed:
        span.kind = "model"
        span.input, span.usages = messages_in(fields.inside("outputs").get("messages"), "user"), billed[line.number]
    elif span.kind == "model" and _is_prompt(line.value) and trace in whole:
        span.kind = "step"  # it is in what the chain returned
    elif span.kind == "model":
        _called(span, fields, inputs)
    return span


def _called(span: Span, fields: Fields, inputs: Any) -> None:
    prompts = items(within(inputs, "prompts"))
    span.input = [{"role": "user", "content": each} for each in prompts]
    span.input = span.input or messages_in(fields.get("inputs"), "user")
    if prompts:
        fields.inside("inputs").skip("prompts")
    span.output = messages_in(fields.get("outputs"), "assistant")
    span.usages = _usages(fields.value)
