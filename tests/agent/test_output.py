"""Answers of a type: asked for again if they do not fit, on record, and the same after a crash."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

import turnlog
from turnlog import ToolCall, agent
from turnlog._platform.exceptions import described
from turnlog.errors import InputError
from turnlog.log.messages import ToolResult, text_of
from turnlog.log.records import Configuration
from turnlog.log.store import Draft
from turnlog.runners import ScriptedRunner
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

FORM = turnlog.target("openai-chat", "gpt-4o")
TOOL = turnlog.target("openai-chat", "gpt-4")


class City(msgspec.Struct):
    """A city."""

    name: str
    people: int = 0


OSLO = '{"name":"Oslo","people":7}'


@pytest.fixture
def session() -> Iterator[Session]:
    """A session with a model that answers by a schema."""
    with turnlog.open("s", store=":memory:", target=FORM) as session:
        yield session


def said(session: Session) -> list[str]:
    """The texts of the user's side, and of results."""
    messages = [record.message for record in session.history() if record.message and record.message.role == "user"]
    parts = [part for message in messages for part in message.parts]
    return [
        "".join(inner.text for inner in part.parts) if isinstance(part, ToolResult) else part.text  # type: ignore[union-attr]
        for part in parts
    ]


def test_a_wrong_answer_is_asked_for_again_with_what_is_wrong(session: Session) -> None:
    """An agent that dies of a wrong answer, takes it, or does not tell the model what was wrong with it."""
    runner = ScriptedRunner(["Oslo.", '{"name":"Oslo","people":"many"}', f"```json\n{OSLO}\n```"])
    result = agent.run(session, "Which city?", runner, output=City)
    assert (result.output, result.stop, result.steps) == (City("Oslo", 7), "end", 3)
    assert [text.partition(". Answer again")[0] for text in said(session)] == [
        "Which city?",
        "This answer does not fit: it is no JSON: Expecting value: line 1 column 1 (char 0)",
        "This answer does not fit: Expected `int`, got `str` - at `$.people`",
    ]
    assert [turn.status for turn in session.log.turns()] == ["completed"]


def test_it_is_asked_for_only_so_often(session: Session) -> None:
    """A model that never answers right is paid for until the limit of steps; or its run ends as if all were well."""
    runner = ScriptedRunner(["no"] * 9)
    result = agent.run(session, "Which city?", runner, output=City, output_retries=1)
    assert (result.stop, result.steps, result.turn.status) == ("output", 2, "cancelled")
    with pytest.raises(InputError, match="its stop is 'output'"):
        _ = result.output
    again = agent.run(session, "Which city?", ScriptedRunner([OSLO]), output=City)
    assert (again.output, again.turn.first) == (City("Oslo", 7), result.turn.first)


def test_a_tool_takes_the_answer_where_there_is_no_setting() -> None:
    """A model without structured answers would be refused, or answer in prose; a wrong call, too, is told what is
    wrong, and one beside other calls does not lose their results."""

    def look() -> str:
        """Look."""
        return "a harbour"

    with turnlog.open("s", store=":memory:", target=TOOL) as session:
        calls: list[Any] = [
            [ToolCall("a", "look", {}), ToolCall("b", "answer", {"name": "Oslo", "people": []})],
            "I think it is Oslo.",
            ToolCall("c", "answer", {"name": "Oslo", "people": 7}),
        ]
        runner = ScriptedRunner(calls)
        result = agent.run(session, "Which city?", runner, tools=[look], output=City)
        assert (result.output, result.stop, result.steps) == (City("Oslo", 7), "end", 3)
        assert {tool["function"]["name"] for tool in runner.requests[0].body["tools"]} == {"answer", "look"}
        assert runner.requests[0].body["tool_choice"] == "required"
        assert [(info.call.name, info.outcome) for info in result.turn.calls] == [
            ("look", "ok"),
            ("answer", "failed"),
            ("answer", "ok"),
        ]
        last = agent.run(session, "Thanks.", ScriptedRunner(["Gladly."]))
        assert (last.text, last.output, session.log.validate()) == ("Gladly.", None, [])
        assert "tool_choice" not in session.request().body


@pytest.mark.parametrize("target", [FORM, TOOL], ids=["setting", "tool"])
def test_a_killed_run_goes_on_to_the_same_answer(target: turnlog.Target) -> None:
    """After a crash an answer that was given is asked for again, or a wrong one is returned."""
    right: Any = OSLO if target is FORM else ToolCall("", "answer", {"name": "Oslo", "people": 7})
    with turnlog.open("s", store=":memory:", target=target) as whole:
        agent.run(whole, "Which city?", ScriptedRunner(["no", right]), output=City)
        records = whole.history()
    for n in range(2, len(records) + 1):
        store = MemoryStore()
        store.create("s")
        store.append("s", [Draft.of(record) for record in records[:n]])
        with turnlog.open("s", store=store, target=target) as session:
            messages = [record.message for record in records[:n] if record.message]
            by_call = any(isinstance(part, ToolCall) for message in messages for part in message.parts)
            answered = by_call or any(OSLO in text_of(message) for message in messages)
            closed = session.log.turns()[-1:] and session.log.turns()[-1].status == "completed"
            runner = ScriptedRunner([right])
            result = agent.run(session, "Which city?", runner, output=City)
            assert (result.output, result.stop) == (City("Oslo", 7), "end")
            assert len(runner.requests) == (0 if answered and not closed else 1)
        store.close()


def test_the_type_is_on_record_and_leaves_with_the_run(session: Session) -> None:
    """What a request asks for is not in the log, or binds whoever goes on by hand."""
    agent.run(session, "Which city?", ScriptedRunner([OSLO]), output=City)
    bodies = [record.body for record in session.history() if isinstance(record.body, Configuration)]
    assert [body.answer_schema is not None for body in bodies[-2:]] == [True, False]
    assert "response_format" not in session.request().body


@dataclass
class Point:
    """A point."""

    x: int
    y: int


class Inner(msgspec.Struct):
    """Inside."""

    path: Path
    handle: ScriptedRunner


class Outer(msgspec.Struct):
    """Outside."""

    inner: Inner


class Named(TypedDict):
    """A name."""

    name: str


@pytest.mark.parametrize(
    ("kind", "answer", "value"),
    [
        (list[int], '{"answer":[1,2]}', [1, 2]),
        (Literal["yes", "no"], '{"answer":"no"}', "no"),
        (int | str, '{"answer":"1"}', "1"),
        (int, '{"answer":"1"}', 1),
        (None | int, '{"answer":null}', None),
        (Point, '{"x":1,"y":2}', Point(1, 2)),
        (Named, '{"name":"a"}', {"name": "a"}),
        (dict[str, Point], '{"answer":{"a":{"x":1,"y":2}}}', {"a": Point(1, 2)}),
    ],
)
def test_types_of_all_origins(session: Session, kind: Any, answer: str, value: Any) -> None:
    """A type that is asked for otherwise than it is read; a text that is a number if a text is allowed."""
    assert agent.run(session, "go", ScriptedRunner([answer]), output=kind).output == value


def test_what_cannot_be_asked_for_is_told_by_its_field(session: Session) -> None:
    """A traceback of msgspec names neither the run nor the field."""

    with pytest.raises(InputError, match=r"output: Outer \(its field 'inner.handle'\) cannot be asked for"):
        agent.run(session, "go", ScriptedRunner(["x"]), output=Outer)
    with pytest.raises(InputError, match="output_retries must be a whole number from 0 on"):
        agent.run(session, "go", ScriptedRunner(["x"]), output=City, output_retries=-1)

    def answer() -> str:
        """Answer."""
        return ""

    with pytest.raises(InputError, match="the tool 'answer' takes the answer"):
        agent.run(session, "go", ScriptedRunner(["x"]), output=City, tools=[answer])
    assert session.log.turns() == []


@pytest.mark.slow
def test_an_editor_knows_the_type(tmp_path: Path) -> None:
    """`result.output` is Any: a misspelled field is found by the user."""
    program = tmp_path / "program.py"
    program.write_text(
        "import turnlog\nfrom turnlog.runners import ScriptedRunner\n"
        "def f(session: turnlog.Session) -> None:\n"
        "    reveal_type(turnlog.run(session, 'a', ScriptedRunner(), output=turnlog.Text).output)\n"
        "    reveal_type(turnlog.run(session, 'a', ScriptedRunner(), output=list[int], max_steps=2).output)\n"
        "    reveal_type(turnlog.run(session, 'a', ScriptedRunner()).output)\n"
        "async def g(session: turnlog.Session) -> None:\n"
        "    reveal_type((await turnlog.arun(session, 'a', ScriptedRunner(), output=turnlog.Text)).output)\n"
    )
    told = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(program)], capture_output=True, text=True, check=False
    ).stdout
    revealed = [
        line.rpartition("is ")[2].strip(chr(34)).replace("builtins.", "")
        for line in told.splitlines()
        if "Revealed" in line
    ]
    text = "turnlog.log.messages.Text"
    assert revealed == [text, "list[int]", "None", text]


# -- validators ------------------------------------------------------------------------------------

RAISED: list[BaseException] = [KeyError(5), ZeroDivisionError("by it"), SystemExit(3), RecursionError("deep")]


class Checked(msgspec.Struct):
    """Checks itself."""

    x: int

    def __post_init__(self) -> None:
        """Take only 1."""
        if self.x != 1:
            raise RAISED[0]


class Model(pydantic.BaseModel):
    """Checks itself, too."""

    x: int

    @pydantic.field_validator("x")
    @classmethod
    def only(cls, x: int) -> int:
        """Take only 1."""
        if x != 1:
            raise RAISED[0]
        return x


Adapted = Annotated[Model, pydantic.Field(description="Read by a TypeAdapter.")]


@pytest.mark.parametrize("error", RAISED)
@pytest.mark.parametrize("kind", [Checked, Model, Adapted])
def test_a_validator_may_raise_anything(session: Session, kind: Any, error: BaseException) -> None:
    """An exception that is no ValueError ends the run, and each that goes on with it: in the arguments of a tool, where
    other calls are cut off by it, and in the answer."""
    before, RAISED[0] = RAISED[0], error
    effects: list[int] = []

    def take(x: Any) -> None:
        """Take."""

    async def pay(amount: int) -> None:
        """Pay."""
        await asyncio.sleep(0)
        effects.append(amount)

    take.__annotations__["x"] = kind
    calls = [ToolCall("a", "pay", {"amount": 1}), ToolCall("b", "take", {"x": {"x": 5}})]
    runner = ScriptedRunner([calls, '{"x": 5}', '{"x": 1}'])
    try:
        result = agent.run(session, "go", runner, tools=[pay, take], output=kind)
    finally:
        RAISED[0] = before
    says = described(error)
    assert (result.output.x, effects, [call.outcome for call in result.turn.calls]) == (1, [1], ["ok", "failed"])
    assert [text.partition(". Answer again")[0] for text in said(session) if "fit" in text] == [
        f"The tool was not run, as its arguments do not fit: {says}",
        f"This answer does not fit: {says}",
    ]


# -- sizes -----------------------------------------------------------------------------------------


def deep(levels: int) -> Any:
    """Structs inside of each other."""
    kind: Any = msgspec.defstruct("L0", [("x", int)])
    for n in range(1, levels):
        kind = msgspec.defstruct(f"L{n}", [("x", kind)])
    return kind


def words(count: int, length: int) -> Any:
    """An enum."""
    return Literal[tuple(f"{n:0{length}}" for n in range(count))]


def fields(count: int, kind: Any = int, length: int = 5) -> Any:
    """A struct with many fields."""
    return msgspec.defstruct("Many", [(f"x{n:0{length - 1}}", kind) for n in range(count)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("provider", "fits", "too_large"),
    [
        ("openai", words(1000, 4), words(1001, 4)),
        ("openai", words(251, 59), words(251, 60)),
        ("openai", words(250, 70), words(251, 70)),
        ("openai", fields(5000), fields(5001)),
        ("openai", fields(2000, length=60), fields(2001, length=60)),
        ("openai", deep(10), deep(11)),
        ("anthropic", fields(16, int | None), fields(17, int | None)),
    ],
)
def test_a_type_over_the_limits_is_asked_for_by_a_tool(provider: str, fits: Any, too_large: Any) -> None:
    """A type that is larger than a strict mode takes is refused in every request, although a tool could ask for it."""
    apis = [("openai-chat", "gpt-4o"), ("openai-responses", "gpt-5"), ("anthropic", "claude-sonnet-4-5")]
    google = [("google", "gemini-2.5-pro"), ("google-interactions", "gemini-2.5-pro")]
    for api, model in apis + google:
        asked = []
        for kind in (fits, too_large):
            with turnlog.open("s", store=":memory:", target=turnlog.target(api, model)) as session:
                runner = ScriptedRunner(["no"])
                agent.run(session, "go", runner, output=kind, output_retries=0)
                tools = runner.requests[0].body.get("tools", [])
                assert '"strict": true' not in json.dumps(tools)
                asked.append(len(tools))
        assert asked == [0, int(api.startswith(provider))]
