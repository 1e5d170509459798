"""What the store costs over plain sqlite3: appends, listings, reading, bytes on disk.

    python bench/store_speed.py

Figures are medians of one operation; each is measured by turns with its floor, so that a busy
machine slows both.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from turnlog.content import Message, Text
from turnlog.log import Draft, SessionInfo
from turnlog.records import MessageRecord
from turnlog.stores import Durability, SqliteStore

APPENDS = 1500
SESSIONS = 10_000


def seconds(use: Callable[..., object], *values: object) -> float:
    start = time.perf_counter()
    use(*values)
    return time.perf_counter() - start


def draft(text: str) -> Draft:
    return Draft(MessageRecord(Message("assistant", (Text(text),))))


def raw_database(path: Path, durability: Durability) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("pragma journal_mode = wal")
    db.execute(f"pragma synchronous = {durability}")
    db.execute("create table log (id integer primary key, kind text, record text)")
    db.execute("create table sessions (no integer primary key, updated text, records integer)")
    db.execute("insert into sessions values (1, '', 0)")
    return db


def raw_append(db: sqlite3.Connection, n: int, text: str, bump: bool) -> None:
    db.execute("begin immediate")
    db.execute("insert into log values (?, 'message', ?)", (n, text))
    if bump:
        db.execute("update sessions set updated = ?, records = ? where no = 1", (text[:24], n))
    db.execute("commit")


def measure_appends(folder: Path, durability: Durability) -> None:
    store = SqliteStore(folder / f"store-{durability}.db", durability=durability)
    store.create("s")
    plain = raw_database(folder / f"raw-{durability}.db", durability)
    bumped = raw_database(folder / f"bumped-{durability}.db", durability)
    text = "word " * 220
    encoded = (store.append("s", [draft(text)])[0].raw or b"").decode()
    store_times, plain_times, bumped_times = [], [], []
    for n in range(1, APPENDS + 1):
        store_times.append(seconds(store.append, "s", [draft(text)]))
        plain_times.append(seconds(raw_append, plain, n, encoded, False))
        bumped_times.append(seconds(raw_append, bumped, n, encoded, True))
    mine, floor, with_row = median(store_times), median(plain_times), median(bumped_times)
    print(
        f"append {durability}: {mine * 1e6:.0f} us, {mine / floor:.2f} of one insert ({floor * 1e6:.0f} us), "
        f"{mine / with_row:.2f} of insert and session row ({with_row * 1e6:.0f} us); "
        f"totals {sum(store_times) / sum(plain_times):.2f}, {sum(store_times) / sum(bumped_times):.2f}"
    )
    plain.close()
    bumped.close()
    store.close()


def measure_listing(folder: Path) -> None:
    path = folder / "listing.db"
    store = SqliteStore(path)
    for number in range(SESSIONS):
        store.create(f"session-{number}", title=f"What to do about number {number}")
    db = sqlite3.connect(path)
    columns = ", ".join(SessionInfo.__struct_fields__)
    mine, floor, newest = [], [], []
    for _ in range(9):
        mine.append(seconds(store.sessions))
        newest.append(seconds(lambda: store.sessions(limit=50)))
        floor.append(
            seconds(lambda: db.execute(f"select {columns} from sessions order by updated desc, no desc").fetchall())
        )
    print(
        f"list {SESSIONS} sessions: {median(mine) * 1e3:.1f} ms, {median(mine) / median(floor):.2f} of one SELECT; "
        f"newest 50: {median(newest) * 1e3:.2f} ms"
    )
    db.close()
    store.close()


def measure_reading(folder: Path) -> None:
    store = SqliteStore(folder / "reading.db")
    store.create("s")
    for _ in range(100):
        store.append("s", [draft("word " * 220) for _ in range(100)])
    whole = median(seconds(lambda: sum(1 for _ in store.read("s"))) for _ in range(5))
    back = median(seconds(lambda: next(store.read("s", reverse=True))) for _ in range(50))
    tail = median(seconds(lambda: list(store.read("s", first=9_601, reverse=True))) for _ in range(20))
    forking = []
    for number in range(20):
        forking.append(seconds(store.fork, "s", f"fork-{number}"))
    print(
        f"read 10,000 records: {whole * 1e3:.0f} ms; the last 400 backwards: {tail * 1e3:.2f} ms, "
        f"the last one: {back * 1e6:.0f} us; fork of them: {median(forking) * 1e3:.2f} ms"
    )
    store.close()


def measure_size(folder: Path) -> None:
    path = folder / "size.db"
    store = SqliteStore(path)
    store.create("s")
    for turn in range(400):
        store.append("s", [Draft(MessageRecord(Message("user", (Text(f"{turn:04} " + "q" * 795),))))])
        store.append("s", [draft(f"{turn:04} " + "a" * 795)])
    beside = sum(os.path.getsize(file) for file in folder.glob("size.db*"))
    store.close()
    closed = sum(os.path.getsize(file) for file in folder.glob("size.db*"))
    print(f"400 turns, 800 messages of 800 characters: {closed / 1e6:.2f} MB ({beside / 1e6:.2f} MB while open)")


def main() -> int:
    with tempfile.TemporaryDirectory(dir=os.environ.get("TURNLOG_BENCH_DIR")) as name:
        folder = Path(name)
        measure_appends(folder, "normal")
        measure_appends(folder, "full")
        measure_listing(folder)
        measure_reading(folder)
        measure_size(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
