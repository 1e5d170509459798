"""Blobs that wait for their record outlive a sweep; those that nobody put again do not."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from turnlog.errors import BlobMissing
from turnlog.log.codec import encode_record
from turnlog.log.records import Note, Record
from turnlog.log.store import Draft, Store
from turnlog.stores import FilesStore, SqliteStore
from turnlog.stores.sqlite.store import BLOB_FILE_BYTES

STORES: dict[str, Callable[[Path], Store]] = {
    "sqlite": lambda path: SqliteStore(path / "s.db"),
    "files": lambda path: FilesStore(path / "folder"),
}


def _made_old(folder: Path) -> None:
    """Every blob was put in 1970."""
    for file in (*folder.glob("**/s.db-blobs/*"), *folder.glob("**/blobs/*")):
        os.utime(file, (1, 1))
    if (folder / "s.db").exists():
        with closing(sqlite3.connect(folder / "s.db", isolation_level=None)) as db:
            db.execute("update blobs set put_at = 1")


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("size", [10, BLOB_FILE_BYTES])
def test_a_blob_that_is_put_again_is_young_again(kind: str, size: int, tmp_path: Path) -> None:
    """A blob that one process found in the store and another swept away before its record came."""
    store, other = STORES[kind](tmp_path), STORES[kind](tmp_path)
    again, forgotten = (store.put_blob(letter * size) for letter in (b"a", b"f"))
    _made_old(tmp_path)
    store.put_blob(b"a" * size)
    swept = other.sweep()
    assert (swept.removed, swept.size, swept.recent) == (1, size, 1)
    assert store.get_blob(again) == b"a" * size
    with pytest.raises(BlobMissing):
        store.get_blob(forgotten)
    store.close()
    other.close()


def test_a_log_that_lost_its_card_keeps_its_blobs(tmp_path: Path) -> None:
    """Media that are gone for good because the card of their session could not be read."""
    store = FilesStore(tmp_path / "folder")
    kept = store.put_blob(b"picture")
    line = b'{"sum":"damaged","record":{"sha256":"%s"}}\n' % kept.encode()
    (tmp_path / "folder/sessions/lost.jsonl").write_bytes(line)
    assert store.sweep(grace=0).removed == 0
    assert store.get_blob(kept) == b"picture"
    store.close()


def _killed(place: Path, kind: str, do: Callable[[Store], object], when: str) -> None:
    """Have a process do something and die before it puts a file of that name in its place."""
    if child := os.fork():
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        return
    real = os.replace

    def replace(source: str | Path, target: str | Path) -> None:
        if when in str(target):
            os._exit(9)
        real(source, target)

    os.replace = replace  # type: ignore[assignment]
    try:
        do(STORES[kind](place))
    finally:
        os._exit(1)


_CLEAN = encode_record(Record(1, "2026-03-01T09:00:00.000Z", Note("clean")))
_WORK: dict[str, tuple[str, Callable[[Store], object], str]] = {
    "media": ("files", lambda store: store.put_blob(b"secret" * BLOB_FILE_BYTES), "blobs"),
    "media beside a database": ("sqlite", lambda store: store.put_blob(b"secret" * BLOB_FILE_BYTES), "blobs"),
    "pack": ("files", lambda store: store.pack("s"), ".jsonl.zst"),
    "unpack": ("files", lambda store: (store.pack("s"), store.append("s", [Draft(Note("more"))])), "s.jsonl"),
    "rewrite": ("files", lambda store: store.rewrite("s", {1: _CLEAN}), "rewrite.json"),
    "rename": ("files", lambda store: store.rename("s", "secret"), "s.json"),
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("work", _WORK)
@pytest.mark.parametrize("scrubbed", [False, True])
def test_nothing_stays_of_what_a_killed_process_was_writing(work: str, scrubbed: bool, tmp_path: Path) -> None:
    """A log or a picture under a name that nobody looks at: it takes room for good, and what it says can be read
    after its session was deleted, or scrubbed."""
    kind, do, when = _WORK[work]
    store = STORES[kind](tmp_path)
    store.create("s")
    store.append("s", [Draft(Note("n", "secret")), Draft(Note("n", "other"))])
    _killed(tmp_path, kind, do, when)
    if scrubbed:
        store.rewrite("s", {1: _CLEAN})
        assert [record.body.topic for record in store.read("s")] == ["clean", "n"]  # type: ignore[union-attr]
    else:
        store.delete("s")
        store.sweep(grace=0)
    left = [path.name for path in tmp_path.rglob("*") if path.is_file() and path.suffix in (".tmp", ".new")]
    assert left == [] and not list(tmp_path.rglob("tmp-*")) and store.verify() == []
    store.close()


def test_what_a_killed_process_left_is_gone_when_the_folder_is_opened(tmp_path: Path) -> None:
    """Files that stay until somebody deletes something; or one of a session whose name looks like theirs, that goes."""
    store = FilesStore(tmp_path / "folder")
    for name in ("s", "s.json.new", "s.jsonl.12.tmp"):
        store.create(name)
        store.append(name, [Draft(Note("n"))])
    before = {path.name for path in (tmp_path / "folder" / "sessions").iterdir()}
    for name in ("s.jsonl.12.tmp", "s.jsonl.zst.9.tmp", "s.json.new", "gone.jsonl.new", "gone.json.new.7.tmp"):
        (tmp_path / "folder" / "sessions" / name).write_bytes(b"half")
    store.close()
    store = FilesStore(tmp_path / "folder")
    assert {path.name for path in (tmp_path / "folder" / "sessions").iterdir()} == before
    assert [info.records for info in store.sessions()] == [1, 1, 1] and store.verify() == []
    store.close()
