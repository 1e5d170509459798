"""Damaged media costs itself alone: in each store it is what missing media is, and `verify` and `copy` name it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from key_value_store import KeyValueStore

import turnlog
from judging import TARGETS
from navigating import png
from turnlog.errors import BlobMissing
from turnlog.log.messages import Media, Message, Text
from turnlog.log.store import Problem, Store
from turnlog.stores import MemoryStore, copy_store, open_store, salvage

KEY = bytes(range(32))
LARGE = png(1) + bytes(70_000)  # a file beside an SQLite store; smaller ones are in its table
KINDS = ("minimal", "files", "sqlite", "sqlite-small", "encrypted", "encrypted-small", "encrypted-files")

Change = Callable[[bytes], bytes | None]


@pytest.fixture(params=KINDS)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Media, Callable[[Change], None]]]:
    """A store with session `s`, whose record with an image is followed by others; the image; and a function that
    changes the stored bytes of the image, or deletes them."""
    kind, values = request.param, dict[str, bytes]()
    url = f"files:{tmp_path / 'store'}" if "files" in kind else str(tmp_path / "store.db")
    key = KEY if "encrypted" in kind else None
    store = KeyValueStore(values) if kind == "minimal" else open_store(url, key=key)
    data = png(1) if "small" in kind else LARGE
    image = Media("image", mime="image/png", sha256=store.put_blob(data), size=len(data))
    with turnlog.open("s", store=store, target=TARGETS[0], settings=turnlog.Settings()) as session:
        session.extend([Message("user", (Text("look"), image)), Message("assistant", (Text("a dot"),))])
        session.user("And now?")

    def change(how: Change) -> None:
        if kind == "minimal":
            _in_mapping(values, f"blob {image.sha256}", how)
        elif "small" in kind:
            _in_table(tmp_path / "store.db", how)
        else:
            folder = tmp_path / ("store/blobs" if "files" in kind else "store.db-blobs")
            _in_folder(folder, how)

    yield store, image, change
    store.close()


def _in_mapping(values: dict[str, bytes], name: str, how: Change) -> None:
    new = how(values.pop(name))
    if new is not None:
        values[name] = new
    else:
        del values[name.replace("blob", "put")]


def _in_table(path: Path, how: Change) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        ((data,),) = db.execute("select cast(data as blob) from blobs").fetchall()
        new = how(data)
        db.execute("delete from blobs" if new is None else "update blobs set data = ?", () if new is None else (new,))


def _in_folder(folder: Path, how: Change) -> None:
    (file,) = folder.iterdir()
    new = how(file.read_bytes())
    if new is None:
        file.unlink()
    else:
        file.write_bytes(new)


def damage(data: bytes) -> bytes:
    """The bytes with one in the middle changed."""
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def requests(store: Store, session_id: str = "s") -> list[dict[str, Any]]:
    """The request to each target, from a session that is opened to write."""
    found = []
    with turnlog.open(session_id, store=store, settings=turnlog.Settings()) as session:
        for aim in TARGETS:
            request = session.request(aim)
            assert [one.records for one in (*request.losses, *request.edits) if one.kind == "media"] == [(_SHOWN,)]
            assert session.window.breakdown(aim).tokens == request.tokens
            found.append(request.body)
    return found


_SHOWN = 2
"""The number of the record with the image, after the configuration."""


def test_damaged_media_is_what_missing_media_is(kept: tuple[Store, Media, Callable[[Change], None]]) -> None:
    """One flipped bit of an image that makes a session unusable, or a request that differs from one without its
    bytes."""
    store, image, change = kept
    change(damage)
    with pytest.raises(BlobMissing, match="is damaged"):
        store.get_blob(image.sha256)
    damaged = requests(store)
    change(lambda data: None)
    assert requests(store) == damaged


def test_a_salvaged_session_works(kept: tuple[Store, Media, Callable[[Change], None]]) -> None:
    """A salvage that takes over what keeps the session from being used."""
    store, _, change = kept
    change(damage)
    damaged = requests(store)
    assert salvage(store, "s", "new").damaged == ()
    assert requests(store, "new") == damaged


def test_verify_names_the_blob_and_the_record(kept: tuple[Store, Media, Callable[[Change], None]]) -> None:
    """Damage to media that nobody can tell the record of; or media that was given again, and is still damaged."""
    store, image, change = kept
    change(damage)
    for session in (None, "s"):
        found = [one for one in store.verify(session) if one.session]
        assert [(one.session, one.record, one.blobs) for one in found] == [("s", _SHOWN, (image.sha256,))]
    store.put_blob(png(1) if image.size < len(LARGE) else LARGE)
    assert (store.verify(), store.verify("s")) == ([], [])


@pytest.mark.parametrize("how", [damage, lambda data: None], ids=["damaged", "missing"])
def test_a_copy_says_what_it_lacks(kept: tuple[Store, Media, Callable[[Change], None]], how: Change) -> None:
    """An image that a copy drops in silence, or that ends it."""
    store, image, change = kept
    change(how)
    told: list[Problem] = []
    target = MemoryStore()
    copied = copy_store(store, target, tell=told.append)
    assert copied == store.info("s").records == target.info("s").records
    assert [(one.session, one.record, one.blobs) for one in told] == [("s", _SHOWN, (image.sha256,))]
    assert requests(target) == requests(store)
