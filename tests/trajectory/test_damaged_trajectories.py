"""Damaged files of trajectories: a clear error or a declared loss, never a traceback or a silent loss."""

from __future__ import annotations

import pytest

from damaged_trajectories import damaged, wrong_with
from draws import batches


@pytest.mark.parametrize("some", batches(200, 5_000, 10), ids=lambda some: f"from {some.start}")
def test_damage_is_told(some: range) -> None:
    """Fields that are missing or of a wrong type, files that are cut, bytes that changed, images that claim to be huge:
    a program that shows runs must not end with a traceback, and must not show half a run as a whole one."""
    for seed in some:
        assert (seed, wrong_with(damaged(seed))) == (seed, [])
