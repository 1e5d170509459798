"""What counts however far back it stands is found without reading the log, and is the same as reading it would find."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from store_parts import said

from turnlog.log.messages import Message, Text
from turnlog.log.records import Configuration, Decision, MessageRecord, Note
from turnlog.log.store import Draft, Store
from turnlog.stores import FilesStore, MemoryStore, SqliteStore

STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda path: MemoryStore(),
    "sqlite": lambda path: SqliteStore(path / "s.db"),
    "files": lambda path: FilesStore(path / "folder"),
}
SPACED = b'{"v": 1,\n "n": 6, "t": "2026", "body": {"kind": "decision", "action": "clear", "first": 1, "last": 2}}'
LANDMARKS = ("configuration", "decision", "system")


@pytest.mark.parametrize("kind", STORES)
def test_landmarks_are_those_that_reading_finds(kind: str, tmp_path: Path) -> None:
    """A decision that a session does not see when it opens: spelled otherwise, in base64, or shared by a fork."""
    store = STORES[kind](tmp_path)
    store.create("a")
    system = Draft(MessageRecord(Message("system", (Text("Be brief."),))))
    store.append("a", [system, said('a "decision" of yours'), Draft(Configuration()), Draft(Note("system")), said("x")])
    store.append("a", [Draft(Decision("clear", 1, 2), raw=SPACED), said("y"), Draft(Decision("pin", 2, 2))])
    store.fork("a", "b", at=7)
    store.append("b", [said("z"), system])
    for session, wanted in {"a": [1, 3, 6, 8], "b": [1, 3, 6, 9]}.items():
        for reverse in (False, True):
            found = [record.n for record in store.of_kinds(session, LANDMARKS, reverse=reverse)]
            assert found == (wanted[::-1] if reverse else wanted)
    store.close()
