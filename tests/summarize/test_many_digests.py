"""Digest after digest of a session that goes on: neither frozen on its first day, nor of its last hour alone."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from agents import CHAT
from turnlog.log.messages import Message, ToolCall, text_of
from turnlog.log.records import Decision
from turnlog.session import state as context
from turnlog.summarize import Digest, Material
from turnlog.summarize.notes import NoteCache

EXAMPLES = max(5, settings.default.max_examples // 5) if settings.default else 20
FACT = re.compile(r"AB[0-9]{4}C")
TASK = "Take stock of all shelves, and tell me of each that is empty. Never move anything. " * 2


class Told(NamedTuple):
    """Of one digest: the facts that are new since the one before, those of them that it tells, those that the one
    before told, and those of them that it still tells."""

    new: set[str]
    of_new: set[str]
    old: set[str]
    of_old: set[str]


class Reading:
    """The offline summarizer, and the last that it was given to read."""

    def __init__(self) -> None:
        self._digest = Digest(NoteCache())
        self.id = self._digest.id
        self.material: Material | None = None
        self.read_ahead = self._digest.read_ahead

    def summarize(self, material: Material, /) -> str:
        """A digest."""
        self.material = material
        return self._digest.summarize(material)


class Stock:
    """A session in which facts are told: each by a place, with so many words ahead and behind."""

    def __init__(self, budget: int) -> None:
        self.session = turnlog.open("s", target=CHAT, store=":memory:", budget=budget)
        self.reading = Reading()
        self.session._compactor._offline = self.reading  # type: ignore[assignment]
        self.session.user(TASK)
        self.session.assistant("Yes.")
        self.budget = budget
        self.said: dict[str, int] = {}
        self.seen = self.last = 0
        self.told: set[str] = set()
        self.digests: list[Told] = []

    def says(self, place: str, ahead: int, behind: int) -> None:
        """One fact more, or none: idle talk."""
        fact = f"AB{len(self.said):04d}C"
        before, after = "the of and so on " * (ahead // 4), "is it that was for " * (behind // 4)
        match place:
            case "user":
                record = self.session.user(f"{before}and serial {fact}, please. {after}")
            case "answer":
                self.session.user("Next.")
                record = self.session.assistant(f"{before}\nThe shelf has serial {fact}.\n{after}")
            case "idle":
                self.session.user("Next.")
                self.session.assistant(before + after)
                return
            case _:
                call = ToolCall(fact, "look_up", {"shelf": fact if place == "arguments" else f"shelf-{len(self.said)}"})
                record = self.session.add(Message("assistant", (call,)))
                found = "none" if place == "arguments" else f"serial {fact}"
                result = self.session.tool_result(call, f"{before}\nfound: {found}\n{after}")
                record = record if place == "arguments" else result
        self.said[fact] = record.n

    def asks(self) -> None:
        """The next request: what must hold of it, and of a digest that it made."""
        made = self.session.request()
        assert made.body["messages"][0] == {"role": "user", "content": TASK}
        records = self.session.history()
        for record in records[self.seen :]:
            if isinstance(record.body, Decision) and record.body.action == "compact":
                self.digested(record.body)
        self.seen = len(records)

    def digested(self, decision: Decision) -> None:
        """It is no larger than was asked for, and made of the newest; what it tells is noted."""
        count = self.session._context.counter.text
        (shown,) = decision.replacement
        text = text_of(shown)
        assert count(text.partition("\n")[2]) <= decision.detail["target"]
        self.is_given_the_newest(decision)
        facts = set(FACT.findall(text))
        new = {fact for fact, n in self.said.items() if self.last < n <= decision.last}
        self.digests.append(Told(new, new & facts, self.told, self.told & facts))
        self.told, self.last = facts, decision.last

    def is_given_the_newest(self, decision: Decision) -> None:
        """The material is all that is covered, or the newest of it, as much as there is room for."""
        assert self.reading.material is not None
        given = {n for shown in self.reading.material.messages for n in shown.records}
        covered = [record for record in self.session.history() if decision.first <= record.n <= decision.last]
        stays = {n for first, last in decision.detail["kept"] for n in range(first, last + 1)}
        messages = {record.n for record in covered if record.message is not None} - stays
        assert given and given <= messages
        assert {n for n in messages if n >= min(given)} == given
        told = b"".join(record.raw or b"" for record in covered if record.n in given).decode()
        left = messages - given
        assert not left or self.session._context.counter.text(told) > self.budget / 2


PLACES = ("user", "answer", "result", "result", "arguments", "idle")
STEPS = st.lists(st.tuples(st.sampled_from(PLACES), st.integers(0, 80), st.integers(0, 160)), min_size=20, max_size=20)


@pytest.mark.slow
@given(budget=st.integers(1_200, 3_000), steps=STEPS, again=st.integers(2, 4))
@settings(max_examples=EXAMPLES)
def test_digests_neither_freeze_nor_forget(budget: int, steps: list[tuple[str, int, int]], again: int) -> None:
    """A digest that tells the same as the one before whatever is said, or nothing of what that told; one that grows;
    one that is made of what is old and not of what left just now; a request without the task."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(context, "_LEAST_MATERIAL", 0)
        stock = Stock(budget)
        for _ in range(again):
            for number, (place, ahead, behind) in enumerate(steps):
                stock.says(place, ahead, behind)
                if number % 4 == 3:
                    stock.asks()
    for three in zip(stock.digests, stock.digests[1:], stock.digests[2:], strict=False):
        new, told = sum(len(one.new) for one in three), sum(len(one.of_new) for one in three)
        assert new < 8 or told >= new / 8
    assert all(len(one.old) < 6 or len(one.of_old) >= len(one.old) / 4 for one in stock.digests)
