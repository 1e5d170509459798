"""A summary without a model: the beginnings of what was said, oldest first."""

from __future__ import annotations

from ..content import text_of
from .protocol import Material

__all__ = ["Digest"]

_QUOTED = 200
"""Characters quoted of a message."""


class Digest:
    """The offline summarizer."""

    id = "digest/0"

    def summarize(self, material: Material, /) -> str:
        """The beginning of each message, as far as the target reaches."""
        text = "\n".join(text_of(shown.message)[:_QUOTED] for shown in material.messages)
        while text and material.count(text) > material.target:
            text = text[: int(len(text) * 0.8)]
        return text
