"""Importing on into a session in which turnlog put something on record since: nobody's words, so it is the same one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import turnlog
from turnlog.importers import Imported, read_file
from turnlog.importers.sync.session import Synced, sync_session
from turnlog.log.codec import encode_record
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import (
    Approval,
    Body,
    Configuration,
    Decision,
    FileChange,
    MessageRecord,
    Note,
    Record,
    SessionOpened,
    SummaryRecord,
    ToolFinished,
    ToolStarted,
    TurnClosed,
    TurnOpened,
)
from turnlog.log.store import Draft
from turnlog.redaction.scrub import SCRUBBED
from turnlog.stores import MemoryStore, SqliteStore
from turnlog.view.consistency import inconsistencies
from turnlog.view.turns import LEFT_OPEN, turns_of

TIME = "2025-01-01T00:00:00.000Z"
LATER = "2999-01-01T00:00:00.000Z"
WORDS = st.text("ab", max_size=3)
ASIDES: Sequence[Body] = (
    Note("mine", "to look at again"),
    Note(SCRUBBED, "secrets were taken out"),
    SessionOpened("interactive", resumed=True),
    SummaryRecord("k", "claimed"),
    Configuration("anthropic", "claude-sonnet-4-5"),
    Decision("pin", first=1, last=1),
    Decision("clear", first=1, last=1),
    TurnClosed("t", "failed", LEFT_OPEN),
)


def said(text: str) -> MessageRecord:
    return MessageRecord(Message("user", (Text(text),)), source="line 1")


BODIES = st.lists(st.builds(said, WORDS) | st.builds(Note, WORDS) | st.builds(Decision, st.just("rewind")), max_size=6)


def imported(bodies: Sequence[Body], *, time: str = TIME) -> Imported:
    return Imported(session_id="s", format="test", drafts=tuple(Draft(body, time) for body in bodies))


def bodies_of(store: MemoryStore) -> list[Body]:
    return [record.body for record in store.read("s")]


@given(BODIES, BODIES, st.lists(st.sampled_from(ASIDES), max_size=3), st.sampled_from(["", TIME]))
def test_asides_stay_where_they_are_and_the_transcript_goes_on(
    begun: list[Body], more: list[Body], asides: list[Body], time: str
) -> None:
    """A session of its own, at each import, for whoever only pinned a message; or a pin that is gone by then."""
    store = MemoryStore()
    sync_session(store, imported(begun, time=time))
    store.append("s", [Draft(body, LATER) for body in asides])
    for _ in range(2):
        assert sync_session(store, imported([*begun, *more], time=time)).session == "s"
        assert bodies_of(store) == [*begun, *asides, *more]


def test_what_is_imported_after_an_aside_names_the_records_that_it_means() -> None:
    """Tools, file changes and compactions that are told of the record ahead of theirs, once a secret was taken out."""
    call = MessageRecord(Message("assistant", (ToolCall("c", "ls", {}),)), source="line 2")
    result = MessageRecord(Message("user", (ToolResult("c", "ls", (Text("a.txt"),)),)), source="line 3")
    detail = {"summary": 10, "at": 3, "kept": [[1, 1], [3, 4]], "standing": [8], "texts": [[4, [0], "x"]], "why": 7}
    detail |= {
        "files": {"changed": {"a/": [[3, "b.txt", "edited"]]}, "more": 4},
        "orders": [[1, "go"]],
        "more_orders": [[3, 4]],
    }
    odd = {
        "files": [3],
        "orders": 3,
        "summary": "said",
        "standing": "all",
        "kept": [1, "x", []],
        "texts": [[], ["x"]],
        "cuts": None,
        "at": True,
    }
    transcript = [
        said("go"),
        said("on"),
        call,
        result,
        ToolStarted("c", 3),
        ToolFinished("c", 3, "ok"),
        FileChange("a.txt", "deleted", call_record=3),
        Approval("c", "given", call_record=3),
        Decision("compact", 1, 8, "compacted", detail, supersedes=5),
        said("summary"),
        Decision("compact", 9, 10, "not one of ours", odd),
    ]
    store = MemoryStore()
    for length, aside in ((1, Note(SCRUBBED)), (3, Decision("pin", first=3, last=3)), (11, None)):
        sync_session(store, imported(transcript[:length]))
        store.append("s", [Draft(aside, LATER)] if aside is not None else [])
    moved = {"summary": 12, "at": 4, "kept": [[1, 1], [4, 6]], "standing": [10], "texts": [[6, [0], "x"]], "why": 7}
    moved |= {
        "files": {"changed": {"a/": [[4, "b.txt", "edited"]]}, "more": 4},
        "orders": [[1, "go"]],
        "more_orders": [[4, 6]],
    }
    assert bodies_of(store) == [
        said("go"),
        Note(SCRUBBED),
        said("on"),
        call,
        Decision("pin", first=3, last=3),
        result,
        ToolStarted("c", 4),
        ToolFinished("c", 4, "ok"),
        FileChange("a.txt", "deleted", call_record=4),
        Approval("c", "given", call_record=4),
        Decision("compact", 1, 10, "compacted", moved, supersedes=7),
        said("summary"),
        Decision("compact", 11, 12, "not one of ours", odd),
    ]
    assert sync_session(store, imported(transcript)) == Synced("s", "unchanged", 0)


def test_an_answer_that_grew_leaves_the_asides_ahead_of_it() -> None:
    """A pin that is lost, or a second session, when a live session that has a pin is imported in mid-answer."""
    begun = MessageRecord(Message("assistant", (Text("Looking."),)), source="line 2")
    grown = MessageRecord(Message("assistant", (Text("Looking."), ToolCall("c", "ls", {}))), source="line 2")
    finished = ToolFinished("c", 2, "ok")
    pin, note = Decision("pin", first=1, last=1), Note("mine")
    store = MemoryStore()
    sync_session(store, imported([said("go")]))
    store.append("s", [Draft(pin, LATER)])
    sync_session(store, imported([said("go"), begun]))
    store.append("s", [Draft(note, LATER), Draft(pin, LATER), Draft(TurnClosed("t", "failed", LEFT_OPEN), LATER)])
    assert sync_session(store, imported([said("go"), grown, finished])) == Synced("s", "continued", 2)
    assert bodies_of(store) == [said("go"), pin, grown, replace(finished, call_record=3), note, pin]


@pytest.mark.parametrize("own", [Decision("pin", first=2, last=2), Decision("clear", first=1, last=2)])
def test_what_was_decided_of_an_answer_that_grew_is_not_moved(own: Decision) -> None:
    """A pin on another message than the one that was meant, as the session was made again under it."""
    begun, grown = (MessageRecord(Message("assistant", (Text(text),)), source="line 2") for text in ("So", "Solved."))
    more = MessageRecord(Message("assistant", (*begun.message.parts, *grown.message.parts)), source="line 2")
    store = MemoryStore()
    sync_session(store, imported([said("go"), begun]))
    store.append("s", [Draft(own, LATER)])
    assert sync_session(store, imported([said("go"), more])) == Synced("s.2", "diverged", 2)
    assert bodies_of(store) == [said("go"), begun, own]


def test_a_turn_that_was_found_open_ends_as_the_transcript_says() -> None:
    """A turn that failed for good, or a log that is called inconsistent, as somebody opened it while it was at work."""
    turn = [TurnOpened("t"), said("go"), TurnClosed("t", "completed")]
    store = MemoryStore()
    sync_session(store, imported(turn[:2]))
    store.append("s", [Draft(TurnClosed("t", "failed", LEFT_OPEN))])
    assert sync_session(store, imported(turn)).status == "continued"
    records = list(store.read("s"))
    assert ([one.status for one in turns_of(records)], inconsistencies(records)) == (["completed"], [])


@pytest.mark.parametrize(("detail", "status"), [({}, "continued"), ({"texts": [[1, [0], "#1: cut"]]}, "diverged")])
def test_an_export_is_gone_on_with_unless_its_words_name_records(detail: dict[str, Any], status: str) -> None:
    """A scrubbed session that the next import of its export does not know, or a summary that names other records."""
    bodies = [said("go"), said("on"), Decision("pin", 2, 2), Decision("mask", 1, 1, "masked", detail)]
    drafts = [Draft(body, TIME, encode_record(Record(n, TIME, body))) for n, body in enumerate(bodies, 1)]
    store = MemoryStore()
    sync_session(store, replace(imported([]), drafts=tuple(drafts[:1])))
    store.append("s", [Draft(Note(SCRUBBED), LATER)])
    assert sync_session(store, replace(imported([]), drafts=tuple(drafts))).status == status
    more = [said("on"), Decision("pin", 3, 3), Decision("mask", 1, 1, "masked", detail)]
    assert bodies_of(store) == [said("go"), Note(SCRUBBED), *(more if status == "continued" else [])]


def test_words_are_no_aside() -> None:
    """What was said in turnlog in the midst of what an agent said elsewhere, as if the two were one conversation."""
    for own in (said("and now?"), MessageRecord(Message("assistant", (Text("Yes."),)))):
        store = MemoryStore()
        sync_session(store, imported([said("go")]))
        store.append("s", [Draft(Note("mine"), LATER), Draft(own, LATER)])
        before = list(store.read("s"))
        assert sync_session(store, imported([said("go"), said("on")])) == Synced("s.2", "diverged", 2)
        assert list(store.read("s")) == before


def test_a_real_session_is_looked_at_while_it_grows(shared: Path, tmp_path: Path) -> None:
    """Every number in the log of a live session is wrong after the first time that somebody pinned something."""
    found = sorted((shared / "data" / "codex-entire").glob("*.jsonl"))[3]
    lines, chance = found.read_bytes().splitlines(keepends=True), random.Random(1)
    growing = tmp_path / found.name
    with closing(SqliteStore(tmp_path / "s.db")) as store:
        for size in [*sorted(chance.sample(range(20, len(lines)), 4)), len(lines)]:
            growing.write_bytes(b"".join(lines[:size]))
            [one] = read_file(growing)
            assert sync_session(store, one).status in ("new", "continued")
            with turnlog.open(one.session_id, store=store, settings=turnlog.Settings(source="interactive")) as session:
                session.note("looked", f"at line {size}")
                session.pin(next(record.n for record in session.history() if record.message is not None))
        records = list(store.read(one.session_id))
        drafts = [draft.body for draft in one.drafts]
        assert [r.body for r in records if isinstance(r.body, MessageRecord)] == [
            body for body in drafts if isinstance(body, MessageRecord)
        ]
        assert len(records) >= len(drafts) + 15
        assert [what for what in inconsistencies(records) if what.kind in ("ledger", "decision", "turn")] == []
