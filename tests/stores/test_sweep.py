"""Blobs that wait for their record outlive a sweep; those that nobody put again do not."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from turnlog.errors import BlobMissing
from turnlog.log import Store
from turnlog.stores import FilesStore, SqliteStore
from turnlog.stores.sqlite import BLOB_FILE_BYTES

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
