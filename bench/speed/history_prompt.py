"""Compact prompts: how long the first one takes, and how long a summary in the making delays an answer.

The model that writes the summary reads its prompt and then waits for a network, as a client of an SDK does.
"""

from __future__ import annotations

import asyncio
import threading
import time
from statistics import median

import turnlog
from harness import Report, bench, seconds
from turnlog.log.messages import Message, Text
from turnlog.runners import DEMO_MODEL, ScriptedRunner, events
from turnlog.stores import MemoryStore
from turnlog.summarize import ModelSummarizer
from turnlog.text_history import HistoryPrompt


def let_finish() -> None:
    """Wait until no summary is being made."""
    for thread in [one for one in threading.enumerate() if one.name == "turnlog-summary"]:
        thread.join()


def milliseconds(words: int) -> list[float]:
    """The time of the first prompt of histories of 200 messages."""
    found = []
    for run in range(11):
        history = HistoryPrompt()
        for n in range(200):
            history.add_message("assistant" if n % 2 else "user", " ".join(f"word{run * n + i}" for i in range(words)))
        found.append(1000 * seconds(lambda history=history: history.build_prompt("What now?"), clock=time.perf_counter))
    return found


def first_tokens(runs: int = 20) -> float:
    """How many ms later the first piece of an answer comes if a summary is being made: the difference of medians."""

    def model(prompt: str) -> str:
        len(prompt.split())
        time.sleep(0.2)
        return "Notes."

    async def first(history: HistoryPrompt) -> float:
        session = turnlog.open("first", store=MemoryStore(), target=turnlog.target("openai-chat", DEMO_MODEL))
        began = time.perf_counter()
        session.user(history.build_prompt("What now?").prompt)
        async for event in events(ScriptedRunner(["Nothing."]), session.request()):
            if event.kind == "text":
                return (time.perf_counter() - began) * 1000
        raise AssertionError

    found: dict[bool, list[float]] = {False: [], True: []}
    for run in range(runs):
        for summarised in (bool(run % 2), not run % 2):
            history = HistoryPrompt(summarizer=ModelSummarizer(model, name=f"m{run}") if summarised else None)
            for n in range(200):
                text = " ".join(f"run {run} {summarised} word{n + i}" for i in range(40))
                history.add_message(Message("assistant" if n % 2 else "user", (Text(text),)))
            found[summarised].append(asyncio.run(first(history)))
            let_finish()  # the next run has the processor for itself
    return median(found[True]) - median(found[False])


@bench(quick={"runs": 2})
def history_prompt(report: Report, *, runs: int = 20) -> None:
    """How long a compact prompt takes, and how long a summary in the making delays an answer."""
    HistoryPrompt().build_prompt("loads the vocabulary")
    for words in (20, 100, 400):
        found = milliseconds(words)
        report.row(f"200 messages of {words} words", {"ms, median": median(found), "ms, longest": max(found)})
    report.row("first token with a summary in the making", {"ms later": first_tokens(runs)})
