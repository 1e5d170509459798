"""What every store promises of finding records by what they are. Part of `check_store`."""

from __future__ import annotations

from ..errors import SessionNotFound
from ..log.messages import Message, Text, ToolResult
from ..log.records import Body, Configuration, Decision, FileChange, MessageRecord, Note, SummaryRecord, TurnOpened
from ..log.store import Draft, Store, is_landmark
from ..stores.records import kind_of
from .probing import raises

_SYSTEM = MessageRecord(Message("system", (Text("Be brief."),)))
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


def check_landmarks(store: Store) -> None:
    """What matters however far back it stands is found, all of it and in order, in forks too."""
    store.create("s")
    store.append("s", [Draft(body) for body in (_SYSTEM, *_BODIES, Configuration("p", "m"), _SYSTEM)])
    store.fork("s", "t", at=store.info("s").records - 1)
    store.append("t", [Draft(_BODIES[1]), Draft(SummaryRecord("k", "claimed"))])
    for session in ("s", "t"):
        wanted = [record.raw for record in store.read(session) if is_landmark(record)]
        found = [record.raw for record in store.landmarks(session)]
        assert found == wanted, f"landmarks of {session!r} are not those in the log"
        *known, last = [record.n for record in store.landmarks(session)]
        rest = [record.n for record in store.landmarks(session, known=frozenset(known))]
        assert rest == [last], f"landmarks of {session!r} that are known are read again"
    raises(SessionNotFound, "landmarks of no session", lambda: list(store.landmarks("u")))


def check_kinds(store: Store) -> None:
    """Records of a kind are found, in order, in forks too; a word in a text is no kind."""
    store.create("s")
    store.append("s", [Draft(body) for body in (*_BODIES, *_BODIES)])
    store.fork("s", "t", at=13)
    store.append("t", [Draft(FileChange("mine", "created"))])
    for session in ("s", "t"):
        for kinds in (("file_change",), ("turn_opened", "file_change"), ("message",), ("note", "usage"), ()):
            wanted = [record.raw for record in store.read(session) if kind_of(record.body) in kinds]
            found = [record.raw for record in store.of_kinds(session, kinds)]
            assert found == wanted, f"of_kinds of {kinds} gave {len(found)} records, not {len(wanted)}"
        for first in (0, 5, 13, 14, 18, 19):
            late = [record.n for record in store.read(session, first=first) if kind_of(record.body) == "file_change"]
            found_late = [record.n for record in store.of_kinds(session, ("file_change",), first=first)]
            assert found_late == late, f"of_kinds from {first} on gave records {found_late}, not {late}"
    raises(SessionNotFound, "of_kinds of no session", lambda: list(store.of_kinds("u", ("note",))))
