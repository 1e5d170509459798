"""Generated (history, budget, strategy) triples against the reference model and the oracle, in bulk.

    python bench/budgets.py --triples 10000 --shared ../shared [--jobs 2] [--start 0] [--by-turns]

Plays each triple message by message for each API (with `--by-turns` for one of them), with pins, clearing, undoing,
compacting, forks, rewinds and switches in between, and checks what tests/budget_triples.py checks. The odd ones are
given no tools; in a third the user forbids things; a third curates outputs from the middle of the history on. Prints a
line a finding and a summary. `over_as_sent` counts requests of damaged logs that `turnlog.count` finds over the limit;
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


def work(seeds: range, shared: str, by_turns: bool) -> tuple[Counter[str], list[str]]:
    """The findings of some triples, for every API or for one, by turns."""
    sys.path[:0] = [str(ROOT / "tests"), str(Path(shared) / "oracle")]
    oracle = importlib.import_module("oracle") if (Path(shared) / "oracle").is_dir() else None
    triples = importlib.import_module("budget_triples")
    tally: Counter[str] = Counter()
    findings: list[str] = []
    for seed in seeds:
        aims = triples.AIMS[seed // 6 % len(triples.AIMS) :][:1] if by_turns else triples.AIMS
        for aim in aims:
            try:
                ways = {"tools": seed % 2 == 0, "orders": seed % 3 == 1, "late": seed % 3 == 2}
                wrong, done = triples.play(seed, aim, oracle, **ways)
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
    parser.add_argument("--by-turns", action="store_true", help="play each triple for one API, not for all")
    parser.add_argument("--show", type=int, default=40)
    options = parser.parse_args()
    end = options.start + options.triples
    tally: Counter[str] = Counter()
    shown = 0
    with ProcessPoolExecutor(options.jobs) as pool:
        starts = range(options.start, end, 20)
        jobs = [pool.submit(work, range(at, min(at + 20, end)), options.shared, options.by_turns) for at in starts]
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
