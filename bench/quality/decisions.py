"""How often something has to leave: decisions in a run of an agent that reads one file after another.

Each step reads a file of 40 lines (about 700 tokens). Prints, for each strategy and budget, how many requests put a
decision on record, and the tokens of the last request.
"""

from __future__ import annotations

import turnlog
from harness import Report, bench
from turnlog.log.budget import PRESETS

BUDGETS = (4_000, 8_000, 16_000, 32_000)
TARGET = turnlog.target("openai-chat", "gpt-4o")


def run(strategy: str, budget: int, steps: int) -> tuple[int, int]:
    """Requests with a decision, and the tokens of the last request."""
    with turnlog.open(
        "run", store=":memory:", target=TARGET, budget=budget, settings=turnlog.Settings(strategy=strategy)
    ) as session:
        session.user("Read the files and say what they do.")
        decided = 0
        for n in range(steps):
            call = turnlog.ToolCall(f"call_{n}", "read_file", {"path": f"src/module_{n}.py"})
            session.add(turnlog.Message("assistant", (call,)))
            lines = (f"{k:5}\tdef function_{n}_{k}(argument, other=None): return {k * n % 97}" for k in range(40))
            session.tool_result(call, "\n".join(lines))
            before = len(session.history())
            session.request()
            decided += len(session.history()) > before
        return decided, session.window.tokens


@bench(quick={"steps": 10})
def decisions(report: Report, *, steps: int = 60) -> None:
    """How many requests of an agent that reads one file after another bring a decision, by strategy and budget."""
    for name in PRESETS:
        for budget in BUDGETS:
            decided, tokens = run(name, budget, steps)
            report.row(f"{name}, {budget:,}", {"decisions": decided, "tokens of the last request": tokens})
