"""What the stores cost over plain sqlite3: appends, listings, bills, reading, searching, bytes on disk.

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

from turnlog.log.codec import decode_record
from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord, UsageRecord
from turnlog.log.store import Draft, SessionInfo
from turnlog.log.usage import Usage
from turnlog.models.pricing import total_cost
from turnlog.stores import Durability, FilesStore, SqliteStore
from turnlog.stores.sqlite.schema import upgrade
from turnlog.stores.words import role_and_text

APPENDS = 3000
BLOCK = 50
SESSIONS = 10_000
ZEROS = bytes(32)


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


def same_shape(path: Path, durability: Durability) -> sqlite3.Connection:
    """The store's own tables, to be written to by bare statements."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("pragma journal_mode = wal")
    db.execute(f"pragma synchronous = {durability}")
    upgrade(db, str(path))
    row = (1, "s", "", "2026", "2026", 0, 0, ZEROS, "", 0, None, ZEROS)
    db.execute(f"insert into sessions values ({', '.join('?' * len(row))})", row)
    return db


def same_append(db: sqlite3.Connection, n: int, text: str) -> None:
    db.execute("begin immediate")
    db.execute("insert into records values (?, 'message', ?, ?)", (1 << 32 | n, ZEROS, text))
    db.execute(
        "update sessions set updated = ?, records = ?, messages = ?, head = ?, seal = ? where no = 1",
        (text[:24], n, n, ZEROS, ZEROS),
    )
    db.execute("commit")


def measure_appends(folder: Path, durability: Durability) -> None:
    """Blocks of appends by turns, so that each is as warm as in a program that does little else."""
    store = SqliteStore(folder / f"store-{durability}.db", durability=durability)
    files = FilesStore(folder / f"files-{durability}", durability=durability)
    for one in (store, files):
        one.create("s")
    plain = raw_database(folder / f"raw-{durability}.db", durability)
    bumped = raw_database(folder / f"bumped-{durability}.db", durability)
    same = same_shape(folder / f"same-{durability}.db", durability)
    text = "word " * 220
    drafts = [draft(text)]
    encoded = (store.append("s", drafts)[0].raw or b"").decode()
    times: dict[str, list[float]] = {name: [] for name in ("store", "files", "insert", "bumped", "same")}
    for start in range(1, APPENDS + 1, BLOCK):
        block = range(start, start + BLOCK)
        times["store"] += [seconds(store.append, "s", drafts) for _ in block]
        times["insert"] += [seconds(raw_append, plain, n, encoded, False) for n in block]
        times["bumped"] += [seconds(raw_append, bumped, n, encoded, True) for n in block]
        times["same"] += [seconds(same_append, same, n, encoded) for n in block]
        times["files"] += [seconds(files.append, "s", drafts) for _ in block]
    floors = {
        "one insert": times["insert"],
        "insert and session row": times["bumped"],
        "the same rows without turnlog": times["same"],
    }
    for name in ("store", "files"):
        mine = times[name]
        ratios = ", ".join(
            f"{median(mine) / median(floor):.2f} (in all {sum(mine) / sum(floor):.2f}) of {what}"
            for what, floor in floors.items()
        )
        print(f"append {durability}, {name}: {median(mine) * 1e6:.0f} us, {ratios}")
    for one in (plain, bumped, same, store, files):
        one.close()


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


def measure_bills(folder: Path) -> None:
    """What all sessions were billed, against fetching the rows that say so; and of one long session,
    against reading it whole."""
    path = folder / "bills.db"
    store = SqliteStore(path)
    raw = {"input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 50}
    bill = Draft(UsageRecord("anthropic", "claude-sonnet-4-5", Usage(input=1000, output=50, cached=900), raw))
    turn = [draft("word " * 220), draft("word " * 50), draft("word " * 220), bill]
    for number in range(SESSIONS // 10):
        store.create(f"session-{number}")
        store.append(f"session-{number}", turn * 10)
    store.create("long")
    store.append("long", turn * 2500)
    db = sqlite3.connect(path)
    rows = "select id, cast(record as blob) from records where kind = 'usage' order by id"
    mine, floor, priced, one, whole = [], [], [], [], []
    for _ in range(7):
        floor.append(seconds(lambda: db.execute(rows).fetchall()))
        mine.append(seconds(store.usages))
        priced.append(seconds(lambda: [total_cost(bills) for bills in store.usages().values()]))
        one.append(seconds(store.usage, "long"))
        whole.append(seconds(lambda: sum(1 for _ in store.read("long"))))
    print(
        f"bills of {SESSIONS // 10} sessions, {SESSIONS + 2500} in all: {median(mine) * 1e3:.0f} ms, "
        f"{median(mine) / median(floor):.2f} of their rows, with dollars {median(priced) * 1e3:.0f} ms; "
        f"of one of 10,000 records {median(one) * 1e3:.1f} ms, {median(one) / median(whole):.2f} of reading it"
    )
    db.close()
    store.close()


def prototype_tail(path: Path) -> list[bytes]:
    """The newest 400 rows by the simplest code there is: opened, fetched, closed."""
    db = sqlite3.connect(path)
    rows = [
        blob
        for _, _, blob in db.execute("select seq, tokens, blob from events where sid = 's' order by seq desc limit 400")
    ]
    db.close()
    return rows


def measure_reading(folder: Path) -> None:
    path = folder / "reading.db"
    store = SqliteStore(path)
    store.create("s")
    raw = sqlite3.connect(folder / "prototype.db", isolation_level=None)
    raw.execute("pragma journal_mode = wal")
    raw.execute("create table events (sid text, seq int, tokens int, blob blob, primary key (sid, seq))")
    for _ in range(100):
        records = store.append("s", [draft("word " * 220) for _ in range(100)])
        raw.executemany("insert into events values ('s', ?, 300, ?)", [(record.n, record.raw) for record in records])
    raw.close()
    whole = median(seconds(lambda: sum(1 for _ in store.read("s"))) for _ in range(5))
    back = median(seconds(lambda: next(store.read("s", reverse=True))) for _ in range(50))
    tail, cold, floor, decoded = [], [], [], []
    for _ in range(30):
        tail.append(seconds(lambda: list(store.read("s", first=9_601, reverse=True))))
        floor.append(seconds(prototype_tail, folder / "prototype.db"))
        decoded.append(seconds(lambda: [decode_record(raw) for raw in prototype_tail(folder / "prototype.db")]))

        def opened() -> None:
            again = SqliteStore(path)
            list(again.read("s", first=9_601, reverse=True))
            again.close()

        cold.append(seconds(opened))
    forking = [seconds(store.fork, "s", f"fork-{number}") for number in range(20)]
    print(
        f"read 10,000 records: {whole * 1e3:.0f} ms; the last 400 backwards: {median(tail) * 1e3:.2f} ms, "
        f"{median(tail) / median(floor):.2f} of the prototype ({median(floor) * 1e3:.2f} ms), "
        f"{median(tail) / median(decoded):.2f} of it with decoding; opened for it {median(cold) * 1e3:.2f} ms, "
        f"{median(cold) / median(floor):.2f}; the last one: {back * 1e6:.0f} us; fork: {median(forking) * 1e3:.2f} ms"
    )
    store.close()


def plain_fts(store: SqliteStore, path: Path) -> sqlite3.Connection:
    """The same records in FTS5 as it comes: it keeps the text a second time and makes the snippets."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("pragma journal_mode = wal")
    db.execute("create virtual table search using fts5(text, role, tokenize = 'unicode61 remove_diacritics 2')")
    db.execute("create table records (id integer primary key, session text, n integer, role text, time text)")
    db.execute("begin")
    number = 0
    for info in sorted(store.sessions(), key=lambda info: int(info.id[1:])):
        for record in store.read(info.id):
            number += 1
            role, text = role_and_text(record)
            db.execute("insert into search (rowid, text, role) values (?, ?, ?)", (number, text, role))
            db.execute("insert into records values (?, ?, ?, ?, ?)", (number, info.id, record.n, role, record.time))
    db.execute("commit")
    return db


ROW_IDS = "select rowid from search where search match ? order by rowid desc limit 20"
HITS = """select session, n, records.role, time, snippet(search, 0, '[', ']', '…', 24)
    from search join records on records.id = search.rowid where search match ? {} order by search.rowid desc limit 20"""


def measure_search(folder: Path) -> None:
    """Against FTS5 by itself: row ids alone, and the same hits with the snippets that FTS5 makes."""
    store = SqliteStore(folder / "search.db")
    words = [f"word{number}" for number in range(4000)]
    for session in range(20):
        store.create(f"s{session}")
        for start in range(0, 1000, 100):
            texts = (
                " ".join(words[(start + n) * (session + 7) * k % (37 + k * 19) % 4000] for k in range(1, 200))
                for n in range(100)
            )
            day = f"2026-01-{session + 1:02}T00:00:00.000Z"
            drafts = [draft(f"{text} number{start + n}") for n, text in enumerate(texts)]
            store.append(f"s{session}", [Draft(made.body, day) for made in drafts])
    filling = seconds(store.search, "word1")
    db = plain_fts(store, folder / "plain.db")
    questions: tuple[tuple[str, dict[str, str], str, str], ...] = (
        ("word1", {}, "word1", ""),
        ("word1 word2", {}, "word1 word2", ""),
        ("number77", {}, "number77", ""),
        ('"word40 word1"', {}, '"word40 word1"', ""),
        ("word39*", {}, "word39*", ""),
        ("word1", {"session": "s7"}, "word1", "and search.rowid between 7001 and 8000"),
        ("word1", {"role": "assistant"}, "word1 AND role : assistant", ""),
        ("word1", {"until": "2026-01-05"}, "word1", "and time < '2026-01-06'"),
    )
    for query, options, match, condition in questions:
        mine, bare, hits = [], [], []
        for _ in range(100):
            mine.append(seconds(lambda query=query, options=options: store.search(query, limit=20, **options)))
            bare.append(seconds(lambda match=match: db.execute(ROW_IDS, (match,)).fetchall()))
            hits.append(
                seconds(lambda match=match, extra=condition: db.execute(HITS.format(extra), (match,)).fetchall())
            )
        print(
            f"search {query} {options or ''}, newest 20 of 20,000 records: {median(mine) * 1e3:.2f} ms, "
            f"{median(mine) / median(hits):.2f} of FTS5's own hits, {median(mine) / median(bare):.1f} of row ids alone"
        )
    store.append("s3", [draft("fresh")])
    again = seconds(store.search, "fresh")
    deleting = seconds(store.delete, "s7")
    print(
        f"index of 20,000 records made in {filling:.1f} s; search after an append {again * 1e3:.2f} ms; "
        f"delete of 1,000 of the records {deleting * 1e3:.0f} ms"
    )
    db.close()
    store.close()


def measure_size(folder: Path) -> None:
    small = SqliteStore(folder / "small.db")
    small.create("s")
    for turn in range(400):
        small.append("s", [draft(f"{turn:04} " + "a" * 795)])
    beside = sum(os.path.getsize(file) for file in folder.glob("small.db*"))
    small.close()
    print(f"400 messages of 800 characters: {beside / 1e6:.2f} MB while open")
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
        measure_bills(folder)
        measure_reading(folder)
        measure_search(folder)
        measure_size(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
