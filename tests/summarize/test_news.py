"""What a model is told of a session over many summaries: all of it, and nearly nothing twice."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import pytest

import turnlog
from turnlog.policy import PRESETS

FACT = re.compile(r"FACT\d{4}X")
AUTO = PRESETS["auto"]


class Model:
    """Notes each fact that it is told of, as a perfect one would; `prompts` are what it was sent."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return " ".join(sorted(set(FACT.findall(prompt))))


class Talk:
    """A session in which each turn says one fact more."""

    def __init__(self) -> None:
        self.model = Model()
        aim = turnlog.target("openai-chat", "gpt-4o")
        self.session = turnlog.open("s", store=":memory:", target=aim, summarizer=self.model, budget=3_000)
        self.turns = 0

    def go_on(self, turns: int) -> None:
        for _ in range(turns):
            self.turns += 1
            self.session.user(f"FACT{self.turns:04d}X: note this. {'word ' * 60}")
            self.session.request()
            self.session.assistant("Noted. " + "and " * 60)

    def missing(self) -> set[str]:
        """The facts that a model is not told of any more."""
        shown = set(FACT.findall(str(self.session.request().request)))
        return {f"FACT{n:04d}X" for n in range(1, self.turns + 1)} - shown


def small_for_a_while(talk: Talk) -> None:
    """A summary has to be made in 84 tokens."""
    talk.session.configure(budget=420)
    talk.session.request()
    talk.session.configure(budget=3_000)


def few_turns_for_a_while(talk: Talk) -> None:
    """Turns leave beside the summary, and it does not tell of them."""
    talk.session.configure(strategy=msgspec.structs.replace(AUTO, max_history_turns=8))
    talk.go_on(8)
    talk.session.configure(strategy=AUTO)


def undone(talk: Talk) -> None:
    """What the summary told of stands there again, and leaves again."""
    talk.session.configure(budget=20_000)
    talk.session.undo_compaction()
    talk.session.configure(budget=3_000)


def nothing(talk: Talk) -> None:
    """It just goes on."""


@pytest.mark.parametrize("meanwhile", [nothing, small_for_a_while, few_turns_for_a_while, undone])
def test_no_summary_leaves_out_what_the_one_before_did_not_tell(meanwhile: Callable[[Talk], None]) -> None:
    """A model is sent the last notes and what is new. What those notes had no room for, or were never told, is new as
    well: else nobody would ever hear of it again."""
    talk = Talk()
    talk.go_on(40)
    assert talk.missing() == set() and talk.model.prompts
    meanwhile(talk)
    talk.go_on(40)
    # What stood ahead of the summary, and left because there was no room, is not taken up by a later one.
    head = {f"FACT{n:04d}X" for n in range(2, 5)}
    assert talk.missing() <= (set() if meanwhile in (nothing, undone) else head)


def test_each_original_is_sent_once_where_nothing_happens() -> None:
    """Each summary was made of all originals: over a long session a model read everything ten times."""
    talk = Talk()
    talk.go_on(200)
    said = [re.findall(r"FACT\d{4}X: note", prompt) for prompt in talk.model.prompts]
    assert len(said) > 5
    assert max(map(len, said[1:])) < 40
    told = [fact for prompt in said for fact in prompt]
    assert len(told) == len(set(told))
