"""Redaction: finds secrets in what is about to be recorded, and replaces them with marks before anything reaches a
disk.

`RedactingStore` stands in front of a store. `scrub` removes secrets from existing logs. `view` (for tool names) and the
packages above it import this one.
"""

from __future__ import annotations

from .drafts import Cleaned, redacted, redacted_bytes, redacted_draft, redacted_drafts, redacted_next, redacted_time
from .redactor import Attentive, Counts, Finding, Pieces, Redactor, counts_text, first_mark, has_mark
from .store import SHOWS_MARKS, RedactingStore, as_kept, cut_title, is_cut, redacted_title

__all__ = [
    "Attentive",
    "Cleaned",
    "Counts",
    "Finding",
    "Pieces",
    "RedactingStore",
    "Redactor",
    "SHOWS_MARKS",
    "as_kept",
    "counts_text",
    "cut_title",
    "first_mark",
    "has_mark",
    "is_cut",
    "redacted",
    "redacted_bytes",
    "redacted_draft",
    "redacted_drafts",
    "redacted_next",
    "redacted_time",
    "redacted_title",
]
