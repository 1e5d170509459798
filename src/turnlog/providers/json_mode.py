"""JSON mode of both OpenAI APIs: it requires the word `json` in a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JSON_PLEASE = "Please answer in JSON."
"""The message that is added if no other has the word."""


def is_json_mode(answer_format: Any) -> bool:
    """Whether a setting asks for any JSON object, not for one of a schema."""
    return isinstance(answer_format, Mapping) and answer_format.get("type") == "json_object"
