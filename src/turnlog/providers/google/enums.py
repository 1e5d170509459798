"""Enum values by their numbers, which proto3 JSON accepts beside their names.

A server answers with numbers if the request asks for them (`$alt=json;enum-encoding=int`). Source:
google.ai.generativelanguage v1beta (Candidate.FinishReason, GenerateContentResponse.PromptFeedback.BlockReason,
FunctionCallingConfig.Mode, Type).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..protocol import Stop

FINISH_REASONS = (
    "FINISH_REASON_UNSPECIFIED",
    "STOP",
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "OTHER",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
    "IMAGE_SAFETY",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
)
BLOCK_REASONS = ("BLOCK_REASON_UNSPECIFIED", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY")
STOPS: dict[str, Stop] = {
    **dict.fromkeys((*FINISH_REASONS[3:10], *BLOCK_REASONS[1:]), "filtered"),
    **dict.fromkeys(
        """IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION IMAGE_OTHER NO_IMAGE MODEL_ARMOR JAILBREAK""".split(),
        "filtered",
    ),
    "MAX_TOKENS": "length",
    "TOO_MANY_TOOL_CALLS": "length",
    "MALFORMED_RESPONSE": "interrupted",
}
"""The meaning of each finish reason and block reason."""
MODES = ("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")
SCHEMA_TYPES = ("TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")


def enum_name(value: Any, names: Sequence[str]) -> Any:
    """The name of an enum value given by its number; the number as a text if it is unknown. Other values are returned
    unchanged."""
    if type(value) is not int:
        return value
    return names[value] if 0 <= value < len(names) else str(value)
