"""Blobs that nothing refers to any more.

What a record refers to is read from its bytes, whatever its kind: a record of a newer version keeps
its blobs too. A blob that was put a short while ago stays, because the record that needs it may be
on its way, perhaps from another process.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..errors import CorruptRecord
from ..log.store import Swept
from .blobs import BlobFolder, Put, names_in
from .jsonl.lines import lines_forwards, read_line
from .jsonl.packs import open_packed, size_of
from .sqlite.packs import held


def unused(blobs: Mapping[str, Put], records: Iterable[bytes], grace: float) -> tuple[set[str], Swept]:
    """The blobs that `records`, all that there are, do not refer to and that may go; and what to say of it."""
    free = {name.encode() for name in blobs}
    if free:
        for raw in records:
            free.difference_update(names_in(raw))
            if not free:
                break
    until = time.time() - grace
    names = {name for name in map(bytes.decode, free) if blobs[name].at <= until}
    return names, Swept(len(names), sum(blobs[name].size for name in names), len(free) - len(names))


def sweep_database(db: sqlite3.Connection, files: BlobFolder, grace: float) -> Swept:
    """See `BlobStore.sweep`. To be done inside a transaction: nobody puts or appends meanwhile."""
    kept = {name: Put(at, size) for name, at, size in db.execute("select sha256, put_at, length(data) from blobs")}
    blobs = {**kept, **files.puts()}
    names, swept = unused(blobs, (raw for _, raw in records_of(db)), grace)
    db.execute("pragma secure_delete = on")
    db.executemany("delete from blobs where sha256 = ?", [(name,) for name in names & kept.keys()])
    files.remove(names)
    return swept


def logged(folder: Path) -> Iterator[bytes]:
    """The bytes of every record in a folder of logs, damaged or not, and of logs without a card too."""
    for path in sorted(folder.glob("*.jsonl")):
        yield from records_in(path)


def records_in(log: Path) -> Iterator[bytes]:
    """The bytes of every record in a log, packed or not, damaged or not. Raises CorruptRecord for a damaged pack."""
    with open_packed(log) or log.open("rb") as file:
        for held_line in lines_forwards(file, size_of(file)):
            line = read_line(held_line)
            yield held_line if line is None else line.raw


def records_of(db: sqlite3.Connection) -> Iterator[tuple[int, bytes]]:
    """The number of its session and the bytes of every record, packed or not, damaged or not.

    Raises CorruptRecord for a damaged pack: what it refers to cannot be told.
    """
    for no, raw in db.execute(f"select id >> 32, {held()} from records"):
        if not raw:
            raise CorruptRecord("a packed record cannot be read, nor what media it needs; see `verify`")
        yield no, raw
