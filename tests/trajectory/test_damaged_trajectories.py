"""Damaged files of trajectories: a clear error or a declared loss, never a traceback or a silent loss."""

from __future__ import annotations

import pytest

from damaged_trajectories import damaged, wrong_with


@pytest.mark.parametrize("tens", range(20))
def test_damage_is_told(tens: int) -> None:
    """Fields that are missing or of a wrong type, files that are cut, bytes that changed, images that claim to be huge:
    a program that shows runs must not end with a traceback, and must not show half a run as a whole one."""
    for seed in range(10 * tens, 10 * tens + 10):
        assert (seed, wrong_with(damaged(seed))) == (seed, [])
