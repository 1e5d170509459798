"""One conversation, one owner: random schedules of threads and tasks that open, wait, run turns, close and die."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from leasing import Schedule
from postgres_server import PostgresServer


@pytest.mark.slow
def test_no_schedule_has_two_owners() -> None:
    """Two owners of one session, a living turn that another closes, or a session that a dead owner keeps."""
    run_state_machine_as_test(Schedule, settings=settings(max_examples=25, stateful_step_count=16))


@pytest.mark.slow
def test_no_schedule_has_two_owners_on_a_server(postgres: PostgresServer) -> None:
    """The same where each owner has connections of its own, and the server says who has a session."""
    places = {"new_place": lambda self, kind: postgres.new_place(), "stores": st.just("postgres")}
    machine = type("OnServer", (Schedule,), places)
    run_state_machine_as_test(machine, settings=settings(max_examples=4, stateful_step_count=16))
