"""What a session refuses, because a log is never rewritten; and what settings survive."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from draws import examples
from turnlog.errors import FormatError, InputError
from turnlog.log.messages import Media, Message, Text, ToolCall, ToolResult, Unknown
from turnlog.log.records import MessageRecord, PartialAnswer, ToolFinished
from turnlog.models.target import Target
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

CHAT = turnlog.target("openai-chat", "gpt-4o")
MINI = turnlog.target("openai-chat", "gpt-4o-mini")
CLAUDE = turnlog.target("anthropic", "claude-sonnet-4-5")


def result(*parts: Any) -> ToolResult:
    """A result of a call that is not on record."""
    return ToolResult("c", "f", parts)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return turnlog.open("trip", target=CHAT, store=tmp_path / "a.db", shared=True)


@pytest.mark.parametrize(
    "mistake",
    [
        lambda s: s.user(None),
        lambda s: s.user(b"bytes"),
        lambda s: s.user(5),
        lambda s: s.user(["a", None]),
        lambda s: s.user({"type": "text", "text": "x"}),
        lambda s: s.user(Message("user", (Text("x"),))),
        lambda s: s.add(Message("robot", (Text("x"),))),
        lambda s: s.add(Message("user", "hello")),
        lambda s: s.add(Message("user", (Text(None),))),
        lambda s: s.add(Message("assistant", (ToolCall("c", "f", arguments={1: 2}),))),
        lambda s: s.add(Message("assistant", (ToolCall("c", "f", arguments={"a": float("inf")}),))),
        lambda s: s.add(Message("user", (ToolResult("c", "f", (Text("r"),), "error"),))),
        lambda s: s.note(None),
        lambda s: s.note("topic", data={"a", "b"}),
        lambda s: s.configure(stop=b"x"),
        lambda s: s.configure(model="gpt-4o-mini"),
        lambda s: s.configure(messages=[]),
        lambda s: s.configure(tools=[5]),
        lambda s: s.switch("openai-chat"),
        lambda s: s.pin("1"),
        lambda s: s.tool_started("c1"),
        lambda s: s.media("text", "image/png"),
        lambda s: turnlog.target("openai-chat", None),
        lambda s: turnlog.open(5),
    ],
)
def test_what_could_not_come_back_is_refused(session: Session, mistake: Any) -> None:
    """One wrongly typed value in the log, and the session could never be opened again."""
    session.user("precious")
    with pytest.raises(InputError):
        mistake(session)
    again = Session(session._store, session._store.info("trip"))
    assert again.request().body["messages"] == [{"role": "user", "content": "precious"}]


AIMS = {
    "openai-chat": CHAT,
    "openai-responses": turnlog.target("openai-responses", "gpt-5"),
    "anthropic": CLAUDE,
    "google": turnlog.target("google", "gemini-2.5-pro"),
}
QUOTA = {"error": {"code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED"}}


@pytest.mark.parametrize("value", [b"\xff out", UUID(int=5), date(2026, 1, 2), Decimal("1.5")], ids=repr)
@pytest.mark.parametrize(
    ("where", "record"),
    [
        ("message.parts[1].text", lambda s, value: s.user(["Look:", Text(value)])),
        (
            "message.parts[0].parts[0].text",
            lambda s, value: s.add(Message("user", (ToolResult("c", "f", (Text(value),)),))),
        ),
        ("message.parts[0].url", lambda s, value: s.user(Media("image", url=value))),
        ("message.name", lambda s, value: s.add(Message("user", (Text("x"),), name=value))),
        ("text", lambda s, value: s.note("topic", value)),
    ],
)
def test_what_would_come_back_as_another_text_is_refused(session: Session, where: str, record: Any, value: Any) -> None:
    """What a program printed, handed over as bytes, was put on record as base64, and the model was shown that."""
    with pytest.raises(InputError, match=f"{re.escape(where)} is {type(value).__name__}"):
        record(session, value)
    assert len(session.history()) == 1


@pytest.mark.parametrize("provider", AIMS)
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "Slow down.", "type": "requests", "code": "rate"}}, "requests, rate: Slow down."),
        ({"error": {"message": "Bad.", "type": "quota", "param": None, "code": "quota"}}, "quota: Bad."),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Busy."}}, "overloaded_error: Busy."),
        (QUOTA, "RESOURCE_EXHAUSTED, 429: Quota exceeded."),
        ([QUOTA], "RESOURCE_EXHAUSTED, 429: Quota exceeded."),
        ({"object": "error", "message": "No.", "type": "BadRequestError", "code": 400}, "BadRequestError, 400: No."),
        ({"error": {"message": "Busy."}, "choices": []}, "Busy."),
        ({"error": {"message": "Busy."}, "candidates": None}, "Busy."),
        ({"error": "no such model"}, "no such model"),
        ({"error": {"code": 1}}, "{'code': 1}"),
    ],
)
def test_an_error_body_is_refused_with_what_it_says(provider: str, body: Any, said: str, session: Session) -> None:
    """A loop that goes on while there are calls ends in silence, with an empty answer on record, or nobody is told
    that the rate limit was reached."""
    session.switch(AIMS[provider])
    with session.turn("hello") as turn:
        records = len(session.history())
        for receive in (session.receive, turn.receive):
            with pytest.raises(FormatError, match=f"^response: this is an error, not an answer: {re.escape(said)}$"):
                receive(body)
        assert len(session.history()) == records


CUT = {"message": "cut"}
SAID = {"candidates": [{"content": {"parts": [{"text": "so"}]}}]}
FAILED = {"status": "failed", "output": [], "error": {"code": "x", "message": "cut"}}


@pytest.mark.parametrize(
    ("provider", "answer", "text", "reason"),
    [
        ("openai-chat", {"choices": [{"message": {"content": "so"}}], "error": CUT}, "so", "cut"),
        ("google", {**SAID, "error": CUT}, "so", "cut"),
        ("google", {"promptFeedback": {"blockReason": "OTHER"}, "error": CUT}, "", "cut"),
        ("openai-responses", FAILED, "", "x: cut"),
        ("openai-chat", [{"choices": [{"delta": {"content": "so"}}]}, {"error": CUT}], "so", "cut"),
        ("google", [SAID, QUOTA], "so", "RESOURCE_EXHAUSTED, 429: Quota exceeded."),
    ],
)
def test_an_answer_that_an_error_ended_is_kept(
    provider: str, answer: Any, text: str, reason: str, session: Session
) -> None:
    """Words that a model said and somebody paid for, thrown away because an error stands beside them."""
    session.switch(AIMS[provider])
    got = session.receive(answer)
    assert isinstance(got.record.body, PartialAnswer)
    assert (got.text, got.complete, got.record.body.reason) == (text, False, reason)


def test_settings_add_up_and_survive_opening_with_the_same_target(session: Session, tmp_path: Path) -> None:
    """An agent names its target at every start: that must not undo what was configured."""
    session.configure(max_completion_tokens=10)
    session.configure(temperature=0.5)
    records = len(session.history())
    session.close()
    with turnlog.open("trip", target=CHAT, store=tmp_path / "a.db") as again:
        request = again.request().body
        assert (request["max_completion_tokens"], request["temperature"]) == (10, 0.5)
        assert len(again.history()) == records
        again.configure(temperature=None)
        assert "temperature" not in again.request().body


def test_switching_carries_settings_and_names_what_it_cannot(session: Session) -> None:
    """A limit or a temperature that vanished on the way would change what the next model does."""
    session.configure(max_completion_tokens=50, temperature=0.3, seed=7)
    session.user("hello")
    assert [loss.detail for loss in session.switch(CLAUDE)] == ["setting seed of openai-chat left out"]
    request = session.request().body
    assert (request["max_tokens"], request["temperature"]) == (50, 0.3)
    session.switch(MINI)
    assert session.request().body["max_completion_tokens"] == 50


def test_another_process_switches(session: Session, tmp_path: Path) -> None:
    """Going on with the old provider and the new one's settings would be refused."""
    with turnlog.open("trip", store=tmp_path / "a.db", shared=True) as other:
        other.user("hello")
        session.switch(CLAUDE)
        assert other.request().body["model"] == "claude-sonnet-4-5"
        assert other.target == CLAUDE


def test_another_process_records_the_call(session: Session, tmp_path: Path) -> None:
    """A worker that runs tools is not always the process that asked the model."""
    call = ToolCall("call_1", "weather", arguments={})
    with turnlog.open("trip", store=tmp_path / "a.db", shared=True) as worker:
        session.user("hello")
        number = session.add(Message("assistant", (call,))).n
        worker.tool_started(call)
        result = worker.tool_result("call_1", "warm")
        worker.pin(number)
        assert result.message is not None and result.message.parts[0].name == "weather"  # type: ignore[union-attr]


def test_the_answer_of_another_target_is_read_as_such(session: Session) -> None:
    """One request to another provider, without switching: its answer is in that provider's shape."""
    session.user("hello")
    session.request(CLAUDE)
    answer = {"role": "assistant", "model": "claude-sonnet-4-5", "content": [{"type": "text", "text": "hi"}]}
    assert session.receive({**answer, "stop_reason": "end_turn"}, CLAUDE).text == "hi"


def test_an_answer_says_what_it_is(session: Session) -> None:
    """Printed, as everybody does first, an answer was an address in memory."""
    answer = session.receive({"choices": [{"index": 0, "message": {"role": "assistant", "content": "Cold. " * 90}}]})
    shown = repr(answer)
    assert shown.startswith("Answer('Cold. Cold.") and len(shown) < 300
    assert shown.endswith(f"stop='end', tool_calls=[], record={answer.record.n})")


def test_media_without_bytes_becomes_a_placeholder(session: Session) -> None:
    """An empty file is refused by every provider."""
    session.user(["look", session.media(b"", "image/png"), Media("image")])
    texts = [part["text"] for part in session.request().body["messages"][0]["content"]]
    assert texts == ["look", "[image left out (image/png): it is empty]", "[image left out (image): it has no source]"]


def test_a_result_may_answer_a_call_that_the_provider_holds() -> None:
    """With previous_response_id the call is at the provider: the result is no orphan."""
    body = {
        "model": "gpt-5",
        "previous_response_id": "resp_1",
        "input": [{"type": "function_call_output", "call_id": "c1", "output": "42"}],
    }
    assert turnlog.check(body, "openai-responses") == []
    assert turnlog.repair(body, "openai-responses").body == body


@pytest.mark.parametrize("body", [None, [], "x", 5])
def test_what_is_no_body_is_told(body: Any) -> None:
    """A raw AttributeError would not say what to do."""
    with pytest.raises(InputError, match="a request body must be a dict"):
        turnlog.repair(body, "openai-chat")
    with pytest.raises(InputError, match="a request body must be a dict"):
        turnlog.convert(body, to="google")


@pytest.mark.parametrize(
    ("aim", "tool"),
    [
        (CLAUDE, {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}),
        (CLAUDE, {"type": "bash_20250124", "name": "bash"}),
        (CLAUDE, {"type": "mcp_toolset", "mcp_server_name": "files"}),
        (CLAUDE, {"type": "code_execution_20991231", "name": "code_execution"}),
        (turnlog.target("google", "gemini-2.5-pro"), {"googleSearch": {}}),
        (turnlog.target("google", "gemini-2.5-pro"), {"url_context": {}}),
        (turnlog.target("openai-chat", "gpt-5"), {"type": "custom", "custom": {"name": "patch"}}),
        (turnlog.target("openai-responses", "gpt-5"), {"type": "web_search"}),
        (turnlog.target("openai-responses", "gpt-5"), {"type": "web_search_preview_2025_03_11"}),
        (turnlog.target("openai-responses", "gpt-5"), {"type": "custom", "name": "patch"}),
    ],
)
def test_a_tool_that_its_provider_runs_is_declared_to_it(aim: turnlog.Target, tool: dict[str, Any]) -> None:
    """Else the model has no search, though its session was given one, and nothing but a loss says so; or a
    declaration as the provider documents it is refused as none."""
    with turnlog.open("trip", target=aim, tools=[tool], store=":memory:") as session:
        session.user("Is it warm in Oslo?")
        prepared = session.request()
    (declared,) = prepared.body["tools"]
    declared.pop("cache_control", None)  # a tool whose declaration is long enough to be cached
    assert declared == tool
    assert prepared.losses == ()


@pytest.mark.parametrize("aim", [CHAT, CLAUDE, turnlog.target("google", "gemini-2.5-pro")])
def test_a_tool_may_take_its_arguments_apart(aim: turnlog.Target, tmp_path: Path) -> None:
    """A tool that pops what it has read, or adds a password, would change what the model is told that it called; after
    a restart it would be told otherwise."""
    call = ToolCall("call_1", "weather", {"city": "Oslo", "days": 3})
    with turnlog.open("trip", target=aim, store=tmp_path / "a.db") as session:
        session.user("Is it warm in Oslo?")
        record = session.add(Message("assistant", (call,)))
        call.arguments.pop("city")
        call.arguments["password"] = "hunter2"
        session.tool_started(call)
        session.tool_finished(call)
        assert session.log.calls()[0].record == record.n
        assert session.log.calls()[0].finished
        session.tool_result(call, "4 degrees")
        answered = session.request().json()
    with turnlog.open("trip", store=tmp_path / "a.db") as session:
        assert session.request().json() == answered
    assert b"Oslo" in answered
    assert b"hunter2" not in answered


def test_tools_that_are_changed_later_are_as_they_were_given(session: Session) -> None:
    """A schema that its owner goes on to change would be another in each process."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    session.configure(tools=[{"name": "weather", "parameters": schema}])
    session.user("Is it warm in Oslo?")
    schema["properties"] = {}
    assert "city" in str(session.request().body["tools"])


def _asked_for(*calls: tuple[str, str]) -> dict[str, Any]:
    """An answer that calls tools, by id and name."""
    made = [{"id": i, "type": "function", "function": {"name": name, "arguments": "{}"}} for i, name in calls]
    message = {"role": "assistant", "content": None, "tool_calls": made}
    return {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("same", ["", "call_1", "functions.look"])
def test_results_of_calls_without_ids_of_their_own_are_not_swapped(session: Session, same: str, streamed: bool) -> None:
    """Tools that end in another order than they were called in: the model would read the answer to the one as the
    other's. Servers that imitate an API leave ids empty, or give one to all."""
    whole = _asked_for((same, "look"), ("call_0", "look"), (same, "list"))
    session.user("Look, and list.")
    answer = session.receive(iter([whole]) if streamed else whole)
    look, other, listed = answer.tool_calls
    assert len({look.id, other.id, listed.id}) == 3 and other.id == "call_0"
    for call, said in ((listed, "a list"), (other, "another look"), (look, "a look")):
        session.tool_result(call, said)
    for aim in (CHAT, CLAUDE, turnlog.target("openai-responses", "gpt-5"), turnlog.target("google", "gemini-2.5-pro")):
        shown = session.request(aim).view
        told = {part.call_id: part for one in shown for part in one.message.parts if isinstance(part, ToolResult)}
        asked = [part for one in shown for part in one.message.parts if isinstance(part, ToolCall)]
        texts = [[part.text for part in told[call.id].parts if isinstance(part, Text)] for call in asked]
        assert texts == [["a look"], ["another look"], ["a list"]]


def test_one_call_without_an_id_stays_as_it_came(session: Session) -> None:
    """Nothing is made up where nothing can be taken for something else."""
    session.user("Look.")
    [call] = session.receive(_asked_for(("", "look"))).tool_calls
    assert call.id == ""


@pytest.mark.parametrize("way", ["session", "turn"])
def test_a_result_of_no_call_is_refused(session: Session, way: str) -> None:
    """A mistyped id: the result is in no request, the call stands there without one, and nobody is told."""
    with session.turn("go") as turn:
        call, other = ToolCall("call_1", "look", {}), ToolCall("call_7", "look", {})
        given = session if way == "session" else turn
        for wrong in ("call_1", call):
            with pytest.raises(
                InputError, match="session 'trip' has no call with the id 'call_1' \\(open calls: none\\)"
            ):
                given.tool_result(wrong, "cold")
        session.add(Message("assistant", (call,)))
        for wrong in ("call_7", other, ""):
            with pytest.raises(InputError, match="open calls: 'call_1' of 'look'"):
                given.tool_result(wrong, "cold")
        given.tool_result("call_1", "cold")
        given.tool_result(call, "cold again")  # which is a duplicate, and told as one
        stray = Message("user", (ToolResult("call_7", "look", (Text("warm"),)),))
        assert [session.add(stray).message, session.extend([stray])[0].message] == [stray, stray]


@pytest.mark.parametrize(
    ("say", "why"),
    [
        (lambda s: s.user(" "), "its text is blank"),
        (lambda s: s.add(Message("user", ())), "it has no parts"),
        (lambda s: s.add(Message("user", (Unknown("later"), Text("")))), "it has only later, which cannot be sent"),
        (lambda s: s.extend([{"role": "user", "content": [{"type": "text", "text": None}]}]), "it has only text, "),
        (lambda s: s.turn("").__enter__(), "its text is blank"),
    ],
)
def test_a_message_of_which_nothing_can_be_read_is_told(say: Callable[[Session], Any], why: str) -> None:
    """A program that records what it failed to fill goes on as if the model had been asked."""
    with turnlog.open("s", store=MemoryStore(), target=CHAT) as session:
        warnings: list[str] = []
        session.on_event(lambda event: warnings.append(event.text) if event.kind == "warning" else None)
        session.user("hello")
        session.receive({"choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}]})
        assert warnings == []
        say(session)
        [said] = warnings
        assert f"is a user message of which a model can read nothing: {why}" in said


def test_the_other_spelling_of_canceled_is_taken_for_it() -> None:
    """Python itself says `cancelled`: the result of a call that a user stopped was lost to an InputError."""
    with turnlog.open("s", store=MemoryStore(), target=CHAT) as session:
        call = ToolCall("call_1", "look", {})
        session.add(Message("assistant", (call,)))
        word: Any = "cancelled"
        session.tool_finished(call, word)
        session.tool_result(call, "stopped", outcome=word)
        session.add(Message("user", (ToolResult("call_1", "look", (Text("again"),), word),)))
        said = [record.body for record in session.log.records()]
        finished = [body.outcome for body in said if isinstance(body, ToolFinished)]
        parts = [part for body in said if isinstance(body, MessageRecord) for part in body.message.parts]
        results = [part for part in parts if isinstance(part, ToolResult)]
        assert (finished, [one.outcome for one in results]) == (["canceled"], ["canceled", "canceled"])
        for mistake in ("canselled", "", None, 5):
            with pytest.raises(InputError, match="outcome must be one of ok, failed, timeout, canceled, aborted, lost"):
                session.tool_result(call, "x", outcome=mistake)  # type: ignore[arg-type]


def test_a_value_that_contains_itself_is_refused() -> None:
    """The check of a note for JSON went round in it until the memory was full."""
    itself: list[Any] = []
    itself += [itself, itself]
    with turnlog.open("s", store=MemoryStore(), target=CHAT) as session:
        for mistake in (
            lambda: session.note("topic", data=itself),
            lambda: session.add(Message("assistant", (ToolCall("c", "f", {"a": itself}),))),
            lambda: session.extend([{"role": "user", "content": itself}]),
            lambda: session.configure(metadata={"a": itself}),
            lambda: turnlog.repair({"model": "gpt-4o", "messages": itself}),
        ):
            with pytest.raises(InputError, match=r"contains itself|nested|expected an object|is list"):
                mistake()


MISSPELT: dict[str, tuple[Target, str]] = {
    "tempertaure": (CHAT, "did you mean 'temperature'?"),
    "reasoning_efort": (AIMS["openai-responses"], "did you mean 'reasoning'?"),
    "stop": (CLAUDE, "did you mean 'stop_sequences'?"),
    "top_p": (AIMS["google"], r"did you mean generationConfig=\{'topP': ...\}?"),
    "xyz": (AIMS["google"], "there are cachedContent, "),
    "budgets": (CHAT, "did you mean 'budget'?"),
}


@pytest.mark.parametrize("name", MISSPELT)
def test_a_setting_that_the_provider_does_not_have_is_refused(name: str, tmp_path: Path) -> None:
    """It would be dropped from each request, and the model would go on as before; nobody reads the edits for that."""
    target, said = MISSPELT[name]
    with turnlog.open("s", store=tmp_path / "s.db", target=target) as session:
        before = session.history()
        for mistake in (
            lambda: session.configure(**{name: 1}),
            lambda: session.switch(target.with_settings(**{name: 1})),
            lambda: session.request(target.with_settings(**{name: 1})),
            lambda: turnlog.open("t", store=session._store, target=target.with_settings(**{name: 1})),
        ):
            with pytest.raises(InputError, match=f"'{name}' is no setting of .*{said}"):
                mistake()
        assert session.history() == before
        assert [info.id for info in session._store.sessions()] == ["s"]


@pytest.mark.slow
@pytest.mark.parametrize("provider", AIMS)
@given(settings=st.dictionaries(st.from_regex(r"x[a-z]{2,8}", fullmatch=True), st.integers() | st.text(), min_size=1))
@settings(max_examples=examples(25, 1_000))
def test_a_server_of_another_gets_the_settings_that_it_was_given(provider: str, settings: dict[str, Any]) -> None:
    """`top_k`, `guided_json`: what vLLM, Ollama and gateways take, OpenAI does not have, and turnlog does not know."""
    elsewhere = [
        turnlog.target(provider, "llama-4"),
        turnlog.target(provider, AIMS[provider].model, base_url="http://localhost:8000/v1"),
    ]
    for target in elsewhere:
        store = MemoryStore()
        with turnlog.open("s", store=store, target=target) as session:
            session.user("hi")
            session.configure(**settings)
            made = session.request()
            assert made.body.items() >= settings.items()
            assert made.edits == ()
        with turnlog.open("s", store=store) as again:  # it is on record where requests go
            assert (again.target, again.request().json()) == (target, made.json())
        assert turnlog.repair(made.body, provider, model=target.model).body.items() >= (
            settings.items() if target.model == "llama-4" else set()
        )


class Markup(str):
    """Text of a class of its own, as markupsafe's and Django's, whose `str()` gives the object itself."""

    def __str__(self) -> str:
        return self


class Number(float):
    """A number of a class of its own, as numpy's."""


@settings(max_examples=examples(30, 1_000))
@given(text=st.text().map("word {}".format), number=st.floats(allow_nan=False, allow_infinity=False))
def test_text_of_a_subclass_is_the_same_text(text: str, number: float) -> None:
    """A tool whose result was `Markup` had run and ended the run with an InputError."""

    def logged(kind: type[str], amount: type[float]) -> list[Any]:
        said = kind(text)
        call = ToolCall("c", kind("f"), {kind("a"): [said, amount(number)]})
        with turnlog.open(kind("trip"), store=MemoryStore(), target=CHAT) as session:
            session.system(said)
            session.system(said, replace=True)
            asked = session.user([said, Text(said)])
            session.add(Message("assistant", (Text(said), call), name=kind("ann")))
            session.tool_result(kind("c"), said)
            session.extend([{kind("role"): kind("user"), "content": kind(f"-{text}")}])
            session.note(kind("topic"), said, {said: [said, amount(number)]})
            session.label({kind("user"): said})
            session.configure(temperature=amount(0.5), tools=[turnlog.Tool(kind("f"), said, {"type": kind("object")})])
            session.pin(asked.n, reason=said)
            return [session.id, *(record.body for record in session.history()), session.request().body]

    assert logged(Markup, Number) == logged(str, float)
    assert type(logged(Markup, Number)[0]) is str


@pytest.mark.parametrize(
    "read", [turnlog.check, turnlog.count, lambda body: turnlog.repair(body).body], ids=["check", "count", "repair"]
)
def test_a_body_with_text_of_a_subclass_is_read(read: Callable[[dict[str, Any]], Any]) -> None:
    """A template that was filled in was no text to a schema that asks for the exact type."""

    def body(kind: type[str], amount: type[float]) -> dict[str, Any]:
        said = [
            {"role": "user", "content": kind("hi")},
            {"role": "user", "content": [{"type": "text", "text": kind("x")}]},
        ]
        return {"model": kind("gpt-4o"), "messages": said, "temperature": amount(0.5)}

    assert read(body(Markup, Number)) == read(body(str, float))
