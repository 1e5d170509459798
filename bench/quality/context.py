"""turnlog on the shared context bench: what `auto` with the offline digest keeps, and what it costs.

The figures and their meaning are the bench's own (README.md there); this only hands it a policy, `turnlog`, and runs
its scripts. `recall` takes `dev` at all budgets and `tau` at 20 %, `cost` and `extra` take `dev` at 20 % with real
gaps, `decay` takes both at 10 %. Where what cannot be left out exceeds the budget, turnlog refuses and no request is
made: recall counts that as nothing kept; decay, which asks for a view each time, is given the one before. With
`--material` a summary is made of no more of the newest originals than so many times the budget, and of the summary
before, as it is in a long session; else of all of them.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from harness import BENCH, Report, bench, shared
from quality.case_kinds import KINDS
from quality.cases import Case, Told, shares
from turnlog.errors import BudgetError
from turnlog.log.messages import ToolCall, ToolResult
from turnlog.requests.fit import Fitter
from turnlog.view.compaction.situation import Block
from turnlog.view.types import Shown

Messages = list[dict[str, Any]]


class Forgetful(Fitter):
    """A Fitter whose summaries are made of the newest originals, `room` tokens of them, as those of sessions are."""

    room = 0.0

    def _ports(self, *given: Any, **more: Any) -> Any:
        history = given[0]
        ports = super()._ports(*given, **more)

        def newest(first: int, last: int) -> Iterator[Shown]:
            room = self.room
            for shown in ports.originals(first, last):
                room -= history.sizes[shown.records[0] - 1]
                if room < 0:
                    return
                yield shown

        return msgspec.structs.replace(ports, originals=newest)


class View:
    """One session under a budget, counted as the bench counts."""

    def __init__(self, budget: int, model: str = "gpt-4o", strategy: str = "auto") -> None:
        from common import total

        material = float(os.environ.get("TURNLOG_MATERIAL", "0"))
        kind = Forgetful if material else Fitter
        self.fitter = kind(max_tokens=budget, model=model, provider="openai-chat", counter=total, strategy=strategy)
        if isinstance(self.fitter, Forgetful):
            self.fitter.room = material * budget
        self.marks: list[int] | None = None

    def __call__(self, history: Messages) -> Messages:
        made = self.fitter.fit({"messages": history})
        self.marks = list(made.marks) or None
        return [{**message, "content": message.get("content") or ""} for message in made.body["messages"]]


def make(budget: int) -> View:
    """A policy of the bench."""
    return View(budget)


def make_breakpoints(budget: int) -> View:
    """The same for a model whose cache entries end at breakpoints, with marks for it."""
    return View(budget, "gpt-5.6-sol")


def make_priority(budget: int) -> View:
    """The strategy `priority`."""
    return View(budget, strategy="priority")


def make_calls_first(budget: int) -> View:
    """The same, if calls with their results and recent words of the user stayed first: plain answers leave first, then
    the user's older words, then calls by age. For a process of its own: it changes the strategy for all."""
    priority = importlib.import_module("turnlog.view.compaction.steps.priority")

    def rank(block: Block, recent: set[str]) -> int:
        if block.is_summary:
            return 4
        calls = any(isinstance(part, (ToolCall, ToolResult)) for item in block.items for part in item.raw.message.parts)
        return 2 if calls else 1 if block.opens_turn else 0

    priority._rank = rank
    return View(budget, strategy="priority")


def make_steady(budget: int) -> Callable[[Messages], Messages]:
    """The same, which gives the last view again where there is no request."""
    view = View(budget)
    last: Messages = []

    def steady(history: Messages) -> Messages:
        nonlocal last
        try:
            last = view(history)
        except BudgetError:
            pass
        return last

    return steady


def run(report: Report, *scripts: list[str], material: float = 0) -> None:
    """Run scripts of the shared bench. Their figures are what they print."""
    folder = shared("bench", "context")
    places = [str(BENCH), str(folder), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["TURNLOG_MATERIAL"] = str(material)
    for name, *words in scripts:
        report.say(f"$ {name} {' '.join(words)}")
        command = [sys.executable, str(folder / name), *words]
        lines = subprocess.run(
            command, env=environment, check=True, stdout=subprocess.PIPE, text=True
        ).stdout.splitlines()
        for line in lines:
            report.say(line)
        report.rows[f"{name} {' '.join(words)}"] = {f"line {n}": line for n, line in enumerate(lines, start=1)}


ADD = ["--policies", "turnlog", "--add", "turnlog=quality.context:make"]


@bench()
def recall(report: Report, *, budgets: str = "0.1,0.2,0.4", material: float = 0) -> None:
    """What `auto` with the offline digest keeps of what an agent needs later, on the shared context bench."""
    coding = ["recall.py", "--data", "dev", "--budgets", budgets, *ADD]
    run(report, coding, ["recall.py", "--data", "tau", "--budgets", "0.2", *ADD], material=material)


@bench()
def facts(report: Report, *, budgets: str = "0.1,0.2,0.4") -> None:
    """What a view says of what a successor must know: facts labelled by hand, on the shared context bench."""
    run(report, ["facts.py", "--budgets", budgets, *ADD])


@bench()
def priority(report: Report, *, budgets: str = "0.1,0.2,0.4") -> None:
    """What the strategy `priority` keeps of what an agent needs later, beside an order in which calls leave last."""
    for policy in ("make_priority", "make_calls_first"):
        added = ["--policies", "turnlog", "--add", f"turnlog=quality.context:{policy}"]
        run(report, ["recall.py", "--data", "dev", "--budgets", budgets, *added])
        run(report, ["recall.py", "--data", "tau", "--budgets", "0.2", *added])


@bench()
def cost(report: Report) -> None:
    """What `auto` with the offline digest costs, of sending everything, on the shared context bench."""
    run(report, ["cost.py", "--data", "dev", "--budgets", "0.2", "--real-gaps", *ADD])


@bench()
def extra(report: Report) -> None:
    """What an agent reads again, as the shared context bench counts it."""
    run(report, ["extra.py", "dev", "0.2", "turnlog=quality.context:make"])


@bench()
def decay(report: Report) -> None:
    """How what is kept fades with its age, as the shared context bench counts it."""
    run(report, ["sweep.py", "decay", "turnlog=quality.context:make_steady"])


@bench(quick={"seeds": 1, "budgets": "300,1000"})
def cases(report: Report, *, seeds: int = 3, budgets: str = "300,1000,8000,40000") -> None:
    """What views say of rules, decisions and facts after 2, 4 and 8 compactions, by kind of session."""
    for budget in map(int, budgets.split(",")):
        by_kind: dict[tuple[str, int], list[Told]] = {}
        for kind in KINDS:
            for seed in range(seeds):
                for times, told in Case(kind, seed, budget).play():
                    by_kind.setdefault((kind, times), []).append(told)
                    by_kind.setdefault(("all kinds", times), []).append(told)
        for (kind, times), views in sorted(by_kind.items(), key=lambda pair: (pair[0][0] == "all kinds", pair[0])):
            report.row(f"{budget:,} tokens, {kind}, {times} times", shares(views), at_least={"% of rules due": 100})
