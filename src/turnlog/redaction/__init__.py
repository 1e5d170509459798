"""Redaction: finds secrets in what is about to be recorded, and replaces them with marks before anything reaches a
disk.

`RedactingStore` stands in front of a store. `scrub` removes secrets from existing logs. `view` (for tool names) and the
packages above it import this one.
"""

from __future__ import annotations

from .redactor import Redactor
from .store import RedactingStore

__all__ = ["RedactingStore", "Redactor"]
