"""What a user forbids or requires stands in every view, and only that is taken for it.

Sessions of 1 to 40 orders between other texts, with look-alikes in tool output and pastes, under all strategies and
budgets of a half, a quarter and an eighth of the whole. In each request, each order so far must stand word for word,
all while they fit a tenth of the budget, else the newest that fit and the records of the others.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import turnlog
from draws import batches
from turnlog.errors import BudgetError
from turnlog.log.budget import PRESETS
from turnlog.requests.fit import Fitter
from turnlog.tokens.counters import counter_for

COUNTER = counter_for("openai-chat", "gpt-4o")
VERBS = ("touch", "change", "rename", "delete", "commit", "format", "deploy", "import", "mock", "print")
FORMS = (
    "Never {v} {x}.", "Do not {v} {x}.", "Please don't {v} {x}.", "Always ask me before you {v} {x}.",
    "You must not {v} {x}!", "Only {v} {x} after the tests pass.", "From now on, {v} {x} first.",
    "Make sure that you never {v} {x}.", "You may now {v} {x} again.", "Under no circumstances {v} {x}.",
    "Ändere nie {x}.", "Ne touche jamais à {x}.", "不要修改 {x}。", "Никогда не трогай {x}.", "Nunca cambies {x}.",
)  # fmt: skip
FILLER = (
    "The build is green again.",
    "I looked at the log.",
    "Here is what I see.",
    "It works on my machine.",
    "Go on.",
)


class Played:
    """One generated session, and the orders in it by message number."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": f"Port module {seed}. Keep to its tests."}]
        self.orders: list[tuple[int, str]] = []
        self.fakes: list[str] = []
        left, n = chance.randint(1, 40), 0
        while left or n < 8:
            n += 1
            fake = self.order(f"fake_{n}.py")
            self.fakes.append(fake)
            call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": f'{{"path":"f{n}"}}'}}
            self.messages.append({"role": "assistant", "content": f"Part {n}.", "tool_calls": [call]})
            output = " ".join(chance.choice(FILLER) for _ in range(chance.randint(1, 60)))
            self.messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": f"{output} {fake} {output}"})
            self.messages.append({"role": "assistant", "content": f"Part {n} is done. I will never forget it."})
            said = [chance.choice(FILLER) for _ in range(chance.randint(0, 3))]
            for _ in range(min(left, chance.choice((0, 0, 1, 1, 2, 5)))):
                left -= 1
                order = self.order(f"src/{chance.choice('abc')}/file_{left}.py")
                self.orders.append((len(self.messages) + 1, order))
                said.insert(chance.randint(0, len(said)), order)
            text = chance.choice((" ", "\n", "\n\n")).join(said) or "Go on."
            if chance.random() < 0.3:
                pasted = self.order(f"pasted_{n}.py")
                self.fakes.append(pasted)
                text += chance.choice((f"\n```\n{pasted}\n```", f"\n> {pasted}", f"\nThe error was:\n\n{pasted}"))
            self.messages.append({"role": "user", "content": text})
            here = sorted((text.index(order), n, order) for n, order in self.orders if n == len(self.messages))
            self.orders = [one for one in self.orders if one[0] < len(self.messages)] + [one[1:] for one in here]
            self.messages.append({"role": "assistant", "content": "I see."})

    def order(self, what: str) -> str:
        """A sentence that forbids or requires something."""
        return self.chance.choice(FORMS).format(v=self.chance.choice(VERBS), x=what)


@pytest.mark.slow
@pytest.mark.parametrize("some", batches(20, 2_000, 20), ids=lambda some: f"from {some.start}")
def test_no_order_is_lost(some: range, record_property: Any) -> None:
    """An agent that forgets what it must not touch, or that obeys a mail that somebody pasted."""
    tally, wrong = Counter[str](), list[str]()
    for number in some:
        played = Played(number)
        size = turnlog.count({"model": "gpt-4o", "messages": played.messages}, "openai-chat").tokens
        for share in (0.5, 0.25, 0.125):
            budget = max(60, int(size * share))
            name = played.chance.choice(sorted(PRESETS))
            fitter = Fitter("openai-chat", max_tokens=budget, model="gpt-4o", strategy=name)
            for end in [*sorted(played.chance.sample(range(2, len(played.messages) + 1), 4)), len(played.messages)]:
                history = played.messages[:end]
                if not history[-1].get("tool_calls"):
                    where = f"{number} {share} {name} {end}"
                    wrong += [f"{where}: {one}" for one in judge(fitter, history, played, budget, tally)]
    record_property("tally", dict(tally))
    assert wrong == []
    assert tally["must be there"] > tally["no room"]


def judge(fitter: Fitter, history: Any, played: Played, budget: int, tally: Counter[str]) -> Iterator[str]:
    """What is wrong with the orders in one request."""
    tally["requests"] += 1
    try:
        made = fitter.fit({"model": "gpt-4o", "messages": history})
    except BudgetError:
        tally["refused"] += 1
        return
    said = [(n, order) for n, order in played.orders if n <= len(history)]
    newest = {order: n for n, order in said}
    left, must = budget // 10, []
    for n, order in reversed(said):
        left -= COUNTER.text(order)
        if left < 0:
            break
        must.append((n, order))
    shown = [one["content"] or "" for one in made.body["messages"] if one["role"] == "user"]
    missing = [(n, order) for n, order in must if not any(order in text for text in shown)]
    tally["orders"] += len(said)
    tally["must be there"] += len(must)
    if missing and not fits_beside(history, must, budget):
        tally["no room"] += len(missing)
        missing = []
    yield from (f"lost: {n} {order}" for n, order in missing)
    hidden = {n for n, order in said if not any(order in text for text in shown) and newest[order] == n}
    cited = cited_in(shown)
    if not missing and not hidden <= cited and fits_beside(history, must, budget):
        yield f"not cited: {sorted(hidden - cited)[:5]}"
    notes = [text for text in shown if "required or forbade" in text]
    quoted = [line for text in notes for line in text.split("required or forbade")[1].splitlines()]
    yield from (f"no order: {fake}" for fake in played.fakes if any(fake in line for line in quoted))


def cited_in(texts: list[str]) -> set[int]:
    """The records that notes of orders name."""
    found: set[int] = set()
    for line in (line for text in texts for line in text.splitlines() if line.startswith("[More of this in record")):
        if "others before" in line:
            found |= set(range(10_000))
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", line):
            found |= set(range(int(first), int(last or first) + 1))
    return found


def fits_beside(history: Any, must: list[tuple[int, str]], budget: int) -> bool:
    """Whether these orders fit beside the task, the newest message of the user and the last group."""
    last = len(history) - 1
    while last and history[last]["role"] == "tool":
        last -= 1
    said = max(i for i, one in enumerate(history) if one["role"] == "user")
    stays = [history[i] for i in sorted({0, said, *range(last, len(history))})]
    note = {"role": "user", "content": "\n".join(f"[{n}] {order}" for n, order in must) + " and so on" * 30}
    return turnlog.count({"model": "gpt-4o", "messages": [*stays, note]}, "openai-chat").tokens <= budget
