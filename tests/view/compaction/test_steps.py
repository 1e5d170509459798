"""A step takes what it has to for the goal, and not more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from turnlog.log.budget import PRESETS, Thresholds
from turnlog.log.messages import Media, Message, Text, ToolCall, ToolResult
from turnlog.log.records import Decision
from turnlog.view.compaction.situation import CompactionInput, Item, Ports, Summary, applied, blocks_of, total
from turnlog.view.compaction.steps import STEPS
from turnlog.view.decisions import Effects
from turnlog.view.types import Shown

IMAGE_TOKENS = 300
TURNS = st.lists(st.tuples(st.sampled_from(["words", "output", "image"]), st.integers(1, 900)), min_size=1, max_size=25)


def counted(message: Message) -> int:
    """A character a token, and some for an image."""
    tokens = 0
    for part in message.parts:
        match part:
            case Text(text=text):
                tokens += len(text)
            case ToolCall():
                tokens += len(part.raw_arguments)
            case ToolResult(parts=parts):
                tokens += counted(Message("user", parts))
            case Media():
                tokens += IMAGE_TOKENS
    return tokens


def conversation(turns: list[tuple[str, int]]) -> list[Message]:
    """A task, and turns of these kinds and sizes."""
    found = [Message("user", (Text("the task"),))]
    for n, (kind, size) in enumerate(turns):
        if kind == "words":
            found += [Message("user", (Text("w" * size),)), Message("assistant", (Text("and so it is"),))]
        elif kind == "image":
            found.append(Message("user", (Text(f"step {n}"), Media("image", "image/png", url=f"https://x.test/{n}"))))
            found.append(Message("assistant", (Text("click"),)))
        else:
            call = ToolCall(f"c{n}", "read", arguments={"n": n})
            found.append(Message("assistant", (call,)))
            found.append(Message("user", (ToolResult(f"c{n}", "read", (Text("o" * size),)),)))
    return found


def situated(messages: list[Message], name: str, goal: int) -> CompactionInput:
    """These messages as a view that is to be brought down to `goal` tokens by the strategy `name`."""
    items = []
    for n, message in enumerate(messages, start=1):
        shown = Shown(message, (n,))
        items.append(Item(shown, counted(message), shown, n, counted(message)))
    ports = Ports(
        count=counted,
        count_text=len,
        originals=lambda first, last: (),
        summarise=lambda wanted: Summary("", ""),
        images_before=lambda n: 0,
    )
    marks = Thresholds(limit=2 * goal, trigger=goal, goal=goal)
    blocks = tuple(blocks_of(items, frozenset()))
    strategy = replace(PRESETS[name], protect=0.1)
    return CompactionInput(
        blocks, 0, marks, lambda beside: marks, strategy, ports, frozenset(), number=len(messages) + 1
    )


def _may_change(situation: CompactionInput, name: str) -> bool:
    """Whether an old output is longer than any line in its place, or there is an image that need not stay."""
    if name == "mask":
        return any(item.tokens > 200 and block.has_results for block in situation.unprotected for item in block.items)
    parts = [part for block in situation.blocks for item in block.items for part in item.shown.message.parts]
    return sum(isinstance(part, Media) for part in parts) > 4  # the first and three of the newest


@pytest.mark.parametrize("name", ["mask", "images"])
@given(turns=TURNS, goal=st.integers(100, 4_000))
def test_texts_take_the_place_of_no_more_than_it_takes(name: str, turns: list[tuple[str, int]], goal: int) -> None:
    """Outputs masked, or screenshots removed, though the view was small enough without; or too few of them."""
    before = situated(conversation(turns), name, goal)
    decision = STEPS[name](before)
    if decision is None:
        assert before.held <= goal or not _may_change(before, name)
        return
    after = applied(before, decision)
    texts = decision.detail["texts"]
    assert before.held > goal
    assert [text[0] for text in texts] == sorted(text[0] for text in texts)  # the oldest
    assert after.held <= goal or STEPS[name](after) is None
    one_less = Decision(decision.action, decision.first, decision.last, decision.why, {"texts": texts[:-1]})
    assert applied(before, one_less).held > goal


@pytest.mark.parametrize(("name", "step"), [("sliding", "slide"), ("priority", "priority")])
@given(turns=TURNS, goal=st.integers(100, 4_000))
def test_no_more_leaves_than_has_to(name: str, step: str, turns: list[tuple[str, int]], goal: int) -> None:
    """A conversation that is cut far below the goal, or not down to it while there is what may go."""
    before = situated(conversation(turns), name, goal)
    decision = STEPS[step](before)
    if decision is None:
        may_go = before.unprotected if name == "priority" else [block for block in before.blocks if not block.stays]
        assert before.held <= goal or not may_go
        return
    after = applied(before, decision)
    hidden = Effects.of({before.number: decision}).hidings[0]
    gone = [block for block in before.blocks if hidden.covers(block.first)]
    assert before.held > goal
    assert total(gone) == before.held - after.held
    assert after.held <= goal or STEPS[step](after) is None
    assert after.held + max(block.tokens for block in gone) > goal
    assert all(block.items in [kept.items for kept in after.blocks] for block in before.blocks if block.stays)


@pytest.mark.parametrize("name", ["mask", "images", "slide", "priority"])
@given(turns=TURNS)
def test_a_view_that_is_small_enough_is_left_alone(name: str, turns: list[tuple[str, int]]) -> None:
    """A step that takes from a view which is at its goal already."""
    messages = conversation(turns)
    preset = {"slide": "sliding"}.get(name, name)
    assert STEPS[name](situated(messages, preset, sum(counted(message) for message in messages))) is None
