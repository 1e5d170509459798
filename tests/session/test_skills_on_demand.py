"""Skills and tools that the model loads when it needs them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from test_prompt_sections import TARGETS

import turnlog
from judging import errors_of
from turnlog.errors import InputError
from turnlog.log.messages import Form, ToolCall, ToolResult, text_of
from turnlog.log.records import Decision
from turnlog.skills import Skill

NEWER = [turnlog.target("openai-responses", "gpt-5.4"), turnlog.target("anthropic", "claude-sonnet-4-6", max_tokens=99)]
ALL = [*TARGETS, *NEWER]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string", "description": "The path. " * 20}}}
TOOLS: list[Any] = [
    {"name": "shell", "description": "Run a command.", "parameters": {"type": "object", "properties": {}}},
    *({"name": f"tool_{n}", "description": f"Does {n}.", "parameters": SCHEMA, "on_demand": True} for n in range(9)),
]
PDF = Skill("pdf", "Work with PDF files.", "Use pdftk.", folder="/skills/pdf")


def _opened(target: turnlog.Target, **given: Any) -> turnlog.Session:
    session = turnlog.open("s", store=given.pop("store", ":memory:"), target=target, tools=TOOLS, **given)
    session.skills.add(PDF)
    return session


def _call(session: turnlog.Session, tool: str, /, **arguments: Any) -> ToolCall:
    n = len(session.log.calls())
    kind = "tool_search" if tool == "tool_search" else "function"
    form = Form("openai-responses", "tool_search_call") if kind == "tool_search" else None
    call = ToolCall(f"call_{n}", tool, arguments, kind=kind, form=form)
    session.add(turnlog.Message("assistant", (call,)))
    return call


def _find(session: turnlog.Session, *names: str) -> None:
    """Load tools in the way that the model was told."""
    assert session.target is not None
    own = any(tool.get("type") == "tool_search" for tool in session.preview().body["tools"])
    call = _call(session, "tool_search" if own else "find_tools", names=[*names])
    assert session.skills.take(call) is None


def _sent(session: turnlog.Session) -> str:
    return session.preview().json().decode()


@pytest.mark.parametrize("target", ALL, ids=str)
def test_loading_keeps_the_prefix_and_is_valid(oracle: ModuleType, target: turnlog.Target) -> None:
    """A tool or a skill that is loaded by a change of what was sent, or in a form that the provider refuses."""
    session = _opened(target)
    session.user("Go.")
    session.request()
    for step in range(3):
        _find(session, f"tool_{step}", f"tool_{step + 1}")
        request = session.request()
        assert errors_of(oracle, target, request.body) == []
        assert request.cache is not None
        assert request.cache.shared == request.cache.previous
    session.skills.take(_call(session, "load_skill", name="pdf"))
    request = session.request()
    assert errors_of(oracle, target, request.body) == []
    assert request.cache is not None
    assert request.cache.shared == request.cache.previous
    assert "Use pdftk." in request.json().decode()
    assert session.skills.savings().loaded == ("tool_0", "tool_1", "tool_2", "tool_3", "pdf")
    assert [loss for loss in request.losses if loss.kind != "place"] == []


@pytest.mark.slow
@pytest.mark.parametrize("target", ALL, ids=str)
def test_what_is_loaded_survives_a_compaction_and_a_switch(
    oracle: ModuleType, target: turnlog.Target, tmp_path: Path
) -> None:
    """A model that is not shown any more how to use what it has loaded."""
    with _opened(target, store=tmp_path / "s.db") as session:
        session.user("Go.")
        _find(session, "tool_1")
        session.skills.take(_call(session, "load_skill", name="pdf"))
        for n in range(4):
            session.assistant(f"Step {n}. " * 900)
            session.user("On.")
        assert session.compact(keep=1).decisions
        assert "tool_1" in _declared(session.request().body)
        assert "Use pdftk." in _sent(session)
        assert errors_of(oracle, target, session.request().body) == []
        _find(session, "tool_2")
        before = session.request().json()
    with turnlog.open("s", store=tmp_path / "s.db") as again:
        assert again.request().json() == before
        again.skills.add(PDF)
        again.configure(tools=TOOLS)
        assert again.request().json() == before
        for other in ALL:
            again.switch(other)
            request = again.request()
            assert errors_of(oracle, other, request.body) == []
            assert "Use pdftk." in request.json().decode()
            assert "tool_1" in _declared(request.body)
            assert "tool_2" in _declared(request.body)


def _declared(body: dict[str, Any]) -> set[str]:
    """The tools that a request declares in full."""
    found = set()
    for tool in body["tools"]:
        for one in tool.get("functionDeclarations", [tool]):
            inner = one.get("function", one)
            if not inner.get("defer_loading"):
                found.add(inner.get("name"))
    return found


def test_tools_are_used_through_one_that_never_changes() -> None:
    """A call of the dispatcher that runs another tool, runs without the schema, or runs with no object."""
    session = _opened(TARGETS[0])
    session.user("Go.")
    call = _call(session, "shell", c="ls")
    assert session.skills.take(call) == call
    session.tool_result(call, "ok")
    assert session.skills.take(_call(session, "use_tool", name="tool_1", arguments={"path": "a"})) is None
    assert "It did not run: 'tool_1' was not loaded." in _sent(session)
    assert "[tool tool_1, as of now:]" in _sent(session)
    call = _call(session, "use_tool", name="tool_1", arguments={"path": "a"})
    run = session.skills.take(call)
    assert run is not None
    assert (run.name, run.arguments, run.id) == ("tool_1", {"path": "a"}, call.id)
    session.tool_started(call)
    session.tool_result(call, "done")
    assert session.skills.take(_call(session, "use_tool", name="tool_1", arguments="{}")) is not None
    assert session.skills.take(_call(session, "use_tool", name="tool_1", arguments=[1])) is None
    assert session.skills.take(_call(session, "use_tool", name="nope", arguments={})) is None
    results = [part for m in session.view() for part in m.message.parts if isinstance(part, ToolResult)]
    assert [part.outcome for part in results[-2:]] == ["failed", "failed"]


def test_wrong_questions_are_answered() -> None:
    """A model that asks for what is not there, and hears nothing."""
    session = _opened(TARGETS[0])
    session.user("Go.")
    for call, said in (
        (("load_skill", {"name": "doc"}), "There is no skill 'doc'. There are: pdf."),
        (("find_tools", {"names": ["nope"]}), "There is no tool on demand named 'nope'."),
        (("find_tools", {}), "No tool fits."),
        (("find_tools", {"query": "does 3"}), "Loaded: tool_3"),
        (("find_tools", {"names": ["tool_3"]}), "Loaded already: tool_3."),
        (("load_skill", {"name": "pdf"}), "Loaded: the instructions of the skill 'pdf' follow."),
        (("load_skill", {"name": "pdf"}), "Loaded already: the skill 'pdf' stands above."),
    ):
        assert session.skills.take(_call(session, call[0], **call[1])) is None
        newest = [p for m in session.view() for p in m.message.parts if isinstance(p, ToolResult)][-1]
        assert said in newest.parts[0].text  # type: ignore[union-attr]


def test_rules_load_when_a_turn_opens() -> None:
    """A rule that loads twice, or at a request."""
    session = _opened(TARGETS[0])
    session.skills.load_when(r"\bpdf\b", "pdf", "tool_5")
    with session.turn("Nothing of that."):
        assert "Use pdftk." not in _sent(session)
        session.assistant("ok")
    for _ in range(2):
        with session.turn("Fill in this PDF."):
            assert _sent(session).count("Use pdftk.") == 1
            assert _sent(session).count("[tool tool_5, as of now:]") == 1
            session.assistant("ok")
    with pytest.raises(InputError, match="is no regular expression"):
        session.skills.load_when("(", "pdf")


def test_bodies_are_capped_at_decisions_and_not_before() -> None:
    """Skills that fill the window after each compaction, or that are cut while they are at work."""
    session = _opened(TARGETS[0])
    bodies = {f"s{n}": f"Body {n}. " + "A line about it.\n" * 900 for n in range(8)}
    session.skills.add(
        *(Skill(name, "A skill.", body) for name, body in bodies.items()), Skill("big", "B.", "Big. " * 9_000)
    )
    session.user("Go.")
    session.skills.take(_call(session, "load_skill", name="big"))
    for name in bodies:
        session.skills.take(_call(session, "load_skill", name=name))
    session.assistant("All is well. " * 3_000)
    assert all(f"Body {n}." in _sent(session) for n in range(8))
    session.user("More.")
    session.assistant("ok")
    session.user("And more.")
    assert session.compact(keep=1).decisions
    left = [n for n in range(8) if f"Body {n}." in _sent(session)]
    assert left == [*range(8)][-len(left) :]
    assert 4 <= len(left) <= 6
    session = _opened(TARGETS[0])
    session.skills.add(Skill("big", "B.", "Big line.\n" * 9_000))
    session.user("Go.")
    session.skills.take(_call(session, "load_skill", name="big"))
    for n in range(3):
        session.assistant("All is well. " * 3_000)
        session.user(f"More {n}.")
    assert session.compact(keep=1).decisions
    assert 3_000 < _sent(session).count("Big line.") * 3 < 6_000
    assert "left out ...]" in _sent(session)


def test_tools_unused_longest_leave_at_decisions() -> None:
    """Declarations that grow with each tool that was ever loaded."""
    large = {"type": "object", "properties": {f"p{n}": {"type": "string", "description": "x " * 60} for n in range(60)}}
    tools = [{"name": f"large_{n}", "description": "Large.", "parameters": large, "on_demand": True} for n in range(8)]
    session = turnlog.open("s", store=":memory:", target=TARGETS[0], tools=tools)
    session.user("Go.")
    for n in range(8):
        _find(session, f"large_{n}")
    call = _call(session, "use_tool", name="large_0", arguments={})
    assert session.skills.take(call) is not None
    session.tool_result(call, "done")
    for n in range(3):
        session.assistant("All is well. " * 3_000)
        session.user(f"More {n}.")
    assert {f"large_{n}" for n in range(8)} & _declared(session.request().body) == set()
    session.compact(keep=1)
    declared = {name for name in _declared(session.request().body) if name.startswith("large")}
    assert "large_0" in declared or len(declared) < 8
    assert "large_1" not in declared
    assert session.skills.savings().shown < session.skills.savings().whole
    assert any("loaded" in r.body.detail for r in session.history() if isinstance(r.body, Decision))


def test_without_tools_on_demand_nothing_changes() -> None:
    """A session that pays for what it does not use."""
    plain = [{**tool, "on_demand": False} for tool in TOOLS]
    with turnlog.open("s", store=":memory:", target=TARGETS[0], tools=plain) as session:
        session.user("Go.")
        assert len(session.request().body["tools"]) == len(TOOLS)
        assert not any("prompt" in type(record.body).__name__.lower() for record in session.history())
    with pytest.raises(InputError, match="Skill objects, not str"):
        session.skills.add("pdf")  # type: ignore[arg-type]


def test_the_list_of_tools_comes_after_the_programs_own_system_text() -> None:
    """What a program says first stands first: models and prompt caches go by it, and `explain` says so."""
    with _opened(TARGETS[0], settings=turnlog.Settings(system="You are a pilot.")) as session:
        session.user("Go.")
        system = [text_of(one.message) for one in session.view() if one.message.role == "system"]
    assert system[0] == "You are a pilot." and "tool_0" in system[1]
