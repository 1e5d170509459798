"""Spans and metrics against OpenTelemetry's conventions for generative AI, which stand here as a table."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

import turnlog
from agents import CHAT, chunks, says
from turnlog import telemetry
from turnlog.models.makers import makers
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

ATTRIBUTES = {
    "gen_ai.operation.name": "string", "gen_ai.provider.name": "string", "gen_ai.conversation.id": "string",
    "gen_ai.agent.name": "string", "gen_ai.request.model": "string", "gen_ai.request.frequency_penalty": "double",
    "gen_ai.request.max_tokens": "int", "gen_ai.request.presence_penalty": "double", "gen_ai.request.seed": "int",
    "gen_ai.request.temperature": "double", "gen_ai.request.top_k": "int", "gen_ai.request.top_p": "double",
    "gen_ai.response.model": "string", "gen_ai.response.id": "string", "gen_ai.response.finish_reasons": "string[]",
    "gen_ai.usage.input_tokens": "int", "gen_ai.usage.output_tokens": "int",
    "gen_ai.usage.cache_read.input_tokens": "int", "gen_ai.usage.cache_write.input_tokens": "int",
    "gen_ai.usage.reasoning.output_tokens": "int", "gen_ai.input.messages": "any", "gen_ai.output.messages": "any",
    "gen_ai.system_instructions": "any", "gen_ai.tool.definitions": "any", "gen_ai.tool.name": "string",
    "gen_ai.tool.type": "string", "gen_ai.tool.call.id": "string", "gen_ai.tool.call.arguments": "any",
    "gen_ai.tool.call.result": "any", "error.type": "string",
}  # fmt: skip
"""What spans have, with its type: github.com/open-telemetry/semantic-conventions-genai at commit 024a4f94 (2026-11),
docs/gen-ai/client-inference.md and gen-ai-agent-spans.md. `any` may be JSON text on a span."""

ANSWERS = {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model"}
METRICS = {
    "gen_ai.client.inference.duration": ("histogram", "s", ANSWERS | {"error.type"}),
    "gen_ai.client.inference.operation.input_tokens": ("histogram", "{token}", ANSWERS | {"error.type"}),
    "gen_ai.client.inference.operation.output_tokens": ("histogram", "{token}", ANSWERS | {"error.type"}),
    "gen_ai.client.inference.usage.input_tokens": ("counter", "{token}", ANSWERS | {"gen_ai.token.modality"}),
    "gen_ai.client.inference.usage.output_tokens": ("counter", "{token}", ANSWERS | {"gen_ai.token.modality"}),
    "gen_ai.client.inference.usage.cache_read.input_tokens": (
        "counter", "{token}", ANSWERS | {"gen_ai.token.modality"},
    ),
    "gen_ai.client.inference.usage.cache_write.input_tokens": (
        "counter", "{token}", ANSWERS | {"gen_ai.token.modality"},
    ),
    "gen_ai.client.inference.usage.reasoning.output_tokens": (
        "counter", "{token}", ANSWERS | {"gen_ai.token.modality"},
    ),
    "gen_ai.execute_tool.duration": (
        "histogram", "s", {"gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.agent.name", "error.type"},
    ),
    "gen_ai.invoke_agent.duration": ("histogram", "s", {"gen_ai.agent.name", "error.type"}),
}  # fmt: skip
"""Metrics: instrument, unit, attributes. From client-inference.md, gen-ai-token-metrics.md and gen-ai-metrics.md."""

BUCKETS = {
    "gen_ai.client.inference.duration": [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48,
                                         40.96, 81.92],
    "gen_ai.client.inference.operation.input_tokens": [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576,
                                                       4194304, 16777216, 67108864],
    "gen_ai.invoke_agent.duration": [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6],
}  # fmt: skip
"""Boundaries of buckets that the same pages recommend."""

PROVIDERS = {
    "anthropic", "aws.bedrock", "azure.ai.inference", "azure.ai.openai", "cohere", "deepseek", "gcp.gemini",
    "gcp.gen_ai", "gcp.vertex_ai", "groq", "ibm.watsonx.ai", "mistral_ai", "moonshot_ai", "openai", "perplexity",
    "x_ai",
}  # fmt: skip
"""Values of `gen_ai.provider.name` of the same pages."""

PYTHON = {"string": str, "int": int, "double": float, "string[]": tuple, "any": str}
WEATHER = {"name": "weather", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}
VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


class Watched:
    """A session with spans and metrics in memory."""

    def __init__(self, *, sampled: bool = True, **options: Any) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider() if sampled else TracerProvider(sampler=ALWAYS_OFF)
        tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.session: Session = turnlog.open("s", store=MemoryStore(), target=CHAT, system="Be brief.", tools=[WEATHER])
        telemetry.attach(self.session, tracer_provider=tracers, meter_provider=meters, agent="forecaster", **options)

    def attributes(self) -> list[dict[str, Any]]:
        """The attributes of each span."""
        return [dict(span.attributes or {}) for span in self.exporter.get_finished_spans()]

    def metrics(self) -> dict[str, Any]:
        """The metrics by name."""
        data = self.reader.get_metrics_data()
        found = [metric for one in (data.resource_metrics if data else ()) for scope in one.scope_metrics
                 for metric in scope.metrics]  # fmt: skip
        return {metric.name: metric for metric in found}


def live(session: Session) -> None:
    """A turn with everything that has a name: settings, a cache, reasoning, a tool that fails, a broken answer."""
    session.configure(temperature=1, top_p=1, max_completion_tokens=99, seed=7, frequency_penalty=0, presence_penalty=0)
    answer = says("Hm.", "c1", bill=1000)
    answer["usage"]["prompt_tokens_details"] = {"cached_tokens": 600, "cache_write_tokens": 300}
    answer["usage"]["completion_tokens_details"] = {"reasoning_tokens": 4}
    with contextlib.suppress(ValueError), session.turn("Is it warm?") as turn:
        (call,) = turn.receive(answer).tool_calls
        with turn.tool(call) as run:
            run.result("no", outcome="failed")
        turn.receive(chunks("half"))
        raise ValueError("gone")


def test_names_and_types_of_spans() -> None:
    """Dashboards find a figure by its name and sum it by its type; what the conventions renamed they do not find."""
    watched = Watched(content=True)
    live(watched.session)
    seen = {
        (name, type(value)) for told in watched.attributes() for name, value in told.items()
        if not name.startswith("turnlog.")
    }  # fmt: skip
    meant = {(name, PYTHON[kind]) for name, kind in ATTRIBUTES.items()}
    assert seen <= meant
    assert {name for name, _ in meant - seen} == {"gen_ai.request.top_k"}  # which this API does not have
    assert {maker.otel_name for maker in makers().values()} <= PROVIDERS


def test_names_types_and_values_of_metrics() -> None:
    """Costs are summed from these: a token that counts twice, or a series for each session, makes them useless."""
    watched = Watched()
    live(watched.session)
    metrics = watched.metrics()
    told = {
        name: ("counter" if hasattr(metric.data, "is_monotonic") else "histogram", metric.unit)
        for name, metric in metrics.items()
    }
    assert told == {name: (instrument, unit) for name, (instrument, unit, _) in METRICS.items()}
    for name, (_, _, allowed) in METRICS.items():
        points = metrics[name].data.data_points
        assert all(set(point.attributes) <= allowed for point in points), name
        if name in BUCKETS:
            assert all(
                math.isclose(bound, meant)
                for point in points
                for bound, meant in zip(point.explicit_bounds, BUCKETS[name], strict=True)
            )
    spent = {
        name.removeprefix("gen_ai.client.inference.usage."): sum(point.value for point in metric.data.data_points)
        for name, metric in metrics.items()
        if "usage" in name
    }
    assert spent == {
        "input_tokens": 1000, "output_tokens": 10, "cache_read.input_tokens": 600, "cache_write.input_tokens": 300,
        "reasoning.output_tokens": 4,
    }  # fmt: skip
    whole, broken = metrics["gen_ai.client.inference.operation.input_tokens"].data.data_points
    assert (whole.sum, broken.sum) == (1000, 0) and broken.attributes["error.type"] == "_OTHER"
    (ran,) = metrics["gen_ai.execute_tool.duration"].data.data_points
    assert dict(ran.attributes) == {
        "gen_ai.tool.name": "weather", "gen_ai.tool.type": "function", "gen_ai.agent.name": "forecaster",
        "error.type": "failed",
    }  # fmt: skip


def test_metrics_last_as_long_as_spans_and_need_none() -> None:
    """Few spans are kept where there are many; metrics of the kept ones alone would be wrong by that factor."""
    watched, unsampled = Watched(), Watched(sampled=False)
    for one in watched, unsampled:
        live(one.session)
    seconds = {
        name: sum(point.sum for point in metric.data.data_points)
        for name, metric in watched.metrics().items()
        if metric.unit == "s"
    }
    spans = watched.exporter.get_finished_spans()
    for name in ("client.inference", "execute_tool", "invoke_agent"):
        word = "chat" if name == "client.inference" else name
        lasted = sum((span.end_time or 0) - (span.start_time or 0) for span in spans if span.name.startswith(word))
        assert math.isclose(seconds[f"gen_ai.{name}.duration"], lasted / 1e9, abs_tol=1e-6)
    assert unsampled.attributes() == [] and unsampled.metrics().keys() == METRICS.keys()


def test_system_text_and_tools_are_told_as_they_are_now() -> None:
    """Why a model answered so cannot be seen without what it was told, and a later change must not be dated back."""
    watched = Watched(content=True)
    watched.session.user("Is it warm?")
    watched.session.receive(says("", "c1"))
    watched.session.tool_result("c1", "4 degrees")
    watched.session.system("Be long.", replace=True)
    watched.session.configure(tools=[])
    watched.session.receive(says("It is cold."))
    first, last = (told for told in watched.attributes() if told["gen_ai.operation.name"] == "chat")
    assert json.loads(first["gen_ai.system_instructions"]) == [{"type": "text", "content": "Be brief."}]
    assert json.loads(first["gen_ai.tool.definitions"]) == [{"type": "function", **WEATHER}]
    assert json.loads(last["gen_ai.system_instructions"]) == [{"type": "text", "content": "Be long."}]
    assert "gen_ai.tool.definitions" not in last
    result = {"type": "tool_call_response", "id": "c1", "response": [{"type": "text", "content": "4 degrees"}]}
    assert {"role": "tool", "parts": [result]} in json.loads(last["gen_ai.input.messages"])


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, False), ("", False), ("false", False), ("NO_CONTENT", False), ("EVENT_ONLY", False), ("true", True),
        ("True", True), ("SPAN_ONLY", True), ("span_and_event", True),
    ],
)  # fmt: skip
def test_the_environment_says_whether_contents_are_told(
    value: str | None, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs a program decides by this variable for all libraries in it; one that does not heed it either leaks
    or is silent. What the code says wins."""
    monkeypatch.delenv(VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(VARIABLE, value)
    for content, meant in ((None, told), (True, True), (False, False)):
        watched = Watched(content=content)
        live(watched.session)
        assert any("gen_ai.input.messages" in attributes for attributes in watched.attributes()) is meant


def test_a_value_that_is_not_known_sends_nothing_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A typing error must neither publish what was said nor pass for a choice."""
    monkeypatch.setenv(VARIABLE, "spans")
    with pytest.warns(UserWarning, match="spans: not one of false, no_content, .*; no contents are sent"):
        watched = Watched()
    live(watched.session)
    assert not any("gen_ai.input.messages" in attributes for attributes in watched.attributes())
