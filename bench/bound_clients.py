"""Sessions with models that bind their thinking, with real SDK clients against a server that binds it.

    python bench/bound_clients.py --requests 2000 --shared ../shared [--jobs 2] [--start 0]

Lives sessions of 30 turns or more (tests/clients/bound_sessions.py): other tools, system text, budgets, strategies,
models and providers, compactions, rewinds, reopening. Every second answer is streamed. A fifth of the sessions asks the
API to leave out what it would refuse. Counts refused requests. Prints a line a finding and a summary.
"""

from __future__ import annotations

import importlib
import logging
import sys
import warnings
from collections import Counter
from pathlib import Path

from bound_thinking import run

ROOT = Path(__file__).parent.parent
BATCH, STEPS = 8, 65  # about every second step makes a request


def work(seeds: range, shared: str) -> tuple[Counter[str], list[str]]:
    """The findings of some sessions."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "clients"), str(Path(shared) / "oracle")]
    binding, oracle = importlib.import_module("binding"), importlib.import_module("oracle")
    servers, sessions = importlib.import_module("fake_server"), importlib.import_module("bound_sessions")
    warnings.simplefilter("ignore")
    logging.getLogger("turnlog").setLevel(logging.ERROR)
    tally: Counter[str] = Counter()
    findings: list[str] = []
    with servers.FakeServer(bind_thinking=True) as server:
        for seed, life in zip(seeds, sessions.lives(server, binding, oracle, seeds, STEPS), strict=True):
            tally += life.counts
            tally["sessions"] += 1
            tally["findings"] += len(life.findings)
            findings += (f"{seed} {life.model}: {one}" for one in life.findings)
    return tally, findings


if __name__ == "__main__":
    sys.exit(run(__doc__ or "", work, BATCH))
