"""Packed sessions: everything goes on as before in less room, nothing is lost by a crash, nothing is left behind."""

from __future__ import annotations

import base64
import itertools
import json
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard
from store_parts import filled, said, texts

from turnlog.errors import CorruptRecord, InputError, StoreError
from turnlog.log.codec import encode_record
from turnlog.log.records import Record
from turnlog.log.store import Packed, Problem, Store
from turnlog.stores import FilesStore, SqliteStore, open_store
from turnlog.stores.records import COLUMNS, SessionRow, seal
from turnlog.stores.sqlite.schema import upgrade
from turnlog.stores.sqlite.store import Appender

KEY = bytes(range(32))
SECRET = "hunter2-the-secret"


@pytest.fixture(params=["sqlite", "files", "sqlite-locked", "files-locked"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which store, encrypted or not."""
    return str(request.param)


def _open(kind: str, folder: Path) -> Store:
    url = f"{'files:' if kind.startswith('files') else ''}{folder}/log.db"
    return open_store(url, key=KEY if kind.endswith("locked") else None)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _pack(store: Store, session: str) -> Packed:
    done: Packed = store.pack(session)  # type: ignore[attr-defined]
    return done


@pytest.mark.slow
def test_a_packed_session_goes_on_as_before(kind: str, tmp_path: Path) -> None:
    """Records that change, cannot be found or appended to, or room that is not saved."""
    store = _open(kind, tmp_path)
    store.create("s", title="T")
    store.append("s", [said(f"word number {n}, and again the same words in the same order") for n in range(3000)])
    before, size = list(store.read("s")), _size(tmp_path)
    hits = store.search("number 1234")  # type: ignore[attr-defined]
    info = store.info("s")
    done = _pack(store, "s")
    assert (done.records, done.after < done.before / 5) == (3000, True)
    assert _pack(store, "s") == Packed(0, 0, 0)
    store.reclaim()
    store.close()
    assert _size(tmp_path) < size * 0.6
    store = _open(kind, tmp_path)
    assert [record.raw for record in store.read("s")] == [record.raw for record in before]
    assert (store.info("s"), store.search("number 1234"), store.verify()) == (info, hits, [])  # type: ignore[attr-defined]
    assert [record.n for record in store.read("s", first=1500, last=1502, reverse=True)] == [1502, 1501, 1500]
    assert [record.n for record in store.append("s", [said("more words")])] == [3001]
    assert [hit.record for hit in store.search("more")] == [3001]  # type: ignore[attr-defined]
    assert (texts(store.read("s", first=3000)), store.verify()) == ([texts(before)[-1], "more words"], [])
    assert _pack(store, "s").records > 0
    assert (store.info("s").records, store.verify()) == (3001, [])
    store.close()


@pytest.mark.parametrize("kind", ["sqlite-locked", "files-locked"], indirect=True)
def test_a_second_pack_of_an_encrypted_session_tells_of_what_is_new(kind: str, tmp_path: Path) -> None:
    """One record of a hundred, told of as if it had become as large as all of them."""
    store = _open(kind, tmp_path)
    store.create("s")
    store.append("s", [said(f"word {n} " * 30) for n in range(100)])
    first = _pack(store, "s")
    store.append("s", [said("word 100 " * 30)])
    second = _pack(store, "s")
    assert (first.records, second.records) == (100, 1)
    assert 0 < second.before < first.before / 50
    assert 0 < second.after < second.before < first.after
    store.close()


def test_a_reader_goes_on_while_a_session_is_packed(kind: str, tmp_path: Path) -> None:
    """A session that is read while another process packs it, and seems damaged to the reader."""
    store, other = _open(kind, tmp_path), _open(kind, tmp_path)
    filled(store, "s", 400)
    ahead, back = store.read("s"), store.read("s", reverse=True)
    seen = [next(ahead).n, next(back).n]
    _pack(other, "s")
    assert [*seen, *(record.n for record in ahead)] == [1, 400, *range(2, 401)]
    other.append("s", [said("thaw")])
    _pack(other, "s")
    assert [record.n for record in back] == list(range(399, 0, -1))
    store.append("s", [said("after")])
    assert (texts(other.read("s", first=401)), store.verify()) == (["thaw", "after"], [])
    store.close()
    other.close()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_fork_in_the_middle_of_a_pack(kind: str, when: str, tmp_path: Path) -> None:
    """A pack that holds what a fork shares and what it does not: rewritten or deleted by the one, lost to the other."""
    store = _open(kind, tmp_path)
    filled(store, "a", 6)
    if when == "before":
        store.fork("a", "b", at=3)
    _pack(store, "a")
    if when == "after":
        store.fork("a", "b", at=3)
    store.rewrite("b", {2: encode_record(Record(2, "2026", said("clean").body))})
    assert (texts(store.read("a")), store.verify()) == (["1", "clean", "3", "4", "5", "6"], [])
    _pack(store, "a")
    store.delete("a")
    assert (texts(store.read("b")), store.verify()) == (["1", "clean", "3"], [])
    store.close()


@pytest.mark.parametrize("locked", ["", "-locked"])
def test_a_crash_while_packing_files_loses_nothing(
    locked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that is half packed, or there twice, after the process was killed between any two of its steps."""
    replace = "turnlog.stores.folders.os.replace"
    done = False
    for step in itertools.count():
        folder = tmp_path / str(step)
        store = _open("files" + locked, folder)
        filled(store, "s", 20)
        if step % 2:
            _pack(store, "s")  # then the crash is while it is unpacked
        steps = itertools.count()

        def killed(source: object, target: object, *, at: int = step // 2, steps: object = steps) -> None:
            if next(steps) == at:  # type: ignore[call-overload]
                raise KeyboardInterrupt
            Path(str(source)).rename(str(target))

        with monkeypatch.context() as patch:
            patch.setattr(replace, killed)
            try:
                if step % 2:
                    store.append("s", [said("21")])
                else:
                    _pack(store, "s")
                done = step > 12
            except KeyboardInterrupt:
                pass
        store.close()
        store = _open("files" + locked, folder)
        found = texts(store.read("s"))
        assert found[:20] == [str(n) for n in range(1, 21)] and found[20:] in ([], ["21"])
        store.append("s", [said("last")])
        assert (texts(store.read("s"))[-1], store.verify()) == ("last", [])
        store.close()
        if done:
            return


def test_what_was_written_beside_a_packed_log_is_set_aside(tmp_path: Path) -> None:
    """What a process of a turnlog that knows no packed logs had said in one: acknowledged, told by nobody, and gone for
    good with the next append."""
    store = _open("files", tmp_path)
    filled(store, "s", 3)
    log = tmp_path / "log.db" / "sessions" / "s.jsonl"
    begun = log.read_bytes()
    _pack(store, "s")
    log.write_bytes(begun[: len(begun) // 2])  # all of which the packed log has
    assert store.verify() == []
    log.write_bytes(b'{"sum":"0","messages":1,"left":0,"record":{}}\n')
    told = f"{log} has 46 bytes that the packed log does not contain"
    assert (texts(store.read("s")), store.verify()) == (["1", "2", "3"], [Problem("s", 0, told)])
    store.append("s", [said("4")])
    torn = log.with_suffix(".torn")
    told = (
        "records that an older turnlog appended to the packed session are not in its log; what was left of them is in "
        f"{torn}, which may be deleted once it has been looked at"
    )
    assert (texts(store.read("s")), store.verify()) == (["1", "2", "3", "4"], [Problem("s", 0, told)])
    note = json.loads(torn.read_bytes())
    assert base64.b64decode(note["base64"]) == b'{"sum":"0","messages":1,"left":0,"record":{}}\n'
    store.close()


def test_a_crash_while_packing_a_database_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a session in a pack that is not there, when the process dies before the transaction is over."""
    store = SqliteStore(tmp_path / "log.db")
    filled(store, "s", 20)
    frame = zstandard.ZstdCompressor().compress(b"2:{}")
    with monkeypatch.context() as patch:
        patch.setattr("turnlog.stores.sqlite.packs.compressed", lambda data: frame)
        with pytest.raises(StoreError, match="decompressing gave other bytes"):
            store.pack("s")
    assert (texts(store.read("s")), store.verify()) == ([str(n) for n in range(1, 21)], [])
    with store._database.reading() as db:
        assert db.execute("select count(*) from packs").fetchone() == (0,)
    store.close()


def _frames(folder: Path) -> bytes:
    """Everything in a folder, and what is in its zstd frames."""
    found = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    whole = [found]
    for at in range(len(found)):
        if found[at : at + 4] == b"\x28\xb5\x2f\xfd":
            try:
                whole.append(zstandard.ZstdDecompressor().decompressobj().decompress(found[at:]))
            except zstandard.ZstdError:
                continue
    return b"".join(whole)


@pytest.mark.parametrize("kind", ["sqlite", "files"], indirect=True)
@pytest.mark.parametrize("how", ["delete", "rewrite", "fork"])
def test_nothing_is_left_in_packs_of_what_is_gone(kind: str, how: str, tmp_path: Path) -> None:
    """A pack that keeps what was deleted, or scrubbed, or what a fork of a deleted session does not share."""
    store = _open(kind, tmp_path)
    filled(store, "s", 50)
    store.append("s", [said(SECRET), said("end")])
    if how == "fork":
        store.fork("s", "t", at=50)
    _pack(store, "s")
    assert SECRET.encode() in _frames(tmp_path)
    if how == "rewrite":
        store.rewrite("s", {51: encode_record(Record(51, "2026", said("clean").body))})
        assert texts(store.read("s", first=51)) == ["clean", "end"]
    else:
        store.delete("s")
    if how == "fork":
        assert texts(store.read("t")) == [str(n) for n in range(1, 51)]
    assert store.verify() == []
    store.close()
    assert SECRET.encode() not in _frames(tmp_path)


def test_damaged_packs_are_found(kind: str, tmp_path: Path) -> None:
    """A pack that was changed on the disk, and what it held is read as something else or not missed at all."""
    store = _open(kind, tmp_path)
    filled(store, "s", 50)
    filled(store, "t", 2)
    _pack(store, "s")
    store.close()
    if kind.startswith("files"):
        file = tmp_path / "log.db" / "sessions" / "s.jsonl.zst"
        file.write_bytes(file.read_bytes()[:-9] + b"damaged!!")
    else:
        with closing(sqlite3.connect(tmp_path / "log.db")) as db:
            db.execute("update packs set data = cast(substr(data, 1, length(data) - 9) || 'damaged!!' as blob)")
            db.commit()
    store = _open(kind, tmp_path)
    with pytest.raises(CorruptRecord):
        list(store.read("s"))
    assert {problem.session for problem in store.verify()} == {"s"}
    assert (texts(store.read("t")), len(store.sessions())) == (["1", "2"], 2)
    store.delete("s")
    assert store.verify() == []
    store.close()


def test_without_the_package(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare ImportError, or a session that seems empty, where the extra is not installed."""
    store = _open(kind, tmp_path)
    filled(store, "s", 5)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "zstandard", None)
        with pytest.raises(InputError, match=r"pip install '\.\[zstd\]'"):
            _pack(store, "s")
    _pack(store, "s")
    store.close()
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(InputError, match=r"pip install '\.\[zstd\]'"):
        list(_open(kind, tmp_path).read("s"))


def test_an_older_folder_becomes_newer_when_it_has_to(tmp_path: Path) -> None:
    """A folder that older versions are kept out of for no reason, or let into when they cannot read it."""
    store = FilesStore(tmp_path / "s")
    filled(store, "s", 5)
    marker = tmp_path / "s" / "turnlog.json"
    assert marker.read_text() == '{"turnlog":"files","version":1}\n'
    store.pack("s")
    assert marker.read_text() == '{"turnlog":"files","version":2}\n'
    store.close()


def test_a_store_of_version_7_can_be_packed(tmp_path: Path) -> None:
    """An upgrade that makes no room for packs and locks, or a version 7 that fails to be read without it."""
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        upgrade(db, str(path), to=7)
        db.execute("pragma journal_mode = wal")
        row = SessionRow(1, "s", "", "2026", "2026", 0, 0, bytes(32), "", 0, None)
        marks = ", ".join("?" for _ in row)
        db.execute(f"insert into sessions ({COLUMNS}, seal) values ({marks}, ?)", (*row, seal(row)))
        Appender().append(db, "s", [said(str(n)) for n in range(30)], None)
    store = SqliteStore(path, read_only=True)
    assert (len(list(store.read("s"))), store.verify()) == (30, [])
    store.close()
    store = SqliteStore(path)
    assert (store.pack("s").records, store.verify(), len(list(store.read("s")))) == (30, [], 30)
    store.close()
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        upgrade(db, "", to=7)
        assert not db.execute("select 1 from sqlite_master where name = 'packs'").fetchall()


def _meanwhile(store: Store, do: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have another do something right before what is behind an encrypted store is rewritten, once."""
    inner = store.store  # type: ignore[attr-defined]
    real = inner.rewrite

    def rewrite(*given: Any, **more: Any) -> None:
        monkeypatch.setattr(inner, "rewrite", real)
        do()
        real(*given, **more)

    monkeypatch.setattr(inner, "rewrite", rewrite)


@pytest.mark.parametrize("kind", ["sqlite-locked", "files-locked"], indirect=True)
@pytest.mark.parametrize("packed", [0, 4])
def test_a_pack_that_is_made_during_a_rewrite_stays_whole(
    kind: str, packed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that nobody can read any more: another process packed them together with one that was being rewritten,
    and that one, which held them all, was put back by itself."""
    store, other = _open(kind, tmp_path), _open(kind, tmp_path)
    filled(store, "s", 4)
    if packed:
        _pack(store, "s")
    store.append("s", [said(str(n)) for n in range(5, 9)])
    before = list(store.read("s"))

    def pack() -> None:
        if packed:
            other.rewrite("s", {1: before[0].raw or b""})
        _pack(other, "s")

    _meanwhile(store, pack, monkeypatch)
    store.rewrite("s", {1: encode_record(Record(1, before[0].time, said("one").body))})
    assert texts(store.read("s")) == ["one", *"2345678"] and store.verify() == []
    other.close()
    store.close()


@pytest.mark.parametrize("kind", ["sqlite-locked", "files-locked"], indirect=True)
def test_a_fork_does_not_bring_back_what_was_scrubbed(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret that stands in the log again after it was taken out, because a fork took a pack apart meanwhile and put
    its records where they were."""
    store, other = _open(kind, tmp_path), _open(kind, tmp_path)
    filled(store, "s", 6)
    store.append("s", [said(SECRET), said("8")])
    _pack(store, "s")
    time = list(store.read("s"))[6].time
    clean = {7: encode_record(Record(7, time, said("clean").body))}
    _meanwhile(store, lambda: other.rewrite("s", clean), monkeypatch)
    store.fork("s", "f", at=3)
    assert texts(store.read("s")) == [*"123456", "clean", "8"] and store.verify() == []
    other.close()
    store.close()


@pytest.mark.parametrize("kind", ["sqlite-locked", "files-locked"], indirect=True)
def test_a_pack_that_is_taken_apart_is_no_damage_to_its_reader(kind: str, tmp_path: Path) -> None:
    """A session that seems damaged to who reads it, because another process scrubs it just then."""
    store, other = _open(kind, tmp_path), _open(kind, tmp_path)
    filled(store, "s", 6)
    _pack(store, "s")
    store.append("s", [said(str(n)) for n in range(7, 13)])
    _pack(store, "s")
    first = next(iter(store.read("s")))
    reading = store.read("s", reverse=True)
    assert next(reading).n == 12
    other.rewrite("s", {1: first.raw or b""})
    assert [record.n for record in reading] == list(range(11, 0, -1))
    other.close()
    store.close()
