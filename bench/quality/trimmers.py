"""turnlog on the shared trimmer bench, beside the reference's own rows from the same run.

Sixty requests of a growing history in the bench's own token unit: views that are not legal, views over the budget,
and the share of each view that the one before it began with. The reference is a window with hysteresis for
`sliding` (cut to 50 %) and clearing of results with hysteresis for `mask`. For `auto` a giant of the live turn is
cut, so that it answers where the others refuse. Prints `refused wrongly`: refusals where system, task and live turn
fit, and answers where they do not.

The reference clears results and nothing else: at small budgets many of its views are over them. So the shares of `mask`
and of it are printed, too, for those requests only in which both give a view within the budget.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

from harness import Report, bench, module, shared
from turnlog.errors import BudgetError
from turnlog.requests.fit import Fitter

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

    def __init__(self, strategy: str, budget: int, scenario: ModuleType) -> None:
        self.scenario, self.budget, self.cuts = scenario, budget, strategy == "auto"
        self.fitter = Fitter(
            max_tokens=budget, model="gpt-4o", provider="openai-chat", strategy=strategy, counter=self.count
        )
        self.refused = self.wrongly = 0

    def count(self, messages: list[Neutral]) -> int:
        return int(self.scenario.toks([to_neutral(message) for message in messages]))

    def must_stay(self, history: list[Neutral]) -> int:
        """System text, task, the newest user message and the newest step, in the bench's tokens."""
        said = [i for i, message in enumerate(history) if message["role"] == "user"]
        step = len(history) - 1
        while history[step]["role"] == "tool":
            step -= 1
        kept = {0, said[0], said[-1], *range(step, len(history))}
        return int(self.scenario.toks([history[i] for i in sorted(kept)]))

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


def row(scenario: ModuleType, trimmer: Trimmer, budget: int) -> dict[str, float]:
    """The figures of the bench's own line for a trimmer."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        scenario.run("", trimmer, budget=budget)
    line = re.sub(r" err=.*", "", said.getvalue().strip())
    return {name.replace("_", " "): float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", line)}


def loaded() -> tuple[ModuleType, ModuleType]:
    """The bench and its reference trimmers."""
    folder = shared("bench", "trimmers")
    with contextlib.redirect_stdout(io.StringIO()):  # the reference prints its own rows when it is loaded
        return module("scenario", folder), module("reference", folder)


def views(scenario: ModuleType, trimmer: Trimmer) -> list[tuple[int, float] | None]:
    """For each request after the first the tokens of its view, and the share of it that the one before began with;
    None where there was none to begin with or none was given."""
    found: list[tuple[int, float] | None] = []
    before = ""
    for history in scenario.conv(60):
        try:
            view = trimmer(history)
        except BudgetError:
            found.append(None)
            continue
        text = scenario.ser(view)
        same = next((i for i, (a, b) in enumerate(zip(before, text, strict=False)) if a != b), len(before))
        found.append((scenario.toks(view), same / len(text)) if before else None)
        before = text
    return found


def both_within(scenario: ModuleType, reference: Trimmer, ours: Trimmer, budget: int) -> dict[str, float]:
    """The shares where each gives a view within the budget, of the requests from the first that had to be trimmed."""
    trimmed = next(i for i, history in enumerate(scenario.conv(60)) if scenario.toks(history) > budget)
    pairs = list(zip(views(scenario, reference), views(scenario, ours), strict=True))[trimmed:]
    within = [(a[1], b[1]) for a, b in pairs if a and b and max(a[0], b[0]) <= budget]
    theirs, mine = (sum(shares) / len(within) for shares in zip(*within, strict=True))
    return {"requests": len(within), "cache prefix": mine, "cache prefix of the reference": theirs}


@bench(quick={"budgets": "2000"})
def trimmers(report: Report, *, budgets: str = "1500,2000,3000,6000,12000") -> None:
    """turnlog's strategies on the shared trimmer bench, beside the reference's own rows from the same run."""
    scenario, reference = loaded()
    for budget in map(int, budgets.split(",")):
        report.row(f"reference window 0.5 @{budget}", row(scenario, reference.hyst(budget, 0.5), budget))
        report.row(f"reference clearing 0.5 @{budget}", row(scenario, reference.clear(budget, 0.5), budget))
        for strategy in ("sliding", "mask", "auto"):
            trimmer = Adapter(strategy, budget, scenario)
            figures = row(scenario, trimmer, budget)
            figures |= {"refused": trimmer.refused, "refused wrongly": trimmer.wrongly}
            report.row(f"turnlog {strategy} @{budget}", figures)
        ours = both_within(scenario, reference.clear(budget, 0.5), Adapter("mask", budget, scenario), budget)
        report.row(f"turnlog mask @{budget}, both within the budget", ours)
