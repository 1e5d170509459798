"""Sessions that share a store, in whatever order they are gone on with, forked, taken back, deleted and cleaned up:
what stays is what was said, and nothing else is left."""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import turnlog
from agents import CHAT, says
from turnlog.errors import BudgetError, InputError
from turnlog.log.messages import Message, Text
from turnlog.log.store import Store
from turnlog.session.collect import collect
from turnlog.session.session import Session
from turnlog.stores import MemoryStore, open_store
from turnlog.stores.records import blob_names
from turnlog.stores.retention import Limits

EXAMPLES = max(10, settings.default.max_examples // 7) if settings.default else 14
WAYS = (
    *("say", "say", "show", "show", "rewind", "back and forth"),
    *("clear", "compact", "undo", "pin", "unpin"),
)
FIRST = st.sampled_from(("s1", "s2", "s3", "f4"))
LATER = timedelta(days=1)


class Keeping(RuleBasedStateMachine):
    """Some sessions of one store. What each is to hold is told by `logs`, the bytes of its records, one by one."""

    kind = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.store: Store = self.opened_store()
        self.sessions: dict[str, Session] = {}
        """Those that are open."""
        self.logs: dict[str, list[bytes | None]] = {}
        self.parents: dict[str, str] = {}
        self.shared: dict[str, int] = {}
        self.kept: set[str] = set()
        self.count = 0

    def opened_store(self) -> Store:
        prefix, _, name = self.kind.rpartition(":")
        return MemoryStore() if name == "memory" else open_store(f"{prefix}{':' * bool(prefix)}{self.folder}/{name}")

    def teardown(self) -> None:
        """When all is deleted, nothing is left."""
        for name in list(self.sessions):
            self.close(name)
        for name in list(self.logs):
            self.store.delete(name)
        self.store.sweep(grace=0)
        inventory = self.store.inventory()
        assert (inventory.blobs, [piece for piece in inventory.pieces if piece.size]) == ({}, [])
        assert (self.store.verify(), self.store.sessions()) == ([], [])
        self.store.close()
        shutil.rmtree(self.folder)

    @initialize(at=st.integers(1, 2), left=st.sets(FIRST), kept=st.sets(FIRST))
    def some(self, at: int, left: set[str], kept: set[str]) -> None:
        """Three sessions in which something was said, and a fork; those that are left are in use no longer."""
        for _ in range(3):
            self.begin()
        self.took("f4", self.sessions["s1"].fork("f4", at=at))
        self.parents["f4"], self.shared["f4"], self.count = "s1", at, 4
        for name in sorted(kept):
            self.store.keep(name)
        self.kept = set(kept)
        for name in sorted(left):
            self.say(self.sessions[name], media=True)
            self.logs[name] = raws(self.sessions[name])
            self.close(name)

    # -- sessions come and go --------------------------------------------------------------------

    @precondition(lambda self: len(self.logs) < 6)
    @rule()
    def begin(self) -> None:
        name = f"s{self.next()}"
        self.took(name, turnlog.open(name, store=self.store, target=CHAT, budget=1_500))

    @precondition(lambda self: self.sessions and len(self.logs) < 8)
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        """A fork has the first records of its parent, byte for byte, and an end of its own."""
        name = data.draw(st.sampled_from(sorted(self.sessions)))
        at = data.draw(st.integers(1, len(self.logs[name])))
        made = f"f{self.next()}"
        self.took(made, self.sessions[name].fork(made, at=at))
        assert self.logs[made][:at] == self.logs[name][:at]
        self.parents[made], self.shared[made] = name, at

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), again=st.booleans())
    def leave(self, data: st.DataObject, again: bool) -> None:
        """Opened again, it makes the request that it made."""
        name = data.draw(st.sampled_from(sorted(self.sessions)))
        before = attempt(self.sessions[name])
        self.logs[name] = raws(self.sessions[name])
        self.close(name)
        if again:
            self.took(name, turnlog.open(name, store=self.store))
            assert attempt(self.sessions[name]) == before
            self.logs[name] = raws(self.sessions[name])

    @precondition(lambda self: self.logs.keys() - self.sessions.keys())
    @rule(data=st.data())
    def open(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.logs.keys() - self.sessions.keys())))
        log = self.logs[name]
        self.took(name, turnlog.open(name, store=self.store))
        assert self.logs[name][: len(log)] == log

    @precondition(lambda self: not self.sessions)
    @rule()
    def open_the_store_again(self) -> None:
        if not isinstance(self.store, MemoryStore):
            self.store.close()
            self.store = self.opened_store()

    # -- what is said and taken back -------------------------------------------------------------

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), how=st.sampled_from(WAYS))
    def go_on(self, data: st.DataObject, how: str) -> None:
        """What is refused changes nothing; a rewind that is undone at once neither."""
        session = self.sessions[data.draw(st.sampled_from(sorted(self.sessions)))]
        before, messages = attempt(session), [record.n for record in session.history() if record.message is not None]
        try:
            match how:
                case "say" | "show":
                    self.say(session, media=how == "show")
                case "rewind" | "back and forth":
                    session.rewind(turns=data.draw(st.integers(1, 2)))
                    if how == "back and forth":
                        session.undo("rewind")
                        assert attempt(session) == before
                case "compact":
                    session.compact(keep=1)
                case "pin" | "unpin" if messages:
                    getattr(session, how)(data.draw(st.sampled_from(messages)))
                case "clear" | "undo":
                    getattr(session, how)()
        except (InputError, BudgetError):
            assert attempt(session) == before
        log = raws(session)
        assert log[: len(self.logs[session.id])] == self.logs[session.id]
        self.logs[session.id] = log

    def say(self, session: Session, *, media: bool) -> None:
        parts = [Text(f"word {self.next()} " * (60 if self.count % 3 else 1))]
        more = [session.media(bytes([self.count % 5]) * 50_000, "application/pdf")] if media else []
        session.add(Message("user", (*parts, *more)))
        session.receive(says(f"answer {self.next()}"))

    # -- cleaning up -----------------------------------------------------------------------------

    @precondition(lambda self: self.logs)
    @rule(data=st.data(), kept=st.booleans())
    def keep(self, data: st.DataObject, kept: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.logs)))
        self.store.keep(name, kept=kept)
        (self.kept.add if kept else self.kept.discard)(name)

    @precondition(lambda self: self.logs.keys() - self.sessions.keys())
    @rule(data=st.data(), how=st.sampled_from(("delete", "pack")))
    def delete_or_pack(self, data: st.DataObject, how: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.logs.keys() - self.sessions.keys())))
        getattr(self.store, how)(name)
        if how == "delete":
            self.went(name)

    @rule(most=st.none() | st.integers(1, 3), old=st.booleans(), packs=st.booleans())
    def collect(self, most: int | None, old: bool, packs: bool) -> None:
        """Those go that may, and no more of them than a limit asks for."""
        age = None if not old else timedelta(hours=1)
        limits = Limits(age, None, most, timedelta(hours=1) if packs else None)
        if not limits:
            return
        order = [info.id for info in sorted(self.store.sessions(), key=lambda info: (info.updated, info.id))]
        look = collect(self.store, limits, now=datetime.now(UTC) + LATER, dry_run=True)
        done = collect(self.store, limits, now=datetime.now(UTC) + LATER, grace=0)
        gone = [one.session for one in done.gone]
        assert gone == [one.session for one in look.gone]
        assert set(gone) == set(self.expected(order, most, old=old))
        for name in gone:
            self.went(name)

    def expected(self, order: list[str], most: int | None, *, old: bool) -> list[str]:
        """What goes, by the words of docs/retention.md: the oldest that is not in use, not kept, and that no session
        that stays was forked from, also through deleted ones between the two."""
        left, gone = list(order), []

        def may_go(name: str) -> bool:
            reads = any(name in self.ancestors(other) for other in left)
            return name not in self.sessions and name not in self.kept and not reads

        while old or (most is not None and len(left) > most):
            found = next(filter(may_go, left), None)
            if found is None:
                break
            left.remove(found)
            gone.append(found)
        return gone

    def ancestors(self, name: str) -> list[str]:
        """The sessions that own records that this one reads."""
        found, shared = [], len(self.logs[name])
        while name in self.parents:
            shared = min(shared, self.shared[name])
            name = self.parents[name]
            if shared > self.shared.get(name, 0):
                found.append(name)
        return found

    # -- what must hold --------------------------------------------------------------------------

    @invariant()
    def every_session_is_what_was_said(self) -> None:
        assert {info.id for info in self.store.sessions()} == self.logs.keys()
        for name, log in self.logs.items():
            records = list(self.store.read(name))
            assert [record.raw for record in records] == log
            for blob in {blob for record in records for blob in blob_names(record)}:
                assert self.store.get_blob(blob)
        inventory = self.store.inventory()
        assert inventory.kept == self.kept & self.logs.keys()
        assert inventory.in_use is None or inventory.in_use == self.sessions.keys()

    # -- inside ----------------------------------------------------------------------------------

    def took(self, name: str, session: Session) -> None:
        self.sessions[name] = session
        self.logs[name] = raws(session)

    def close(self, name: str) -> None:
        self.sessions.pop(name).close()

    def went(self, name: str) -> None:
        del self.logs[name]
        self.kept.discard(name)

    def next(self) -> int:
        self.count += 1
        return self.count


def raws(session: Session) -> list[bytes | None]:
    return [record.raw for record in session.history()]


def attempt(session: Session) -> bytes | None:
    """The bytes of the next request, None if not even the least fits the budget."""
    try:
        return session.request().json()
    except BudgetError:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "s.db", "files:logs"])
def test_no_order_of_keeping_and_deleting_loses_what_stays(kind: str) -> None:
    """A record, a file or a fork lost because another session went; or what nobody needs, left in the store."""
    machine = type("Kept", (Keeping,), {"kind": kind})
    run_state_machine_as_test(machine, settings=settings(max_examples=EXAMPLES, stateful_step_count=15))
