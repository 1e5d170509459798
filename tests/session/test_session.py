"""Sessions: recorded as it happens, resumed as it was, several processes at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

import turnlog
from turnlog.errors import BudgetError, InputError
from turnlog.log.budget import PRESETS, read_budget
from turnlog.log.messages import Message, Text, ToolCall, ToolResult, text_of
from turnlog.log.records import Decision, MessageRecord, Note, PartialAnswer
from turnlog.log.usage import Usage
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.summarize.running import RunningCall

CHAT = turnlog.target("openai-chat", "gpt-4o")
CLAUDE = turnlog.target("anthropic", "claude-sonnet-4-5")
CALLING: dict[str, Any] = {
    "id": "chatcmpl-1",
    "model": "gpt-4o-2024-08-06",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city":"Oslo"}'},
                    }
                ],
            },
        }
    ],
    "usage": {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 40}},
}
CALL = ToolCall("call_1", "weather", arguments={"city": "Oslo"})


@contextmanager
def both(path: Path) -> Iterator[tuple[Session, Session]]:
    """A session, shared by two writers on purpose."""
    with (
        turnlog.open("trip", target=CHAT, store=path, shared=True) as one,
        turnlog.open("trip", store=path, shared=True) as other,
    ):
        yield one, other


def asked(session: Session) -> Session:
    session.system("Be brief.")
    session.user("Weather in Oslo?")
    return session


def test_what_is_recorded_is_what_was_said(tmp_path: Path) -> None:
    """A session is for this: everything in order, notes too, and nothing else."""
    with turnlog.open("trip", target=CHAT, store=tmp_path / "a.db") as session:
        asked(session)
        answer = session.receive(CALLING)
        session.note("mood", "hopeful")
        session.tool_result(answer.tool_calls[0], "4 degrees", outcome="ok")
        assert [type(record.body).__name__ for record in session.history()] == [
            "Configuration", "MessageRecord", "MessageRecord", "MessageRecord", "UsageRecord", "Note", "MessageRecord",
        ]  # fmt: skip
        assert answer.tool_calls == [CALL]
        assert session.usage == Usage(input=100, output=7, cached=40)
        result = ToolResult("call_1", name="weather", parts=(Text("4 degrees"),))
        assert session.view()[-1].message == Message("user", (result,))
        assert "hopeful" not in repr(session.request().body)


def test_a_session_resumes_as_it_was(tmp_path: Path) -> None:
    """Target, tools and settings are in the log: a new process makes the same bytes."""
    path = tmp_path / "a.db"
    with turnlog.open("trip", target=CHAT, store=path) as session:
        session.configure(tools=[{"name": "weather", "parameters": {"type": "object"}}], temperature=0.5)
        before = asked(session).request().json()
    with turnlog.open("trip", store=path) as session:
        assert session.request().json() == before
        assert session.request().body["temperature"] == 0.5


@pytest.mark.slow
def test_a_crash_in_mid_tool_is_told_to_the_model(tmp_path: Path) -> None:
    """Kill -9 between a tool's start and its end: the next request must not pretend to know."""
    path = tmp_path / "a.db"
    script = (
        "import os, signal, sys, turnlog\n"
        f"s = turnlog.open('trip', target=turnlog.target('openai-chat', 'gpt-4o'), store={str(path)!r})\n"
        "s.user('Weather?')\n"
        f"s.tool_started(s.receive({CALLING!r}).tool_calls[0])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    with turnlog.open("trip", store=path) as session:
        request = session.request()
        assert request.body["messages"][-1] == {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": "The call was interrupted. It may have run, wholly or in part; check before repeating it.",
        }
        assert [(edit.kind, edit.records) for edit in request.edits] == [("unanswered", (3,)), ("tool", (3,))]


def test_a_stream_that_breaks_is_kept_as_far_as_it_came(tmp_path: Path) -> None:
    """Half an answer is part of the conversation; half a call is not."""

    def stream() -> Any:
        yield {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "It is "}}]}
        yield {"choices": [{"index": 0, "delta": {"content": "cold"}}]}
        call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"ci'}}
        yield {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}
        raise ConnectionError("reset by peer")

    with turnlog.open("trip", target=CHAT, store=tmp_path / "a.db") as session:
        asked(session)
        with pytest.raises(ConnectionError, match="reset by peer"):
            session.receive(stream())
        partial = session.history()[-1].body
        assert isinstance(partial, PartialAnswer)
        assert partial.message == Message("assistant", (Text("It is cold"),))
        assert partial.reason == "ConnectionError: reset by peer"
        assert [part.raw for part in partial.fragments if isinstance(part, ToolCall)] == ['{"ci']
        session.user("Go on")
        said = [m["content"] for m in session.request().body["messages"]]
        assert "[This answer was interrupted here.]" in repr(said[2])
        assert said[3] == "Go on"


@pytest.mark.parametrize("streamed", [True, False])
def test_an_answer_that_a_limit_cut_in_mid_call_is_not_complete(streamed: bool, tmp_path: Path) -> None:
    """An agent that takes it for the end of the turn stops without having done what the model asked for; and half the
    call was on no record."""
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"ci'}}
    said = {"role": "assistant", "content": "I look."}
    whole = {"model": "gpt-4o", "choices": [{"message": {**said, "tool_calls": [call]}, "finish_reason": "length"}]}
    pieces: tuple[Any, ...] = ((said, None), ({"tool_calls": [{"index": 0, **call}]}, None), ({}, "length"))
    chunks = [{"model": "gpt-4o", "choices": [{"delta": one, "finish_reason": end}]} for one, end in pieces]
    with turnlog.open("trip", target=CHAT, store=tmp_path / "a.db") as session:
        answer = session.receive(iter(chunks) if streamed else whole)
        assert (answer.complete, answer.text, answer.tool_calls) == (False, "I look.", [])
        partial = session.history()[-1].body
        assert isinstance(partial, PartialAnswer) and partial.count is not None
        assert partial == PartialAnswer(
            Message("assistant", (Text("I look."),)),
            "the answer ended before all of it had come (length)",
            fragments=(ToolCall("call_1", "weather", raw='{"ci'),),
            model="gpt-4o",
            count=partial.count,
        )


def test_what_is_no_asynchronous_stream_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    """A list given to `areceive` was put on record as an answer that broke off, and nothing of it was kept."""
    with turnlog.open("trip", target=CHAT, store=tmp_path / "a.db") as session:
        asked(session)
        before = session.history()
        for answer in ([{"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}], iter([]), None, 7):
            with pytest.raises(InputError, match=r"`receive\(answer\)` takes any other answer|expected"):
                asyncio.run(session.areceive(answer))
        assert session.history() == before


def test_a_whole_answer_is_awaited(tmp_path: Path) -> None:
    """A client that does not stream gives whole answers, which are recorded without stopping the loop."""
    with turnlog.open("trip", target=CHAT, store=tmp_path / "a.db") as session:
        asked(session)
        answers = [asyncio.run(session.areceive(CALLING))]

        async def talk() -> None:
            async with session.turn("Again.") as turn:
                answers.append(await turn.areceive(CALLING))
                assert turn.answer is answers[-1]

        asyncio.run(talk())
        assert [answer.tool_calls for answer in answers] == [session.receive(CALLING).tool_calls] * 2


def test_switching_says_what_is_lost_and_keeps_it(tmp_path: Path) -> None:
    """Switching back must bring back what the other provider could not take."""
    thinking = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "stop_reason": "end_turn",
        "content": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}, {"type": "text", "text": "Cold."}],
        "usage": {"input_tokens": 10, "output_tokens": 3},
    }  # fmt: skip
    with turnlog.open("trip", target=CLAUDE, store=tmp_path / "a.db") as session:
        asked(session)
        session.receive(thinking)
        session.user("Sure?")
        before = session.request().body["messages"]
        assert [loss.kind for loss in session.switch(CHAT)] == ["reasoning"]
        assert "c2ln" not in repr(session.request().body)
        assert session.switch(CLAUDE) == ()
        assert session.request().body["messages"] == before


def test_clearing_keeps_system_text_and_the_log(tmp_path: Path) -> None:
    """Clear is a record, not a deletion."""
    with turnlog.open("trip", target=CHAT, store=tmp_path / "a.db") as session:
        asked(session)
        session.clear()
        session.user("Another thing")
        assert [m["content"] for m in session.request().body["messages"]] == ["Be brief.", "Another thing"]
        assert len(session.history()) == 5


def test_a_fork_goes_its_own_way(tmp_path: Path) -> None:
    """What is said in a fork must not be heard in its parent."""
    with turnlog.open("trip", target=CHAT, store=tmp_path / "a.db") as session:
        asked(session)
        with session.fork("other", at=3) as fork:
            fork.user("In the fork")
            assert len(fork.history()) == 4
            assert fork.target == CHAT
        session.user("In the parent")
        assert [m["content"] for m in session.request().body["messages"]][-1] == "In the parent"


def test_what_others_append_is_in_the_next_request(tmp_path: Path) -> None:
    """Two processes on one session: each must see what the other said."""
    path = tmp_path / "a.db"
    with both(path) as (one, other):
        one.user("from one")
        other.user("from the other")
        one.user("from one again")
        said = [m["content"] for m in other.request().body["messages"]]
        assert said == ["from one", "from the other", "from one again"]
        assert [m["content"] for m in one.request().body["messages"]] == said


def test_what_others_appended_is_replaced(tmp_path: Path) -> None:
    """A process that had not seen the other's system text put its own behind it: the model was told both."""
    path = tmp_path / "a.db"
    with both(path) as (one, other):
        one.system("Answer in French.")
        one.user("Hello!")
        other.system("Answer in German.", replace=True)
        said = [(m["role"], m["content"]) for m in other.request().body["messages"]]
        assert said == [("system", "Answer in German."), ("user", "Hello!")]


@pytest.mark.slow
@pytest.mark.parametrize("said", [2, 600], ids=["short", "with a gap"])
@pytest.mark.parametrize("then", [lambda _: None, lambda session: session.compact(), lambda session: session.clear()])
def test_system_text_is_said_once_however_often_a_session_is_opened_with_it(
    said: int, then: Callable[[Session], object], tmp_path: Path
) -> None:
    """A conversation that began without any, as imported ones do, got the text once more with each opening, and no
    opening told of it."""
    with turnlog.open("trip", target=CHAT, store=tmp_path / "a.db") as session:
        for n in range(said):
            session.user(f"{n}. " + "Is it warm in Oslo? " * 60)
            session.assistant("It is not. " * 100)
    told = []
    for text in ("Be brief.", "Be brief.", "Be kind.", "Be kind."):
        with turnlog.open("trip", store=tmp_path / "a.db", settings=turnlog.Settings(system=text)) as session:
            told.append([str(change) for change in session.resumed.changes])
            session.user("And in Bergen?")
            shown = session.request().body["messages"]
            assert [m["content"] for m in shown if m["role"] == "system"] == [text]
            session.assistant("It rains.")
            then(session)
    assert told == [["system text added"], [], ["system text changed"], []]


def test_a_summary_ahead_of_the_system_text_is_no_part_of_it(tmp_path: Path) -> None:
    """Where something had left untold ahead of the system text of a conversation that began without any, a summary
    stands before that and has its number: the next text took the place of its words, and no system text was sent."""
    with turnlog.open("trip", target=CHAT, store=tmp_path / "a.db") as session:
        session.configure(budget=600, strategy="sliding")
        for text, answer in (("Go.", ""), ("And on. " * 20, "Yes. " * 150)):
            session.user(text)
            session.assistant(answer or "Yes.")
            session.request()
        session.assistant("Done.")
        session.system("Be brief.", replace=True)
        session.user("Well? " * 100)
        session.request()
        session.configure(strategy="auto")
        session.assistant("Yes. " * 150)
        session.request()
        session.user("And so? " * 66)
        roles = [message["role"] for message in session.request().body["messages"]]
        assert roles[:3] == ["user", "user", "system"]
        session.system("Be kind.", replace=True)
        shown = session.request().body["messages"]
        assert [message["content"] for message in shown if message["role"] == "system"] == ["Be kind."]


@pytest.mark.parametrize(
    "look",
    [
        lambda session: session.preview().json(),
        lambda session: session.compact(dry_run=True),
        lambda session: session.window.breakdown(),
        lambda session: session.window.prediction,
        lambda session: session.explain(),
        lambda session: session.window.tokens,
    ],
    ids=["preview", "compact", "breakdown", "prediction", "explain", "token_count"],
)
def test_what_is_looked_at_is_for_the_target_of_now(look: Callable[[Session], Any], tmp_path: Path) -> None:
    """Where another process had switched the model, the first look was at a request for the model of before; and a
    compaction would have been decided for its window."""
    path = tmp_path / "a.db"
    with both(path) as (one, other):
        for n in range(12):
            one.user(f"Question {n}? " * 20)
            one.assistant(f"Answer {n}. " * 20)
        one.switch(turnlog.target("anthropic", "claude-sonnet-4-5"))
        assert look(other) == look(one)


def test_figures_are_at_hand(tmp_path: Path) -> None:
    """Whoever watches a budget asks for these before every request."""
    with turnlog.open("trip", target=CHAT, store=tmp_path / "a.db") as session:
        asked(session)
        assert session.log.message_count == 2
        counts = [record.body.count for record in session.history() if isinstance(record.body, MessageRecord)]
        assert session.window.tokens == sum(count.tokens for count in counts if count) + 3
        assert session.window.tokens == turnlog.count(session.request().body).tokens
        assert {count.certainty for count in counts if count} == {"exact"}
        fixed = counts[0].tokens + 3 if counts[0] else 0  # system text and framing, for which 2,000 are kept
        room = int(CHAT.input_limit * 0.9) - 4_000 - (2_000 - fixed)
        assert session.window.available == room - session.window.tokens


def test_bills_correct_the_counts(tmp_path: Path) -> None:
    """What the provider billed beyond our count (a hidden prompt, say) is expected of the next request."""
    with turnlog.open("trip", target=CHAT, store=tmp_path / "a.db") as session:
        asked(session)
        counted = session.window.tokens
        session.request()
        session.receive({**CALLING, "usage": {"prompt_tokens": counted + 500, "completion_tokens": 7}})
        session.tool_result("call_1", "4 degrees")
        prediction = session.window.prediction
        assert prediction.certainty == "calibrated"
        assert counted + 500 < prediction.tokens < counted + 560
        assert session.window.drift is None
    with turnlog.open("trip", store=tmp_path / "a.db") as again:
        assert again.window.prediction == prediction


@pytest.mark.parametrize("store", ["work.db", "files:work"])
def test_sessions_opened_in_the_same_moment_are_two(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids were made of the time alone: two users of one server who came within a millisecond talked in one session."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("turnlog.session.open.utc_now", lambda: "2026-01-02T03:04:05.678Z")
    opened = [turnlog.open(store=store) for _ in range(3)]
    assert [session.id for session in opened] == [
        "session-20260102030405678",
        "session-20260102030405678-2",
        "session-20260102030405678-3",
    ]
    for n, session in enumerate(opened):
        session.user(f"I am user {n}.")
    assert [[text_of(shown.message) for shown in session.view()] for session in opened] == [
        [f"I am user {n}."] for n in range(3)
    ]
    for session in opened:
        session.close()


def test_mistakes_are_told_apart(tmp_path: Path) -> None:
    """Each of these once cost somebody an hour."""
    with turnlog.open("trip", store=tmp_path / "a.db") as session:
        session.user("hello")
        with pytest.raises(InputError, match="no target"):
            session.request()
        with pytest.raises(InputError, match="record 7 of session 'trip' is not a message"):
            session.pin(7)
        with pytest.raises(InputError, match="receive the answer first"):
            session.tool_started(CALL)


def test_a_note_is_found_again(tmp_path: Path) -> None:
    """Notes are for the program around the model."""
    with turnlog.open(store=tmp_path / "a.db", settings=turnlog.Settings(title="A trip to Oslo")) as session:
        record = session.note("ticket", "42", {"price": 9.5})
        assert session.history()[record.n - 1].body == Note("ticket", "42", {"price": 9.5})
        assert session.id.startswith("a-trip-to-oslo-")
        assert session.log.title == "A trip to Oslo"


def test_misspelt_arguments_are_no_settings(tmp_path: Path) -> None:
    """A budget that was meant and never set."""
    session = turnlog.open("s", store=tmp_path / "log.db", target=CHAT)
    with pytest.raises(InputError, match=r"'bugdet' is (no|not a) setting of a request: did you mean 'budget'\?"):
        session.configure(bugdet=100)
    session.close()


@pytest.mark.parametrize(
    "name", ["messages", "contents", "system", "systemInstruction", "tools", "model", "redact", "settings"]
)
def test_a_target_says_nothing_of_the_conversation(name: str) -> None:
    """Messages that were given with a target stood in the place of the session's, its system text or tools gave way
    to those of the session, another model was asked than the target says: each in silence."""
    for make in (lambda said: turnlog.target("openai-chat", "gpt-4o", **said), lambda said: CHAT.with_settings(**said)):
        with pytest.raises(InputError, match=f"'{name}' is not a setting of a request: use "):
            make({name: []})


@pytest.mark.parametrize("name", ["summary_timeout", "checkpoint", "redact", "summarizer", "target", "settings"])
def test_what_only_open_takes_is_no_setting_of_a_request(name: str) -> None:
    """It went into every request, was dropped from there, and secrets were not redacted that somebody thought were."""
    with turnlog.open("s", store=":memory:", target=CHAT) as session:
        with pytest.raises(InputError, match=f"'{name}' is not a setting of a request: use "):
            session.configure(**{name: True})
        assert session.configuration.settings == {}


def test_a_summarizer_that_fails_is_told_of(tmp_path: Path) -> None:
    """A wrong key of a model that is asked for summaries stays unnoticed for weeks."""

    def ask(prompt: str) -> str:
        raise OSError("no route to the model")

    session = turnlog.open("s", store=tmp_path / "log.db", target=CHAT, settings=turnlog.Settings(summarizer=ask))
    for n in range(6):
        session.user(f"Part {n}. " * 80)
        session.assistant(f"Done with {n}. " * 80)
    feed = session.events()
    done = session.compact(keep=1)
    event = list(feed.waiting())[-1]
    assert len(done.failures) == 1 and "no route to the model" in done.failures[0]
    assert event.kind == "compacted" and event.text.endswith(f"no summarizer could: {done.failures[0]}")
    session.close()


@pytest.mark.parametrize(
    "make_room", [Session.request, lambda session: session.compact(keep=1)], ids=["request", "compact"]
)
def test_a_slow_summarizer_has_its_time_once(
    make_room: Callable[[Session], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that takes twice as long as was said: once until it gives up, and again for the very same summary
    when its records have made it decide anew."""
    waits: list[float] = []

    def wait(run: RunningCall, seconds: float) -> bool:
        waits.append(seconds)
        return answer.is_set()

    monkeypatch.setattr(RunningCall, "wait", wait)
    answer, asked, prompts = threading.Event(), threading.Event(), []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        asked.set()
        answer.wait()
        return "late"

    store = MemoryStore()
    with Session(store, store.create("s"), turnlog.Settings(summarizer=ask)) as session:
        session.switch(CHAT)
        session.configure(budget=1_000, strategy="summarise")
        for n in range(8):
            session.user(f"Part {n}. " + "word " * 100)
            session.assistant(f"Done with {n}. " + "word " * 100)
        make_room(session)
        assert asked.wait(60)  # a thread of its own asks
        assert (sum(waits), len(prompts)) == (5.0, 1)
        answer.set()


def test_a_pin_can_be_taken_back() -> None:
    """A pin that makes every request fail, for good."""
    store = MemoryStore()
    session = Session(store, store.create("s"))
    session.switch(turnlog.target("openai-chat", "gpt-4o"))
    session.configure(budget=1_000, strategy="sliding")
    session.user("The task.")
    pinned = session.assistant("word " * 100)
    for n in range(12):
        session.user(f"go {n}")
        session.assistant(f"{n} " + "word " * 100)
    pin = session.pin(pinned.n)
    session.user("go on")
    assert pinned.n in {n for shown in session.request().view for n in shown.records}
    session.configure(budget=80)
    with pytest.raises(BudgetError):
        session.request()
    assert [record.body for record in session.unpin(pinned.n)] == [
        Decision("undo", why="no longer pinned", supersedes=pin.n)
    ]
    assert pinned.n not in {n for shown in session.request().view for n in shown.records}
    with pytest.raises(InputError, match="is not pinned"):
        session.unpin(pinned.n)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("protect", "a"),
        ("keep_turns", 2.5),
        ("trigger", "0.5"),
        ("cap", None),
        ("grades", (5,)),
        ("grades", (600, 200)),
    ],
)
def test_a_strategy_that_is_none_is_named(field: str, value: Any) -> None:
    """`fit` and `preview` put no strategy on record, where its types are looked at: they failed deep inside, or took
    no notice of what was meant."""
    strategy = msgspec.structs.replace(PRESETS["summarise"], **{field: value})
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": f"Question {n}. " * 9} for n in range(30)]}
    with pytest.raises(InputError, match=field):
        turnlog.fit(body, max_tokens=400, strategy=strategy)


@pytest.mark.parametrize("field", ["trigger", "goal"])
@pytest.mark.parametrize("value", [1.5, 0, -3, float("nan"), float("inf")])
def test_marks_are_shares_or_tokens(field: str, value: float) -> None:
    """1.5 meant as one and a half times the limit and taken for a token and a half: everything is cut, for good."""
    with pytest.raises(InputError, match=f"{field} must be a share"):
        read_budget({field: value})
