"""`collect` packs what is old, and what it deletes and sweeps is right on packed and encrypted stores."""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from turnlog import open as open_session
from turnlog.config.settings import Settings
from turnlog.errors import BlobMissing, CorruptRecord, InputError
from turnlog.log.messages import Media, Message
from turnlog.log.records import MessageRecord, Note
from turnlog.log.store import Draft, Store
from turnlog.redaction import RedactingStore, Redactor
from turnlog.session.collect import collect
from turnlog.stores import SqliteStore, open_store
from turnlog.stores.retention import Limits, is_over

NOW = datetime(2026, 6, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)
KEY = b"k" * 32
STORES: dict[str, Callable[[Path], Store]] = {
    "sqlite": lambda path: open_store(path / "s.db"),
    "files": lambda path: open_store(f"files:{path / 'folder'}"),
    "sealed-sqlite": lambda path: open_store(path / "s.db", key=KEY),
    "sealed-files": lambda path: open_store(f"files:{path / 'folder'}", key=KEY),
    "redacting": lambda path: RedactingStore(open_store(path / "s.db", key=KEY), Redactor()),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store of each kind that can pack."""
    with closing(STORES[request.param](tmp_path)) as made:
        yield made


def add(store: Store, name: str, *, days: float = 0, records: int = 50, blobs: tuple[str, ...] = ()) -> None:
    """Say something in a session, made if it is not there, so many days ago."""
    time = (NOW - days * DAY).isoformat()
    if name not in {info.id for info in store.sessions()}:
        store.create(name, created=time)
    parts = tuple(Media("image", sha256=blob) for blob in blobs)
    drafts = [Draft(Note("x", f"{name} {n} " + "the same words again " * 20), time) for n in range(records)]
    store.append(name, [*drafts, Draft(MessageRecord(Message("user", parts)), time)] if parts else drafts)


def said(store: Store, name: str) -> list[str]:
    """The texts of a session's notes."""
    return [record.body.text for record in store.read(name) if isinstance(record.body, Note)]


@pytest.mark.slow
def test_what_is_old_is_packed(store: Store) -> None:
    """Sessions that are packed though they are young or in use, or that are old and are not; a listing that changes
    something; a second time that does it again."""
    for n in range(4):
        add(store, f"s{n}", days=n)
    before = {name: said(store, name) for name in store.unpacked()}
    used = store.used()
    limits = Limits(compress_after=DAY * 1.5)
    hold = store.hold("s2")
    look = collect(store, limits, now=NOW, dry_run=True)
    assert [(one.session, one.before > 0, one.after) for one in look.compressed] == [("s3", True, 0)]
    assert (store.unpacked(), store.used(), look.gone) == (frozenset(before), used, ())
    done = collect(store, limits, now=NOW)
    assert [(one.session, 0 < one.after < one.before) for one in done.compressed] == [("s3", True)]
    assert (store.unpacked(), done.gone) == ({"s0", "s1", "s2"}, ())
    assert hold is not None
    hold.close()
    assert is_over(store, limits, NOW)
    assert [one.session for one in collect(store, limits, now=NOW).compressed] == ["s2"]
    assert not is_over(store, limits, NOW)
    assert collect(store, limits, now=NOW).compressed == ()
    assert {name: said(store, name) for name in before} == before
    assert store.used() < used * 0.8
    assert (store.verify(), [hit.session for hit in store.search('"s3 7"', limit=1)]) == ([], ["s3"])  # type: ignore[attr-defined]
    store.append("s3", [Draft(Note("x", "more"))])
    assert store.unpacked() == {"s0", "s1", "s3"}
    assert said(store, "s3") == [*before["s3"], "more"]


@pytest.mark.slow
def test_what_is_packed_need_not_go_for_its_size(store: Store) -> None:
    """A session that is deleted for room that packing had given, or packed before it is deleted for its age."""
    for n in range(4):
        add(store, f"s{n}", days=n, records=500)
    limits = Limits(max_age=DAY * 2.5, max_disk=int(store.used() * 0.7), compress_after=DAY * 0.5)
    look = collect(store, limits, now=NOW, dry_run=True)
    assert {one.session for one in look.compressed} <= {"s1", "s2"}
    done = collect(store, limits, now=NOW)
    assert [gone.session for gone in done.gone] == ["s3"]
    assert [one.session for one in done.compressed] == ["s2", "s1"]
    assert (done.over, done.after <= (limits.max_disk or 0), store.verify()) == ((), True, [])


def test_nothing_is_swept_that_a_packed_record_refers_to(store: Store) -> None:
    """A picture that only a packed, encrypted or both kind of record names, and that goes with the next `gc`."""
    small, large, free = (store.put_blob(data) for data in (b"small", b"large" * 30_000, b"nobody's"))
    add(store, "a", days=9, blobs=(small, large))
    store.fork("a", "f", at=store.info("a").records)
    collect(store, Limits(compress_after=DAY), now=NOW, grace=0)
    assert "a" not in store.unpacked()
    sizes = sorted(store.inventory().blobs.values())
    assert sizes == [len(b"small"), len(b"large" * 30_000)]
    with pytest.raises(BlobMissing):
        store.get_blob(free)
    assert collect(store, Limits(max_age=DAY * 8, compress_after=DAY), now=NOW, grace=0).gone == ()  # the fork reads it
    assert (store.get_blob(small), len(store.get_blob(large)), store.verify()) == (b"small", 150_000, [])
    store.delete("a")
    assert store.sweep(grace=0).removed == 0
    assert (store.get_blob(small), store.verify()) == (b"small", [])
    store.delete("f")
    swept = store.sweep(grace=0)
    assert (swept.removed, swept.size) == (2, 150_005)


def test_kept_sessions_are_packed_and_stay(store: Store) -> None:
    """A session that is kept and goes because it was packed, or encrypted; a mark that packing takes away."""
    add(store, "a", days=9)
    add(store, "b", days=9)
    store.keep("a")
    done = collect(store, Limits(compress_after=DAY), now=NOW)
    assert {one.session for one in done.compressed} == {"a", "b"}
    done = collect(store, Limits(max_age=DAY), now=NOW)
    assert ([gone.session for gone in done.gone], [info.id for info in store.sessions()]) == (["b"], ["a"])
    assert store.inventory().kept == {"a"}
    assert store.verify() == []


def test_a_damaged_pack_keeps_its_media(tmp_path: Path) -> None:
    """A pack that cannot be read any more, so that nobody finds what its records refer to, and it is swept."""
    with closing(SqliteStore(tmp_path / "s.db")) as store:
        blob = store.put_blob(b"small")
        add(store, "a", days=9, blobs=(blob,))
        store.pack("a")
        with store._database.writing() as db:
            db.execute("update packs set data = substr(data, 1, length(data) - 9) || zeroblob(9)")
    with closing(SqliteStore(tmp_path / "s.db")) as store:
        for act in (store.inventory, lambda: store.sweep(grace=0)):
            with pytest.raises(CorruptRecord, match="`turnlog verify` names it"):
                act()
        assert store.get_blob(blob) == b"small"
        assert store.verify() != []


@pytest.mark.parametrize("key", [None, KEY])
def test_a_damaged_session_keeps_no_other_from_being_packed(key: bytes | None, tmp_path: Path) -> None:
    """One record that cannot be read, and `gc` ends there, or says nothing of it; or damage that packing hides."""
    with closing(open_store(tmp_path / "s.db", key=key)) as store:
        for name in "abc":
            add(store, name, days=9)
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as db:
        db.execute("update records set record = replace(record, 'a', 'b') where id = (1 << 32 | 7)")
    with closing(open_store(tmp_path / "s.db", key=key)) as store:
        done = collect(store, Limits(compress_after=DAY), now=NOW)
        left = [one.session for one in done.spared if "not packed: " in one.why]  # where packing looks into records
        expected = (["b", "c"], ["a"]) if key else (["a", "b", "c"], [])
        assert (sorted(one.session for one in done.compressed), left) == expected
        assert {(problem.session, problem.record) for problem in store.verify()} == {("a", 7)}


def test_without_the_package_only_gc_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions that cannot be opened, or are deleted first, because the package that packs them is not there."""
    monkeypatch.setitem(sys.modules, "zstandard", None)
    usual = Settings(compress_after="1d", max_age="1d", gc_on_open=True)  # type: ignore[arg-type]
    with closing(open_store(tmp_path / "s.db")) as store:
        add(store, "old", days=9)
        add(store, "new")
        with pytest.raises(InputError, match=r"pip install '\.\[zstd\]'"):
            collect(store, Limits(max_age=DAY * 10, compress_after=DAY), now=NOW)
        assert len(store.sessions()) == 2
    with open_session("mine", store=tmp_path / "s.db", settings=usual) as session:
        session.user("It works.")


def test_opening_packs_as_gc_does(tmp_path: Path) -> None:
    """`gc_on_open` that leaves old sessions as they are, or packs the one that was opened just now."""
    usual = Settings(compress_after="1d", gc_on_open=True, key="file:" + str(tmp_path / "key"))  # type: ignore[arg-type]
    (tmp_path / "key").write_bytes(KEY)
    with closing(open_store(tmp_path / "s.db", key=KEY)) as store:
        add(store, "old", days=90)
        add(store, "mine", days=90)
    with open_session("mine", store=tmp_path / "s.db", settings=usual) as session:
        session.user("Again.")
    with closing(open_store(tmp_path / "s.db", key=KEY)) as store:
        assert store.unpacked() == {"mine"}


@pytest.mark.parametrize("place", ["s.db", "files:folder"])
def test_history_that_is_not_saved_is_read_with_the_key(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that begins anew, fails, or leaves a trace, where what was stored of it is encrypted and packed."""
    monkeypatch.chdir(tmp_path)
    blob = b"picture" * 20_000
    with closing(open_store(place, key=KEY)) as store:
        add(store, "s", days=9, blobs=(store.put_blob(blob),))
        store.pack("s")

    def files() -> dict[Path, bytes]:  # but those that SQLite reads beside
        found = (path for path in tmp_path.rglob("*") if path.is_file() and not path.name.endswith(("-shm", "-wal")))
        return {path: path.read_bytes() for path in found}

    before = files()
    with open_session("s", store=place, settings=Settings(save_history=False, key=KEY, redact=False)) as session:
        assert session.user("Nobody writes this down.").n == 52
        assert session._store.get_blob(hashlib.sha256(blob).hexdigest()) == blob
    assert files() == before
