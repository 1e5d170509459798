"""System messages that have to stay system messages: where they go."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from judging import numbered
from turnlog.log.messages import Message, Opaque, Text, ToolCall, ToolResult
from turnlog.log.records import Configuration
from turnlog.models.target import target
from turnlog.providers import provider
from turnlog.testing import damaged_history
from turnlog.view.repair.repair import close, repair
from turnlog.view.types import Shown

AIM = target("anthropic", "claude-opus-5-5")
RULES = provider("anthropic").rules(AIM, {})
ADDED = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "look"}}
_ROLES = st.lists(st.sampled_from("uasc"), min_size=1, max_size=12)


def _view(roles: list[str]) -> list[Shown]:
    """User, assistant, system messages, and changes, numbered from 1."""
    said: dict[str, Any] = {"u": "user", "a": "assistant", "s": "system", "c": "system"}
    return [
        Shown(Message(said[role], (Text(f"{role}{n}"),)), (n,), "appended" if role == "c" else "verbatim")
        for n, role in enumerate(["u", *roles], start=1)
    ]


def _made(view: list[Shown]) -> list[Shown]:
    return [*close(repair(view, RULES, {}, None).view, RULES, has_word=False).view]


@given(_ROLES)
def test_changes_stay_system_messages_in_order_and_nothing_before_them_was_said_later(roles: list[str]) -> None:
    """A model that is told of a change by a user message may not follow it; one that is told too early sees an answer
    that contradicts it."""
    view = _view(roles)
    made = _made(view)
    changes = [shown for shown in made if shown.treatment == "appended"]
    assert [shown.records for shown in changes] == [shown.records for shown in view if shown.treatment == "appended"]
    for i, shown in enumerate(made):
        if shown.message.role != "system" or not i:
            continue
        assert made[i - 1].message.role != "assistant"
        assert i + 1 == len(made) or made[i + 1].message.role != "user"
        if shown.treatment == "appended":
            ahead = [n for one in made[:i] if one.message.role == "assistant" for n in one.records]
            answers = [one.records[0] for one in view if one.message.role == "assistant"]
            assert {n for n in answers if n < shown.records[0]} <= set(ahead)


@given(_ROLES)
def test_repair_settles_changes_once(roles: list[str]) -> None:
    """A request that moves them again at each turn would never be read from the cache."""
    once = repair(_view(roles), RULES, {}, None).view
    assert repair(once, RULES, {}, None).view == once


def test_a_change_between_a_call_and_its_result_comes_after_the_result() -> None:
    """The API refuses a call that its result does not follow at once; and the result was in its place."""
    view = [
        Shown(Message("user", (Text("go"),)), (1,)),
        Shown(Message("assistant", (ToolCall("c", "read", {}),)), (2,)),
        Shown(Message("system", (Text("change"),)), (3,), "appended"),
        Shown(Message("user", (ToolResult("c", parts=(Text("done"),)),)), (4,)),
    ]
    made = repair(view, RULES, {}, None)
    assert ([shown.records for shown in made.view], made.edits) == ([(1,), (2,), (4,), (3,)], ())


def test_a_part_of_system_messages_leaves_other_messages() -> None:
    """The API refuses a change of tools in a user's or an assistant's message, and older models refuse it anywhere."""
    part = Opaque("anthropic", "tool_addition", ADDED)
    for role in ("user", "assistant"):
        view = [Shown(Message("user", (Text("go"),)), (1,)), Shown(Message(role, (part, Text("so"))), (2,))]
        assert all(part not in shown.message.parts for shown in repair(view, RULES, {}, None).view)
    older = provider("anthropic").rules(target("anthropic", "claude-sonnet-4-5"), {})
    view = [Shown(Message("user", (Text("go"),)), (1,)), Shown(Message("system", (part,)), (2,))]
    made = repair(view, older, {}, None)
    assert [shown.records for shown in made.view] == [(1,)]
    assert [loss.records for loss in made.losses] == [(2,)]


@pytest.mark.parametrize("place", range(1, 5))
def test_a_body_with_a_change_of_tools_is_sent(oracle: ModuleType, place: int) -> None:
    """`check` finds no fault with a change in its place; elsewhere, `repair` moves it and says so."""
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in ("read", "look")]
    tools[1]["defer_loading"] = True
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "Two?"},
        {"role": "assistant", "content": "No."},
        {"role": "user", "content": "Three?"},
    ]
    messages.insert(place, {"role": "system", "content": [ADDED]})
    body = {"model": AIM.model, "max_tokens": 9, "tools": tools, "messages": messages}
    repaired = turnlog.repair(body)
    in_place = place % 2 == 1
    assert [one.path for one in turnlog.check(body)] == ([] if in_place else [""])
    assert oracle.check_anthropic(repaired.body) == []
    moved = place if in_place else place + 1
    assert [i for i, one in enumerate(repaired.body["messages"]) if one["role"] == "system"] == [moved]
    assert turnlog.repair(repaired.body).body == repaired.body


@given(st.integers(0, 100_000), st.lists(st.integers(0, 30), min_size=1, max_size=3))
def test_damaged_conversations_with_changes_are_accepted(oracle: ModuleType, seed: int, places: list[int]) -> None:
    """A change at any place of a damaged conversation would be refused, and with it every later request."""
    history = damaged_history(random.Random(seed), "anthropic")
    messages = list(history.messages)
    for place in places:
        change = Message("system", (Opaque("anthropic", "tool_addition", ADDED),))
        messages.insert(min(place, len(messages)) or 1, change)
    speaker = provider("anthropic")
    tools = tuple(turnlog.Tool(name) for name in ("read", "look"))
    settings = Configuration("anthropic", AIM.model, {"max_tokens": 9}, tools)
    body = speaker.render(numbered(messages), settings, AIM, history.blobs.__getitem__).body
    repaired = turnlog.repair(body, "anthropic")
    assert oracle.check_anthropic(repaired.body) == []
