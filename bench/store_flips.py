"""Flip single bytes of a store on disk and count how many of the flips `verify` finds.

    python bench/store_flips.py --flips 100

`content`: bytes that hold what was put in (records, session rows, checksums, small blobs, blob
files). `anywhere`: bytes anywhere in the database file, where some mean nothing (free space, freed
pages, header fields that SQLite does not use) and a flip of them cannot and need not be found.
"""

from __future__ import annotations

import argparse
import hashlib
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

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


def kind_of_place(path: Path, place: int) -> str:
    """Where in an SQLite file a byte is, as far as its format tells (sqlite.org/fileformat2.html)."""
    if place < 100:
        return f"file header, byte {place}"
    data = path.read_bytes()
    size = int.from_bytes(data[16:18])
    start = place // size * size
    header = start + (100 if start == 0 else 0)
    kind = data[header]
    if kind not in (2, 5, 10, 13):
        return "overflow or free page"
    cells = int.from_bytes(data[header + 3 : header + 5])
    area = int.from_bytes(data[header + 5 : header + 7]) or 65536
    pointers = header + (12 if kind in (2, 5) else 8) + 2 * cells
    if place < pointers:
        return "page header"
    return "free space in a page" if place < start + area else "cells of a page"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--flips", type=int, default=100)
    parser.add_argument("--show", action="store_true", help="print where each flip was that was not found")
    flips = parser.parse_args().flips
    show = parser.parse_args().show
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "flip.db")
        build(path)
        content = content_places(path)
        files = sorted({file for file, _ in content})
        # Each file by turns: the blob files are far larger than the rest.
        by_file = {file: [place for found, place in content if found == file] for file in files}
        missed = 0
        for number, (index, mask) in enumerate(spread(flips, 1 << 60, "content")):
            file = path if number % 2 else files[number // 2 % len(files)]
            place = by_file[file][index % len(by_file[file])]
            if not flip(path, file, place, mask):
                missed += 1
                print(f"missed: content of {file.name} at {place}")
        print(f"content: {flips - missed} of {flips} found")
        where: dict[str, list[int]] = {}
        for place, mask in spread(flips, path.stat().st_size, "anywhere"):
            told = where.setdefault(kind_of_place(path, place), [0, 0])
            told[0] += 1
            said = flip(path, path, place, mask)
            told[1] += bool(said)
            if not said and show:
                print(f"not found: at {place}, {kind_of_place(path, place)}")
        for kind, (tried, told_of) in sorted(where.items()):
            print(f"anywhere: {told_of} of {tried} found: {kind}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
