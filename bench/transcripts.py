"""Real transcripts against the oracle, whole and cut at random records.

    python bench/transcripts.py --cuts 25 --shared ../shared [--jobs 2]

Prints what the oracle refuses and what went missing in silence, and how many requests were made.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))


def work(index: int, jobs: int, shared: str, times: int) -> tuple[Counter[str], list[str]]:
    sys.path.insert(0, str(Path(shared) / "oracle"))
    oracle = importlib.import_module("oracle")
    transcripts = importlib.import_module("real_transcripts")
    tally: Counter[str] = Counter()
    findings: list[str] = []
    for number, (path, session) in enumerate(transcripts.imported(Path(shared))):
        if number % jobs != index:
            continue
        tally["sessions"] += 1
        for turn, records in enumerate(transcripts.cuts(session, times)):
            for aim in transcripts.JUDGED:
                tally["requests"] += 1
                try:
                    wrong, kinds = transcripts.judge(records, session, aim, oracle)
                except Exception:
                    wrong, kinds = [traceback.format_exc()], set()
                if turn == 0:
                    tally.update(f"whole, edit {kind}" for kind in kinds)
                start = records[0].n if records else 0
                where = f"{path.name} {session.session_id} [{start}, {len(records)} records] {aim.provider}"
                findings += [f"{where}: {what}" for what in wrong]
    return tally, findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuts", type=int, default=25)
    parser.add_argument("--shared", default=str(ROOT.parent / "shared"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", type=int, default=40)
    options = parser.parse_args()
    tally: Counter[str] = Counter()
    findings: list[str] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        arguments = [(index, options.jobs, options.shared, options.cuts) for index in range(options.jobs)]
        for counted, found in pool.map(work, *zip(*arguments, strict=True)):
            tally += counted
            findings += found
    for line in findings[: options.show]:
        print(line[:600])
    tally["findings"] = len(findings)
    for name, count in sorted(tally.items()):
        print(f"{name:32} {count:>9,}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
