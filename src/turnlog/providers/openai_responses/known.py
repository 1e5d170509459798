"""Which of its own items and parts the Responses API takes in a request."""

from __future__ import annotations

from ...content import Opaque
from ..shapes import conforms
from .shapes import CONTENT, ITEM
from .wire import has_word

__all__ = ["knows"]


def knows(part: Opaque) -> bool:
    """Whether an item or content part that was kept whole is of a known type and has known values:
    transcripts hold types that only their own program reads, and what redaction left of values."""
    return conforms(part.data, CONTENT if has_word(part.form, "part") else ITEM)
