"""Summaries: many messages said in few words."""

from .digest import Digest
from .protocol import Material, Summarizer

__all__ = ["Digest", "Material", "Summarizer"]
