"""A call that Ctrl-C or a store that fails ends in its midst: what follows is as if it were done, or never begun."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import turnlog
from turnlog import Session, StoreError, target
from turnlog.log.records import Decision, Note, Record
from turnlog.log.store import Draft
from turnlog.stores import MemoryStore, SqliteStore

CHAT = target("openai-chat", "gpt-4o")
SOURCES = str(Path(turnlog.__file__).parent)


def interrupted(at: int, act: Callable[[], object]) -> bool:
    """Do something and press Ctrl-C behind the `at`-th call of a function that is written in C: there Python looks
    whether somebody has, and there it finds out what came while it waited. Whether there was such a call."""
    seen = 0

    def look(frame: FrameType, event: str, arg: object) -> None:
        nonlocal seen
        if event == "c_return" and frame.f_code.co_filename.startswith(SOURCES):
            seen += 1
            if seen == at:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        act()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return seen >= at


@pytest.mark.parametrize("act", [lambda session: session.user("A word"), Session.request], ids=("user", "request"))
def test_ctrl_c_anywhere(act: Callable[[Session], object]) -> None:
    """A message that is in the log and in no request until the session is opened again, one that is sent twice, or a
    store that takes nothing any more: a program asks whether to go on, and does."""
    for at in count(1):
        store = MemoryStore()
        with turnlog.open("s", target=CHAT, store=store, settings=turnlog.Settings(redact=False)) as session:
            session.user("Go")
            session.assistant("Gone")
            session.user("On")
            if not interrupted(at, lambda: act(session)):
                return
            session.user("What now?")
            made = session.request().json()
            assert made == Session(store, store.info("s")).request().json(), at
            assert (made.count(b"What now?"), store.verify()) == (1, [])


class Failing(MemoryStore):
    """Fails to read records, once."""

    def __init__(self) -> None:
        super().__init__()
        self.fails = False

    def read(self, session_id: str, **where: Any) -> Iterator[Record]:
        """See `RecordStore.read`."""
        if self.fails and "reverse" in where:
            self.fails = False
            raise StoreError("too many open files")
        return super().read(session_id, **where)


def test_a_store_that_fails_while_a_turn_is_left() -> None:
    """A session in which no turn can begin any more, as one is open that nobody is in: what it is closed with is read
    from the log, and that failed once."""

    class Unreadable(MemoryStore):
        """Fails to read records while `fails`."""

        fails = False

        def read(self, session_id: str, **where: Any) -> Iterator[Record]:
            if self.fails:
                raise StoreError("too many open files")
            return super().read(session_id, **where)

    store = Unreadable()
    with turnlog.open("s", target=CHAT, store=store, settings=turnlog.Settings(redact=False)) as session:
        with pytest.raises(StoreError, match="too many"), session.turn("go"):
            store.fails = True
        store.fails = False
        with session.turn("on"):
            pass
        assert [turn.status for turn in session.log.turns()] == ["failed", "completed"]


def test_a_store_that_fails_while_the_log_is_read_again() -> None:
    """A request that shows what another process cleared and lacks what it said, once the disk can be read again."""
    store = Failing()
    with turnlog.open("s", target=CHAT, store=store, settings=turnlog.Settings(redact=False)) as session:
        session.user("The old task")
        last = session.history()[-1].n
        store.append("s", [Draft(Decision("clear", first=1, last=last, why="by another process"))])
        store.fails = True
        with pytest.raises(StoreError, match="too many open files"):
            session.request()
        session.user("The new task")
        assert [message["content"] for message in session.request().body["messages"]] == ["The new task"]


def test_ctrl_c_while_a_store_is_written_to(tmp_path: Path) -> None:
    """A transaction that nobody ends, begun when another process had done with its own: no process can write to the
    store any more until this one ends."""
    store, other = SqliteStore(tmp_path / "s.db"), SqliteStore(tmp_path / "s.db")
    store.create("s")
    draft = Draft(Note("words"))
    for at in count(1):
        if not interrupted(at, lambda: store.append("s", [draft])):
            break
        (record,) = other.append("s", [draft])
        assert store.append("s", [draft])[0].n == record.n + 1, at
    assert store.verify() == []
    store.close()
    other.close()


def test_ctrl_c_while_a_log_is_folded(tmp_path: Path) -> None:
    """A store that waits for a second only from then on, where another process may write for longer: an append that is
    refused."""
    store = SqliteStore(tmp_path / "s.db")

    def waits() -> list[tuple[int]]:
        with store._database.reading() as db:
            return db.execute("pragma busy_timeout").fetchall()

    usual = waits()
    for at in count(1):
        if not interrupted(at, store._database.fold_log):
            break
        assert waits() == usual, at
    store.close()
