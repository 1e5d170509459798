"""Sessions with models that bind their thinking, in bulk, judged as the API would.

    python bench/bound_thinking.py --requests 100000 --shared ../shared [--jobs 2] [--start 0]

Lives sessions of 45 steps in any order (tests/thinking_sessions.py): answers with thinking, tools whose results come
late, other tools, system text, budgets, strategies, models and providers, compactions, rewinds, reopening. Counts the
thinking blocks and bodies that the API would refuse, and requests that a session opened anew would send otherwise.
Seven of ten sessions ask for the beta features with which tools are added and removed in mid-conversation. Prints a
line a finding and a summary.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import count, islice
from pathlib import Path

ROOT = Path(__file__).parent.parent
BATCH = 20


def work(seeds: range, shared: str) -> tuple[Counter[str], list[str]]:
    """The findings of some sessions."""
    sys.path[:0] = [str(ROOT / "tests"), str(Path(shared) / "oracle")]
    binding, oracle = importlib.import_module("binding"), importlib.import_module("oracle")
    sessions = importlib.import_module("thinking_sessions")
    warnings.simplefilter("ignore")
    kinds, often = list(sessions.STEPS), list(sessions.STEPS.values())
    tally: Counter[str] = Counter()
    findings: list[str] = []
    for seed in seeds:
        draw = random.Random(seed)
        steps = [(kind, draw.randrange(10_000)) for kind in draw.choices(kinds, often, k=45)]
        model, strategy = draw.choice(sessions.MODELS), draw.choice(sessions.STRATEGIES)
        budget, betas = draw.choice([None, 4_000, 12_000]), draw.random() < 0.7
        life = sessions.play(binding, model, strategy, budget, steps, oracle=oracle, betas=betas)
        tally += life.counts
        tally["sessions"] += 1
        tally["findings"] += len(life.findings)
        findings += (f"{seed} {model} {strategy}: {one}" for one in life.findings)
    return tally, findings


def run(description: str, work: Callable[[range, str], tuple[Counter[str], list[str]]], batch: int) -> int:
    """Have `work` live batches of sessions until enough requests were made, and print what it found."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000)
    parser.add_argument("--shared", default=str(ROOT.parent / "shared"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--start", type=int, default=0)
    options = parser.parse_args()
    tally: Counter[str] = Counter()
    starts = count(options.start, batch)
    with ProcessPoolExecutor(options.jobs) as pool:
        while tally["requests"] < options.requests:
            jobs = [pool.submit(work, range(at, at + batch), options.shared) for at in islice(starts, options.jobs)]
            for job in jobs:
                counted, found = job.result()
                tally += counted
                print(*found, sep="\n", end="\n" if found else "", flush=True)
    print("  ".join(f"{name}: {n:,}" for name, n in sorted(tally.items())))
    return 1 if tally["findings"] else 0


if __name__ == "__main__":
    sys.exit(run(__doc__ or "", work, BATCH))
