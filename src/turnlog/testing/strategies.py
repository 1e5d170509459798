"""Hypothesis strategies. Needs Hypothesis (the `testing` extra)."""

from __future__ import annotations

from hypothesis import strategies as st

from .damages import damaged_history
from .histories import History, sound_history


def damaged_histories() -> st.SearchStrategy[History]:
    """Conversations with three to eight kinds of damage each."""
    return st.randoms(use_true_random=False).map(damaged_history)


def sound_histories() -> st.SearchStrategy[History]:
    """Conversations without damage."""
    return st.randoms(use_true_random=False).map(sound_history)
