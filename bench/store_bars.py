"""How far a store may be from plain SQLite, and a long session from a short one: five ratios with their bars.

    python bench/store_bars.py [--rounds N]

All figures are CPU time, and each is a median. What is compared is measured by turns, so that a busy machine slows
both. Exits with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from long_session import make
from store_speed import SESSIONS, draft, raw_append, raw_database, same_append, same_shape

import turnlog
from turnlog.log.store import Draft, SessionInfo
from turnlog.stores import SqliteStore

BLOCK = 100
_FIRST_OPEN = """
import sys, time
import turnlog
start = time.process_time()
turnlog.open("first", store=sys.argv[1], target=turnlog.target("openai-chat", "gpt-4o"))
print(time.process_time() - start)
"""


def cpu(use: Callable[[], object], times: int = 1) -> float:
    """Seconds of processor time of a call, on average over so many."""
    start = time.process_time()
    for _ in range(times):
        use()
    return (time.process_time() - start) / times


def bar(name: str, ratio: float, most: float, detail: str) -> bool:
    print(f"{name}: {ratio:.2f}, at most {most:g}: {'kept' if ratio <= most else 'MISSED'} ({detail})", flush=True)
    return ratio <= most


def appends(folder: Path, rounds: int) -> bool:
    """An append, against statements that write the same rows, and against the least that one would write by hand."""
    store = SqliteStore(folder / "store.db")
    store.create("s")
    same, plain = same_shape(folder / "same.db", "normal"), raw_database(folder / "plain.db", "normal")
    drafts = [draft("word " * 220)]
    encoded = (store.append("s", drafts)[0].raw or b"").decode()
    numbers = [iter(range(2, 10**9)) for _ in range(2)]
    takes: dict[str, list[float]] = {"store": [], "same": [], "plain": []}
    for _ in range(20 * rounds):
        takes["store"].append(cpu(lambda: store.append("s", drafts), BLOCK))
        takes["same"].append(cpu(lambda: same_append(same, next(numbers[0]), encoded), BLOCK))
        takes["plain"].append(cpu(lambda: raw_append(plain, next(numbers[1]), encoded, bump=True), BLOCK))
    own, same_rows, plain_rows = (median(takes[name]) for name in ("store", "same", "plain"))
    for one in (store, same, plain):
        one.close()
    detail = f"{own * 1e6:.0f} us; {own / plain_rows:.2f} of rows without kinds and checksums"
    return bar("append, of the same rows in plain sqlite3", own / same_rows, 1.5, detail)


def newest(folder: Path, rounds: int) -> bool:
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
    mine, floor = [], []
    for _ in range(20 * rounds):
        mine.append(cpu(lambda: store.sessions(limit=50), 10))
        floor.append(cpu(lambda: db.execute(query).fetchall(), 10))
    db.close()
    store.close()
    own = median(mine)
    return bar("newest 50 of 10,000 sessions, of one SELECT", own / median(floor), 2, f"{own * 1e3:.2f} ms")


def searches(folder: Path, rounds: int) -> bool:
    """A search for what was said until a day, against the same search without one. The worst of several days."""
    store = SqliteStore(folder / "search.db")
    for session in range(20):
        store.create(f"s{session}")
        day = f"2026-01-{session + 1:02}T00:00:00.000Z"
        words = (" ".join(f"word{n * k * (session + 7) % 4000}" for k in range(1, 200)) for n in range(1000))
        store.append(f"s{session}", [Draft(draft(f"word {text}").body, day) for text in words])
    store.search("word")
    worst, detail = 0.0, ""
    for query in ("word", "word1 word7"):
        for day in ("2026-01-02", "2026-01-05", "2026-01-19"):
            timed, free = [], []
            for _ in range(4 * rounds):
                timed.append(cpu(lambda query=query, day=day: store.search(query, limit=20, until=day), 10))
                free.append(cpu(lambda query=query: store.search(query, limit=20), 10))
            if (ratio := median(timed) / median(free)) > worst:
                worst, detail = ratio, f"{query!r} until {day}: {median(timed) * 1e3:.2f} ms"
    store.close()
    return bar("search with `until`, of the same without", worst, 2, detail)


def reopening(folder: Path, rounds: int) -> bool:
    """Opening a session of 50,000 messages and making its next request, against one of 10,000."""
    places = {records: str(folder / f"long-{records}.db") for records in (10_000, 50_000)}
    for records, place in places.items():
        make(place, records)

    def resume(place: str) -> None:
        with turnlog.open("long", store=place) as session:
            session.request()

    takes: dict[int, list[float]] = {records: [] for records in places}
    for _ in range(3 * rounds):
        for records, place in places.items():
            takes[records].append(cpu(lambda place=place: resume(place)))
    few, many = (median(each) for each in takes.values())
    detail = f"{many * 1e3:.1f} ms, {few * 1e3:.1f} ms"
    return bar("open and next request, 50,000 messages of 10,000", many / few, 1.5, detail)


def first_open(folder: Path, rounds: int) -> bool:
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
    detail = f"{taken * 1e3:.0f} ms; {compiling * 1e3:.0f} ms where Python has to compile each module first"
    return bar("first open of a process, of 250 ms", taken / 0.25, 1, detail)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(dir=os.environ.get("TURNLOG_BENCH_DIR")) as name:
        kept = [measure(Path(name), rounds) for measure in (appends, newest, searches, reopening, first_open)]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
