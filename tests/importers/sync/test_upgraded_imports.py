"""Transcripts that grew since an older turnlog imported them, or that tell of themselves at their end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from transcripts import SESSION, claude, jsonl

from turnlog.importers import Imported, read_file
from turnlog.importers.sync.session import Synced, sync_session
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import (
    Approval,
    Body,
    Decision,
    FileChange,
    MessageRecord,
    SessionOpened,
    ToolFinished,
    ToolStarted,
)
from turnlog.log.store import Draft
from turnlog.stores import MemoryStore

TIMES = [f"2025-01-01T00:00:{n:02}.000Z" for n in range(60)]


def _raws(store: MemoryStore, session_id: str) -> list[bytes | None]:
    return [record.raw for record in store.read(session_id)]


def test_a_subagent_that_is_at_work_stays_one_session(tmp_path: Path) -> None:
    """What `.meta.json` says of a subagent stands at the end: a second session for each import while it works."""
    folder = tmp_path / SESSION / "subagents"
    folder.mkdir(parents=True)
    agent = folder / "agent-a1.jsonl"
    (folder / "agent-a1.meta.json").write_text(json.dumps({"description": "Look around"}), "utf-8")
    lines = [claude(n, "user", f"task {n}", isSidechain=True, agentId="a1") for n in range(1, 6)]
    store, whole = MemoryStore(), MemoryStore()
    statuses = []
    for size in (2, 3, 5, 5):
        agent.write_bytes(jsonl(lines[:size]))
        statuses += [sync_session(store, one).status for one in read_file(agent)]
    for one in read_file(agent):
        sync_session(whole, one)
    name = f"{SESSION}.agent-a1"
    assert statuses == ["new", "continued", "continued", "unchanged"]
    assert [info.id for info in store.sessions()] == [name]
    assert _raws(store, name) == _raws(whole, name)


def _imported(*bodies: Body) -> Imported:
    drafts = tuple(Draft(body, time) for body, time in zip(bodies, TIMES, strict=False))
    return Imported(session_id="s", format="test", drafts=drafts)


def _told(place: int) -> list[Body]:
    """A transcript of which the first record is number `place`."""
    call = ToolCall("c", "edit", {"path": "a"})
    return [
        MessageRecord(Message("user", (Text("go"),)), source="line 1"),
        MessageRecord(Message("assistant", (call,)), source="line 2"),
        ToolStarted("c", place + 1, "edit"),
        Approval("c", "given", place + 1),
        FileChange("a", "modified", call_record=place + 1),
        ToolFinished("c", place + 1, "ok"),
        MessageRecord(Message("user", (ToolResult("c", parts=(Text("ok"),)),)), source="line 3"),
        Decision("compact", first=place, last=place + 6, detail={"kept": [[place, place]], "at": place}),
    ]


@pytest.mark.parametrize("more", [0, 1])
def test_what_an_importer_puts_ahead_by_now_makes_no_second_session(more: int) -> None:
    """After an upgrade, a second session for each transcript that grew, since the numbers by which records name each
    other are others behind a record that older versions did not make."""
    said = [MessageRecord(Message("user", (Text(f"more {n}"),)), source=f"line {9 + n}") for n in range(more)]
    old = _imported(*_told(1))
    begin = _begun_earlier(_imported(SessionOpened("interactive"), *_told(2), *said))
    store, whole = MemoryStore(), MemoryStore()
    sync_session(store, old)
    sync_session(whole, begin)
    assert sync_session(store, begin) == Synced("s", "continued", 9 + more)
    assert _raws(store, "s") == _raws(whole, "s")
    assert sync_session(store, begin) == Synced("s", "unchanged", 0)


def _begun_earlier(imported: Imported) -> Imported:
    """The same with the times that an import without the first record has."""
    times = [TIMES[0], *TIMES]
    drafts = tuple(Draft(draft.body, time) for draft, time in zip(imported.drafts, times, strict=False))
    return Imported(session_id="s", format="test", drafts=drafts)
