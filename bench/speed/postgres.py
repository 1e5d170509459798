"""How a PostgreSQL store on this machine compares with SQLite: appends, opening a session, many writers.

Starts a server of its own. Both stores commit each append to the disk
(`fsync`; SQLite with durability "full"). What is compared is measured by turns, and each figure is the median of the
rounds, so that a busy machine slows both. Needs psycopg and an installed server.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from functools import partial
from statistics import median
from time import perf_counter

import turnlog
from harness import TESTS, Report, Skipped, bench, module, quantile, seconds
from speed.long_session import make
from speed.stores import draft
from turnlog.log.store import Store
from turnlog.stores import open_store

APPENDS = 200
WRITERS = 8
EACH = 40
LENGTHS = (1_000, 10_000)
DRAFT = draft("word " * 220)

timed = partial(seconds, clock=perf_counter)
"""Seconds that a call takes, by the clock: most of it is waiting for the disk or the server."""


def append_times(store: Store) -> list[float]:
    """Seconds of each of many appends of one record."""
    return [timed(partial(store.append, "appends", [DRAFT])) for _ in range(APPENDS)]


def opened(place: str) -> None:
    """A session is opened, with all that its next request needs, and closed."""
    turnlog.open("long", store=place).close()


def write(place: str, session: str, go: object, done: object) -> None:
    """One of several processes that write at the same time."""
    store = open_store(place, durability="full")
    store.append(session, [DRAFT])
    go.wait()  # type: ignore[attr-defined]
    for _ in range(EACH):
        store.append(session, [DRAFT])
    done.wait()  # type: ignore[attr-defined]
    store.close()


def writers(place: str, sessions: list[str]) -> float:
    """Appends a second of all processes together, each to its session."""
    spawn = multiprocessing.get_context("spawn")
    go, done = spawn.Barrier(WRITERS + 1), spawn.Barrier(WRITERS + 1)
    each = [spawn.Process(target=write, args=(place, session, go, done)) for session in sessions]
    for one in each:
        one.start()
    go.wait()
    took = timed(done.wait)
    for one in each:
        one.join()
    return WRITERS * EACH / took


def prepared(place: str) -> Store:
    """A store with the sessions that are measured."""
    store = open_store(place, durability="full")
    for name in ("appends", "one", *map(str, range(WRITERS))):
        store.create(name)
    return store


def measured(report: Report, places: dict[str, list[str]], rounds: int) -> None:
    """Report all figures of both stores, and their ratios. Each has a place for short sessions, and one for the long
    session of each length."""
    stores = {name: prepared(place) for name, (place, *_) in places.items()}
    for _, *others in places.values():
        for length, place in zip(LENGTHS, others, strict=True):
            make(place, length)
    found: dict[str, dict[str, list[float]]] = {}

    def add(what: str, name: str, value: float) -> None:
        found.setdefault(what, {}).setdefault(name, []).append(value)

    for _ in range(rounds):
        for name, (place, *others) in places.items():
            times = [second * 1000 for second in append_times(stores[name])]
            add("append, median, ms", name, median(times))
            add("append, p99, ms", name, quantile(times, 0.99))
            for length, other in zip(LENGTHS, others, strict=True):
                took = median(timed(partial(opened, other)) for _ in range(3))
                add(f"open a session of {length:,} records, ms", name, took * 1000)
            sessions = list(map(str, range(WRITERS)))
            add(f"{WRITERS} processes, {WRITERS} sessions, appends/s", name, writers(place, sessions))
            add(f"{WRITERS} processes, one session, appends/s", name, writers(place, ["one"] * WRITERS))
    for what, values in found.items():
        first, second = (median(values[name]) for name in places)
        report.row(what, {**{name: median(values[name]) for name in places}, "ratio": second / first})
    for store in stores.values():
        assert store.verify() == []
        store.close()


@bench()
def postgres(report: Report, *, rounds: int = 5) -> None:
    """A PostgreSQL store on this machine beside SQLite: appends, opening a session, many writers."""
    server_module = module("postgres_server", TESTS)
    if (binary := server_module.binaries()) is None:
        raise Skipped("no PostgreSQL server is installed: apt-get install postgresql")
    with tempfile.TemporaryDirectory() as folder, server_module.running_server(binary, durable=True) as server:
        files = [f"{folder}/{name}.db" for name in ("short", *LENGTHS)]
        measured(report, {"sqlite": files, "postgres": [server.new_place() for _ in files]}, rounds)
