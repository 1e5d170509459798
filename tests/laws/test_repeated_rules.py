"""What a user requires stays through many compactions, at tiny budgets too.

Sessions in which the user says 3 to 12 rules, in lists, behind requests, in the middle of long messages; later ones
take some back. They go on until `auto` has compacted 2, 4 and 8 times, under budgets from 250 tokens. In each request,
the newest rules that fit a tenth of the budget stand word for word; the record of each other one is named.
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
from turnlog.log.records import Decision
from turnlog.tokens.counters import counter_for

COUNTER = counter_for("openai-chat", "gpt-4o")
TARGET = turnlog.target("openai-chat", "gpt-4o")
BUDGETS = (250, 400, 700, 1_500, 6_000)
TIMES = (2, 4, 8)
MOST_TURNS = 60
SAID = (
    "Never write to {x}.", "Always ask before you delete {x}.", "You must not rename {x}.", "No edits in {x}, please.",
    "{x} is off limits.", "Exclude {x} from the report.", "Only read {x} at night.", "Don't print {x}.",
    "Tell me before you move {x}.", "Every change of {x} needs a review.", "Keep {x} under 40 lines.",
    "If {x} breaks, stop and tell me.",
)  # fmt: skip
LISTED = ("{x} is written by hand.", "Dates in {x} are ISO dates.", "Backups of {x} come first.", "Be brief about {x}.")
TAKEN_BACK = ("You may now write to {x}.", "Forget what I said about {x}.", "You can rename {x} again.")
PROSE = "The meeting was long and most of it was about other things. "


class Ruled:
    """One session and its rules: the words of each, the tokens of its whole sentence, and its record."""

    def __init__(self, seed: int, budget: int) -> None:
        self.chance, self.budget = random.Random(seed), budget
        self.rules: list[tuple[str, int, int]] = []
        settings = turnlog.Settings(strategy="auto")
        self.session = turnlog.open("ruled", store=":memory:", target=TARGET, budget=budget, settings=settings)
        self.session.user("Port the billing module.")
        self.compactions = self.calls = 0

    def rule(self) -> None:
        """Say one rule, or a list of three, in one of several places of a message."""
        place = f"src/{self.chance.choice('abcdef')}_{self.chance.randrange(100)}.py"
        form = self.chance.randrange(6)
        if form == 0:
            rules = [one.format(x=place) for one in self.chance.sample(LISTED, 3)]
            text = "Three rules for this work:\n" + "\n".join(f"- {one}" for one in rules)
        else:
            (form_said,) = self.chance.sample((*SAID, *TAKEN_BACK), 1)
            rules = [form_said.format(x=place)]
            around = PROSE * max(1, self.budget // 200)
            text = (
                rules[0],
                f"Go on. {rules[0]}",
                f"{rules[0]} Then go on.",
                f"{around}{rules[0]} {around}",
                f"Go on.\n\nRule one: {rules[0]}",
            )[form - 1]
        n = self.session.user(text).n
        for rule in rules:
            before = re.split(r"\. |\.\n|\n\n", text[: text.index(rule)])[-1]
            self.rules.append((rule, COUNTER.text(before + rule), n))
        self.work(0.03)

    def work(self, share: float) -> None:
        """A call, its result and an answer, about this share of the budget."""
        self.ask()
        self.calls += 1
        call = turnlog.ToolCall(f"c{self.calls}", "read", {"path": f"f{self.calls}"})
        self.session.add(turnlog.Message("assistant", (call,)))
        words = (f"w{self.chance.randrange(1_000)}" for _ in range(max(4, int(self.budget * share / 3))))
        self.session.tool_result(call, " ".join(words))
        self.ask()
        self.session.assistant(f"Part {self.calls} is ported.")

    def ask(self) -> None:
        """Make the next request, and count the compactions."""
        before = next(self.session.log.newest()).n
        try:
            self.session.request()
        except BudgetError:
            return
        records = (record.body for record in self.session.log.records(before + 1))
        self.compactions += sum(isinstance(one, Decision) and one.action in ("compact", "slide") for one in records)

    def play(self) -> Iterator[int]:
        """Go on until the session was compacted so many times."""
        due = [*TIMES]
        left = self.chance.randint(3, 12)
        for _ in range(MOST_TURNS):
            if left and self.chance.random() < 0.7:
                left -= 1
                self.rule()
            self.session.user("Go on.")
            self.work(0.12)
            while due and self.compactions >= due[0]:
                yield due.pop(0)
            if not due:
                return


@pytest.mark.slow
@pytest.mark.parametrize("some", batches(9, 1_000, 3), ids=lambda some: f"from {some.start}")
def test_rules_outlive_many_compactions(some: range, record_property: Any) -> None:
    """An agent that was told never to write to a file does so after the fourth summary of its session."""
    tally, wrong = Counter[str](), list[str]()
    for seed in some:
        for budget in BUDGETS:
            played = Ruled(seed, budget)
            for times in played.play():
                wrong += [f"{seed} {budget} after {times}: {one}" for one in judge(played, tally)]
    record_property("tally", dict(tally))
    assert wrong == []
    assert tally["must be there"] > tally["named"] > 0


def judge(played: Ruled, tally: Counter[str]) -> Iterator[str]:
    """What is wrong with the rules in the next request."""
    played.session.user("Go on.")
    body = played.session.request().body
    texts = [message["content"] or "" for message in body["messages"] if message["role"] == "user"]
    named = named_in(texts)
    left = played.budget // 10
    newest = {rule: n for rule, _, n in played.rules}
    for rule, tokens, n in reversed(played.rules):
        if newest[rule] != n:
            continue
        left -= tokens
        is_said = any(rule in text for text in texts)
        tally["must be there"] += left >= 0
        tally["named"] += not is_said and n in named
        if left >= 0 and not is_said:
            yield f"lost: [{n}] {rule}"
        elif not is_said and n not in named:
            yield f"not named: [{n}] {rule}"


def named_in(texts: list[str]) -> set[int]:
    """The records that notes of rules name."""
    found: set[int] = set()
    for line in (line for text in texts for line in text.splitlines()):
        if line.startswith(("[More of this in record", "[The user's rules: record")):
            found |= set(range(10_000)) if "others before" in line else set()
            for first, last in re.findall(r"(\d+)(?: to (\d+))?", line):
                found |= set(range(int(first), int(last or first) + 1))
    return found
