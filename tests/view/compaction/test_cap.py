"""Giant tool outputs that have to stay: cut to both ends, to less where several share the room, and cut again where
the budget becomes smaller."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import reference_model as model
from budget_triples import AIMS, Play
from draws import draws
from turnlog.config.settings import Settings
from turnlog.errors import BudgetError
from turnlog.log.budget import PRESETS, Budget, Strategy
from turnlog.log.messages import Media, Message, Text, ToolCall, ToolResult
from turnlog.log.records import Decision, Record
from turnlog.models.target import Target, target
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.summarize import Material
from turnlog.testing.histories import History

LARGE, SMALL = target("openai-chat", "gpt-4o"), target("openai-chat", "gpt-4")
"""Models of one family, with windows of 128,000 and 8,192 tokens."""
MARK = re.compile(r"\n\[\.\.\. ([\d,]+) characters, ([\d,]+) line breaks of record (\d+) left out \.\.\.\]\n")
SHARE = re.compile(r"; those of the open turn to ([\d,]+) tokens each")
LEAST = 60
"""Tokens to fewer than which no output is cut."""


def lines(n: int, word: str = "line") -> str:
    return "".join(f"{word} {i:05} 数据🙂\n" for i in range(n))


def opened(strategy: Strategy | str = "auto", budget: int | None = None, summarizer: Any = None) -> Session:
    store = MemoryStore()
    store.create("s")
    session = Session(store, store.info("s"), Settings(summarizer=summarizer))
    session.switch(LARGE)
    session.configure(budget=budget, strategy=strategy)
    session.system("rules")
    session.user("look into it")
    return session


def batch(session: Session, outputs: list[str]) -> list[Record]:
    """Calls made at once, and their results."""
    calls = tuple(ToolCall(f"call_{n}", "read", arguments={"n": n}) for n in range(len(outputs)))
    session.add(Message("assistant", calls))
    return [session.tool_result(call, output) for call, output in zip(calls, outputs, strict=True)]


def shown(session: Session) -> list[str]:
    """The outputs as the next request has them."""
    return [m["content"] for m in session.request().body["messages"] if m["role"] == "tool"]


def caps(session: Session) -> list[Decision]:
    return [d for d in model.in_force(session.history()).values() if d.action == "cap"]


def is_cut_of(text: str, output: str, record: int) -> bool:
    """Whether a text is an output's head and tail, and between them what is missing, told of the output on record."""
    for mark in MARK.finditer(text):
        head, tail = text[: mark.start()], text[mark.end() :]
        gone = output[len(head) : len(output) - len(tail)]
        told = f"{len(gone):,}", f"{gone.count(chr(10)):,}", str(record)
        if output.startswith(head) and output.endswith(tail) and gone and mark.groups() == told:
            return True
    return False


def size(session: Session, text: str) -> int:
    return session._context.counter.text(text)


def test_a_giant_is_cut_again_for_a_model_with_a_small_window() -> None:
    """What was cut for 128,000 tokens is more than another model takes at all: the session would be stuck there."""
    session = opened()
    output = lines(20_000)
    (record,) = batch(session, [output])
    (first,) = shown(session)
    assert size(session, first) > 8_192
    session.switch(SMALL)
    (second,) = shown(session)
    assert is_cut_of(first, output, record.n) and is_cut_of(second, output, record.n)
    assert len(caps(session)) == 2 and size(session, second) > 300 and session.window.tokens < 1_400
    assert session.read_back(record.n) == output
    session.switch(LARGE)
    assert shown(session) == [second]  # what was decided stays decided
    session.undo("compaction")
    assert shown(session) == [first]
    session.undo("compaction")
    assert model.conversation(session.history())[-1].message == record.message


def test_a_giant_is_cut_again_for_a_smaller_budget_but_not_for_one_that_it_fits() -> None:
    """Each cut writes the prompt cache anew: one that nothing makes necessary is paid for and gains nothing."""
    session = opened(budget=20_000)
    (record,) = batch(session, [lines(20_000)])
    (first,) = shown(session)
    session.configure(budget=6_000)  # a new output might have 1,500 tokens here, this one has more
    assert size(session, first) > 4_500 and shown(session) == [first]
    session.configure(budget=4_000)
    (second,) = shown(session)
    assert 900 < size(session, second) <= 1_000 and is_cut_of(second, lines(20_000), record.n)
    assert session.preview(budget=1_000).body["messages"][-1]["content"] != second
    assert len(caps(session)) == 2


def test_the_text_of_an_output_that_was_cut_twice() -> None:
    """Both ends of the text on record, and one line that tells the whole gap: a mark of the first cut left standing,
    or a figure that counts from it, would tell the model of another text than it can read back."""
    session = opened("cap", 8_000)
    batch(session, ["".join(f"{n} bottles of beer\n" for n in range(9_999, 0, -1))])
    (first,) = shown(session)
    session.configure(budget=150)
    (second,) = shown(session)
    assert second == (
        "9999 bottles of beer\n9998 bottles of beer\n9997 bottles of beer\n9996 bottles of beer\n\n"
        "[... 208,746 characters, 9,992 line breaks of record 6 left out ...]\n"
        " beer\n2 bottles of beer\n1 bottles of beer\n"
    )
    assert first.startswith(second.partition("\n[")[0]) and first.endswith(second.partition("...]\n")[2])


def test_one_is_told_as_one() -> None:
    """What a decision says stands in the log for people: `1 giant tool outputs` reads as a mistake."""
    session = opened(budget=2_000)
    batch(session, [lines(600)])
    session.request()
    (decision,) = caps(session)
    assert decision.why.startswith("1 giant tool output cut to its beginning and end")
    session = opened("mask")
    batch(session, [lines(600)])
    for n in range(2):
        session.assistant(f"Look {n} is over.")
        session.user("Go on.")
    assert [one.why for one in session.compact().decisions.values()] == ["1 old tool result masked to fit the budget"]


def test_a_batch_of_giants_shares_the_room_that_there_is() -> None:
    """Ten outputs of an eighth of the limit each, none of which may leave, are more than it, though none is a giant."""
    session = opened(budget=4_000)
    outputs = [*(lines(60, f"out{n}") for n in range(10)), *[lines(20, "small")] * 4]
    records = batch(session, outputs)
    assert all(size(session, output) == 480 for output in outputs[:10])
    texts = shown(session)
    sizes = [size(session, text) for text in texts[:10]]
    assert texts[10:] == outputs[10:]
    assert all(is_cut_of(*one) for one in zip(texts[:10], outputs, [record.n for record in records], strict=False))
    assert max(sizes) <= 1.05 * min(sizes) and 3_000 < session.window.tokens <= 3_203
    (decision,) = caps(session)
    assert decision.why.startswith("10 giant tool outputs cut to their beginning and end; those of the open turn to ")
    assert len(decision.detail["cuts"]) == 10
    session.assistant("Fourteen files.")
    session.user("Go on.")
    assert shown(session) == texts and len(caps(session)) == 1  # some room was left for that
    assert [session.read_back(record.n) for record in records] == outputs


def test_what_is_older_than_a_batch_of_giants_is_summarised() -> None:
    """Outputs that take all the room push out what was talked of before, and nothing tells of it from then on."""
    session = opened(budget=8_000)
    for n in range(30):
        session.user(f"question {n} " * 20)
        session.assistant(f"answer {n} " * 30)
    session.user("now look again")
    batch(session, [lines(200)] * 8)
    session.request()
    made = [decision for decision in model.in_force(session.history()).values() if decision.action in model.SIZES]
    assert [decision.action for decision in made] == ["cap", "compact"]
    assert session.window.tokens <= 8_000


def test_outputs_that_come_one_after_another_are_not_cut_again_for_each() -> None:
    """Each time that older outputs are cut again, the prompt cache is written anew: so more is cut than has to be."""
    session = opened("cap", 2_000)
    calls = tuple(ToolCall(f"call_{n}", "read", arguments={}) for n in range(16))
    session.add(Message("assistant", calls))
    for call in calls:
        session.tool_result(call, lines(400))
        session.request()
        assert session.window.tokens <= 2_000
    assert [len(decision.detail["cuts"]) for decision in caps(session)] == [*[1] * 8, 9, 1, 1, 12, 1, 1, 15, 1]
    assert min(size(session, text) for text in shown(session)[: len(calls)]) > LEAST


class _Unasked:
    """A summarizer that nobody may ask."""

    id = "unasked/1"

    def summarize(self, material: Material, /) -> str:
        raise AssertionError("asked for a summary of what cannot fit")


def test_more_giants_than_fit_at_their_least_are_refused_before_anything_is_tried() -> None:
    """An output of a few tokens would be nothing but its mark; a decision or a summary that does not help is a bill."""
    session = opened(budget=2_000, summarizer=_Unasked())
    session.assistant("before " * 300)
    session.user("next")
    batch(session, [lines(60)] * 40)
    before = session.history()
    with pytest.raises(BudgetError) as raised:
        session.request()
    floor = raised.value.floor["the open turn"]
    assert 40 * LEAST < floor < 40 * (LEAST + 25) and session.history() == before
    with pytest.raises(BudgetError):
        session.compact()
    assert session.history() == before


# -- laws, over open turns that are crowded with outputs ------------------------------------------------


def crowded(chance: random.Random) -> History:
    """A sound conversation in which many tools answer at once, and much."""
    messages = [Message("system", (Text("rules " * chance.randint(1, 40)),))] if chance.random() < 0.5 else []
    number = 0
    for turn in range(chance.randint(1, 3)):
        messages.append(Message("user", (Text(f"question {turn} " * chance.randint(1, 20)),)))
        for _ in range(chance.randint(1, 2)):
            numbers = range(number, number + chance.choice((1, 3, 6, 12)))
            number = numbers.stop
            messages.append(Message("assistant", tuple(ToolCall(f"call_{n}", "bash", arguments={}) for n in numbers)))
            results = [ToolResult(f"call_{n}", "bash", _outputs(chance)) for n in chance.sample(numbers, len(numbers))]
            if chance.random() < 0.5:
                messages.append(Message("user", tuple(results)))
            else:
                messages += [Message("user", (result,)) for result in results]
        messages.append(Message("assistant", (Text(f"answer {turn} " * chance.randint(1, 20)),)))
    return History(tuple(messages), {}, frozenset())


def _outputs(chance: random.Random) -> tuple[Text | Media, ...]:
    factor = chance.choice((1, 20, 200))
    texts: list[Text | Media] = [
        Text(lines(int(chance.expovariate(1.0) * factor), chance.choice("ab🙂")))
        for _ in range(chance.choice((1, 1, 1, 2)))
    ]
    if chance.random() < 0.1:
        texts.append(Media("image", url="https://example.org/1.png"))
    return tuple(texts)


class Crowded(Play):
    """A triple in which budgets become larger and smaller while the open turn grows."""

    def __init__(self, seed: int, aim: Target, oracle: ModuleType | None) -> None:
        super().__init__(seed, aim, oracle)
        self.history, self.sound = crowded(self.chance), True
        steps = self.chance.sample(("cap", "cap", "summarise", "mask", "slide", "images"), self.chance.randint(2, 6))
        own = Strategy(steps=tuple(dict.fromkeys(("cap", *steps))), cap=self.chance.choice((0.0, 0.2, 0.5, 1.0)))
        self.strategy = self.chance.choice((PRESETS["auto"], PRESETS["cap"], own))
        self.resize()

    def resize(self) -> None:
        limit = self.fixed(model.conversation(self.session.history())) + self.chance.choice(
            (600, 1_000, 1_500, 2_500, 5_000)
        )
        self.budget = Budget(max_tokens=limit, trigger=self.chance.choice((1.0, 1.0, 0.6)))
        self.session.configure(budget=self.budget, strategy=self.strategy)
        self.logged = self.session.history()

    def ask(self, *, closed: bool) -> None:
        """A request, of another budget than the last now and then."""
        if self.chance.random() < 0.2:
            self.before = []
            self.resize()
        super().ask(closed=closed)

    def figures(self, before: Any, after: Any, log: Any, decisions: Any) -> None:
        super().figures(before, after, log, decisions)
        for i, decision in enumerate(decisions):
            if decision.action == "cap":
                self.tally["cuts"] += 1
                places = {(n, *path) for n, path, *_ in decision.detail["cuts"]}
                self.tally["cut again"] += any(
                    (line.record, *place) in places for line in before for place in line.ends
                )
                if share := SHARE.search(decision.why):
                    self.tally["shared"] += 1
                    self.evenly(int(share[1].replace(",", "")), model.conversation(log, decisions[: i + 1]))

    def counted_as(self, line: model.Line, lines: Any) -> Callable[[Message], int]:
        """How what a line says counts in this conversation."""
        several = next(i for i, one in enumerate(lines) if one is line) in self.built(lines).at_once
        return self.counts().at_once if several else self.count

    def evenly(self, share: int, lines: Any) -> None:
        """No output that could be cut has more than its share, and none is left that its share is too little for."""
        outputs = [
            tokens
            for why, group in model.staying(lines, model.pins(self.session.history()))
            if why == "the open turn"
            for line in group
            for tokens, _ in model.outputs(line, self.counted_as(line, lines))
        ]
        if share < LEAST or max(outputs, default=0) > share:
            self.wrong("share", f"{share} each, but there are {outputs}")


@pytest.mark.slow
@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.provider)
def test_crowded_turns_keep_the_laws_of_budgets(aim: Target, request: pytest.FixtureRequest) -> None:
    """A floor that promises what the step does not do, or the other way round: a request over its limit, or one
    refused that could be made to fit. Seeds name what failed."""
    try:
        oracle: ModuleType | None = request.getfixturevalue("oracle")
    except pytest.skip.Exception:
        oracle = None
    played = {seed: Crowded(seed, aim, oracle) for seed in range(draws(5, 0), draws(9, 200))}
    assert [f"{seed}: {one}" for seed, play in played.items() for one in play.run()] == []
    tally = sum((play.tally for play in played.values()), Counter[str]())
    assert min(tally[name] for name in ("cuts", "shared", "cut again", "refused")) > 0, tally


@pytest.mark.slow
@pytest.mark.parametrize("name", ["auto", "cap"])
def test_a_giant_that_fits_once_it_is_cut_moves_nothing_ahead_of_it(name: str) -> None:
    """Where each output was larger than the window, every other step summarised all that stood ahead as well, though
    the giant cut short was enough: little came from the prompt cache, and each summary might have been paid for."""
    session = opened(name, 4_000)
    shares = []
    for n in range(24):
        batch(session, [lines(600, f"step{n}")])
        cache = session.request().cache
        shares.append(cache is None or cache.shared == cache.previous)
    assert sum(shares) >= 15
    assert session.window.tokens <= 4_000


def test_a_giant_that_was_sent_before_is_not_cut_alone() -> None:
    """What moves the prompt cache's prefix anyway goes all the way to the goal: else the next request does it again."""
    session = opened("auto", 4_000)
    batch(session, [lines(150)])
    while not session.explain().rulings:
        session.request()
        batch(session, [lines(10)])
        session.request()
    assert session.window.tokens < 3_000
