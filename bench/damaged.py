"""Damaged histories against the oracle, in bulk.

    python bench/damaged.py --histories 50000 --shared ../shared [--jobs 2] [--start 0] [--raw]
        [--home PROVIDER] [--only PROVIDER] [--curate]

Builds damaged histories, makes a request of each for every target of tests/judging.py, and counts
what the oracle refuses and what went missing in silence. `--raw` switches repair off: most requests
must then be refused, or the damage is no damage. Prints one line a finding and a summary.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from turnlog.log.records import Configuration
from turnlog.models.target import Target
from turnlog.providers import provider
from turnlog.providers.protocol import BlobReader
from turnlog.requests.build import build
from turnlog.requests.translate import plan
from turnlog.testing import damaged_history
from turnlog.view.curate.conversation import Curator, Rule
from turnlog.view.repair.repair import declare_tools
from turnlog.view.types import Shown

ROOT = Path(__file__).parent.parent


def unrepaired(view: Sequence[Shown], aim: Target, blob: BlobReader) -> dict[str, Any]:
    """A request with model, limits and tools, but with the conversation as it lies in the log."""
    speaker = provider(aim.provider)
    rules = speaker.rules(aim, aim.settings)
    tools, _ = declare_tools(view, (), rules)
    configuration = Configuration(provider=aim.provider, model=aim.model, settings=aim.settings, tools=tools)
    return speaker.sanitize(speaker.render(view, configuration, aim, blob).body, aim).body


def work(seeds: range, shared: str, raw: bool, home: str, only: str, curate: bool) -> tuple[Counter[str], list[str]]:
    sys.path[:0] = [str(ROOT / "tests"), str(Path(shared) / "oracle")]
    oracle = importlib.import_module("oracle")
    judging = importlib.import_module("judging")
    accounting = importlib.import_module("accounting")
    triples = importlib.import_module("budget_triples")
    tally: Counter[str] = Counter()
    findings: list[str] = []
    for seed in seeds:
        history = damaged_history(random.Random(seed), home)
        tally.update(f"damage:{name}" for name in history.damages)
        view = judging.shown(history)
        if curate:
            history = triples.with_outputs(random.Random(seed), history)
            curator = Curator(Rule(True))
            view = [curator.see(one, one) for one in judging.shown(history)]
            tally["histories with curated outputs"] += bool(curator.kinds)
        refused_raw: set[str] = set()
        for aim in (aim for aim in judging.TARGETS if only in ("", aim.provider)):
            name = f"{aim.provider}/{aim.model}"
            tally["requests"] += 1
            if raw:
                try:
                    request = unrepaired(view, aim, history.blobs.__getitem__)
                    if judging.errors_of(oracle, aim, request):
                        refused_raw.add(aim.provider)
                        tally["refused"] += 1
                except Exception as error:
                    findings.append(f"{seed} {name}: {error!r}")
                continue
            try:
                prepared = build(plan(Configuration(), aim), view, history.blobs.__getitem__)
                errors = judging.errors_of(oracle, aim, prepared.body)
                missing = accounting.unaccounted(
                    ((one.records[0], one.message) for one in view),
                    prepared.body,
                    [*prepared.edits, *prepared.losses],
                    history.blobs,
                )
            except Exception as error:
                errors, missing = [f"raised {error!r}"], []
            tally["refused"] += bool(errors)
            tally["silent"] += bool(missing)
            findings += [f"{seed} {name}: {what}" for what in (*errors, *missing)]
        tally["histories_refused"] += bool(refused_raw)
        tally["histories"] += 1
    return tally, findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=500)
    parser.add_argument("--shared", default=str(ROOT.parent / "shared"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--raw", action="store_true")
    parser.add_argument("--curate", action="store_true", help="with outputs that are curated")
    parser.add_argument("--only", default="", help="the provider of the targets (default: all)")
    parser.add_argument("--home", default="", help="the provider that answers (default: drawn for each)")
    parser.add_argument("--show", type=int, default=40)
    options = parser.parse_args()
    size = max(1, min(500, options.histories // options.jobs))
    end = options.start + options.histories
    chunks = [range(at, min(at + size, end)) for at in range(options.start, end, size)]
    tally: Counter[str] = Counter()
    findings: list[str] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        given = options.shared, options.raw, options.home, options.only, options.curate
        each = ([value] * len(chunks) for value in given)
        for counted, found in pool.map(work, chunks, *each):
            tally += counted
            findings += found
    for line in findings[: options.show]:
        print(line[:400])
    for name, count in sorted(tally.items()):
        share = f" ({count / tally['histories']:.1%})" if name.startswith(("damage", "histories_ref")) else ""
        print(f"{name:28} {count:>9,}{share}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
