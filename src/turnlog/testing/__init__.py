"""Checks that come with the package, for those who write a part of it of their own.

`turnlog.testing.strategies` has the Hypothesis strategies; it needs Hypothesis.
"""

from __future__ import annotations

from .damages import DAMAGES, damaged_history
from .histories import History, sound_history
from .providers import check_provider
from .stores import check_store

__all__ = ["DAMAGES", "History", "check_provider", "check_store", "damaged_history", "sound_history"]
