"""What every store promises of finding records by their kind. Part of `check_store`."""

from __future__ import annotations

from ..content import Message, Text, ToolResult
from ..errors import SessionNotFound
from ..log import Draft, Store
from ..records import Body, Decision, FileChange, MessageRecord, Note, TurnOpened
from ..stores.drafts import kind_of

__all__ = ["check_kinds"]

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
    try:
        list(store.of_kinds("u", ("note",)))
    except SessionNotFound:
        return
    raise AssertionError("of_kinds of no session did not raise SessionNotFound")
