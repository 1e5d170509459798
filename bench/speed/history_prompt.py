"""Compact prompts: how much of their maximum they use, whether any is over it, how long the first one takes, and how
long a summary in the making delays an answer.

The model that writes the summary reads its prompt and then waits for a network, as a client of an SDK does.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from random import Random
from statistics import median

import turnlog
from harness import TESTS, Report, bench, module, seconds
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


WORDS = {"even": (100,), "mixed": (5, 30, 100, 600), "with giants": (20, 20, 20, 8_000)}
"""Kinds of conversations, by the words of their texts."""


def used(tokens: int, words: tuple[int, ...]) -> dict[str, float]:
    """What the prompt of a conversation of so many tokens uses of its maximum, without a summarizer."""
    draw, history = Random(tokens), HistoryPrompt()
    while history.estimated_total_tokens < tokens:
        said = (
            draw.choice(("row", "file", "total", "schema_42", "src/a.py", "café")) for _ in range(draw.choice(words))
        )
        history.add_message("assistant" if history.message_count % 2 else "user", " ".join(said))
    built = history.build_prompt("What now?")
    left = sum(int(number) for number in re.findall(r"(\d+) texts? left out", " ".join(built.changes)))
    share = 100 * built.tokens / history.prompt_limit
    return {"% of the maximum": share, f"of {history.message_count} texts left out": left}


def over(cases: int) -> int:
    """How many of so many drawn prompts are over their maximum, as `turnlog.count` counts them."""
    message, found = module("quoted_prompts", TESTS, TESTS / "text_history").message, 0
    for seed in range(cases):
        draw = Random(f"over {seed}")
        most = draw.choice((200, 1_000, 4_000, 16_000))
        history = HistoryPrompt(most, enable_compression=draw.random() < 0.8, recent_message_count=draw.choice((1, 8)))
        longest = draw.choice((50, 400, 4_000))
        for _ in range(draw.choice((1, 5, 20, 60))):
            history.add_message(message(draw, longest))
        prompt = history.build_prompt("Go on. " * draw.choice((1, 1, 1, 500))).prompt
        found += turnlog.count({"messages": [{"role": "user", "content": prompt}]}).tokens > most
    return found


@bench(quick={"runs": 2, "cases": 50})
def history_prompt(report: Report, *, runs: int = 20, cases: int = 1_000) -> None:
    """What compact prompts use of their maximum, how long one takes, how a summary in the making delays an answer."""
    logging.getLogger("turnlog").setLevel(logging.ERROR)  # each large history is warned of
    for tokens in (9_000, 15_500, 40_000):
        for kind, sizes in WORDS.items():
            report.row(f"{tokens:,} tokens, {kind}", used(tokens, sizes))
    report.row(f"{cases:,} drawn prompts", {"over their maximum": over(cases)})
    HistoryPrompt().build_prompt("loads the vocabulary")
    for words in (20, 100, 400):
        found = milliseconds(words)
        report.row(f"200 messages of {words} words", {"ms, median": median(found), "ms, longest": max(found)})
    report.row("first token with a summary in the making", {"ms later": first_tokens(runs)})
