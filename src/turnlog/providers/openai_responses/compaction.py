"""Compaction by the Responses API: in an answer (`context_management`), and by `POST /responses/compact`.

Sources: https://developers.openai.com/api/docs/guides/compaction and `CompactedResponse`, `ResponseCompactParams` of
the openai SDK 3.54.0. The compacted conversation is encrypted. Items before a compaction item may be left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...log.messages import COMPACTION, Message, Opaque, Part, is_compaction
from ..protocol import Compacted

OBJECT = "response.compaction"
"""The `object` of the result of `/responses/compact`."""

_PARAMETERS = (
    "model",
    "input",
    "instructions",
    "previous_response_id",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "service_tier",
)


def compaction_request(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body for `/responses/compact`, which accepts fewer parameters."""
    return {key: body[key] for key in _PARAMETERS if key in body}


def compacted(parts: Sequence[Part]) -> Compacted | None:
    """The compaction in the last compaction item of an answer; None if there is none."""
    index = max((i for i, part in enumerate(parts) if _is_whole(part)), default=-1)
    return Compacted(window=(Message("assistant", (parts[index],)),), through=index) if index >= 0 else None


def new_window(messages: Sequence[Message]) -> Compacted | None:
    """The compaction in the output of `/responses/compact`: "the canonical next context window". None if it has no
    compaction item."""
    whole = any(_is_whole(part) for message in messages for part in message.parts)
    return Compacted(window=tuple(messages)) if whole else None


def after_compaction(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages that the model reads: those from the last compaction on, and user messages and system text before
    it."""
    start = max((i for i, message in enumerate(messages) if compacted(message.parts) is not None), default=0)
    return [*(message for message in messages[:start] if message.role != "assistant"), *messages[start:]]


def takes_out(settings: Mapping[str, Any]) -> frozenset[str]:
    """The strategy steps that the API performs itself: it summarises if the setting `context_management` has a
    threshold."""
    entries = settings.get("context_management")
    listed = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, Sequence) else []
    compacts = any(entry.get("type") == COMPACTION and entry.get("compact_threshold") for entry in listed)
    return frozenset({"summarise"}) if compacts else frozenset()


def _is_whole(part: Part) -> bool:
    data = part.data if isinstance(part, Opaque) and is_compaction(part) else None
    return isinstance(data, Mapping) and bool(data.get("encrypted_content"))
