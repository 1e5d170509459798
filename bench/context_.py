"""turnlog on the shared context bench: what `auto` with the offline digest keeps, and what it costs.

    python bench/context_.py recall [--shared ../shared] [--budgets 0.1,0.2,0.4] [--material 1.25]
    python bench/context_.py cost | extra | decay

The figures and their meaning are the bench's own (README.md there); this only hands it a policy, `turnlog`, and runs
its scripts. `recall` takes `dev` at all budgets and `tau` at 20 %, `cost` and `extra` take `dev` at 20 % with real
gaps, `decay` takes both at 10 %. Where what cannot be left out exceeds the budget, turnlog refuses and no request is
made: recall counts that as nothing kept; decay, which asks for a view each time, is given the one before. With
`--material` a summary is made of no more of the newest originals than so many times the budget, and of the summary
before, as it is in a long session; else of all of them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from turnlog.errors import BudgetError
from turnlog.requests.fit import Fitter
from turnlog.view.types import Shown

ROOT = Path(__file__).parent.parent
Messages = list[dict[str, Any]]


class Forgetful(Fitter):
    """A Fitter whose summaries are made of the newest originals, `room` tokens of them, as those of sessions are."""

    room = 0.0

    def _ports(self, *given: Any) -> Any:
        history = given[0]
        ports = super()._ports(*given)

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

    def __init__(self, budget: int, model: str = "gpt-4o") -> None:
        from common import total

        material = float(os.environ.get("TURNLOG_MATERIAL", "0"))
        kind = Forgetful if material else Fitter
        self.fitter = kind(max_tokens=budget, model=model, provider="openai-chat", counter=total)
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("recall", "cost", "extra", "decay"))
    parser.add_argument("--shared", default=str(ROOT.parent / "shared"))
    parser.add_argument("--budgets", default="0.1,0.2,0.4")
    parser.add_argument("--material", default="0")
    options = parser.parse_args()
    bench = Path(options.shared).resolve() / "bench" / "context"
    add = ["--policies", "turnlog", "--add", "turnlog=context_:make"]
    runs = {
        "recall": [
            ["recall.py", "--data", "dev", "--budgets", options.budgets, *add],
            ["recall.py", "--data", "tau", "--budgets", "0.2", *add],
        ],
        "cost": [["cost.py", "--data", "dev", "--budgets", "0.2", "--real-gaps", *add]],
        "extra": [["extra.py", "dev", "0.2", "turnlog=context_:make"]],
        "decay": [["sweep.py", "decay", "turnlog=context_:make_steady"]],
    }
    places = [str(Path(__file__).parent), str(bench), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(places), "PYTHONDONTWRITEBYTECODE": "1"}
    env["TURNLOG_MATERIAL"] = options.material
    for run in runs[options.what]:
        print("$", *run, flush=True)
        subprocess.run([sys.executable, str(bench / run[0]), *run[1:]], env=env, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
