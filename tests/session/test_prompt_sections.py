"""The system prompt in sections: what requests show of them, and what is on record."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import turnlog
from judging import errors_of
from turnlog.errors import InputError
from turnlog.log.messages import ToolCall
from turnlog.log.prompt import PromptRecord
from turnlog.prompt import Section, When

TARGETS = [
    turnlog.target("openai-chat", "gpt-4o"),
    turnlog.target("openai-responses", "gpt-5"),
    turnlog.target("anthropic", "claude-sonnet-4-5", max_tokens=99),
    turnlog.target("anthropic", "claude-opus-5-5", max_tokens=99),
    turnlog.target("google", "gemini-2.5-pro"),
    turnlog.target("google-interactions", "gemini-2.5-pro"),
]
GIT = [{"name": "git", "parameters": {"type": "object", "properties": {}}}]


def _opened(target: turnlog.Target = TARGETS[0], **given: Any) -> turnlog.Session:
    return turnlog.open("s", store=":memory:", target=target, **given)


def _system(session: turnlog.Session) -> str:
    said = [shown.message.parts for shown in session.request().view if shown.message.role == "system"]
    return "\n\n".join(part.text for parts in said for part in parts if isinstance(part, turnlog.Text))


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_requests_with_sections_are_valid(oracle: ModuleType, target: turnlog.Target) -> None:
    """Sections in a place or a form that the provider refuses."""
    texts = iter(["one", "two", "three"])
    session = _opened(target, tools=GIT)
    session.system("Plain.")
    session.prompt.add(Section("base", "Contract."), Section("now", lambda: next(texts)))
    for said in ("Hello?", "And?"):
        session.user(said)
        assert errors_of(oracle, target, session.request().body) == []
        session.assistant("Yes.")
    session.prompt.remove("base", "now")
    session.user("Then?")
    assert errors_of(oracle, target, session.request().body) == []
    assert "Contract." not in _system(session).rpartition("[From here on")[2]


def test_what_does_not_change_comes_first() -> None:
    """A text that changes before one that does not would move the cached prefix."""
    session = _opened(tools=GIT)
    session.prompt.add(
        Section("branch", lambda: "main"),
        Section("git", "Commit.", when=When(tool="git")),
        Section("base", "Contract."),
    )
    session.user("Hi")
    assert _system(session) == "Contract.\n\nCommit.\n\nmain"


def test_adding_the_same_sections_again_records_nothing() -> None:
    """A program that adds its sections at each start would write them, and move the prefix, each time."""
    session = _opened()
    sections = (Section("base", "Contract."), Section("branch", lambda: "main"))
    session.prompt.add(*sections)
    session.user("Hi")
    last = session.history()[-1].n
    session.prompt.add(*sections)
    session.prompt.refresh()
    assert session.history()[-1].n == last


def test_requests_call_no_function() -> None:
    """A request that depends on the time or on a file: it would not be the same again after a crash."""
    called = []

    def text() -> str:
        called.append(1)
        return f"Call {len(called)}."

    session = _opened()
    session.prompt.add(Section("now", text))
    assert called == []
    with session.turn("Hi") as turn:
        turn.request()
        session.preview()
        session.user("By the way")
        session.prompt.explain()
        assert len(called) == 1
        assert _system(session) == "Call 1."
    session.user("Again")
    assert _system(session) == "Call 2."


def test_a_function_that_fails_opens_no_turn() -> None:
    """Half a turn on record, or a turn that cannot be left."""
    session = _opened()
    session.prompt.add(Section("now", lambda: 1 / 0))  # type: ignore[arg-type, return-value]
    last = session.history()[-1].n
    with pytest.raises(ZeroDivisionError), session.turn("Hi"):
        raise AssertionError("the turn was opened")
    assert session.history()[-1].n == last
    session.prompt.add(Section("now", lambda: 7))  # type: ignore[arg-type, return-value]
    with pytest.raises(InputError, match="'now': its function must return a string, not int"):
        session.user("Hi")
    session.prompt.remove("now")
    with session.turn("Hi"):
        pass


def test_conditions_are_looked_at_when_something_changes() -> None:
    """A section that is shown without its tool, provider, label or use, or is missing with them."""
    session = _opened()
    session.prompt.add(
        Section("base", "Contract."),
        Section("git", "Commit.", when=When(tool="git")),
        Section("chat", "Chat.", when=When(provider="openai-chat")),
        Section("slides", "Slides.", when=When(label="slides")),
        Section("used", "Used.", when=When(used="git", turns=2)),
    )
    assert _system(session) == "Contract.\n\nChat."
    session.configure(tools=GIT)
    session.prompt.label("slides")
    assert _system(session) == "Contract.\n\nCommit.\n\nChat.\n\nSlides."
    session.switch(TARGETS[4])
    session.prompt.unlabel("slides")
    assert _system(session) == "Contract.\n\nCommit."
    shown = []
    for turn in range(4):
        session.user(f"Turn {turn}")
        shown.append("Used." in _system(session))
        if not turn:
            session.add(turnlog.Message("assistant", (ToolCall("1", "git", {}),)))
            session.tool_result("1", "done")
        session.assistant("ok")
    assert shown == [False, True, True, False]


def test_a_rewind_takes_back_what_was_called() -> None:
    """A tool that was called in a turn which is no longer part of the conversation."""
    session = _opened(tools=GIT)
    session.prompt.add(Section("used", "Used.", when=When(used="git")))
    session.user("One")
    session.assistant("ok")
    session.user("Two")
    session.add(turnlog.Message("assistant", (ToolCall("1", "git", {}),)))
    session.tool_result("1", "done")
    session.assistant("ok")
    session.rewind(turns=1)
    session.user("Two again")
    assert "Used." not in _system(session)


def test_caps_cut_and_priorities_give_way() -> None:
    """A section beyond its cap, or a contract that gave way."""
    session = _opened()
    session.prompt.add(
        Section("base", "Contract. " * 50),
        Section("long", "A line of text.\n" * 200, cap=30, priority=5),
        Section("low", "Low. " * 20, priority=1),
        Section("mid", "Mid. " * 20, priority=2),
    )
    session.user("Hi")
    text = _system(session)
    assert "[The section 'long' is cut here: it may have 30 tokens.]" in text
    assert text.count("A line of text.") in range(4, 10)
    sizes = {one.name: one.tokens for one in session.prompt.explain()}
    room = sum(sizes.values()) - sizes["low"]
    session.prompt.limit(room)
    left = {one.name: one.left_out for one in session.prompt.explain()}
    assert left["base"] == left["long"] == left["mid"] == ""
    assert left["low"] == f"it gave way: all sections together may have {room} tokens"
    assert "Low." not in _system(session)
    session.prompt.limit(1)
    assert _system(session) == "Contract. " * 50
    session.prompt.limit(0)
    assert "Low." in _system(session)


def test_plain_system_text_stands_beside_sections() -> None:
    """Sections that take the place of what `system` said, or the reverse."""
    session = _opened()
    session.system("Plain.")
    session.prompt.add(Section("base", "Contract."))
    session.user("Hi")
    session.system("Plainer.", replace=True)
    assert _system(session) == "Plainer.\n\nContract."
    session.prompt.add(Section("base", "Contract, new."))
    assert _system(session) == "Plainer.\n\nContract, new."
    assert str(session.prompt.explain()[0]).startswith("system: ")


def test_another_process_makes_the_same_requests(tmp_path: Path) -> None:
    """Sections, labels or the last text of a function lost with the process."""
    store = str(tmp_path / "s.db")
    with turnlog.open("s", store=store, target=TARGETS[0], tools=GIT) as session:
        session.prompt.add(
            Section("base", "Contract."),
            Section("git", "Commit.", when=When(tool="git")),
            Section("slides", "Slides.", when=When(label="slides")),
            Section("branch", lambda: "main"),
        )
        session.prompt.label("slides")
        session.user("Hi")
        before, sections = session.request().json(), session.prompt.sections
        session.assistant("ok")
    with turnlog.open("s", store=store) as again:
        again.rewind(to=max(record.n for record in again.history() if record.message) - 1)
        assert again.request().json() == before
        assert again.prompt.sections == sections
        again.user("More")
        assert _system(again).endswith("main")
        again.configure(tools=[])
        assert _system(again) == "Contract.\n\nSlides.\n\nmain"
        assert sum(isinstance(record.body, PromptRecord) for record in again.history()) == 3


def test_a_rewind_before_the_sections_brings_them_back_at_the_next_turn() -> None:
    """A system prompt that is lost, as the message with it was taken back."""
    session = _opened()
    session.user("One")
    session.assistant("ok")
    session.user("Two")
    session.prompt.add(Section("base", "Contract."))
    session.assistant("ok")
    session.rewind(turns=1)
    assert _system(session) == ""
    session.user("Two again")
    assert _system(session) == "Contract."


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("base", "takes turnlog.prompt.Section objects, not str"),
        (Section("", "x"), "section name '': give 1 to 64"),
        (Section("start", "x"), "'start': turnlog itself has a section of that name"),
        (Section("a", 7), "section 'a': text must be a string, or a function"),  # type: ignore[arg-type]
        (Section("a", "x", place="end"), "section 'a': place must be"),  # type: ignore[arg-type]
        (Section("a", "x", when="git"), "section 'a': when must be"),  # type: ignore[arg-type]
        (Section("a", "x", when=When(used="a", turns=0)), "section 'a': when.turns must be"),
        (Section("a", "x", cap=-1), "section 'a': cap must be"),
        (Section("a", "x", priority="low"), "section 'a': priority must be"),  # type: ignore[arg-type]
    ],
)
def test_wrong_sections_are_refused(section: Any, said: str) -> None:
    """A mistake that shows only in what the model is sent."""
    session = _opened()
    with pytest.raises(InputError, match=said):
        session.prompt.add(section)
    with pytest.raises(InputError, match="there is no section 'b': there are none"):
        session.prompt.remove("b")
    assert session.prompt.sections == ()
