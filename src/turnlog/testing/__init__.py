"""Checks shipped with the package, for authors of stores and providers.

`turnlog.testing.strategies` has the Hypothesis strategies and needs Hypothesis. No other package imports this one.
"""

from __future__ import annotations

from .damages import damaged_history
from .histories import sound_history
from .leases import crash
from .providers import check_provider
from .stores import check_store

__all__ = ["check_provider", "check_store", "crash", "damaged_history", "sound_history"]
