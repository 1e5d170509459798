"""Damage on disk: `verify` finds it, reading stops at it, and nothing is written over it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from store_parts import filled, said, texts

from turnlog.errors import BlobMissing, CorruptRecord
from turnlog.log.messages import Media, Message, sha256_hex
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft, Problem
from turnlog.stores import SqliteStore, open_store

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store: session `s` of nine records, `f` forked from it at 5 and two longer."""
    path = tmp_path / "log.db"
    store = SqliteStore(path)
    filled(store, "s", 9)
    store.fork("s", "f", at=5)
    store.append("f", [said("6f"), said("7f")])
    store.close()
    return path


def _damage(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            assert db.execute(statement).rowcount != 0, statement


@pytest.fixture
def damaged(path: Path) -> Iterator[SqliteStore]:
    """The store with record 4 of session `s` changed."""
    _damage(path, "update records set record = replace(record, '\"4\"', '\"5\"') where id = (1 << 32 | 4)")
    store = SqliteStore(path)
    yield store
    store.close()


def _verify(path: Path, session: str | None = None) -> list[Problem]:
    store = SqliteStore(path)
    try:
        return store.verify(session)
    finally:
        store.close()


@pytest.mark.parametrize(
    ("statement", "record"),
    [
        ("update records set record = replace(record, '\"4\"', '\"x\"') where id = 4294967300", 4),
        ("update records set record = cast(record as blob) where id = 4294967300", 4),
        ("update records set checksum = zeroblob(32) where id = 4294967300", 4),
        ("update records set kind = 'note' where id = 4294967300", 4),
        ("update records set (checksum, record) = (select checksum, record from records where id = 4294967299) "
         "where id = 4294967300", 4),
        ("delete from records where id = 4294967300", 4),
        ("delete from records where id = 4294967297", 1),
        ("delete from records where id = 4294967305", 9),
        ("insert into records values (4294967306, 'note', zeroblob(32), '{}')", 10),
        ("insert into records values (8589934593, 'note', zeroblob(32), '{}')", 1),
        ("insert into records values (88 << 32, 'note', zeroblob(32), '{}')", 0),
    ],
)  # fmt: skip
def test_changed_records_are_found(path: Path, statement: str, record: int) -> None:
    """A record that was changed, replaced by another, lost or slipped in, unnoticed."""
    assert _verify(path) == []
    _damage(path, statement)
    assert record in {problem.record for problem in _verify(path)}


def test_exchanged_records_are_found(path: Path) -> None:
    """Two records in each other's place, with all that belongs to them, unnoticed."""
    _damage(
        path,
        "update records set id = 99 where id = 4294967300",
        "update records set id = 4294967300 where id = 4294967301",
        "update records set id = 4294967301 where id = 99",
    )
    assert {problem.record for problem in _verify(path)} >= {4, 5}


def test_a_shorter_log_is_found(path: Path) -> None:
    """The last records cut off and the session's count made to fit, unnoticed."""
    _damage(
        path,
        "delete from records where id in (4294967304, 4294967305)",
        "update sessions set records = 7, messages = 7 where id = 's'",
    )
    assert _verify(path) != []
    store = SqliteStore(path)
    with pytest.raises(CorruptRecord):
        list(store.read("s"))
    with pytest.raises(CorruptRecord):
        next(store.read("s", reverse=True))
    store.close()


@pytest.mark.parametrize(
    "change",
    ["id = 'other'", "id = null", "title = 'x'", "created = ''", "updated = updated || ' '", "records = 6",
     "records = 8", "records = -1", "records = 'x'", "messages = 1", "head = zeroblob(32)", "parent = 'x'",
     "parent_records = 4", "parent_records = 6", "base = null", "base = 2", "base = 77", "seal = zeroblob(32)",
     "seal = 'x'", "no = 50"],
)  # fmt: skip
def test_changed_session_rows_are_found(path: Path, change: str) -> None:
    """A session row that disagrees with its log or its seal, unnoticed."""
    _damage(path, f"update sessions set {change} where id = 'f'")
    assert _verify(path) != []


def test_verify_of_one_session_looks_at_what_it_shares(path: Path) -> None:
    """A fork called whole although a record that it shares is damaged, or blamed for one that it does not."""
    _damage(path, "delete from records where id = 4294967304")
    assert _verify(path, "f") == []
    assert _verify(path, "s") != []
    _damage(path, "update records set record = '{}' where id = 4294967298")
    assert [(problem.session, problem.record) for problem in _verify(path, "f")] == [("f", 2)]


def test_changed_tables_are_found(path: Path) -> None:
    """An index or a table that this version does not make, unnoticed."""
    _damage(path, "drop index sessions_base")
    assert _verify(path) != []


def test_reading_stops_at_damage(damaged: SqliteStore) -> None:
    """Damage that is skipped or yielded, or that hides the good records before it and after it."""
    for options, good in (
        ({}, ["1", "2", "3"]),
        ({"reverse": True}, ["9", "8", "7", "6", "5"]),
        ({"first": 2}, ["2", "3"]),
    ):
        seen = []
        with pytest.raises(CorruptRecord, match="record 4") as caught:
            seen += (text for record in damaged.read("s", **options) for text in texts([record]))  # type: ignore[arg-type]
        assert (seen, caught.value.record) == (good, 4)
    assert texts(damaged.read("s", first=5)) == ["5", "6", "7", "8", "9"]
    assert texts(damaged.read("s", last=3, reverse=True)) == ["3", "2", "1"]


def test_a_damaged_log_can_be_forked_before_the_damage(damaged: SqliteStore) -> None:
    """A conversation that nobody can go on with because one record of it is damaged."""
    damaged.fork("s", "rescued", at=3)
    damaged.append("rescued", [said("on")])
    assert texts(damaged.read("rescued")) == ["1", "2", "3", "on"]
    assert damaged.verify("rescued") == []


def test_a_missing_record_stops_reading(path: Path) -> None:
    """A hole in a log that is read as if nothing were missing."""
    _damage(path, "delete from records where id = 4294967300")
    store = SqliteStore(path)
    seen = []
    with pytest.raises(CorruptRecord, match=r"4 .* is missing") as caught:
        seen += (record.n for record in store.read("s"))
    assert (seen, caught.value.record) == ([1, 2, 3], 4)
    store.close()


def test_reading_does_not_end_quietly_where_the_file_is_damaged(tmp_path: Path) -> None:
    """A log that seems to end in its midst, told as whole: SQLite names no record, and who reads while others append
    took what it could not read for records that were rewritten meanwhile, and had been read."""
    path = tmp_path / "log.db"
    with closing(SqliteStore(path)) as store:
        store.create("s")
        store.append("s", [said(f"{n} " * 400) for n in range(400)])
    data = path.read_bytes()
    size = int.from_bytes(data[16:18], "big")
    page = data.index(b"300 300 300") // size * size
    path.write_bytes(data[:page] + b"\xff" * 8 + data[page + 8 :])
    with closing(SqliteStore(path)) as store:
        reader = store.read("s")
        read = [next(reader).n]
        store.append("s", [said("more")])
        with pytest.raises(CorruptRecord, match="malformed"):
            read += [record.n for record in reader]
        assert read == list(range(1, read[-1] + 1))


@pytest.mark.slow
@pytest.mark.parametrize("key", [None, bytes(32)], ids=["plain", "encrypted"])
def test_damaged_pages_are_told_by_record(tmp_path: Path, key: bytes | None) -> None:
    """Damage that hits several records at once, and of which `verify` says no more than that there is some; a healthy
    record or session that is blamed for its neighbour."""
    path = tmp_path / "log.db"
    with closing(open_store(path, key=key)) as store:
        for name in ("s", "t"):
            store.create(name)
            store.append(name, [said(f"{n} " * 300) for n in range(90)])
    data = path.read_bytes()
    size, met = int.from_bytes(data[16:18], "big"), set[tuple[str, int]]()
    for page in range(5, len(data) // size, 9):
        path.write_bytes(data[: page * size] + bytes(2 * size) + data[(page + 2) * size :])
        with closing(open_store(path, key=key, read_only=True)) as store:
            each = {name: [one for one in store.readable(name) if isinstance(one, Problem)] for name in ("s", "t")}
            lost = {(name, one.record) for name, found in each.items() for one in found}
            problems = store.verify()
            assert {(one.session, one.record) for one in problems if one.record} == lost, page
            assert all(one.record for one in problems if one.session), page
            for name, found in each.items():
                assert {one.record for one in store.verify(name) if one.session} == {one.record for one in found}, page
        met |= lost
    assert {name for name, _ in met} == {"s", "t"}


def test_nothing_is_written_over_a_damaged_row(path: Path) -> None:
    """An append or a new title that gives a damaged session row a good seal, and so hides the damage."""
    _damage(path, "update sessions set records = 4 where id = 's'")
    store = SqliteStore(path)
    with pytest.raises(CorruptRecord, match="turnlog salvage s NEW"):
        store.append("s", [said("x")])
    with pytest.raises(CorruptRecord, match="turnlog salvage s NEW"):
        store.rename("s", "x")
    assert store.append("f", [said("x")])[0].n == 8
    store.close()


@pytest.mark.parametrize("size", [100, 100_000])
def test_damaged_blobs(path: Path, size: int) -> None:
    """Media whose bytes changed or vanished, handed out or unnoticed; and not healed by putting them again."""
    data = b"x" * size
    name = sha256_hex(data)
    store = SqliteStore(path)
    store.put_blob(data)
    store.append("s", [Draft(MessageRecord(Message("user", (Media("image", sha256=name),))))])
    file = path.with_name("log.db-blobs") / name
    assert file.exists() == (size > 1000)
    if file.exists():
        file.write_bytes(data[:-1] + b"y")
    else:
        _damage(path, f"update blobs set data = cast('y' as blob) where sha256 = '{name}'")
    with pytest.raises(BlobMissing, match=f"{name}.* is damaged"):
        store.get_blob(name)
    for session in (None, "s"):
        assert store.verify(session) == [Problem("s", 10, f"it needs blobs that are damaged: {name}", (name,))]
    assert store.verify("f") == []
    store.put_blob(data)
    assert (store.get_blob(name), store.verify()) == (data, [])
    if file.exists():
        file.unlink()
    else:
        _damage(path, "delete from blobs")
    with pytest.raises(BlobMissing):
        store.get_blob(name)
    assert [(problem.session, problem.record) for problem in store.verify()] == [("s", 10)]
    store.close()


def test_a_file_cut_short_is_an_error_of_ours(path: Path) -> None:
    """A file that SQLite cannot read, told in an error that callers do not expect or hidden from verify."""
    whole = path.read_bytes()
    for kept in (100, 4096, 8192, 12288):
        path.write_bytes(whole[:kept])
        try:
            found = _verify(path)
        except CorruptRecord:
            continue
        assert found
