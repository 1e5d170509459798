"""Packed sessions: how much room is saved on real transcripts, and what it costs to read and search them.

    python bench/packing.py --shared ../shared [--max-bytes 3000000]

Each transcript below `--max-bytes` is imported into a store of its own kind; sizes are those of all files before and
after every session is packed. Times are ratios against the same store before: reading everything, searching for a
word, and opening a session. Last, encryption: the same figures for encrypted stores, against plain ones.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from turnlog.errors import InputError
from turnlog.importers import Imported
from turnlog.importers.sync import sync_session
from turnlog.log.store import Store
from turnlog.stores import open_store

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
WORD = "function"


def imports(shared: Path, most: int) -> list[Imported]:
    """The transcripts, the small ones."""
    from real_transcripts import imported

    return [session for path, session in imported(shared) if path.stat().st_size <= most]


def room(folder: Path) -> int:
    """How many bytes the files of a store take."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def seconds(work: Callable[[], object]) -> float:
    """How long it takes, the best of three."""
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return best


def read_all(store: Store) -> int:
    """Reads every record."""
    return sum(1 for info in store.sessions() for _ in store.read(info.id))


def measure(store: Store) -> tuple[float, float]:
    """Seconds for reading everything, and for a search."""
    return seconds(lambda: read_all(store)), seconds(lambda: store.search(WORD, limit=50))  # type: ignore[attr-defined]


def main() -> None:
    """Print a line for each kind of store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--max-bytes", type=int, default=1_000_000)
    arguments = parser.parse_args()
    if not arguments.shared.is_dir():
        print(f"no transcripts: {arguments.shared} is no folder")
        return
    sessions = imports(arguments.shared, arguments.max_bytes)
    plain: dict[str, tuple[float, float]] = {}
    for kind, key in (  # plain ones first: the others are compared with them
        ("sqlite", None),
        ("files", None),
        ("sqlite", bytes(32)),
        ("files", bytes(32)),
    ):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            url = f"{'files:' if kind == 'files' else ''}{folder}/store"
            store = open_store(url, key=key)
            begin = time.perf_counter()
            kept = 0
            for session in sessions:
                try:
                    kept += sync_session(store, session).added
                except InputError:
                    continue
            wrote = time.perf_counter() - begin
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
            records = sum(one.before for one in done) / max(sum(one.after for one in done), 1)
        label = kind + (" encrypted" if key else "")
        print(f"{label}: {len(ids)} sessions, {kept:,} records; import {wrote:.1f} s")
        print(f"  files {loose:,} -> {packed:,} bytes, {loose / packed:.2f} to 1; records alone {records:.2f} to 1")
        print(f"  packed: reading {after[0] / before[0]:.2f} times as long, searching {after[1] / before[1]:.2f} times")
        if key is None:
            plain[kind] = before
        else:
            read, found = (mine / theirs for mine, theirs in zip(before, plain[kind], strict=True))
            print(f"  encrypted against plain: reading {read:.2f} times as long, searching {found:.2f} times")


if __name__ == "__main__":
    main()
