"""One tool result of 50 MB: how long it takes to record and to cut to a budget, and in how much memory.

Each kind of text is measured in a process of its own. Bars: recorded in under 4 s, the request made in under 5 s of
CPU, within 500 MB, and the count said to be an estimate.
"""

from __future__ import annotations

import random
import string
import tempfile
import time

import turnlog
from harness import Report, apart, bench, memory
from turnlog.log.messages import Message, ToolCall

SECONDS, CPU, MEGABYTES = 4.0, 5.0, 500
KINDS = ("lines", "base64", "one letter", "secrets")


def text_of(kind: str, size: int) -> str:
    """A text of that size."""
    if kind == "one letter":
        return "x" * size
    if kind == "base64":
        some = random.Random(1).choices(string.ascii_letters + string.digits + "+/", k=min(size, 200_000))
        return ("".join(some) * (size // len(some) + 1))[:size]
    line = "some words of a tool's output, in line %d\n"
    lines = "".join(line % i for i in range(5_000))
    if kind == "secrets":
        lines += "GITHUB_TOKEN=ghp_" + "x7Kq2mNv9LpR4tYw8ZcB1dFgH6jS3aEuT5oP\n"
    return (lines * (size // len(lines) + 1))[:size]


def measure(kind: str, size: int) -> tuple[dict[str, float], bool]:
    """The figures of one kind of text, and whether its count is an estimate and the request within the budget."""
    text = text_of(kind, size)
    call = ToolCall("c", "read", {"path": "a"})
    with tempfile.TemporaryDirectory() as folder:
        gpt = turnlog.target("openai-chat", "gpt-4o")
        settings = turnlog.Settings()
        with turnlog.open("s", store=f"{folder}/s.db", target=gpt, budget=50_000, settings=settings) as session:
            session.user("Read it.")
            session.add(Message("assistant", (call,)))
            begun, spent = time.perf_counter(), time.process_time()
            record = session.tool_result(call, text)
            seconds, recorded = time.perf_counter() - begun, time.process_time() - spent
            spent = time.process_time()
            request = session.request()
            requested = time.process_time() - spent
            count = record.body.count  # type: ignore[union-attr]
            estimated = count is not None and count.certainty == "estimated"
            cut = request.tokens < 50_000
    figures = {
        "s to record": seconds,
        "s of CPU to record": recorded,
        "s of CPU for a request": requested,
        "MB": memory(),
    }
    return figures, estimated and cut


@bench(quick={"size": 5_000_000})
def giants(report: Report, *, size: int = 50_000_000) -> None:
    """One tool result of 50 MB: how long it takes to record and to cut to a budget, and in how much memory."""
    bars = {"s to record": SECONDS, "s of CPU for a request": CPU, "MB": MEGABYTES}
    for kind in KINDS:
        figures, is_cut = apart(measure, kind, size)
        report.row(kind, figures, at_most=bars)
        report.findings(f"{kind}, not cut or not said to be an estimate", [] if is_cut else [kind])
