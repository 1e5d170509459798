"""turnlog on the shared trimmer bench, beside the reference's own rows from the same run.

    python bench/trimmers_.py --shared ../shared [--budgets 1500,2000,3000,6000,12000]

Sixty requests of a growing history in the bench's own token unit: views that are not legal, views over the budget,
and the share of each view that the one before it began with. The reference is a window with hysteresis for
`sliding` (cut to 50 %) and clearing of results with hysteresis for `mask`. For `auto` a giant of the live turn is
cut, so that it answers where the others refuse. Prints `refused wrongly`: refusals where system, task and live turn
fit, and answers where they do not.

The reference clears results and nothing else: at small budgets many of its views are over them. So the shares of `mask`
and of it are printed, too, for those requests only in which both give a view within the budget.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from turnlog.errors import BudgetError
from turnlog.requests.fit import Fitter

ROOT = Path(__file__).parent.parent
Neutral = dict[str, Any]
Trimmer = Callable[[list[Neutral]], list[Neutral]]


def to_chat(message: Neutral) -> Neutral:
    """A message of the bench as Chat Completions has it."""
    if message["role"] == "tool":
        return {"role": "tool", "tool_call_id": message["call_id"], "content": message["text"]}
    made: Neutral = {"role": message["role"], "content": message["text"]}
    if message.get("calls"):
        made["tool_calls"] = [
            {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": json.dumps(c["args"])}}
            for c in message["calls"]
        ]
    return made


def to_neutral(message: Neutral) -> Neutral:
    """And back."""
    text = message.get("content") or ""
    if message["role"] == "tool":
        return {"role": "tool", "call_id": message["tool_call_id"], "name": "read", "text": text}
    made: Neutral = {"role": message["role"], "text": text}
    if message["role"] == "assistant":
        calls = [(c["id"], c["function"]) for c in message.get("tool_calls", [])]
        made["calls"] = [{"id": n, "name": f["name"], "args": json.loads(f["arguments"])} for n, f in calls]
    return made


class Adapter:
    """A trimmer of one strategy, which watches when it refuses."""

    def __init__(self, strategy: str, budget: int, bench: ModuleType) -> None:
        self.bench, self.budget, self.cuts = bench, budget, strategy == "auto"
        self.fitter = Fitter(
            max_tokens=budget, model="gpt-4o", provider="openai-chat", strategy=strategy, counter=self.count
        )
        self.refused = self.wrongly = 0

    def count(self, messages: list[Neutral]) -> int:
        return int(self.bench.toks([to_neutral(message) for message in messages]))

    def must_stay(self, history: list[Neutral]) -> int:
        """System text, task, the newest user message and the newest step, in the bench's tokens."""
        said = [i for i, message in enumerate(history) if message["role"] == "user"]
        step = len(history) - 1
        while history[step]["role"] == "tool":
            step -= 1
        kept = {0, said[0], said[-1], *range(step, len(history))}
        return int(self.bench.toks([history[i] for i in sorted(kept)]))

    def __call__(self, history: list[Neutral]) -> list[Neutral]:
        fits = self.must_stay(history) <= self.budget
        try:
            made = self.fitter.fit({"messages": [to_chat(message) for message in history]})
        except BudgetError:
            self.refused += 1
            self.wrongly += fits
            raise
        self.wrongly += not fits and not self.cuts
        return [to_neutral(message) for message in made.body["messages"]]


def row(bench: ModuleType, name: str, trimmer: Trimmer, budget: int) -> str:
    """The bench's own line for a trimmer."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        bench.run(name, trimmer, budget=budget)
    return re.sub(r" err=.*", "", said.getvalue().strip())


def loaded(shared: str) -> tuple[ModuleType, ModuleType]:
    """The bench and its reference trimmers. Exits with a message where they are not."""
    folder = Path(shared) / "bench" / "trimmers"
    if not (folder / "scenario.py").is_file():
        sys.exit(f"no trimmer bench at {folder}: name the folder above with --shared")
    sys.path.insert(0, str(folder))
    with contextlib.redirect_stdout(io.StringIO()):  # the reference prints its own rows when it is loaded
        return importlib.import_module("scenario"), importlib.import_module("reference")


def views(bench: ModuleType, trimmer: Trimmer) -> list[tuple[int, float] | None]:
    """For each request after the first the tokens of its view, and the share of it that the one before began with;
    None where there was none to begin with or none was given."""
    found: list[tuple[int, float] | None] = []
    before = ""
    for history in bench.conv(60):
        try:
            view = trimmer(history)
        except BudgetError:
            found.append(None)
            continue
        text = bench.ser(view)
        same = next((i for i, (a, b) in enumerate(zip(before, text, strict=False)) if a != b), len(before))
        found.append((bench.toks(view), same / len(text)) if before else None)
        before = text
    return found


def both_within(bench: ModuleType, reference: Trimmer, ours: Trimmer, budget: int) -> str:
    """The shares where each gives a view within the budget, of the requests from the first that had to be trimmed."""
    trimmed = next(i for i, history in enumerate(bench.conv(60)) if bench.toks(history) > budget)
    pairs = list(zip(views(bench, reference), views(bench, ours), strict=True))[trimmed:]
    within = [(a[1], b[1]) for a, b in pairs if a and b and max(a[0], b[0]) <= budget]
    theirs, mine = (sum(shares) / len(within) for shares in zip(*within, strict=True))
    return (
        f"within the budget both, {len(within)} requests: cache_prefix={mine:.3f}, of reference clearing {theirs:.3f}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", default=str(ROOT.parent / "shared"))
    parser.add_argument("--budgets", default="1500,2000,3000,6000,12000")
    options = parser.parse_args()
    bench, reference = loaded(options.shared)
    for budget in map(int, options.budgets.split(",")):
        print(row(bench, f"reference window 0.5 @{budget}", reference.hyst(budget, 0.5), budget))
        print(row(bench, f"reference clearing 0.5 @{budget}", reference.clear(budget, 0.5), budget))
        for strategy in ("sliding", "mask", "auto"):
            trimmer = Adapter(strategy, budget, bench)
            line = row(bench, f"turnlog {strategy} @{budget}", trimmer, budget)
            print(f"{line} refused={trimmer.refused} refused wrongly={trimmer.wrongly}", flush=True)
        ours = Adapter("mask", budget, bench)
        print(f"turnlog mask @{budget} {both_within(bench, reference.clear(budget, 0.5), ours, budget)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
