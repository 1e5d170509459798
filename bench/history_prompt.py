"""Compact prompts: the maximum, the count, quotation, time, and how long a summary in the making delays an answer.

    python bench/history_prompt.py [--histories 10000] [--injections 1000]

Ends with 1 if a prompt is over its maximum, if its count is more than 10 % off `turnlog.count`, or if a text of the
conversation stands outside of its quotation.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import threading
import time
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "text_history")]

from quoted_prompts import escaped, injection, message  # noqa: E402

import turnlog  # noqa: E402
from turnlog.log.messages import Message, Text  # noqa: E402
from turnlog.runners import DEMO_MODEL, ScriptedRunner, events  # noqa: E402
from turnlog.stores import MemoryStore  # noqa: E402
from turnlog.summarize import ModelSummarizer  # noqa: E402
from turnlog.text_history import HistoryPrompt  # noqa: E402

MODELS = (("", ""), ("anthropic", "claude-sonnet-4-5"), ("google", "gemini-2.5-flash"))
KEYS = {"": "messages", "anthropic": "messages", "google": "contents"}


def counted(prompt: str, provider: str, model: str) -> int:
    """The prompt as the only message of a request, counted by turnlog.count."""
    said = {"parts": [{"text": prompt}]} if provider == "google" else {"content": prompt}
    return turnlog.count({KEYS[provider]: [{"role": "user", **said}]}, provider, model=model).tokens


def histories(count: int) -> tuple[int, float]:
    """How many of so many prompts are over their maximum, and the largest difference of counts."""
    over, off = 0, 0.0
    for seed in range(count):
        draw = Random(seed)
        provider, model = draw.choice(MODELS)
        most = draw.choice((200, 500, 1_000, 2_000, 4_000, 8_000, 16_000))
        history = HistoryPrompt(most, provider=provider, model=model, enable_compression=draw.random() < 0.9)
        for _ in range(draw.choice((0, 1, 2, 5, 20, 60))):
            history.add_message(message(draw, draw.choice((40, 400, 4_000))))
        built = history.build_prompt(injection(draw) * draw.choice((1, 1, 1, 1, 500)))
        exact = counted(built.prompt, provider, model)
        over += exact > most
        off = max(off, abs(built.tokens - exact) / exact)
    return over, off


def let_finish() -> None:
    """Wait until no summary is being made."""
    for thread in [one for one in threading.enumerate() if one.name == "turnlog-summary"]:
        thread.join()


def injections(count: int) -> int:
    """How many of so many texts leave their place, in a history that is shown whole, shortened, or summarised."""
    left = 0
    for seed in range(count):
        draw = Random(f"injection {seed}")
        forged = injection(draw)
        history = HistoryPrompt(summarizer=ModelSummarizer(lambda _, forged=forged: forged, name=f"forger {seed}"))
        for n in range(draw.choice((2, 12, 60))):
            filler = " plain words of a longer text" * draw.choice((1, 60))
            text = draw.choice((injection(draw) + filler, filler + injection(draw)))
            history.add_message("assistant" if n % 2 else "user", text)
        history.build_prompt("first")
        let_finish()
        left += bool(escaped(history.build_prompt(injection(draw)).prompt))
    return left


def milliseconds(words: int) -> list[float]:
    """The time of the first prompt of histories of 200 messages."""
    found = []
    for run in range(11):
        history = HistoryPrompt()
        for n in range(200):
            history.add_message("assistant" if n % 2 else "user", " ".join(f"word{run * n + i}" for i in range(words)))
        began = time.perf_counter()
        history.build_prompt("What now?")
        found.append((time.perf_counter() - began) * 1000)
    return found


def first_tokens(runs: int = 20) -> float:
    """How much later the first piece of an answer comes if a summary is being made, in ms: the difference of medians.
    The model that writes it reads its prompt and then waits for a network, as a client of an SDK does."""

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
    return statistics.median(found[True]) - statistics.median(found[False])


def main() -> int:
    """Measure, and print the figures."""
    options = argparse.ArgumentParser()
    options.add_argument("--histories", type=int, default=10_000)
    options.add_argument("--injections", type=int, default=1_000)
    asked = options.parse_args()
    HistoryPrompt().build_prompt("loads the vocabulary")
    for words in (20, 100, 400):
        found = milliseconds(words)
        print(f"200 messages of {words} words: median {statistics.median(found):.1f} ms, at most {max(found):.1f} ms")
    print(f"with a summary in the making, the first token comes {first_tokens():.1f} ms later (median of 20)")
    left = injections(asked.injections)
    print(f"injections that left their place: {left} of {asked.injections:,}")
    over, off = histories(asked.histories)
    print(f"prompts over their maximum: {over} of {asked.histories:,}; counts off by at most {off:.1%}")
    return int(bool(left or over or off > 0.1))


if __name__ == "__main__":
    sys.exit(main())
