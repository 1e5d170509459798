"""What a model is told of a session over many summaries: all of it, and nearly nothing twice."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import msgspec
import pytest

import turnlog
from draws import draws
from reference_model import in_force
from turnlog.errors import InputError
from turnlog.log.budget import PRESETS
from turnlog.log.messages import Message, ToolCall
from turnlog.log.records import Decision

FACT = re.compile(r"FACT\d{4}X")
STAYING = re.compile(r"^\[(\w+)\] stays beside your notes$.*?(?=^\[\1\] |^==== \1 )", re.MULTILINE | re.DOTALL)
AUTO = PRESETS["auto"]


class Model:
    """Notes each fact that it is told of, as a perfect one would, but not what stays; `prompts` are what it was sent,
    without that."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(STAYING.sub("", prompt))
        return " ".join(sorted(set(FACT.findall(self.prompts[-1]))))


class Talk:
    """A session in which each turn says one fact more."""

    def __init__(self, provider: str = "openai-chat", model: str = "gpt-4o", budget: int = 3_000) -> None:
        self.model = Model()
        aim = turnlog.target(provider, model)
        self.session = turnlog.open(
            "s", store=":memory:", target=aim, budget=budget, settings=turnlog.Settings(summarizer=self.model)
        )
        self.turns = 0
        self.taken_back: set[str] = set()

    def call(self, size: int) -> None:
        """A tool is called and gives so many words."""
        call = ToolCall(f"c{self.turns}", "read", {"path": f"f{self.turns}"})
        self.session.add(Message("assistant", (call,)))
        self.session.tool_result(call, "data " * size)

    def go_on(self, turns: int) -> None:
        for _ in range(turns):
            self.turns += 1
            self.session.user(f"FACT{self.turns:04d}X: note this. {'word ' * 60}")
            self.session.request()
            self.session.assistant("Noted. " + "and " * 60)

    def missing(self) -> set[str]:
        """The facts that a model is not told of any more."""
        shown = set(FACT.findall(str(self.session.request().body)))
        return {f"FACT{n:04d}X" for n in range(1, self.turns + 1)} - shown - self.taken_back


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
    talk.session.undo("compaction")
    talk.session.configure(budget=3_000)


def nothing(talk: Talk) -> None:
    """It just goes on."""


@pytest.mark.slow
@pytest.mark.parametrize("meanwhile", [nothing, small_for_a_while, few_turns_for_a_while, undone])
def test_no_summary_leaves_out_what_the_one_before_did_not_tell(meanwhile: Callable[[Talk], None]) -> None:
    """A model is sent the last notes and what is new. What those notes had no room for, or were never told, is new as
    well: else nobody would ever hear of it again."""
    talk = Talk()
    talk.go_on(40)
    assert talk.missing() == set() and talk.model.prompts
    meanwhile(talk)
    talk.go_on(40)
    assert talk.missing() == set()


@pytest.mark.slow
def test_each_original_is_sent_once_where_nothing_happens() -> None:
    """Each summary was made of all originals: over a long session a model read everything ten times."""
    talk = Talk()
    talk.go_on(200)
    said = [re.findall(r"FACT\d{4}X: note", prompt) for prompt in talk.model.prompts]
    assert len(said) > 5
    assert max(map(len, said[1:])) < 40
    told = [fact for prompt in said for fact in prompt]
    assert len(told) == len(set(told))


def meddle(talk: Talk, chance: random.Random) -> None:
    """Something that a user does between two turns, or nothing."""
    session = talk.session
    what = chance.choice([*("budget", "compact", "pin", "strategy", "undo", "fork", "rewind"), *[""] * 15])
    try:
        if what == "budget":
            session.configure(budget=chance.choice((2_500, 4_000, 8_000)))
        elif what == "compact":
            session.compact(keep=chance.choice((None, 1, 3)))
        elif what == "pin":
            said = (record for record in session.history() if record.message is not None)
            session.pin(chance.choice([record.n for record in said if record.message.role == "user"]))
        elif what == "strategy":
            session.configure(strategy=chance.choice(("auto", "codex", "gemini-cli", "graded", "spec")))
        elif what == "undo":
            session.undo("compaction")
        elif what == "fork":
            talk.session = session.fork(f"fork-{talk.turns}")
        elif what == "rewind":
            session.rewind(turns=1)
            talk.taken_back.add(f"FACT{talk.turns:04d}X")
    except InputError:
        pass  # nothing to take back


def left_since_the_last_summary(records: list[turnlog.Record]) -> set[str]:
    """The facts that left for want of room behind the newest summary, which the next one will be told of."""
    decisions = [record.body for record in records if isinstance(record.body, Decision)]
    last = max((i for i, decision in enumerate(decisions) if decision.action == "compact"), default=-1)
    slid = [decision for decision in decisions[last + 1 :] if decision.action == "slide"]
    gone = (record for record in records if any(one.first <= record.n <= one.last for one in slid))
    return {fact for record in gone if record.message is not None for fact in FACT.findall(str(record.message))}


@pytest.mark.slow
def test_nothing_is_forgotten_whatever_a_user_does() -> None:
    """A model that notes all that it is told forgets nothing, through budgets, strategies, forks and what is taken
    back. What left ahead of a summary, or was covered by one that was cut short or made without the model, was told to
    none of the later ones."""
    judged = 0
    for seed in range(draws(12, 300)):
        chance = random.Random(seed)
        talk = Talk(*chance.choice((("openai-chat", "gpt-4o"), ("anthropic", "claude-sonnet-4-5"))), budget=4_000)
        talk.session.configure(strategy=chance.choice(("auto", "codex", "gemini-cli", "graded", "spec")))
        for _ in range(60):
            if chance.random() < 0.3:
                talk.call(chance.choice((50, 200)))
            talk.go_on(1)
            meddle(talk, chance)
        missing = talk.missing()
        records = talk.session.history()
        made = [decision for decision in in_force(records).values() if decision.action == "compact"]
        if made and not made[-1].detail.get(
            "failures"
        ):  # else the model's notes were too long, and the next is told all
            judged += 1
            assert missing <= left_since_the_last_summary(records), seed
    assert judged > draws(12, 300) // 2


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["auto", "codex", "gemini-cli", "graded", "spec", "summarise"])
def test_the_first_summary_tells_what_had_slid_out(strategy: str) -> None:
    """A session that begins to summarise has a past that nothing told of: `graded` skipped it, as it keeps the first
    exchange that is shown."""
    talk = Talk(budget=2_900)  # what slid out ends with a user's word, so that an answer comes first behind it
    talk.session.configure(strategy="sliding")
    talk.go_on(60)
    assert talk.missing()
    talk.session.configure(strategy=strategy, budget=6_000)
    while not any(one.decision.action == "compact" for one in talk.session.explain().rulings):
        talk.go_on(1)
        assert talk.turns < 200
    assert talk.missing() == set()
