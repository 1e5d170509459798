"""Spans: what OpenTelemetry is told of a session is what the log says, by the conventions, and breaks nothing."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Sampler, SamplingResult

import turnlog
from agents import CHAT, chunks, says, session_in
from turnlog import telemetry as spans
from turnlog._platform.texts import install_extra
from turnlog.errors import InputError
from turnlog.log.messages import Message, Reasoning, Text, ToolResult
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.telemetry.spans import SessionSpans

SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


class Seen:
    """Where spans go in these tests."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def finished(self) -> tuple[ReadableSpan, ...]:
        """The spans that ended, in that order."""
        return self.exporter.get_finished_spans()

    def named(self, name: str) -> ReadableSpan:
        """The one span of that name."""
        (found,) = (span for span in self.finished() if span.name == name)
        return found

    def tree(self) -> list[tuple[str, str, str]]:
        """Name, name of the parent, and status of each, in the order they ended."""
        by_id = {span.context.span_id: span.name for span in self.finished() if span.context}
        return [
            (span.name, by_id.get(span.parent.span_id, "?") if span.parent else "", span.status.status_code.name)
            for span in self.finished()
        ]


@pytest.fixture
def seen() -> Seen:
    """Spans in memory."""
    return Seen()


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    """A store in memory."""
    made = MemoryStore()
    yield made
    made.close()


def nanoseconds(session: Session, n: int) -> int:
    """The time of a record."""
    (record,) = (record for record in session.history() if record.n == n)
    return round(datetime.fromisoformat(record.time).timestamp() * 1000) * 1_000_000


def bill(**tokens: int) -> dict[str, Any]:
    """An answer of OpenAI Chat whose bill has parts."""
    answer = says("Cold.", bill=1000)
    answer["usage"] |= {"prompt_tokens_details": {"cached_tokens": tokens["cached"]}}
    answer["usage"] |= {"completion_tokens_details": {"reasoning_tokens": tokens["reasoning"]}}
    return answer


def test_a_turn_is_told_as_the_conventions_have_it(store: MemoryStore, seen: Seen) -> None:
    """Dashboards read these names and nothing else: one that is missing or misspelled is a figure never shown."""
    session = session_in(store)
    session.configure(temperature=0.5, max_completion_tokens=99)
    spans.attach(session, tracer_provider=seen.provider, agent="forecaster")
    with session.turn("Is it warm?") as turn:  # records 3 and 4
        (call,) = turn.receive(says("", "c1")).tool_calls  # 5 and 6
        turn.ask_approval(call)  # 7
        turn.approve(call)  # 8
        with turn.tool(call) as run:  # 9
            run.result("4 degrees")  # 10 and 11
        turn.receive(bill(cached=600, reasoning=7))  # 12 and 13
    common = {"gen_ai.conversation.id": "s"}
    asked = {"gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o"}
    chat = {
        **common, **asked,
        "gen_ai.operation.name": "chat",
        "gen_ai.request.max_tokens": 99,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.model": "gpt-4o-2024-08-06",
    }  # fmt: skip
    told = [(span.name, span.kind.name, dict(span.attributes or {})) for span in seen.finished()]
    assert told == [
        ("chat gpt-4o", "CLIENT", {
            **chat, "turnlog.record": 5, "gen_ai.response.finish_reasons": ("tool_calls",),
            "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10,
        }),
        ("execute_tool weather", "INTERNAL", {
            **common, "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather",
            "gen_ai.tool.type": "function", "gen_ai.tool.call.id": "c1", "turnlog.tool.outcome": "ok",
            "gen_ai.agent.name": "forecaster", "turnlog.record": 5,
        }),
        ("chat gpt-4o", "CLIENT", {
            **chat, "turnlog.record": 12, "gen_ai.response.finish_reasons": ("stop",),
            "gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 10,
            "gen_ai.usage.cache_read.input_tokens": 600, "gen_ai.usage.reasoning.output_tokens": 7,
        }),
        ("invoke_agent forecaster", "INTERNAL", {
            **common, **asked, "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "forecaster",
            "turnlog.record": 3, "turnlog.turn.id": "3", "turnlog.turn.status": "completed",
        }),
    ]  # fmt: skip
    assert {span.instrumentation_scope.schema_url for span in seen.finished() if span.instrumentation_scope} == {
        "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"
    }
    turn_span = seen.finished()[-1]
    assert [(event.name, dict(event.attributes or {})) for event in turn_span.events] == [
        ("turnlog.approval", {"turnlog.approval": "asked", "gen_ai.tool.call.id": "c1", "turnlog.record": 7}),
        ("turnlog.approval", {"turnlog.approval": "given", "gen_ai.tool.call.id": "c1", "turnlog.record": 8}),
    ]
    assert [(span.start_time, span.end_time) for span in seen.finished()] == [
        (nanoseconds(session, begun), nanoseconds(session, ended))
        for begun, ended in [(4, 5), (9, 10), (11, 12), (3, 14)]
    ]
    assert {parent for _, parent, _ in seen.tree()[:-1]} == {"invoke_agent forecaster"}


@pytest.mark.parametrize(
    ("provider", "settings"),
    [
        ("google", {"generationConfig": {"maxOutputTokens": 99}}),
        ("google-interactions", {"generation_config": {"max_output_tokens": 99}}),
    ],
)
def test_settings_are_found_where_the_provider_has_them(seen: Seen, provider: str, settings: dict[str, Any]) -> None:
    """A limit that stands a level deeper was told of no request."""
    session = turnlog.open("s", target=turnlog.target(provider, "gemini-2.5-pro", **settings), store=MemoryStore())
    spans.attach(session, tracer_provider=seen.provider)
    session.user("hi")
    session.receive({"candidates": [], "promptFeedback": {}} if provider == "google" else {"status": "completed"})
    assert [span.attributes["gen_ai.request.max_tokens"] for span in seen.finished()] == [99]


def test_failures_are_told(store: MemoryStore, seen: Seen) -> None:
    """How a tool, an answer or a turn ended is what traces are looked at for."""
    session = session_in(store)
    spans.attach(session, tracer_provider=seen.provider)
    with contextlib.suppress(ValueError), session.turn("go") as turn:
        calls = turn.receive(says("", "c1", "c2", "c3", "c4", "c5", "c6")).tool_calls
        with pytest.raises(TimeoutError), turn.tool(calls[0]):
            raise TimeoutError("too\nslow")
        with turn.tool(calls[1]) as run:
            run.result("no", outcome="failed")
        turn.tool_result(calls[2], "by hand")  # nothing says when it began
        turn.deny(calls[3])  # never ran
        turn.tool_started(calls[4])  # nobody says how it ended
        session.tool_finished(calls[5], "canceled", seconds=2.0)  # nobody said that it began
        turn.receive(chunks("half"))
        raise ValueError(f"bad {SECRET}")
    with session.turn("stop") as turn:
        turn.cancel()
    tools = [span for span in seen.finished() if span.name == "execute_tool weather"]
    assert [
        (dict(span.attributes or {})["turnlog.tool.outcome"], dict(span.attributes or {}).get("error.type"))
        for span in tools
    ] == [("timeout", "TimeoutError"), ("failed", "failed"), ("ok", None), ("canceled", None), ("aborted", "aborted")]
    assert [span.status.status_code.name for span in tools] == ["ERROR", "ERROR", "UNSET", "UNSET", "ERROR"]
    assert tools[0].status.description == "TimeoutError: too slow"
    assert (tools[3].end_time or 0) - (tools[3].start_time or 0) == 2_000_000_000
    chat = [span for span in seen.finished() if span.name == "chat gpt-4o"][1]
    assert (chat.attributes or {})["error.type"] == "_OTHER"
    assert chat.status.description == "the stream ended before a finish reason came"
    failed, cancelled = (span for span in seen.finished() if span.name == "invoke_agent")
    assert (failed.attributes or {})["error.type"] == "ValueError"
    assert failed.status.description == "ValueError: bad [redacted:github-token:0619]"
    assert (cancelled.attributes or {})["turnlog.turn.status"] == "cancelled"
    assert cancelled.status.status_code.name == "UNSET"


def test_a_turn_that_goes_on_has_a_second_span(store: MemoryStore, seen: Seen) -> None:
    """The answer after a crash would hang in the air, in no turn."""
    session = session_in(store)
    spans.attach(session, tracer_provider=seen.provider)
    with pytest.raises(OSError), session.turn("go"):
        raise OSError("no route")
    with session.turn() as turn:
        turn.receive(says("there"))
    told = [
        (span.name, dict(span.attributes or {}).get("turnlog.turn.status"), span.parent) for span in seen.finished()
    ]
    second = seen.finished()[2].context
    assert [(name, status) for name, status, _ in told] == [
        ("invoke_agent", "failed"), ("chat gpt-4o", None), ("invoke_agent", "completed"),
    ]  # fmt: skip
    assert told[1][2] == second


def test_without_turns_answers_stand_alone(store: MemoryStore, seen: Seen) -> None:
    """Sessions need no turns: their answers hang under what is current, and tell what was decided before them."""
    session = session_in(store)
    spans.attach(session, tracer_provider=seen.provider)
    for n in range(12):
        session.user(f"word {n} " + "so " * 200)
        session.assistant("made elsewhere, so no span")
    session.compact(keep=1)
    with seen.provider.get_tracer("app").start_as_current_span("request"):
        session.user("now")
        session.receive(says("yes"))
    assert seen.tree() == [("chat gpt-4o", "request", "UNSET"), ("request", "", "UNSET")]
    (event,) = seen.named("chat gpt-4o").events
    (decision,) = (record for record in session.history() if type(record.body).__name__ == "Decision")
    assert (event.name, dict(event.attributes or {})) == (
        "turnlog.compacted",
        {
            "turnlog.decision": decision.body.action,  # type: ignore[union-attr]
            "turnlog.decision.first": decision.body.first,  # type: ignore[union-attr]
            "turnlog.decision.last": decision.body.last,  # type: ignore[union-attr]
            "turnlog.record": decision.n,
        },
    )


def test_the_target_that_was_asked_is_told(store: MemoryStore, seen: Seen) -> None:
    """An answer of another target than the session's must not count for the session's model."""
    session = session_in(store)
    session.configure(temperature=0.5)
    spans.attach(session, tracer_provider=seen.provider)
    session.user("hello")
    answer = {"content": [{"type": "text", "text": "hi"}], "role": "assistant", "type": "message", "model": "m-1"}
    session.receive({**answer, "stop_reason": "end_turn"}, turnlog.target("anthropic", "claude-sonnet-4-5"))
    told = dict(seen.named("chat claude-sonnet-4-5").attributes or {})
    assert told == {
        "gen_ai.conversation.id": "s", "gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-4-5", "gen_ai.response.model": "m-1",
        "gen_ai.response.finish_reasons": ("end_turn",), "turnlog.record": 4,
    }  # fmt: skip


def lived_with_secrets(store: MemoryStore, seen: Seen, *, redact: bool, content: Any) -> str:
    """All that is exported of a session in which a secret is said everywhere."""
    session = turnlog.open("s", target=CHAT, store=store, settings=turnlog.Settings(redact=redact))
    spans.attach(session, tracer_provider=seen.provider, content=content)
    with contextlib.suppress(ValueError), session.turn(f"my key is {SECRET}") as turn:
        answer = says(f"you said {SECRET} \ud800", "c1")
        function = answer["choices"][0]["message"]["tool_calls"][0]["function"]
        function["arguments"] = json.dumps({"city": SECRET, "word": "weatherly"})
        (call,) = turn.receive(answer).tool_calls
        with turn.tool(call) as run:
            run.result(f"got {SECRET}, sunny")
        session.add(Message("assistant", (Reasoning("p", summary=("pondered",)), Text("made elsewhere"))))
        turn.receive(says("fine"))
        raise ValueError(SECRET)
    return "\n".join(span.to_json() for span in seen.finished())


@pytest.mark.parametrize("redact", [True, False])
def test_contents_are_told_by_choice_and_without_secrets(store: MemoryStore, seen: Seen, redact: bool) -> None:
    """Traces go to other machines: neither words nor secrets may follow them unasked."""
    told = lived_with_secrets(store, seen, redact=redact, content=False)
    assert not any(word in told for word in ("you said", "weatherly", "sunny", "my key", "ghp_"))
    again = Seen()
    told = lived_with_secrets(MemoryStore(), again, redact=redact, content=True)
    assert "ghp_" not in told
    chat, tool, _, turn = again.finished()
    said = dict(chat.attributes or {})
    asked = json.loads(str(said["gen_ai.input.messages"]))
    (answer,) = json.loads(str(said["gen_ai.output.messages"]))
    mark = asked[0]["parts"][0]["content"].removeprefix("my key is ")
    assert mark.startswith("[redacted:github")
    assert asked == [{"role": "user", "parts": [{"type": "text", "content": f"my key is {mark}"}]}]
    arguments = {"city": mark, "word": "weatherly"}
    assert answer == {
        "role": "assistant",
        "parts": [
            {"type": "text", "content": f"you said {mark} ?"},
            {"type": "tool_call", "id": "c1", "name": "weather", "arguments": arguments},
        ],
    }
    ran = dict(tool.attributes or {})
    assert json.loads(str(ran["gen_ai.tool.call.arguments"])) == arguments
    assert json.loads(str(ran["gen_ai.tool.call.result"])) == [{"type": "text", "content": f"got {mark}, sunny"}]
    assert mark in str(turn.status.description)


def test_a_redactor_of_ones_own_is_used(store: MemoryStore, seen: Seen) -> None:
    """What a session's redactor knows to be secret the spans know too, even if its requests may hold it."""
    redactor = turnlog.Redactor({"staff-id": "EMP-[0-9]{6}"}, live=True)
    session = turnlog.open("s", target=CHAT, store=store, settings=turnlog.Settings(redact=redactor))
    spans.attach(session, tracer_provider=seen.provider, content=True)
    session.user("I am EMP-123456")
    session.receive(says("Hello EMP-123456"))
    told = seen.named("chat gpt-4o").to_json()
    assert "EMP-" not in told and "[redacted:staff-id]" in told


class Broken(SpanExporter):
    """An exporter that fails."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Never works."""
        raise OSError("no collector")


class BrokenProcessor(SimpleSpanProcessor):
    """A processor that lets it through."""

    def on_end(self, span: ReadableSpan) -> None:
        """Never works."""
        raise OSError("no collector")


class BrokenSampler(Sampler):
    """Cannot begin a span."""

    def should_sample(self, *_: Any, **__: Any) -> SamplingResult:
        """Never works."""
        raise OSError("no sampler")

    def get_description(self) -> str:
        """Its name."""
        return "broken"


@pytest.mark.parametrize("how", ["exporter", "processor", "sampler"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_exporter_that_fails_breaks_no_turn(store: MemoryStore, how: str) -> None:
    """A collector that is down must not cost an answer; it must not go unseen either."""
    provider = TracerProvider(sampler=BrokenSampler()) if how == "sampler" else TracerProvider()
    if how != "sampler":
        kind = SimpleSpanProcessor if how == "exporter" else BrokenProcessor
        provider.add_span_processor(kind(Broken()))
    session = session_in(store)
    spans.attach(session, tracer_provider=provider)
    heard: list[str] = []
    session.on_event(lambda event: heard.append(event.text) if event.kind == "warning" else None)
    with session.turn("go") as turn:
        (call,) = turn.receive(says("", "c1")).tool_calls
        with turn.tool(call) as run:
            run.result("yes")
        turn.receive(says("done"))
    session.close()
    assert [(told.status, told.answer) for told in session.log.turns()] == [("completed", "done")]
    assert bool(heard) == (how != "exporter")  # the SDK's own processor logs what its exporter raises
    assert all("SessionSpans.take failed at record" in text for text in heard)


@pytest.mark.slow
def test_a_long_session_is_not_held(store: MemoryStore, seen: Seen) -> None:
    """An agent that runs for weeks must not grow by what it told long ago."""
    session = session_in(store)
    told = spans.attach(session, tracer_provider=seen.provider, content=True)
    for n in range(300):
        session.user(f"word {n}")
        session.receive(says("", f"c{n}"))  # never answered
        session.clear()
    for n in range(300):
        session.user(f"word {n}")
    held = [
        len(value) for value in vars(told).values() if isinstance(value, (dict, list, set)) or hasattr(value, "maxlen")
    ]
    assert max(held) <= 200
    assert len(seen.finished()) == 300


def test_what_is_open_ends_with_the_session(store: MemoryStore, seen: Seen) -> None:
    """A span that never ends is never exported."""
    session = session_in(store)
    spans.attach(session, tracer_provider=seen.provider)
    session.user("go")
    (call,) = session.receive(says("", "c1")).tool_calls
    session.tool_started(call)
    turn = session.turn("more").__enter__()
    session.close()
    assert turn.status == "failed"
    assert seen.tree() == [
        ("chat gpt-4o", "", "UNSET"), ("execute_tool weather", "", "ERROR"), ("invoke_agent", "", "ERROR")
    ]  # fmt: skip


def test_ids_that_come_twice_are_told_apart(store: MemoryStore, seen: Seen) -> None:
    """Some providers number the calls of each answer from one again."""
    session = session_in(store)
    spans.attach(session, tracer_provider=seen.provider)
    for _ in range(2):
        session.user("go")
        (call,) = session.receive(says("", "c1")).tool_calls
        session.tool_started(call)
        session.tool_result(call, "done")
        session.tool_result(call, "done again")
    session.tool_finished(call)
    session.user("go")
    (newer,) = session.receive(says("", "c1")).tool_calls
    session.tool_started(newer)
    (newest,) = session.receive(says("", "c1")).tool_calls  # while the one before still runs
    session.tool_started(newest)
    session.add(Message("user", (ToolResult("c1", "other", (Text("of another tool"),)),)))
    assert len(seen.finished()) == 7  # the newest call still runs
    tools = [span for span in seen.finished() if span.name == "execute_tool weather"]
    assert [(span.attributes or {})["turnlog.record"] for span in tools] == [3, 9, 16]


def test_the_global_provider_is_the_default(store: MemoryStore) -> None:
    """Without an SDK set up, everything goes nowhere and nothing fails."""
    session = session_in(store)
    told = spans.attach(session)
    assert isinstance(told, SessionSpans) and isinstance(trace.get_tracer_provider(), trace.TracerProvider)
    with session.turn("go") as turn:
        turn.receive(says("yes"))


def test_mistakes_say_what_to_do(store: MemoryStore) -> None:
    """Wrong arguments are named."""
    with pytest.raises(InputError, match=r"session must be a turnlog\.Session, not str"):
        spans.attach("s")  # type: ignore[arg-type]
    session = session_in(store)
    with pytest.raises(InputError, match=r"content must be True, False, None or a turnlog\.Redactor, not str"):
        spans.attach(session, content="all")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"agent must be a string, not int"):
        spans.attach(session, agent=5)  # type: ignore[arg-type]


def test_without_the_extra_it_is_said_what_to_install(tmp_path: Path) -> None:
    """`import turnlog` must not need it, `turnlog.telemetry` says what it needs."""
    script = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "import turnlog; turnlog.open(store=':memory:').close()\n"
        "try:\n    from turnlog import telemetry\nexcept ImportError as error:\n    print(error)\n"
        "try:\n    turnlog.telemetry.attach\nexcept ImportError as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == f"spans need OpenTelemetry's API: {install_extra('otel')}\n" * 2
