"""Summaries: many messages said in few words."""

from .protocol import Material, Summarizer

__all__ = ["Material", "Summarizer"]
