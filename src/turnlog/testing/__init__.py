"""Checks shipped with the package, for authors of stores and providers.

`turnlog.testing.strategies` has the Hypothesis strategies and needs Hypothesis. No other package imports this one.
"""

from __future__ import annotations

from .crashes import crash
from .damages import DAMAGES, damaged_history
from .histories import History, sound_history
from .leases import check_leases
from .providers import check_provider
from .stores import check_store

__all__ = [
    "DAMAGES",
    "History",
    "check_leases",
    "check_provider",
    "check_store",
    "crash",
    "damaged_history",
    "sound_history",
]
