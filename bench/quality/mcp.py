"""The server over past sessions, asked by the SDK's client: the questions of `memory.recall`, and what calls cost."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from mcp.client.stdio import StdioServerParameters, stdio_client

import mcp
from harness import Report, bench
from quality.memory import ANSWERED, QUESTIONS, answers, keep, sessions
from turnlog.mcp.past import PastSessions
from turnlog.memory.recall import Recalled
from turnlog.redaction import Redactor
from turnlog.stores import open_store

CPU = 0.150
"""Seconds of CPU of a warm call."""


@bench()
def past(report: Report) -> None:
    """Questions to `turnlog mcp` over a store of all real sessions: right among the first three, and CPU."""
    questions = [json.loads(line) for line in QUESTIONS.read_text("utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "all.db"
        store = open_store(place)
        for _, imported, _ in sessions():
            keep(store, imported)
        store.search("turnlog")
        texts, first, declared = asyncio.run(_asked(place, [one["question"] for one in questions]))
        right = 0
        for one, text in zip(questions, texts, strict=True):
            cited = re.findall(r"\] session (\S+), record (\d+) ", text)[:3]
            good = any(answers(store, one, Recalled(name, int(n), "", "", "")) for name, n in cited)
            right += good
            if not good:
                report.say(f"  {one['question']!r}: {cited}")
        figures = {"questions": len(questions), "answered": right, "s, first": first, "characters declared": declared}
        report.row("by the client", figures, at_least={"answered": ANSWERED})
        asked = PastSessions(store, Redactor(), Path(folder), {}, total=10**9)
        spent = []
        for one in questions * 2:
            began = time.process_time()
            asked.recall(one["question"])
            spent.append(time.process_time() - began)
        warm = spent[len(questions) :]
        store.close()
    figures = {"s of CPU, median": median(warm), "s of CPU, most": max(warm)}
    report.row("a warm call", figures, at_most={"s of CPU, median": CPU})


async def _asked(place: Path, questions: list[str]) -> tuple[list[str], float, int]:
    """The answers of a server, the seconds that the first took, and the characters of its tools' declarations."""
    words = ["-m", "turnlog", "--store", str(place), "mcp", "--tokens", "1000000"]
    env = {**os.environ, "XDG_CACHE_HOME": str(place.parent)}
    started = StdioServerParameters(command=sys.executable, args=words, env=env, cwd=place.parent)
    texts, first = [], 0.0
    async with mcp.Client(stdio_client(started)) as client:
        tools = (await client.list_tools()).tools
        declared = sum(len(json.dumps([tool.name, tool.description, tool.input_schema])) for tool in tools)
        for question in questions:
            began = time.perf_counter()
            answer = await client.call_tool("recall_sessions", {"question": question})
            first = first or time.perf_counter() - began
            texts.append(answer.content[0].text)
    return texts, first, declared
