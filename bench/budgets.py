"""Generated (history, budget, strategy) triples against the reference model and the oracle, in bulk.

    python bench/budgets.py --triples 10000 --shared ../shared [--jobs 2] [--start 0]

Plays each triple message by message for each API, with pins, clearing, undoing, compacting, forks, rewinds and
switches in between, and checks what tests/budget_triples.py checks; the odd ones are given no tools. Prints a line a
finding and a summary. `over_as_sent` counts requests of damaged logs that `turnlog.count` finds over the limit;
`fingerprint` is the same where every byte of every request is.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).parent.parent


def work(seeds: range, shared: str) -> tuple[Counter[str], list[str]]:
    """The findings of some triples, for every API."""
    sys.path[:0] = [str(ROOT / "tests"), str(Path(shared) / "oracle")]
    oracle = importlib.import_module("oracle") if (Path(shared) / "oracle").is_dir() else None
    triples = importlib.import_module("budget_triples")
    tally: Counter[str] = Counter()
    findings: list[str] = []
    for seed in seeds:
        for aim in triples.AIMS:
            try:
                wrong, done = triples.play(seed, aim, oracle, tools=seed % 2 == 0)
            except Exception as error:
                wrong, done = [f"{seed} {aim.provider}: raised {error!r}"], Counter()
            tally += done
            tally["plays"] += 1
            tally["plays that fail"] += bool(wrong)
            findings += wrong
    return tally, findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triples", type=int, default=100)
    parser.add_argument("--shared", default=str(ROOT.parent / "shared"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--show", type=int, default=40)
    options = parser.parse_args()
    end = options.start + options.triples
    tally: Counter[str] = Counter()
    shown = 0
    with ProcessPoolExecutor(options.jobs) as pool:
        starts = range(options.start, end, 20)
        jobs = [pool.submit(work, range(at, min(at + 20, end)), options.shared) for at in starts]
        for job in as_completed(jobs):
            counted, found = job.result()
            tally += counted
            for line in found[: max(0, options.show - shown)]:
                print(line[:400], flush=True)
            shown += len(found)
    for name, count in sorted(tally.items()):
        print(f"{name:28} {count:>9,}")
    return 1 if shown else 0


if __name__ == "__main__":
    sys.exit(main())
