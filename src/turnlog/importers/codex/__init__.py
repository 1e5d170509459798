"""Codex rollouts: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`.

One JSON object a line. Since 0.40 a line is `{timestamp, type, payload}`; before, it was a bare Responses item, after a
header line. The meaning of lines follows Codex's own protocol (github.com/openai/codex,
codex-rs/protocol/src/protocol.rs: RolloutItem, EventMsg).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..._platform.lazy import lazy_pattern
from ..drafting import Drafting
from ..json_values import word
from ..protocol import Imported, Origin
from ..transcript import Transcript
from .conversation import RolloutLine, draft_rollout

_FORMAT = "codex-rollout"

_KINDS = frozenset({"session_meta", "response_item", "turn_context", "event_msg", "compacted", "world_state"})
_TYPED = lazy_pattern(rb'"type"\s*:\s*"(%s)"' % "|".join(sorted(_KINDS)).encode())
_PAYLOAD = lazy_pattern(rb'"payload"\s*:')
_HEADER = lazy_pattern(rb'\A\s*\{"(id|timestamp)"\s*:\s*"[^"]+"\s*,\s*"(id|timestamp)"\s*:\s*"')
_BARE_ITEM = lazy_pattern(
    rb'^\s*\{[^\n]*"(type"\s*:\s*"(message|reasoning|function_call|function_call_output|local_shell_call)|record_type)"',
    re.MULTILINE,
)
_ITEM_TYPES = frozenset(
    {
        *("message", "reasoning", "compaction", "function_call", "function_call_output", "local_shell_call"),
        *("custom_tool_call", "custom_tool_call_output", "web_search_call", "image_generation_call"),
        *("tool_search_call", "tool_search_output", "ghost_snapshot"),
    }
)


def sniff(head: bytes, path: Path | None) -> int:
    """Recognised by typed lines with a payload (new), or by a header with id and timestamp, then bare items
    (old)."""
    if _TYPED.search(head) and _PAYLOAD.search(head):
        return 90
    return 80 if _HEADER.search(head) and _BARE_ITEM.search(head) else 0


def read(origin: Origin) -> list[Imported]:
    """The one session of the rollout."""
    file = Transcript(origin)
    entries = _entries_of(file)
    if not any(entry.kind in _KINDS for entry in entries):
        raise file.refused("record of a Codex rollout", "give a rollout-*.jsonl of ~/.codex/sessions")
    log = Drafting(file)
    facts = draft_rollout(entries, log)
    session_id = facts.session or f"codex-{file.digest}"
    return [log.imported(session_id, _FORMAT, facts.title, parent=facts.parent)]


def _entries_of(file: Transcript) -> list[RolloutLine]:
    """The lines in the shape of new rollouts, without items and usage written twice (same time, same content)."""
    entries: list[RolloutLine] = []
    timed: dict[tuple[str, str], list[RolloutLine]] = {}
    for line in file.objects("rollout line"):
        entry = _entry(line.number, line.value)
        is_usage = entry.kind == "event_msg" and entry.payload.get("type") == "token_count"
        if (entry.kind == "response_item" or is_usage) and str(entry.time)[:1].isdigit():
            alike = timed.setdefault((str(entry.time), str(entry.payload.get("call_id"))), [])
            same = next((other for other in alike if other.payload == entry.payload), None)
            if same is not None:
                file.warn(line.number, f"left out: repeats line {same.line}", "nothing")
                continue
            alike.append(entry)
        entries.append(entry)
    return entries


def _entry(number: int, value: dict[str, Any]) -> RolloutLine:
    kind, payload, time = value.get("type"), value.get("payload"), value.get("timestamp")
    if isinstance(kind, str) and isinstance(payload, dict):
        return RolloutLine(number, time, kind, payload)
    if isinstance(kind, str) and kind in _ITEM_TYPES:
        return RolloutLine(number, time, "response_item", value)
    if kind is None and isinstance(value.get("id"), str) and "timestamp" in value:
        return RolloutLine(number, time, "session_meta", value)
    return RolloutLine(number, time, word(value.get("record_type")) or word(kind) or "unknown", value)
