"""Packed sessions: how much room is saved on real transcripts, and what it costs to read and search them.

Each transcript below `--max-bytes` is imported into a store of its own kind; sizes are those of all files before and
after every session is packed. Times are ratios against the same store before: reading everything, searching for a
word, and opening a session. Last, encryption: the same figures for encrypted stores, against plain ones.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import perf_counter

from harness import Report, Times, bench, by_turns, seconds, transcripts
from turnlog.errors import InputError
from turnlog.importers import Imported
from turnlog.importers.sync.session import sync_session
from turnlog.log.store import Store
from turnlog.stores import open_store

WORD = "function"


def room(folder: Path) -> int:
    """How many bytes the files of a store take."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def read_all(store: Store) -> int:
    """Reads every record."""
    return sum(1 for info in store.sessions() for _ in store.read(info.id))


def measure(store: Store) -> Times:
    """Seconds for reading everything, and for a search."""
    search = lambda: store.search(WORD, limit=50)  # type: ignore[attr-defined]  # noqa: E731
    return by_turns({"reading": lambda: read_all(store), "searching": search}, 3, clock=perf_counter)


def ratios(some: Times, floor: Times) -> dict[str, float]:
    """How many times as long as the floor it takes, the best of each."""
    return {f"times as long {name}": min(some[name]) / min(floor[name]) for name in floor}


def keep(store: Store, sessions: list[Imported]) -> int:
    """Import all sessions. Returns how many records that were."""
    kept = 0
    for session in sessions:
        try:
            kept += sync_session(store, session).added
        except InputError:
            continue
    return kept


@bench(quick={"max_bytes": 100_000})
def packing(report: Report, *, max_bytes: int = 1_000_000) -> None:
    """How much room packed sessions save on real transcripts, and what packing and encryption cost."""
    sessions = [session for path, session in transcripts() if path.stat().st_size <= max_bytes]
    plain: dict[str, Times] = {}
    for kind, key in (
        ("sqlite", None),
        ("files", None),
        ("sqlite", bytes(32)),
        ("files", bytes(32)),
    ):  # plain ones first
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            url = f"{'files:' if kind == 'files' else ''}{folder}/store"
            store, kept = open_store(url, key=key), []
            wrote = seconds(lambda store=store, kept=kept: kept.append(keep(store, sessions)))  # type: ignore[misc]
            before = measure(store)
            store.close()
            loose = room(folder)
            store = open_store(url, key=key)
            ids = [info.id for info in store.sessions()]
            done = [store.pack(session_id) for session_id in ids]  # type: ignore[attr-defined]
            store.reclaim()
            after = measure(store)
            store.close()
            packed = room(folder)
        label = kind + (" encrypted" if key else "")
        report.row(label, {"sessions": len(ids), "records": kept[0], "s of CPU to import": wrote})
        records = sum(one.before for one in done) / max(sum(one.after for one in done), 1)
        sizes = {"bytes": loose, "bytes packed": packed, "to 1": loose / packed, "to 1, records alone": records}
        report.row(f"{label}, packed", {**sizes, **ratios(after, before)})
        if key is None:
            plain[kind] = before
        else:
            report.row(f"{label}, of plain", ratios(before, plain[kind]))
