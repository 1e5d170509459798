"""Leave out of notes what the conversation already contains, and empty values."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._platform.lazy import lazy_pattern
from ..log.messages import Message, Reasoning, Text, ToolCall, ToolResult, sha256_hex
from ..log.texts import strings_in

_REPEAT = 40
"""Repetitions of texts shorter than this (characters) are kept: leaving them out would save nothing."""
_BASE64 = lazy_pattern(r"[A-Za-z0-9+/\r\n]{512,}={0,2}\Z")


def is_empty(value: Any) -> bool:
    """Whether a value contains no information: null, false, or an empty text, list or object."""
    return value is None or value is False or (isinstance(value, (str, list, dict)) and not value)


def without_repeats(value: Any, texts: Sequence[str], blobs: Mapping[str, bytes]) -> Any:
    """`value` without long texts that one of `texts` contains, without empty values, and with hashes in place of the
    base64 of known blobs. None if nothing remains."""
    if isinstance(value, str):
        if len(value) >= _REPEAT and any(value in text or value.strip() in text for text in texts):
            return None
        return _blob_reference(value, blobs)
    if isinstance(value, dict):
        remaining = {key: without_repeats(item, texts, blobs) for key, item in value.items()}
        remaining = {key: item for key, item in remaining.items() if not is_empty(item)}
        return None if not remaining or remaining.keys() == {"type"} else remaining
    if isinstance(value, list):
        return [remaining for item in value if (remaining := without_repeats(item, texts, blobs)) is not None] or None
    return value


def _blob_reference(text: str, blobs: Mapping[str, bytes]) -> Any:
    if len(text) < 512 or not _BASE64.match(text):
        return text
    try:
        name = sha256_hex(base64.b64decode(text))
    except (binascii.Error, ValueError):
        return text
    return {"sha256": name} if name in blobs else text


def texts_of(message: Message | None) -> list[str]:
    """Every text of a message, including texts in the arguments of calls."""
    texts: list[str] = []
    for part in message.parts if message is not None else ():
        if isinstance(part, (Text, Reasoning)):
            texts.append(part.text)
        elif isinstance(part, ToolResult):
            texts.append(result_text(part.parts))
        elif isinstance(part, ToolCall):
            texts += [part.raw_arguments, *strings_in(part.arguments)]
    return [text for text in texts if text]


def result_text(parts: Iterable[Any]) -> str:
    """The text of a tool result's parts, or of a message's results, joined by newlines."""
    texts: list[str] = []
    for part in parts:
        if isinstance(part, ToolResult):
            texts.append(result_text(part.parts))
        elif isinstance(getattr(part, "text", None), str):
            texts.append(part.text)
    return "\n".join(texts)
