"""What the next request costs as a conversation grows: of a `Fitter`, which is given all of it each time, and of a
session, which is told what is new.

A step is a call and its result, some 90 tokens; both are kept within 8,000. Each figure is the median of 50 steps, by
the clock; a session's is with taking in the step, in a store in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import turnlog
from harness import Report, bench, seconds

BUDGET = 8_000
OUTPUT = "def invoice_{n}(amount): return round(float(amount), 2)\n" * 5


def fitter(steps: int) -> Callable[[int], Any]:
    """What fits the history of so many steps and one more."""
    made = turnlog.Fitter(max_tokens=BUDGET)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Port the billing module."}]
    for n in range(steps):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": '{"path":"a.py"}'}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": OUTPUT.format(n=n)})
    return lambda n: made.fit({"model": "gpt-4o", "messages": messages[: 2 * n + 3]})


def session(steps: int) -> Callable[[int], Any]:
    """What takes in a step and makes the next request."""
    made = turnlog.open("growing", store=":memory:", target=turnlog.target("openai-chat", "gpt-4o"))
    made.configure(budget=BUDGET)
    made.user("Port the billing module.")

    def step(n: int) -> Any:
        call = turnlog.ToolCall(f"c{n}", "read", {"path": "a.py"})
        made.add(turnlog.Message("assistant", (call,)))
        made.tool_result(call, OUTPUT.format(n=n))
        return made.request().body

    return step


@bench(quick={"steps": 150})
def growing(report: Report, *, steps: int = 1_500) -> None:
    """What the next request of a Fitter and of a session costs as a conversation grows."""
    for name, make in (("Fitter", fitter), ("session", session)):
        run = make(steps)
        taken = [seconds(lambda n=n, run=run: run(n), clock=perf_counter) for n in range(steps)]  # type: ignore[misc]
        for at in (steps // 15, steps // 5, steps // 2, steps):
            report.row(f"{name}, {at:,} steps", {"ms": 1000 * median(taken[max(0, at - 50) : at])})
