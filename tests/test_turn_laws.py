"""Whatever is done to a session, in whatever order: its next request is valid, and killing it changes nothing."""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

import turnlog
from agents import CHAT, chunks, says, session_in
from judging import TARGETS, errors_of
from turnlog.content import ToolCall
from turnlog.errors import InputError
from turnlog.models import Target
from turnlog.session import Session
from turnlog.stores import MemoryStore
from turnlog.turning import Turn

EXAMPLES = max(10, settings.default.max_examples // 5) if settings.default else 20

KINDS_OF_END = (None, ValueError("x"), KeyboardInterrupt())


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
        self.answered: set[str] = set()
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
        assert [turn.status for turn in self.session.turns() if turn.id][-1] == "cancelled"

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
            self.answered.add(call.id)

    @precondition(lambda self: self.calls and self.turn is not None)
    @rule(data=st.data(), how=st.sampled_from(("ask_approval", "approve", "deny", "tool")))
    def approval(self, data: st.DataObject, how: str) -> None:
        assert self.turn is not None
        call = data.draw(st.sampled_from(self.calls))
        try:
            if how == "tool":
                with self.turn.tool(call) as run:
                    run.result(self.word())
                self.answered.add(call.id)
            else:
                getattr(self.turn, how)(call)
                if how == "deny":
                    self.answered.add(call.id)
        except InputError as error:
            if "approval" not in str(error) and "denied" not in str(error):
                raise

    @rule()
    def answer_unfinished(self) -> None:
        self.answered |= {info.call.id for info in self.session.answer_unfinished()}
        assert self.session.unfinished() == []

    # -- decisions -------------------------------------------------------------------------------

    @rule()
    def clear(self) -> None:
        self.session.clear()

    @rule(keep=st.one_of(st.none(), st.integers(1, 3)))
    def compact(self, keep: int | None) -> None:
        self.session.compact(keep=keep)

    @rule()
    def undo(self) -> None:
        try:
            self.session.undo_compaction()
        except InputError as error:
            if "no compaction" not in str(error):
                raise

    @rule(data=st.data())
    def pin(self, data: st.DataObject) -> None:
        messages = [record.n for record in self.session.history() if record.message is not None]
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
        kept = self.session.calls()
        self.calls = [info.call for info in kept]
        self.answered = {info.call.id for info in kept if info.result}

    @rule()
    def kill(self) -> None:
        """The process dies: what was in memory goes, an open turn is closed as failed by who comes next."""
        had, before = self.turn is not None, self.bodies()
        self.turn = None
        self.session = turnlog.open(self.session.id, store=self.store)
        assert self.bodies() == before
        if had:
            assert [turn.status for turn in self.session.turns() if turn.id][-1] == "failed"

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
        assert other.request(aim).body() == self.session.request(aim).body()

    def teardown(self) -> None:
        for aim in TARGETS:
            self.judge(aim)

    @invariant()
    def the_log_is_told_rightly(self) -> None:
        unanswered = {call.id for call in self.calls} - self.answered
        assert {info.call.id for info in self.session.unfinished()} == unanswered
        turns = self.session.turns()
        assert all(one.last < other.first for one, other in pairwise(turns))
        if self.turn is not None:
            assert turns[-1] == self.turn.info and turns[-1].is_open
        assert not any(turn.is_open for turn in turns[:-1])
        found = {one.kind for one in self.session.validate(strict=True)}
        assert found <= {"unanswered", "duplicate", "ledger", "outcome", "approval", "turn", "time"}

    # -- inside ----------------------------------------------------------------------------------

    def judge(self, aim: Target) -> None:
        assert errors_of(self.oracle, aim, self.session.request(aim).request) == []

    def next(self) -> int:
        self.count += 1
        return self.count

    def word(self) -> str:
        return f"word {self.next()}"

    def bodies(self) -> list[bytes]:
        return [self.session.request(aim).body() for aim in TARGETS]


def test_no_order_of_things_leads_to_a_request_that_is_refused(oracle: ModuleType) -> None:
    """A sequence of turns, tools, approvals, cancelling, clearing, forking, compacting, undoing and kills after which
    a provider refuses the next request, a call cannot be answered, or a reopened session differs, fails here."""
    machine = type("Lived", (Life,), {"oracle": oracle})
    run_state_machine_as_test(machine, settings=settings(max_examples=EXAMPLES, stateful_step_count=20))
