"""Single bytes of an SQLite store that change on disk: `verify` finds each in records, session rows and blobs.

Other bytes of the file mean nothing (free space, freed pages, header fields that SQLite does not use): a flip of them
cannot and need not be found.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from draws import draws
from turnlog.errors import TurnlogError
from turnlog.log.messages import Media, Message, Text
from turnlog.log.records import MessageRecord, Note
from turnlog.log.store import Draft
from turnlog.stores import SqliteStore


def build(path: Path) -> None:
    """A store of a few sessions, forks, a deleted parent, small and large blobs."""
    store = SqliteStore(path)
    blobs = [store.put_blob(bytes([size % 251]) * size) for size in (10, 3_000, 60_000, 70_000, 200_000)]
    for session in ("alpha", "beta", "gamma"):
        store.create(session, title=f"Title of {session}")
        for count in range(60):
            text = f"{session} {count} " + "wörd " * (count * 13 % 400)
            parts = (Text(text), Media("image", sha256=blobs[count % len(blobs)]))
            store.append(session, [Draft(MessageRecord(Message("user", parts))), Draft(Note("n", text[:40]))])
    store.fork("alpha", "fork", at=70, title="A fork")
    store.append("fork", [Draft(MessageRecord(Message("assistant", (Text("mine " * 50),))))])
    store.delete("alpha")
    store.close()


def content_places(path: Path) -> list[tuple[Path, int]]:
    """Every place of a byte that holds content, file by file."""
    data = path.read_bytes()
    places: set[int] = set()
    with closing(sqlite3.connect(path)) as db:
        db.text_factory = bytes
        found: list[bytes] = []
        for query in (
            "select checksum, record from records",
            "select id, title, created, updated, head, parent, seal from sessions",
            "select sha256, data from blobs where length(data) < 4000",
        ):
            found += [value for row in db.execute(query) for value in row if value]
    for value in found:
        at = data.find(value)
        while at >= 0:
            places.update(range(at, at + len(value)))
            at = data.find(value, at + 1)
    files = sorted(path.with_name(path.name + "-blobs").iterdir())
    return [(path, place) for place in sorted(places)] + [
        (file, place) for file in files for place in range(file.stat().st_size)
    ]


def spread(count: int, size: int, seed: str) -> Iterator[tuple[int, int]]:
    """`count` pairs of an index below `size` and a byte from 1 to 255, the same each time."""
    for number in range(count):
        digest = hashlib.sha256(f"{seed} {number}".encode()).digest()
        yield int.from_bytes(digest[:8]) % size, digest[8] % 255 + 1


def flip(path: Path, file: Path, place: int, mask: int) -> str:
    """What is said of the store at `path` with one byte of `file` changed; empty: nothing."""
    whole = file.read_bytes()
    file.write_bytes(whole[:place] + bytes([whole[place] ^ mask]) + whole[place + 1 :])
    try:
        store = SqliteStore(path, read_only=True)
        try:
            problems = store.verify()
        finally:
            store.close()
    except TurnlogError as error:
        return f"{type(error).__name__}: {error}"
    finally:
        file.write_bytes(whole)
        for side in ("-wal", "-shm"):
            path.with_name(path.name + side).unlink(missing_ok=True)
    return str(problems[0]) if problems else ""


@pytest.mark.slow
def test_any_flipped_byte_of_content_is_found(tmp_path: Path, record_property: Any) -> None:
    """A byte of a record, a session row or a blob that changes unnoticed."""
    path = tmp_path / "flip.db"
    build(path)
    by_file: dict[Path, list[int]] = {}
    for file, place in content_places(path):
        by_file.setdefault(file, []).append(place)
    files, flips = sorted(by_file), draws(60, 2_000)
    missed = []
    for number, (index, mask) in enumerate(spread(flips, 1 << 60, "content")):
        file = path if number % 2 else files[number // 2 % len(files)]  # the blob files are far larger than the rest
        place = by_file[file][index % len(by_file[file])]
        if not flip(path, file, place, mask):
            missed.append((file.name, place))
    record_property("flips", flips)
    assert missed == []
