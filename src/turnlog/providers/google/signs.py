"""The words of generateContent requests."""

from __future__ import annotations

from ..signs import Signs
from .schema import PART

SIGNS = Signs(
    blocks=PART,
    content="parts",
    # "single turn requests end with a user role or the role field is empty"
    roles=frozenset({"user", "model", ""}),
    single=(dict, str),
    models=r"(models/|publishers/google/models/)?gemini",
    urls=r":(stream)?[gG]enerateContent\b|:countTokens\b",
)
