"""The records of a Claude Code chain as steps: an API message is one step, even if it was split.

Claude Code writes each content block of an answer as a separate record, all with the same `message.id`, and may write
results of parallel calls between them. iFlow writes an answer several times while it grows: each record repeats the
calls that still run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from ...log.texts import strings_in
from ..json_values import mapping, objects, word
from ..transcript import Transcript


class ClaudeRecord(Struct, frozen=True):
    """A record and its line number."""

    line: int
    record: dict[str, Any]


class ClaudeStep(Struct, frozen=True):
    """All entries of one assistant message, or a single other record."""

    entries: tuple[ClaudeRecord, ...]

    @property
    def record(self) -> dict[str, Any]:
        """The first record."""
        return self.entries[0].record

    @property
    def line(self) -> int:
        """The line of the first record."""
        return self.entries[0].line

    @property
    def blocks(self) -> list[tuple[ClaudeRecord, Any]]:
        """The content blocks with their records. A call that later records repeat appears once, in its last version."""
        blocks: list[tuple[ClaudeRecord, Any]] = []
        for entry in self.entries:
            others = list(enumerate(blocks))
            for block in blocks_of(entry.record):
                same = next((i for i, (_, earlier) in others if _repeats(block, earlier)), None)
                if same is None:
                    blocks.append((entry, block))
                else:
                    blocks[same] = entry, block
        return blocks

    @property
    def source(self) -> str:
        """The position of this step: lines, then uuids, and whether Claude Code hides it."""
        numbers = [entry.line for entry in self.entries]
        if len(numbers) == 1:
            place = f"line {numbers[0]}"
        elif numbers == list(range(numbers[0], numbers[-1] + 1)):
            place = f"lines {numbers[0]}-{numbers[-1]}"
        else:
            place = "lines " + ", ".join(map(str, numbers))
        uuids = [str(entry.record["uuid"]) for entry in self.entries if entry.record.get("uuid")]
        hidden = " isMeta" if self.record.get("isMeta") else ""
        return f"{place}{hidden}" + (f" uuid {' '.join(uuids)}" if uuids else "")


def entries_of(file: Transcript) -> list[ClaudeRecord]:
    """The records, without exact repetitions of earlier records (same uuid)."""
    entries: list[ClaudeRecord] = []
    by_uuid: dict[str, ClaudeRecord] = {}
    for line in file.entries("record", "loglines"):
        entry = ClaudeRecord(line.number, line.value)
        uuid = line.value.get("uuid")
        earlier = by_uuid.setdefault(uuid, entry) if isinstance(uuid, str) else entry
        same = earlier.record == entry.record
        if earlier is not entry:
            what = "left out: repeats" if same else "kept, although it has the uuid of"
            file.warn(line.number, f"{what} line {earlier.line} (uuid {uuid})", "nothing")
        if earlier is entry or not same:
            entries.append(entry)
    return entries


def message_of(record: dict[str, Any]) -> dict[str, Any]:
    """The record's API message; an empty object if it has none."""
    return mapping(record.get("message"))


def blocks_of(record: dict[str, Any]) -> list[Any]:
    """The content blocks of the record's message; text content as a single block."""
    content = message_of(record).get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def is_results(record: dict[str, Any]) -> bool:
    """Whether a user record contains tool results."""
    return any(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks_of(record))


def _repeats(block: Any, earlier: Any) -> bool:
    """Whether a block is a call that repeats an earlier one, which may have had fewer arguments then."""
    if not _is_call(block) or not _is_call(earlier):
        return False
    same = all(block.get(key) == earlier.get(key) for key in ("id", "name"))
    return (
        same and bool(block.get("id")) and mapping(earlier.get("input")).items() <= mapping(block.get("input")).items()
    )


def _is_call(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_use"


def _without_results(calls: list[Any], record: dict[str, Any]) -> list[Any]:
    """The calls without a result in this record."""
    answered = {word(block.get("tool_use_id")) for block in objects(message_of(record).get("content"))}
    return [call for call in calls if word(call.get("id")) not in answered]


class Steps:
    """Iterates over the steps of a chain, in file order. `texts_by_call` maps each call id to the texts of the call and
    its result."""

    def __init__(self, entries: list[ClaudeRecord]) -> None:
        self.entries = entries
        self.texts_by_call: dict[str, list[str]] = {}
        self.uuids = {str(entry.record["uuid"]) for entry in entries if entry.record.get("uuid")}
        for entry in entries:
            self._learn(entry.record)

    def __iter__(self) -> Iterator[ClaudeStep]:
        steps: list[list[ClaudeRecord]] = []
        open_id: Any = None
        open_step: list[ClaudeRecord] = []
        open_calls: list[Any] = []
        for entry in self.entries:
            kind = entry.record.get("type")
            own_id = message_of(entry.record).get("id") if kind == "assistant" else None
            calls = list(filter(_is_call, blocks_of(entry.record))) if kind == "assistant" else []
            is_repeat = any(_repeats(call, earlier) for call in calls for earlier in open_calls)
            if is_repeat or (own_id is not None and own_id == open_id):
                open_step.append(entry)
                open_calls += calls
                continue
            steps.append([entry])
            if kind == "assistant":
                open_id, open_step, open_calls = own_id, steps[-1], calls
            elif kind == "user" and is_results(entry.record):
                open_calls = _without_results(open_calls, entry.record)
            elif kind == "user" or entry.record.get("subtype") == "compact_boundary":
                open_id, open_calls = None, []
        return (ClaudeStep(tuple(step)) for step in steps)

    def _learn(self, record: dict[str, Any]) -> None:
        for block in blocks_of(record):
            if not isinstance(block, dict):
                continue
            if block.get("type") == "tool_use":
                self.texts_by_call.setdefault(str(block.get("id")), []).extend(strings_in(block.get("input")))
            elif block.get("type") == "tool_result":
                self.texts_by_call.setdefault(str(block.get("tool_use_id")), []).extend(
                    strings_in(block.get("content"))
                )
