"""One conversation, one owner: random schedules of threads and tasks that open, wait, run turns, close and die."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from leasing import Schedule


@pytest.mark.slow
def test_no_schedule_has_two_owners() -> None:
    """Two owners of one session, a living turn that another closes, or a session that a dead owner keeps."""
    run_state_machine_as_test(Schedule, settings=settings(max_examples=25, stateful_step_count=16))
