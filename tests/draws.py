"""How many cases a test draws: few in a normal run, many with `TURNLOG_EXAMPLES=long`. `TURNLOG_SEED=N` draws others
than usual."""

from __future__ import annotations

import os

import pytest

__all__ = ["LONG", "batches", "draws", "examples", "long_only", "seeds"]

LONG = os.environ.get("TURNLOG_EXAMPLES") == "long"
_FIRST = int(os.environ.get("TURNLOG_SEED") or 0)

long_only = pytest.mark.skipif(not LONG, reason="takes minutes: run with TURNLOG_EXAMPLES=long")


def draws(usual: int, long: int) -> int:
    """The number of cases of this run."""
    return long if LONG else usual


def examples(usual: int, long: int) -> int:
    """The number of examples of a property test that draws others than the profile says (tests/conftest.py): at most 5
    with `TURNLOG_EXAMPLES=fast`."""
    return min(usual, 5) if os.environ.get("TURNLOG_EXAMPLES") == "fast" else draws(usual, long)


def seeds(usual: int, long: int) -> range:
    """As many seeds."""
    return range(_FIRST, _FIRST + draws(usual, long))


def batches(usual: int, long: int, size: int = 100) -> list[range]:
    """As many seeds, in batches that several processes may share."""
    every = seeds(usual, long)
    return [every[at : at + size] for at in range(0, len(every), size)]
