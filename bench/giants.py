"""One tool result of 50 MB: how long it takes to record and to cut to a budget, and in how much memory.

    python bench/giants.py --size 50000000

Each kind of text is measured in a process of its own. Bars: recorded in under 4 s, the request made in under 5 s of
CPU, within 500 MB, and the count said to be an estimate.
"""

from __future__ import annotations

import argparse
import random
import resource
import string
import subprocess
import sys
import tempfile
import time

import turnlog
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


def measure(kind: str, size: int) -> int:
    """Measure one kind of text; 1 if a bar is missed."""
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
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    met = seconds < SECONDS and requested < CPU and megabytes <= MEGABYTES and estimated and cut
    print(
        f"{kind}: {len(text) / 1e6:.0f} MB recorded in {seconds:.2f} s ({recorded:.2f} s of CPU), request in "
        f"{requested:.2f} s of CPU, {megabytes} MB, {'met' if met else 'MISSED'}"
    )
    return 0 if met else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--size", type=int, default=50_000_000)
    parser.add_argument("--kind", choices=KINDS)
    given = parser.parse_args()
    if given.kind:
        return measure(given.kind, given.size)
    runs = [subprocess.run([sys.executable, __file__, "--size", str(given.size), "--kind", kind]) for kind in KINDS]
    return max(run.returncode for run in runs)


if __name__ == "__main__":
    sys.exit(main())
