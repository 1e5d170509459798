"""Compaction by the Messages API: on demand, or at a threshold during an answer.

Sources: https://platform.claude.com/docs/en/build-with-claude/compaction-on-demand and /compaction, and
`BetaCompactionBlock` of the anthropic SDK 2.12.0. Requests that ask for a compaction, and all that contain one, need a
beta header (`compact-2026-09-04` on demand, `compact-2026-01-12` at a threshold).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from msgspec.structs import replace

from ...log.messages import Message, Opaque, Part, is_compaction
from ..protocol import Compacted


def compaction_request(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body that asks for a compaction of the same conversation: "cannot be combined with `context_management`"."""
    rest = {key: value for key, value in body.items() if key not in ("context_management", "stream")}
    return {**rest, "compaction": {"type": "summarize"}}


def compacted(parts: Sequence[Part]) -> Compacted | None:
    """The compaction in the last compaction block of an answer; None if there is none, or if the compaction failed (its
    content is then null). The API ignores everything before that block."""
    index = max((i for i, part in enumerate(parts) if is_compaction(part)), default=-1)
    block = parts[index] if index >= 0 else None
    summary = block.data.get("content") if isinstance(block, Opaque) and isinstance(block.data, Mapping) else None
    if block is None or not isinstance(summary, str) or not summary.strip():
        return None
    return Compacted(window=(Message("assistant", (block,)),), summary=summary, through=index)


def after_compaction(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages that the model reads: the API ignores everything before the last block, except top-level system
    text."""
    for i, message in reversed([*enumerate(messages)]):
        compaction = compacted(message.parts)
        if compaction is not None:
            head = [*takewhile(lambda earlier: earlier.role == "system", messages[:i])]
            return [*head, replace(message, parts=message.parts[compaction.through :]), *messages[i + 1 :]]
    return messages


_STEPS = {
    "clear_tool_uses_20250919": "mask",
    "clear_thinking_20251015": "thinking",  # no step does this
    "compact_20260112": "summarise",
}
"""The strategy step that each edit of the setting `context_management` performs."""


def takes_out(settings: Mapping[str, Any]) -> frozenset[str]:
    """The strategy steps that the API performs itself:
    https://platform.claude.com/docs/en/build-with-claude/context-editing."""
    management = settings.get("context_management")
    edits = management.get("edits") if isinstance(management, Mapping) else None
    kinds = [edit.get("type") for edit in edits if isinstance(edit, Mapping)] if isinstance(edits, Sequence) else []
    return frozenset(_STEPS[kind] for kind in kinds if isinstance(kind, str) and kind in _STEPS)
