"""One conversation, one owner: random schedules of threads and tasks that open, wait, run turns, close and die."""

from __future__ import annotations

import logging
import os
import signal
from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from draws import draws, examples
from leasing import ACTORS, PATIENCE_SECONDS, Schedule
from leasing_processes import ProcessActor
from postgres_server import PostgresServer


@pytest.mark.slow
def test_no_schedule_has_two_owners() -> None:
    """Two owners of one session, a living turn that another closes, or a session that a dead owner keeps."""
    run_state_machine_as_test(Schedule, settings=settings(max_examples=examples(25, 1_000), stateful_step_count=16))


@pytest.mark.slow
def test_no_schedule_has_two_owners_on_a_server(postgres: PostgresServer) -> None:
    """The same where each owner has connections of its own, and the server says who has a session."""
    places = {"new_place": lambda self, kind: postgres.new_place(), "stores": st.just("postgres")}
    machine = type("OnServer", (Schedule,), places)
    run_state_machine_as_test(machine, settings=settings(max_examples=examples(4, 1_000), stateful_step_count=16))


class Killed(Schedule):
    """The schedules of the tests, with processes."""

    kinds = st.lists(st.sampled_from(["process", "process", "thread", "task"]), min_size=3, max_size=3)
    stores = st.sampled_from(["sqlite", "files"])

    def made(self, kind: str) -> Any:
        """An actor."""
        if not hasattr(self, "children"):
            self.children: list[int] = []
        return ProcessActor(self.place) if kind == "process" else super().made(kind)

    @precondition(lambda self: any(self.kinds_of[who] == "process" for who in self.owners))
    @rule(who=ACTORS)
    def fork(self, who: int) -> None:
        """An owner forks; the child lives on after it."""
        owners = [each for each in sorted(self.owners) if self.kinds_of[each] == "process"]
        child = self.actors[owners[who % len(owners)]].fork().result(PATIENCE_SECONDS)
        assert isinstance(child, int) and child, f"a forked child used its parent's session: {child}"
        self.counts["forked"] += 1
        self.children.append(child)

    def teardown(self) -> None:
        """As the schedule's; the children that are left are killed."""
        super().teardown()
        for child in getattr(self, "children", ()):
            os.kill(child, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="owners fork")
def test_no_schedule_of_killed_processes_has_two_owners(caplog: pytest.LogCaptureFixture, record_property: Any) -> None:
    """The same with processes that are killed with SIGKILL, and with forks of them: a lease that outlives its owner, or
    a child that goes on with what is its parent's."""
    caplog.set_level(logging.CRITICAL, "turnlog")
    before = Counter(Schedule.counts)
    run = settings(max_examples=draws(4, 10_000), stateful_step_count=14, database=None)
    run_state_machine_as_test(Killed, settings=run)
    record_property("done", dict(Schedule.counts - before))
