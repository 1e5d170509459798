"""How far a store may be from plain SQLite, and a long session from a short one: five ratios with their bars.

All figures are CPU time, and each is a median. What is compared is measured by turns, so that a busy machine slows
both.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import turnlog
from harness import Report, bench, by_turns
from speed.long_session import make
from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft, SessionInfo
from turnlog.stores import SqliteStore
from turnlog.stores.sqlite.schema import upgrade

BLOCK = 100
SESSIONS = 10_000
ZEROS = bytes(32)
_FIRST_OPEN = """
import sys, time
import turnlog
start = time.process_time()
turnlog.open("first", store=sys.argv[1], target=turnlog.target("openai-chat", "gpt-4o"))
print(time.process_time() - start)
"""


def draft(text: str) -> Draft:
    return Draft(MessageRecord(Message("assistant", (Text(text),))))


def database(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("pragma journal_mode = wal")
    db.execute("pragma synchronous = normal")
    return db


def plain_tables(path: Path) -> sqlite3.Connection:
    """Tables that somebody would write by hand."""
    db = database(path)
    db.execute("create table log (id integer primary key, kind text, record text)")
    db.execute("create table sessions (no integer primary key, updated text, records integer)")
    db.execute("insert into sessions values (1, '', 0)")
    return db


def plain_append(db: sqlite3.Connection, n: int, text: str) -> None:
    db.execute("begin immediate")
    db.execute("insert into log values (?, 'message', ?)", (n, text))
    db.execute("update sessions set updated = ?, records = ? where no = 1", (text[:24], n))
    db.execute("commit")


def same_tables(path: Path) -> sqlite3.Connection:
    """The store's own tables, to be written to by bare statements."""
    db = database(path)
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


def appends(report: Report, folder: Path, rounds: int) -> None:
    """An append, against statements that write the same rows, and against the least that one would write by hand."""
    store = SqliteStore(folder / "store.db")
    store.create("s")
    same, plain = same_tables(folder / "same.db"), plain_tables(folder / "plain.db")
    drafts = [draft("word " * 220)]
    encoded = (store.append("s", drafts)[0].raw or b"").decode()
    numbers = [iter(range(2, 10**9)) for _ in range(2)]
    works = {
        "store": lambda: store.append("s", drafts),
        "same": lambda: same_append(same, next(numbers[0]), encoded),
        "plain": lambda: plain_append(plain, next(numbers[1]), encoded),
    }
    taken = by_turns(works, 20 * rounds, times=BLOCK)
    for one in (store, same, plain):
        one.close()
    figures = {
        "times the same rows in plain sqlite3": taken.ratio("store", "same"),
        "µs": taken.median("store") * 1e6,
        "times rows without kinds and checksums": taken.ratio("store", "plain"),
    }
    report.row("append", figures, at_most={"times the same rows in plain sqlite3": 1.5})


def newest(report: Report, folder: Path, rounds: int) -> None:
    """A listing of the newest 50 sessions, against one SELECT that an index serves."""
    path = folder / "listing.db"
    store = SqliteStore(path)
    for number in range(SESSIONS):
        store.create(f"session-{number}", title=f"What to do about number {number}")
    db = sqlite3.connect(path)
    query = (
        f"select {', '.join(SessionInfo.__struct_fields__)} from sessions where id is not null "
        "order by updated desc, no desc limit 50"
    )
    works = {"store": lambda: store.sessions(limit=50), "select": lambda: db.execute(query).fetchall()}
    taken = by_turns(works, 20 * rounds, times=10)
    db.close()
    store.close()
    figures = {"times one SELECT": taken.ratio("store", "select"), "ms": taken.median("store") * 1e3}
    report.row("newest 50 of 10,000 sessions", figures, at_most={"times one SELECT": 2})


def searches(report: Report, folder: Path, rounds: int) -> None:
    """A search for what was said until a day, against the same search without one. The worst of several days."""
    store = SqliteStore(folder / "search.db")
    for session in range(20):
        store.create(f"s{session}")
        day = f"2026-01-{session + 1:02}T00:00:00.000Z"
        words = (" ".join(f"word{n * k * (session + 7) % 4000}" for k in range(1, 200)) for n in range(1000))
        store.append(f"s{session}", [Draft(draft(f"word {text}").body, day) for text in words])
    store.search("word")
    ratios: dict[float, float] = {}
    for query in ("word", "word1 word7"):
        for day in ("2026-01-02", "2026-01-05", "2026-01-19"):
            works = {
                "until": lambda query=query, day=day: store.search(query, limit=20, until=day),
                "free": lambda query=query: store.search(query, limit=20),
            }
            taken = by_turns(works, 4 * rounds, times=10)
            ratios[taken.ratio("until", "free")] = taken.median("until") * 1e3
    store.close()
    worst = max(ratios)
    figures = {"times the same without": worst, "ms": ratios[worst]}
    report.row("search with `until`", figures, at_most={"times the same without": 2})


def reopening(report: Report, folder: Path, rounds: int) -> None:
    """Opening a session of 50,000 messages and making its next request, against one of 10,000."""
    places = {records: str(folder / f"long-{records}.db") for records in (10_000, 50_000)}
    for records, place in places.items():
        make(place, records)

    def resume(place: str) -> None:
        with turnlog.open("long", store=place) as session:
            session.request()

    works = {"few": lambda: resume(places[10_000]), "many": lambda: resume(places[50_000])}
    taken = by_turns(works, 3 * rounds)
    figures = {
        "times 10,000": taken.ratio("many", "few"),
        "ms": taken.median("many") * 1e3,
        "ms of 10,000": taken.median("few") * 1e3,
    }
    report.row("open 50,000 messages, next request", figures, at_most={"times 10,000": 1.5})


def first_open(report: Report, folder: Path, rounds: int) -> None:
    """The first open of a process, `import turnlog` excluded. Compiled modules are at hand, as in what pip installs."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}

    def once(number: int, **options: str) -> float:
        place = str(folder / f"first-{number}.db")
        command = [sys.executable, "-c", _FIRST_OPEN, place]
        done = subprocess.run(command, env={**environment, **options}, capture_output=True, text=True, check=True)
        return float(done.stdout)

    once(0)
    taken = median(once(1 + number) for number in range(2 * rounds))
    nowhere = str(folder / "nowhere")
    compiling = median(
        once(-1 - number, PYTHONDONTWRITEBYTECODE="1", PYTHONPYCACHEPREFIX=nowhere) for number in range(rounds)
    )
    figures = {"ms": taken * 1e3, "ms where Python has to compile each module first": compiling * 1e3}
    report.row("first open of a process", figures, at_most={"ms": 250})


@bench(quick={"rounds": 1})
def stores(report: Report, *, rounds: int = 5) -> None:
    """A store beside plain SQLite, and a long session beside a short one: five ratios with their bars."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TURNLOG_BENCH_DIR")) as name:
        for measure in (appends, newest, searches, reopening, first_open):
            measure(report, Path(name), rounds)
