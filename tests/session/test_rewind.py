"""Going back: the conversation is as it was, byte for byte, and everything that is told of a session follows."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from agents import CHAT, says, session_in
from draws import examples
from judging import TARGETS
from turnlog.errors import BudgetError, InputError
from turnlog.log.budget import PRESETS
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import Decision, MessageRecord
from turnlog.log.store import Draft
from turnlog.models.target import Target
from turnlog.session import answer_unfinished
from turnlog.session.history_edits import Rewind
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.testing.histories import History
from turnlog.testing.strategies import damaged_histories


@pytest.fixture
def store() -> MemoryStore:
    """A store in memory."""
    return MemoryStore()


@pytest.fixture
def session(store: MemoryStore) -> Session:
    """A session of three turns, the second with a tool: records 2 to 6, 7 to 16, 17 to 21."""
    made = session_in(store)
    with made.turn("one") as turn:
        turn.receive(says("first"))
    with made.turn("two") as turn:
        (call,) = turn.receive(says("", "c1")).tool_calls
        with turn.tool(call) as run:
            run.result("cold")
        turn.receive(says("second"))
    with made.turn("three") as turn:
        turn.receive(says("third"))
    return made


def said(session: Session) -> list[str]:
    """What the next request says, calls and results by name."""
    messages = session.request(CHAT).body["messages"]
    return [message["content"] or "call" for message in messages]


def reopened(session: Session, store: MemoryStore) -> Session:
    """The session as another process has it."""
    return Session(store, store.info(session.id))


def attempt(session: Session) -> object:
    """The next request's bytes, or what does not fit."""
    try:
        made = session.request()
    except BudgetError as error:
        return error.floor
    return made.json()


# -- the laws -----------------------------------------------------------------------------------------


@pytest.mark.slow
@given(
    history=damaged_histories(),
    limit=st.integers(100, 1_500),
    aim=st.sampled_from(TARGETS),
    strategy=st.sampled_from(sorted(PRESETS)),
    data=st.data(),
)
@settings(max_examples=examples(40, 1_000))
def test_going_back_is_to_have_stopped_there(
    history: History, limit: int, aim: Target, strategy: str, data: st.DataObject
) -> None:
    """The request after going back must be that of a session which never went further, within its budget too; taking
    it back must give the request before, byte for byte. A session opened again must agree, and nothing be rewritten."""
    store = MemoryStore()
    for blob in history.blobs.values():
        store.put_blob(blob)
    session = turnlog.open(
        "s", target=aim, store=store, budget=limit, settings=turnlog.Settings(strategy=strategy, redact=False)
    )
    start = len(session.history())
    for message in history.messages:
        session.add(message)
        if data.draw(st.booleans()):
            attempt(session)
    before, log = attempt(session), session.history()
    to = data.draw(st.integers(start, max(start, len(log) - 1)))
    stopped = session.fork("stopped", at=to)
    try:
        done = session.rewind(to=to)
    except InputError:
        assert before == attempt(session)
        return
    back = session.undo("rewind")
    assert attempt(session) == before
    assert session.history()[: len(log)] == log and isinstance(back.body, Decision)
    again = session.rewind(to=to)
    assert (again.gone, again.back, again.ended) == (done.gone, done.back, done.ended)
    assert attempt(reopened(session, store)) == attempt(session)
    assert attempt(session) == attempt(stopped)


@pytest.mark.slow
@given(steps=st.lists(st.tuples(st.sampled_from(("turn", "back", "undo")), st.integers(1, 3)), max_size=12))
def test_taking_back_walks_the_way_back(steps: list[tuple[str, int]]) -> None:
    """Each undoing gives what was said before the rewind that it takes back, or is refused and changes nothing."""
    store = MemoryStore()
    session = session_in(store)
    before: dict[int, list[str]] = {}
    for n, (step, turns) in enumerate(steps):
        words = said(session) if session.log.turns() else []
        try:
            if step == "turn":
                with session.turn(f"word {n}") as turn:
                    turn.receive(says(f"answer {n}"))
            elif step == "back":
                before[session.rewind(turns=turns).n] = words
            else:
                record = session.undo("rewind")
                assert isinstance(record.body, Decision)
                assert said(session) == before[record.body.supersedes]
        except InputError:
            assert words == (said(session) if session.log.turns() else [])
        if any(not turn.rewound for turn in session.log.turns()):
            assert [turn.input for turn in session.log.turns() if not turn.rewound] == said(session)[::2]
            assert said(reopened(session, store)) == said(session)


# -- where to -----------------------------------------------------------------------------------------


def test_turns_are_taken_back_and_shown_again(session: Session) -> None:
    """The last turns leave, whole; what leaves is told beforehand as it is afterwards; undoing shows it again."""
    before = said(session)
    tried = session.rewind(turns=2, dry_run=True)
    assert said(session) == before
    done = session.rewind(turns=2)
    assert (done.to, done.gone, done.back, done.ended, done.files) == (6, (8, 9, 13, 14, 18, 19), (), (), ())
    assert [turn.input for turn in done.turns] == ["two", "three"]
    assert (tried.n, done.n) == (0, 22)
    assert tried == Rewind(**{**{name: getattr(done, name) for name in done.__struct_fields__}, "n": 0})
    assert str(done) == "back to record 6: 6 messages taken back"
    assert said(session) == ["one", "first"]
    session.undo("rewind")
    assert said(session) == before


def test_one_way_of_saying_where(session: Session) -> None:
    """A rewind to nowhere, or to two places, would take back something that nobody meant."""
    for wrong in (
        {}, {"turns": 1, "to": 3}, {"turns": 0}, {"turns": 4}, {"turns": True}, {"to": 21}, {"to": -1}, {"to": True}
    ):  # fmt: skip
        field = next(iter(wrong)) if len(wrong) == 1 else r"rewind\(\)"
        with pytest.raises(InputError, match=rf"^{field}: give "):
            session.rewind(**wrong)  # type: ignore[arg-type]
    assert len(session.history()) == 21


def test_a_branch_that_was_left_can_be_returned_to(session: Session) -> None:
    """A record in what was taken back is a place like another: what was said until then is shown again, what was said
    instead leaves."""
    before = said(session)
    session.rewind(turns=2)
    with session.turn("instead") as turn:
        turn.receive(says("so be it"))
    assert said(session) == ["one", "first", "instead", "so be it"]
    with pytest.raises(InputError, match=r"record 24 continued the conversation; going back to record 21 "):
        session.undo("rewind")
    done = session.rewind(to=21)
    assert (done.gone, done.back, done.ended) == ((24, 25), (8, 9, 13, 14, 18, 19), (22,))
    assert said(session) == before
    session.undo("rewind")
    assert said(session) == ["one", "first", "instead", "so be it"]


def test_a_tool_loop_is_not_cut(session: Session) -> None:
    """Between a call and what became of it there is no place to go back to: the model would be told that a tool did
    not run which did. The error names the nearest places."""
    for to in (9, 10, 11, 12):
        with pytest.raises(InputError, match=r"call 'c1' of 'weather' \(record 9\) .* go back to record 8 or 13"):
            session.rewind(to=to)
    session.rewind(to=13)
    assert said(session) == ["one", "first", "two", "call", "cold"]
    session.rewind(to=8)
    assert said(session) == ["one", "first", "two"]


def test_no_cut_between_parallel_calls(store: MemoryStore) -> None:
    """Calls of one answer stay with all their results, and with a start that nothing followed."""
    session = session_in(store)
    session.user("go")
    one, two = session.receive(says("", "c1", "c2")).tool_calls
    session.tool_result(one, "1")
    session.tool_started(two)
    session.note("n")
    for to in (3, 4, 5):
        with pytest.raises(InputError, match="record 2 or 6"):
            session.rewind(to=to)
    assert session.rewind(to=6).gone == ()


def test_a_late_result_may_be_taken_back(store: MemoryStore) -> None:
    """A result that came after the user had gone on is no reason to refuse; the call is open again."""
    session = session_in(store)
    session.user("go")
    (call,) = session.receive(says("", "c1")).tool_calls
    session.user("never mind")
    session.tool_result(call, "late")
    assert session.log.unfinished() == []
    session.rewind(turns=1)
    assert [info.call.id for info in session.log.unfinished()] == ["c1"]
    assert session.log.validate() == []
    session.undo("rewind")
    assert session.log.unfinished() == []


@pytest.mark.parametrize("again", [False, True])
def test_not_while_a_turn_is_open(session: Session, store: MemoryStore, again: bool) -> None:
    """What is under way would go on in a conversation that is no longer there, whichever process goes back."""
    with session.turn("four"):
        other = reopened(session, store) if again else session
        for way in (
            lambda: other.rewind(turns=1),
            lambda: other.undo("rewind"),
            lambda: other.rewind(turns=1, dry_run=True),
        ):
            with pytest.raises(InputError, match="turn '22' is open: wait"):
                way()
    assert session.rewind(turns=1).gone == (23,)


# -- what follows -------------------------------------------------------------------------------------


def test_what_a_log_tells_follows(session: Session) -> None:
    """Turns, calls and sizes are those of the conversation; what was billed was paid."""
    whole = session.window.tokens
    usage, cost = session.usage, session.cost
    bills = session.log.turns()[1].bills
    done = session.rewind(turns=2)
    assert [turn.rewound for turn in session.log.turns()] == [0, done.n, done.n]
    assert session.log.turns()[1].bills == bills
    assert [info.rewound for info in session.log.calls()] == [done.n]
    assert (session.usage, session.cost) == (usage, cost)
    assert session.window.tokens == session.window.breakdown().tokens < whole
    accounts = session.explain().accounts
    assert [(n, accounts[n].fate, accounts[n].by, accounts[n].saved) for n in done.gone] == [
        (n, "rewound", (done.n,), 0) for n in done.gone
    ]
    assert session.log.validate(strict=True) == []


def test_an_open_call_that_was_taken_back_waits_for_nothing(store: MemoryStore) -> None:
    """A result put on record for it would answer nothing in the conversation that is left; undone, it waits again."""
    session = session_in(store)
    session.user("one")
    session.user("two")
    session.receive(says("", "c1"))
    session.rewind(turns=1)
    assert (session.log.unfinished(), answer_unfinished(session)) == ([], [])
    assert [(turn.status, turn.rewound) for turn in session.log.turns()] == [("processing", 0), ("cancelled", 6)]
    session.undo("rewind")
    assert [info.call.id for info in session.log.unfinished()] == ["c1"]


def test_a_result_that_comes_after_its_call_was_taken_back_is_kept(store: MemoryStore) -> None:
    """A tool that still ran must not break the next request, nor stand in the way of undoing; then it answers."""
    session = session_in(store)
    session.user("one")
    session.user("two")
    (call,) = session.receive(says("", "c1")).tool_calls
    session.rewind(turns=1)
    session.tool_result(call, "late")
    assert said(session) == ["one"]
    assert session.log.validate() == []
    session.undo("rewind")
    assert said(session) == ["one", "two", "call", "late"]


def test_decisions_made_since_hold_no_longer(session: Session) -> None:
    """Going back past a compaction shows what it summarised; past a clearing, what it cleared; past a pin, no pin."""
    whole = said(session)
    session.compact(keep=1, strategy="auto")
    session.pin(3)
    compacted = said(session)
    session.clear()
    with session.turn("anew") as turn:
        turn.receive(says("yes"))
    cleared = said(session)
    made = [record.n for record in session.history() if isinstance(record.body, Decision)]
    with pytest.raises(InputError, match=rf"1 turn since it was cleared; go back to record {made[-1] - 1} "):
        session.rewind(turns=2)
    done = session.rewind(to=21)
    assert (said(session), done.ended) == (whole, tuple(made))
    assert not any(ruling.decision.action == "pin" and not ruling.ended_by for ruling in session.explain().rulings)
    session.undo("rewind")
    assert said(session) == cleared
    session.rewind(to=made[-1] - 1)
    assert said(session) == compacted


def test_what_is_hidden_again_was_not_taken_back(session: Session) -> None:
    """Going back past the undoing of a compaction that takes one turn back and claims to have taken back all that the
    summary stands for."""
    for word in ("four", "five"):
        with session.turn(word * 200) as turn:
            turn.receive(says(word * 200))
    (made,) = session.compact(keep=1).decisions
    hidden = tuple(n for n, account in session.explain().accounts.items() if account.fate == "summarised")
    with session.turn("six") as turn:
        turn.receive(says("sixth"))
    session.undo("compaction")
    done = session.rewind(turns=1)
    assert (len(done.gone), done.hidden, done.again, done.ended) == (2, hidden, (made,), ())
    assert str(done) == f"back to record {made}: 2 messages taken back, {len(hidden)} messages left out again"
    assert done.gone == tuple(n for n, account in session.explain().accounts.items() if account.fate == "rewound")


def test_no_summary_tells_what_was_taken_back(store: MemoryStore) -> None:
    """What the user took back must not come back through a summary that covers its place; and once such a summary
    was made, undoing would hide what it does not tell."""
    asked: list[str] = []

    def summarise(prompt: str) -> str:
        asked.append(prompt)
        return "in short: all went well"

    session = turnlog.open("s", target=CHAT, store=store, settings=turnlog.Settings(summarizer=summarise))
    for word in ("alpha", "bravo"):
        session.extend([Message("user", (Text(f"{word} " * 50),)), Message("assistant", (Text(f"{word}!"),))])
    session.rewind(turns=1)
    for word in ("charlie", "delta", "echo"):
        session.extend([Message("user", (Text(f"{word} " * 50),)), Message("assistant", (Text(f"{word}!"),))])
    done = session.compact(keep=1)
    assert [(one.action, one.first < 4, one.last > 5) for one in done.decisions.values()] == [("compact", True, True)]
    (prompt,) = asked
    assert "alpha!" in prompt and "charlie" in prompt and "bravo" not in prompt
    assert [session.explain().accounts[n].fate for n in (4, 5)] == ["rewound", "rewound"]
    with pytest.raises(InputError, match="continued the conversation"):
        session.undo("rewind")


def test_a_programs_compaction_goes_with_the_turn_that_its_summary_begins(store: MemoryStore) -> None:
    """An imported agent compacted and went on: taking back its last turn left nothing, as the compaction still hid all
    that was said before and its summary was gone."""
    store.create("s")
    summary = Message("user", (Text("This session is being continued from a previous conversation: bolts."),))
    bodies = [
        *(MessageRecord(Message("user" if n % 2 else "assistant", (Text(f"word {n}"),))) for n in range(1, 5)),
        Decision("compact", 1, 4, "Claude Code compacted", detail={"summary": 6}),
        *map(MessageRecord, (summary, Message("assistant", (Text("done"),)))),
    ]
    store.append("s", [Draft(body) for body in bodies])
    session = turnlog.open("s", target=CHAT, store=store)
    done = session.rewind(turns=1)
    assert (done.to, done.ended, said(session)) == (4, (5,), [f"word {n}" for n in range(1, 5)])
    session.undo("rewind")
    assert said(session)[-1] == "done" and len(said(session)) == 2


def test_a_model_cannot_read_back_what_was_taken_back(session: Session) -> None:
    """The user took it out of the conversation; people can still read it."""
    session.rewind(turns=1)
    call = ToolCall("r1", "read_back", {"record": 18})
    session.add(Message("assistant", (call,)))
    answer = session.answer_read_back(call).message
    assert answer == Message(
        "user",
        (
            ToolResult(
                "r1",
                "read_back",
                (Text("record 18 was taken back: it is no longer part of this conversation"),),
                "failed",
            ),
        ),
    )
    assert session.read_back(18) == "three"


def test_what_was_taken_back_cannot_be_pinned(session: Session) -> None:
    """A pin that does nothing would be believed."""
    done = session.rewind(turns=1)
    with pytest.raises(InputError, match=f"taken back by the rewind in record {done.n}"):
        session.pin(18)
    session.pin(14)


def test_files_stay_as_they_are(session: Session, tmp_path: Path) -> None:
    """Going back changes nothing on disk, so what is still changed there has to be named."""
    (tmp_path / "kept.txt").write_text("before\n")
    with session.turn("four", watch=tmp_path):
        (tmp_path / "kept.txt").write_text("after\n")
        (tmp_path / "new.txt").write_text("new\n")
    done = session.rewind(turns=1)
    assert [(change.path, change.action) for change in done.files] == [("kept.txt", "modified"), ("new.txt", "created")]
    assert str(done).endswith("still changed on disk: kept.txt, new.txt")
    assert (tmp_path / "kept.txt").read_text() == "after\n"


def test_it_is_told(session: Session) -> None:
    """Whoever shows a conversation has to take down what left it."""
    feed = session.events()
    feed.waiting()
    done = session.rewind(turns=1, reason="a wrong turn")
    session.undo("rewind")
    assert [(event.kind, event.text, event.record.n if event.record else 0) for event in feed.waiting()] == [
        ("rewound", "records 17 to 21 were taken back: a wrong turn", done.n),
        ("undone", f"decision {done.n} no longer holds: rewind taken back", done.n + 1),
    ]


def test_a_fork_goes_along(session: Session) -> None:
    """A fork has what its parent has: what was taken back stays so there until the fork takes that back; what the
    one goes back past, the other keeps."""
    whole = said(session)
    session.rewind(turns=1)
    fork = session.fork("other")
    assert said(fork) == said(session)
    fork.undo("rewind")
    assert (said(fork), said(session)) == (whole, whole[:-2])
    fork.rewind(turns=3)
    assert (len(session.log.turns()), [turn.rewound for turn in session.log.turns()]) == (3, [0, 0, 22])
    past = session.fork("past", at=21)
    assert said(past) == whole


def test_a_fork_asks_the_same_summarizer(store: MemoryStore) -> None:
    """A fork that fell back to the offline summary would be another agent than its parent."""
    session = turnlog.open(
        "s",
        target=CHAT,
        store=store,
        settings=turnlog.Settings(summarizer=lambda prompt: "in short: all went well"),
    )
    for word in ("alpha", "bravo", "charlie"):
        session.extend([Message("user", (Text(f"{word} " * 200),)), Message("assistant", (Text(f"{word}!"),))])
    fork = session.fork("other")
    fork.compact(keep=1)
    assert "in short: all went well" in str(said(fork))


def test_nobody_can_go_back_twice_at_once(session: Session, store: MemoryStore) -> None:
    """Two processes that go back at once: the second decides on what the first left."""
    other = reopened(session, store)
    session.rewind(turns=1)
    other.rewind(turns=1)
    assert said(session) == said(other) == ["one", "first"]


def test_undo_takes_back_what_came_last(session: Session) -> None:
    """Whoever has just looked at what a step did means that step, and may not know its kind."""
    for word in ("alpha", "bravo", "charlie"):
        session.extend([Message("user", (Text(f"{word} " * 200),)), Message("assistant", (Text(f"{word}!"),))])
    session.rewind(turns=1)
    rewound = said(session)
    session.compact(keep=1)
    compacted = said(session)
    assert compacted != rewound
    session.user("and on")
    session.rewind(turns=1)
    session.undo()
    assert said(session) == [*compacted, "and on"]
    session.undo("compaction")
    assert said(session) == [*rewound, "and on"]
    with pytest.raises(InputError, match=r"continued the conversation"):
        session.undo()


@pytest.mark.parametrize("what", ["", "compaction", "exclusion", "rewind"])
def test_what_was_not_done_is_not_undone(
    store: MemoryStore, what: Literal["", "compaction", "exclusion", "rewind"]
) -> None:
    """An undo that does nothing would be taken for one that did."""
    session = session_in(store)
    with pytest.raises(InputError, match=r"no .* taken back"):
        session.undo(what)
    with pytest.raises(InputError, match="undo takes 'compaction', 'exclusion' or 'rewind', not 'pin'"):
        session.undo("pin")  # type: ignore[arg-type]
