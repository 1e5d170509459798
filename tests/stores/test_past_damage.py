"""Damage costs one record: reading, copying, searching and salvaging go on past it and say which it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from key_value_store import KeyValueStore
from store_parts import filled, said, texts

import turnlog
from turnlog.errors import CorruptRecord, SessionNotFound
from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord, Note
from turnlog.log.store import Draft, Problem, Store
from turnlog.stores import MemoryStore, PastDamage, copy_store, open_store, salvage

KEY = bytes(range(32))
KINDS = ("jsonl", "sqlite", "encrypted")


def opened(kind: str, folder: Path) -> Store:
    """The store of that kind in a folder."""
    url = f"files:{folder / 'store'}" if kind == "jsonl" else str(folder / "store.db")
    return open_store(url, key=KEY if kind == "encrypted" else None)


def places(kind: str, folder: Path) -> Iterator[tuple[Path, int, int]]:
    """Some bytes of the records of session `s`: the file, the place, and the record's number."""
    if kind == "jsonl":
        path, at = folder / "store" / "sessions" / "s.jsonl", 0
        for n, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
            ends = (0, 8, 80, len(line) - 2, len(line) - 1)
            yield from ((path, at + place, n) for place in sorted({*range(n, len(line), 61), *ends}))
            at += len(line)
        return
    path = folder / "store.db"
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("select id & 0xffffffff, checksum, cast(record as blob) from records where id < 2 << 32")
        found = rows.fetchall()
    data = path.read_bytes()
    for n, *values in found:
        for at, size in ((data.rfind(value), len(value)) for value in values):
            assert at > 0
            yield from ((path, place, n) for place in range(at + n, at + size, 61))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_byte_costs_one_record(kind: str, tmp_path: Path) -> None:
    """A flip that hides another record from a reader, that is not reported, or is reported of another record."""
    with closing(opened(kind, tmp_path)) as store:
        store.create("s")
        for n in range(1, 9):
            store.append("s", [said(f"says {n} " + "wörd " * n)])
        whole = {record.n: record.raw for record in store.read("s")}
    for file, place, n in places(kind, tmp_path):
        data = file.read_bytes()
        file.write_bytes(data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :])
        problems: list[Problem] = []
        with closing(opened(kind, tmp_path)) as store:
            for reverse in (False, True):
                past = PastDamage(store, problems.append)
                read = {record.n: record.raw for record in past.read("s", reverse=reverse)}
                assert whole.items() - read.items() <= {(n, whole[n])}, (place, n, reverse)
                assert read.items() <= whole.items(), (place, n)
            assert {(one.session, one.record) for one in problems} == {("s", n)}, (place, n, problems)
        file.write_bytes(data)


@pytest.fixture(params=KINDS)
def damaged(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store with session `s`, whose record 4 of nine is damaged, its fork `f` at 5, and the healthy session `t`."""
    kind = request.param
    with closing(opened(kind, tmp_path)) as store:
        filled(store, "s", 9)
        store.fork("s", "f", at=5)
        store.append("f", [said("6f")])
        filled(store, "t", 3)
        store.keep("t")
    file, place, _ = [found for found in places(kind, tmp_path) if found[2] == 4][-4 if kind == "jsonl" else -1]
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)
    store = opened(kind, tmp_path)
    yield store
    store.close()


def test_salvage_keeps_everything_else(damaged: Store) -> None:
    """A salvage that loses a healthy record, moves numbers, hides what is missing or changes the damaged session."""
    before = list(damaged.readable("s"))
    done = salvage(damaged, "s", "new")
    assert (done.session, done.kept, [one.record for one in done.damaged]) == ("new", 8, [4])
    read = list(damaged.read("new"))
    assert [record.n for record in read] == list(range(1, 10)) and isinstance(read[3].body, Note)
    assert read[3].body == Note("damaged", "record 4 could not be read")
    kept = [one for one in before if not isinstance(one, Problem)]
    assert [record.raw for record in read if record.n != 4] == [record.raw for record in kept]
    assert list(damaged.readable("s")) == before
    damaged.append("new", [said("goes on")])
    assert [one for one in damaged.verify("new") if one.session == "new"] == []


def test_salvage_of_a_fork_takes_what_it_shares(damaged: Store) -> None:
    """A fork of a damaged session that cannot be salvaged."""
    assert salvage(damaged, "f", "new").kept == 5
    assert texts(record for record in damaged.read("new") if record.message) == ["1", "2", "3", "5", "6f"]


def test_copying_goes_on(damaged: Store) -> None:
    """A damaged session that stops a copy before the healthy ones, or a second run that does not find its place."""
    met: list[Problem] = []
    target = MemoryStore()
    assert copy_store(damaged, target, tell=met.append) > 0
    assert {(one.session, one.record) for one in met} == {("s", 4), ("f", 4)}
    assert texts(target.read("t")) == ["1", "2", "3"] and target.inventory().kept == {"t"}
    assert [record.n for record in target.read("s") if isinstance(record.body, Note)] == [4]
    assert copy_store(damaged, target) == 0


def test_search_goes_on(damaged: Store) -> None:
    """A damaged record that hides other hits, or that is found as if it were whole."""
    met: list[Problem] = []
    hits = PastDamage(damaged, met.append).search("5", session="s")
    assert [hit.record for hit in hits] == [5]
    assert PastDamage(damaged, met.append).search("4", session="s") == []


def test_nothing_is_written_to_a_damaged_session(damaged: Store) -> None:
    """A damaged session opened as if it were whole; an error that does not name session, record and remedy."""
    with pytest.raises(CorruptRecord, match=r"'s'.*record 4.*`turnlog salvage s NEW`") as caught:
        turnlog.open("s", store=damaged, settings=turnlog.Settings())
    assert caught.value.record == 4
    with turnlog.open("t", store=damaged, settings=turnlog.Settings()) as session:
        session.user("still works")


def test_a_session_that_is_not_there_is_no_damage(damaged: Store) -> None:
    """A mistyped id that reads as an empty session."""
    with pytest.raises(SessionNotFound):
        list(PastDamage(damaged, print).read("none"))
    with pytest.raises(SessionNotFound):
        salvage(damaged, "none", "new")


@pytest.mark.parametrize("kind", ["minimal", *KINDS, "encrypted-files"])
def test_lost_records_are_known(kind: str, tmp_path: Path) -> None:
    """Records that were written and are gone from the end of a log: numbers that are given again, or a session that is
    called whole, or salvaged as if it were."""
    values: dict[str, bytes] = {}
    url = f"files:{tmp_path / 'store'}" if kind in ("jsonl", "encrypted-files") else str(tmp_path / "store.db")
    key = KEY if "encrypted" in kind else None

    def reopened() -> Store:
        return KeyValueStore(values) if kind == "minimal" else open_store(url, key=key)

    with closing(reopened()) as store:
        filled(store, "s", 3)
        for n in range(4, 9):
            store.append("s", [said(str(n))])
    _lose(tmp_path, values, 6)
    with closing(reopened()) as store:
        for _ in range(2):
            assert store.info("s").records == 8
            with pytest.raises(CorruptRecord, match=r"'s'.*record 7.*`turnlog salvage s NEW`"):
                turnlog.open("s", store=store, settings=turnlog.Settings())
        for session in (None, "s"):
            assert ("s", 7) in [(one.session, one.record) for one in store.verify(session)]
        done = salvage(store, "s", "new")
        assert (done.kept, [one.record for one in done.damaged if one.record]) == (6, [7, 8])
        assert texts(store.read("new")) == list("123456") and store.append("new", [said("on")])[0].n == 9
        met: list[Problem] = []
        copy_store(store, MemoryStore(), tell=met.append)
        assert {(one.session, one.record) for one in met} >= {("s", 7), ("s", 8)}


def _lose(folder: Path, values: dict[str, bytes], last: int) -> None:
    """Delete the records of session `s` after number `last` from whatever store there is."""
    for name in [name for name in values if name.startswith("row ") and int(name.split()[2]) > last]:
        del values[name]
    for log in folder.glob("store/sessions/s.jsonl"):
        log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:last]))
    for path in folder.glob("store.db"):
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("delete from records where id > (1 << 32 | ?)", (last,))


def test_a_lost_line_break_costs_nothing(tmp_path: Path) -> None:
    """Two records in one line of a JSON Lines store, or one in two, that cost a record beside them."""
    with closing(open_store(f"files:{tmp_path / 'store'}")) as store:
        store.create("s")
        fake = {"sum": "0" * 64, "messages": 1, "left": 0, "record": {"n": 2}}
        store.append("s", [said("1"), Draft(Note("quotes", "", fake)), said("3")])
        store.append("s", [Draft(MessageRecord(Message("user", (Text("4"),))))])
    path = tmp_path / "store" / "sessions" / "s.jsonl"
    data = path.read_bytes()
    for at in [i for i, byte in enumerate(data) if byte == 10]:
        path.write_bytes(data[:at] + b" " + data[at + 1 :])
        problems: list[Problem] = []
        with closing(open_store(f"files:{tmp_path / 'store'}", read_only=True)) as store:
            read = [record.n for record in PastDamage(store, problems.append).read("s")]
        assert len(read) >= 3 and set(range(1, 5)) - set(read) <= {one.record for one in problems}, (at, read, problems)
