"""Checks of `of_kinds`, which finds records by kind. Part of `check_store`."""

from __future__ import annotations

from ..errors import SessionNotFound
from ..log.messages import Message, Text, ToolResult
from ..log.records import Body, Decision, FileChange, MessageRecord, Note, TurnOpened
from ..log.store import Draft, Store
from ..stores.records import kind_of
from .probing import raises

_BODIES: tuple[Body, ...] = (
    TurnOpened("t1"),
    MessageRecord(Message("user", (Text('a "file_change", a "turn_opened"'), Text("lone \ud83d surrogate")))),
    MessageRecord(Message("system", (Text('"message"'),))),
    FileChange("a", "created"),
    FileChange("b \ud83d", "renamed", old_path="a"),
    MessageRecord(Message("user", (ToolResult("c1"),))),
    Decision("mask", 1, 2, detail={"limit": float("inf"), "kind": "file_change"}),
    Note("file_change"),
)
_QUERIES: tuple[tuple[str, ...], ...] = (
    ("file_change",),
    ("turn_opened", "file_change"),
    ("message",),
    ("system",),
    ("system", "decision", "configuration"),
    ("note", "usage"),
    (),
)


def check_kinds(store: Store) -> None:
    """Records of a kind are found, in order, also in forks; a text that contains the name of a kind does not count."""
    store.create("s")
    store.append("s", [Draft(body) for body in (*_BODIES, *_BODIES)])
    store.fork("s", "t", at=13)
    store.append("t", [Draft(FileChange("mine", "created"))])
    for session in ("s", "t"):
        for kinds in _QUERIES:
            wanted = [record.raw for record in store.read(session) if not _words_of(record.body).isdisjoint(kinds)]
            found = [record.raw for record in store.of_kinds(session, kinds)]
            assert found == wanted, f"of_kinds of {kinds} gave {len(found)} records, not {len(wanted)}"
            back = [record.raw for record in store.of_kinds(session, kinds, reverse=True)]
            assert back == wanted[::-1], f"of_kinds of {kinds} backwards gave other records than in order"
        for first in (0, 5, 13, 14, 18, 19):
            late = [record.n for record in store.read(session, first=first) if kind_of(record.body) == "file_change"]
            found_late = [record.n for record in store.of_kinds(session, ("file_change",), first=first)]
            assert found_late == late, f"of_kinds from {first} on gave records {found_late}, not {late}"
            back_to = [record.n for record in store.of_kinds(session, ("file_change",), first=first, reverse=True)]
            assert back_to == late[::-1], f"of_kinds back to {first} gave records {back_to}, not {late[::-1]}"
    raises(SessionNotFound, "of_kinds of an unknown session", lambda: list(store.of_kinds("u", ("note",))))


def _words_of(body: Body) -> set[str]:
    is_system = isinstance(body, MessageRecord) and body.message.role == "system"
    return {kind_of(body), "system" if is_system else ""}
