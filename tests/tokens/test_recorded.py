"""Recorded requests and sessions with their bills: the bars that docs/counting.md states.

The replay itself is that of `bench/run.py counts` and `bench/run.py chains`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from harness import quantile
from quality import chains, counts
from turnlog.importers import read_file


@pytest.mark.slow
def test_counts_of_recorded_requests(shared: Path) -> None:
    """Framing, factors or tool forms that fit the bills less well than promised fail here."""
    folder = shared / "data/token_truth"
    groups: dict[str, list[Any]] = defaultdict(list)
    for line in (folder / "requests.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if counts.in_population(row):
            group = counts.group_of(row)
            groups[group].append(counts.counted(row, folder / "blobs", group, vertex=False))
    passed = {name: sum(map(counts.TESTS[name][1], rows)) / len(rows) for name, rows in groups.items()}
    tools = [row.off for row in groups["openai, tools"]]
    assert passed["openai, plain"] >= 0.96
    assert quantile(tools, 0.5) <= 0.02
    assert quantile(tools, 0.9) <= 0.085
    assert passed["anthropic"] >= 0.85
    assert passed["google"] >= 0.90
    claimed = [row for rows in groups.values() for row in rows if row.certainty == "exact"]
    assert len(claimed) > 450
    assert sum(row.counted == row.billed for row in claimed) / len(claimed) >= 0.99


@pytest.mark.slow
def test_counts_by_model(shared: Path) -> None:
    """A new vocabulary, frame or hidden prompt that makes all counts of a model too low or too high."""
    folder = shared / "data/token_truth"
    models: dict[str, list[counts.Row]] = defaultdict(list)
    for line in (folder / "requests.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if counts.judges(row) and not counts.left_out(row):
            judged = counts.counted(row, folder / "blobs", "", vertex=True)
            assert judged is not None
            models[counts.undated(judged.model)].append(judged)
    many = {name: rows for name, rows in models.items() if len(rows) >= 10}
    assert len(many) >= 10
    medians = {name: median((row.counted - row.billed) / row.billed for row in rows) for name, rows in many.items()}
    assert {name: found for name, found in medians.items() if abs(found) > 0.03} == {}
    large = {name: [row for row in rows if row.billed >= 200] for name, rows in many.items()}
    assert {
        name: found for name, rows in large.items() if (found := quantile([r.off for r in rows], 0.95)) > 0.15
    } == {}


@pytest.mark.slow
def test_predictions_along_recorded_sessions(shared: Path) -> None:
    """Calibration that predicts the next bill less well than promised fails here."""
    groups: dict[str, list[float]] = defaultdict(list)
    for line in (shared / "data/token_truth/chains.jsonl").read_text("utf-8").splitlines():
        chain = json.loads(line)
        if chain["format"] not in ("pi-jsonl", "mini-swe-traj", "gemini-cli-json"):
            continue  # the others take longer and are measured by `bench/run.py chains`
        for session in read_file(shared / "data" / chain["file"]):
            groups[chain["format"]] += [judged.off for judged in chains.replay(session, chain)]
    means = {name: sum(errors) / len(errors) for name, errors in groups.items()}
    assert {name: mean for name, mean in means.items() if mean > 0.01} == {}
    assert quantile(groups["pi-jsonl"], 0.99) <= 0.04
    assert len(groups["pi-jsonl"]) > 400 and len(groups["mini-swe-traj"]) > 500
