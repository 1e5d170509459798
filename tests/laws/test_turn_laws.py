"""Whatever is done to a session, in whatever order: its next request is valid, killing it changes nothing, and going
back is undone byte for byte."""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

import reference_model as model
import turnlog
from agents import CHAT, chunks, says, session_in
from judging import TARGETS, errors_of
from turnlog.errors import BudgetError, InputError
from turnlog.log.budget import PRESETS
from turnlog.log.messages import Message, ToolCall, ToolResult
from turnlog.log.records import Decision, Record
from turnlog.models.target import Target
from turnlog.session import answer_unfinished, loader
from turnlog.session.session import Session
from turnlog.session.turn import Turn
from turnlog.stores import MemoryStore
from turnlog.testing import crash

EXAMPLES = max(10, settings.default.max_examples // 5) if settings.default else 20

KINDS_OF_END = (None, ValueError("x"), KeyboardInterrupt())

WEATHER = {"name": "weather", "description": "", "parameters": {"type": "object", "properties": {}}}

BUDGETS = (250, 600, 100_000)

NO_WAY_BACK = (
    "is open: ",
    "turns: ",
    "lies between tool call",
    "no rewind is in force",
    "continued the conversation",
)
"""What going back, or undoing that, may be refused with."""


class Life(RuleBasedStateMachine):
    """A session lived in any order: turns, answers, tools, approvals, and every decision there is."""

    oracle: ModuleType

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()
        self.session = session_in(self.store)
        self.turn: Turn | None = None
        self.count = 0
        self.calls: list[ToolCall] = []
        """Every call there was, what was taken back included: a tool may come to its end whatever the user does."""
        self.forks = self.steps = 0

    # -- what is said ----------------------------------------------------------------------------

    @precondition(lambda self: self.turn is None)
    @rule()
    def begin(self) -> None:
        self.turn = self.session.turn(self.word()).__enter__()

    @precondition(lambda self: self.turn is not None)
    @rule(error=st.sampled_from(KINDS_OF_END))
    def leave(self, error: BaseException | None) -> None:
        assert self.turn is not None
        self.turn.__exit__(type(error) if error else None, error, None)
        assert not self.turn.info.is_open
        self.turn = None

    @precondition(lambda self: self.turn is not None)
    @rule()
    def cancel(self) -> None:
        assert self.turn is not None
        self.turn.cancel("stop")
        self.leave(None)
        assert [turn.status for turn in self.session.log.turns() if turn.id][-1] == "cancelled"

    @rule()
    def say(self) -> None:
        self.session.user(self.word())

    @rule(calls=st.integers(0, 3), text=st.booleans())
    def answer(self, calls: int, text: bool) -> None:
        ids = [f"call_{self.next()}" for _ in range(calls)]
        whole = says(self.word() if text or not calls else "", *ids)
        self.calls += (self.turn or self.session).receive(whole, CHAT).tool_calls

    @rule()
    def answer_breaks_off(self) -> None:
        self.session.receive(chunks(self.word(), "and"), CHAT)

    # -- tools -----------------------------------------------------------------------------------

    @precondition(lambda self: self.calls)
    @rule(data=st.data(), how=st.sampled_from(("started", "finished", "result", "late")))
    def tool(self, data: st.DataObject, how: str) -> None:
        call = data.draw(st.sampled_from(self.calls))
        if how == "started":
            self.session.tool_started(call)
        elif how == "finished":
            self.session.tool_finished(call, "failed", seconds=1.0)
        else:
            self.session.tool_result(call, self.word())

    @precondition(lambda self: self.calls and self.turn is not None)
    @rule(data=st.data(), how=st.sampled_from(("ask_approval", "approve", "deny", "tool")))
    def approval(self, data: st.DataObject, how: str) -> None:
        assert self.turn is not None
        call = data.draw(st.sampled_from(self.calls))
        try:
            if how == "tool":
                with self.turn.tool(call) as run:
                    run.result(self.word())
            else:
                getattr(self.turn, how)(call)
        except InputError as error:
            if "approval" not in str(error) and "denied" not in str(error):
                raise

    @rule()
    def answer_unfinished(self) -> None:
        answer_unfinished(self.session)
        assert self.session.log.unfinished() == []

    # -- decisions -------------------------------------------------------------------------------

    @rule()
    def clear(self) -> None:
        self.session.clear()

    @rule(keep=st.one_of(st.none(), st.integers(1, 3)))
    def compact(self, keep: int | None) -> None:
        try:
            self.session.compact(keep=keep)
        except BudgetError:
            assert self.attempt(self.session) is None

    @rule()
    def undo(self) -> None:
        try:
            self.session.undo("compaction")
        except InputError as error:
            if "no compaction" not in str(error):
                raise

    @precondition(lambda self: self.turn is not None)
    @rule()
    def rewind_in_a_turn(self) -> None:
        """Refused while a turn is open."""
        log = self.session.history()
        for way in (lambda: self.session.rewind(turns=1), lambda: self.session.undo("rewind")):
            try:
                way()
                raise AssertionError("went back while a turn was open")
            except InputError as error:
                self.refused(error, log)

    @precondition(lambda self: self.turn is None)
    @rule(data=st.data(), by_turns=st.booleans(), then=st.sampled_from(("stay", "undo", "result", "go on")))
    def rewind(self, data: st.DataObject, by_turns: bool, then: str) -> None:
        """Back by turns or to a record: the conversation is as it was there; undone, every request is as it was, and
        a tool that came to its end meanwhile does not stand in the way of that; going on does."""
        before, log = self.bodies(), self.session.history()
        where = {"turns": data.draw(st.integers(1, 3))} if by_turns else {"to": data.draw(st.integers(0, len(log) - 1))}
        try:
            done = self.session.rewind(**where)
        except InputError as error:
            self.refused(error, log)
            return
        assert self.turn is None
        assert talk(self.session.history()) == talk(log[: done.to])
        if then == "undo":
            self.session.undo("rewind")
            assert self.bodies() == before
        elif then == "result" and self.calls:
            self.session.tool_result(data.draw(st.sampled_from(self.calls)), self.word())
            self.undo_rewind()
            assert done.n not in model.in_force(self.session.history())
        elif then == "go on":
            self.say()
            log = self.session.history()
            self.undo_rewind()
            assert self.session.history() == log

    @rule()
    def undo_rewind(self) -> None:
        """Undone, the conversation is as before, with results of tools that came meanwhile."""
        log = self.session.history()
        try:
            record = self.session.undo("rewind")
        except InputError as error:
            self.refused(error, log)
            return
        assert isinstance(record.body, Decision)
        n = record.body.supersedes
        lines = model.conversation(self.session.history())
        meanwhile = [line for line in lines if line.record > n]
        assert all(isinstance(part, ToolResult) for line in meanwhile for part in line.message.parts)
        assert [line.message for line in lines if line.record < n] == talk(log[: n - 1])

    @rule(budget=st.sampled_from(BUDGETS), strategy=st.sampled_from(sorted(PRESETS)))
    def configure(self, budget: int, strategy: str) -> None:
        self.session.configure(budget=budget, strategy=strategy, tools=[WEATHER])

    @rule(data=st.data())
    def pin(self, data: st.DataObject) -> None:
        messages = [record.n for record in standing(self.session.history()) if record.message is not None]
        if messages:
            self.session.pin(data.draw(st.sampled_from(messages)))

    @rule(aim=st.sampled_from(TARGETS))
    def switch(self, aim: Target) -> None:
        self.session.switch(aim)

    @precondition(lambda self: self.turn is None)
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        """Goes on in the fork, from any record on."""
        self.forks += 1
        at = data.draw(st.integers(1, len(self.session.history())))
        self.session = self.session.fork(f"fork{self.forks}", at=at)
        self.calls = [info.call for info in self.session.log.calls()]

    @rule()
    def kill(self) -> None:
        """The process dies: what was in memory goes, an open turn is closed as failed by who comes next."""
        had, before = self.turn is not None, self.bodies()
        self.turn = None
        crash(self.session)
        self.session = turnlog.open(self.session.id, store=self.store)
        assert self.bodies() == before
        if had:
            assert [turn.status for turn in self.session.log.turns() if turn.id][-1] == "failed"

    # -- what must hold --------------------------------------------------------------------------

    @invariant()
    def every_request_is_accepted(self) -> None:
        """One target after the other; all of them wherever a session is left or killed."""
        self.steps += 1
        self.judge(TARGETS[self.steps % len(TARGETS)])

    @invariant()
    def a_session_opened_beside_it_makes_the_same_requests(self) -> None:
        other = Session(self.store, self.store.info(self.session.id))
        aim = TARGETS[self.steps % len(TARGETS)]
        assert self.attempt(other, aim) == self.attempt(self.session, aim)

    @invariant()
    def decisions_that_opening_passes_over_count_no_more(self) -> None:
        """Opened with all decisions ever made, a session shows the same, and decides the same next."""
        opened = [(self.shown_by_decisions(), self.next_views())]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loader, "_earlier", lambda *_: None)
            opened.append((self.shown_by_decisions(), self.next_views()))
        assert opened[0] == opened[1]

    def shown_by_decisions(self) -> tuple[object, ...]:
        found = loader.read_landmarks(self.store, self.session.id)
        pins = {n for n, decision in found.decisions.items() if decision.action == "pin"}
        return found.system, found.configuration, found.lasting, pins, found.rewinds, found.told

    def next_views(self) -> list[bytes | None]:
        other = Session(self.store, self.store.info(self.session.id))
        return [self.attempt(other, budget=budget) for budget in BUDGETS[:2]]

    def teardown(self) -> None:
        """In the end every request is accepted, and again after each call that waits has been answered."""
        for _ in range(2):
            for aim in TARGETS:
                self.judge(aim)
            answer_unfinished(self.session)
            assert waiting(self.session.history()) == set()

    @invariant()
    def the_log_is_told_rightly(self) -> None:
        assert {info.call.id for info in self.session.log.unfinished()} == waiting(self.session.history())
        turns = self.session.log.turns()
        assert all(one.last < other.first for one, other in pairwise(turns))
        if self.turn is not None:
            assert turns[-1] == self.turn.info and turns[-1].is_open
        assert not any(turn.is_open for turn in [turn for turn in turns if not turn.rewound][:-1])
        assert not any(turn.is_open for turn in turns if turn.rewound)
        found = {one.kind for one in self.session.log.validate(strict=True)}
        assert found <= {"unanswered", "duplicate", "ledger", "outcome", "approval", "turn", "time"}

    # -- inside ----------------------------------------------------------------------------------

    def judge(self, aim: Target) -> None:
        try:
            made = self.session.request(aim)
        except BudgetError:
            return
        assert errors_of(self.oracle, aim, made.body) == []

    def refused(self, error: InputError, log: list[Record]) -> None:
        """Refused for a reason that there is, and nothing is on record of it."""
        assert any(reason in str(error) for reason in NO_WAY_BACK)
        assert (self.turn is not None) == (NO_WAY_BACK[0] in str(error))
        assert self.session.history() == log

    def next(self) -> int:
        self.count += 1
        return self.count

    def word(self) -> str:
        n = self.next()
        return f"word {n} " * (40 if n % 4 == 0 else 1)

    def bodies(self) -> list[bytes | None]:
        """What each target is sent next. The session's own is asked first: what it decides is put on record, and the
        others are sent what that leaves."""
        self.attempt(self.session)
        return [self.attempt(self.session, aim) for aim in TARGETS]

    def attempt(self, session: Session, aim: Target | None = None, budget: int = 0) -> bytes | None:
        """The bytes of the next request, within another `budget` if one is given; None if not even the least fits."""
        try:
            return (session.request(aim) if not budget else session.preview(aim, budget=budget)).json()
        except BudgetError:
            return None


def talk(records: list[Record]) -> list[Message]:
    """The conversation that a log leaves, as the reference model has it."""
    return [line.message for line in model.conversation(records)]


def standing(records: list[Record]) -> list[Record]:
    """The records that no rewind took back, by the reference model."""
    gone = [one for one in model.in_force(records).values() if one.action == "rewind"]
    return [record for record in records if not any(one.first <= record.n <= one.last for one in gone)]


def waiting(records: list[Record]) -> set[str]:
    """The ids of calls that stand and have no result that does."""
    parts = [part for record in standing(records) if record.message for part in record.message.parts]
    answered = {part.call_id for part in parts if isinstance(part, ToolResult)}
    return {part.id for part in parts if isinstance(part, ToolCall)} - answered


def test_a_session_that_has_decided_sends_the_same_again_and_reopened(oracle: ModuleType) -> None:
    """What its own target had to decide would be decided anew by whoever asks next, if it were not on record: here the
    own target has no room for what several others take whole."""
    life = type("Lived", (Life,), {"oracle": oracle})()
    for _ in range(8):
        life.answer_breaks_off()
    life.configure(budget=600, strategy="auto")
    life.say()
    life.answer_breaks_off()
    others = life.attempt(life.session, TARGETS[0])
    life.switch(TARGETS[4])
    before = life.bodies()
    assert before == life.bodies()
    assert before[0] != others  # the own target did decide
    life.kill()
    life.teardown()


def test_no_order_of_things_leads_to_a_request_that_is_refused(oracle: ModuleType) -> None:
    """A sequence of turns, tools, approvals, cancelling, clearing, forking, compacting, undoing, going back, changes of
    budget and provider, and kills after which a provider refuses the next request, a call cannot be answered, or a
    reopened session differs, fails here."""
    machine = type("Lived", (Life,), {"oracle": oracle})
    run_state_machine_as_test(machine, settings=settings(max_examples=EXAMPLES, stateful_step_count=20))
