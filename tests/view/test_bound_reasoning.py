"""Reasoning that is bound to what stood ahead of it: which of it may be shown."""

from __future__ import annotations

from typing import Any

import pytest

import turnlog
from turnlog.log.messages import Message, Reasoning, Text, Tool, ToolCall
from turnlog.log.records import Binding
from turnlog.view.bound_reasoning import Prefixes, beginning, bindings_as_given, standing
from turnlog.view.types import Shown

MODEL = "claude-opus-5-5"
TOOLS = (Tool("read", "Read."), Tool("look", "Look."))


def _said(n: int, role: Any = "user", *, words: str = "", thought: bool = False) -> Shown:
    thoughts = (Reasoning("anthropic", f"thought {n}", signature=f"s{n}"),) if thought else ()
    return Shown(Message(role, (*thoughts, Text(words or f"word {n}"))), (n,))


VIEW = [
    _said(1),
    *(_said(n, "assistant" if n % 2 == 0 else "user", thought=n % 2 == 0) for n in range(2, 9)),
]


def _standing(view: list[Shown], known: dict[int, Binding], tools: tuple[Tool, ...] = TOOLS) -> list[int]:
    digests = Prefixes().of(beginning(tools), view)
    held = {shown.records[0] for shown in view if any(isinstance(part, Reasoning) for part in shown.message.parts)}
    return standing(view, digests, known, held, lambda model: model in ("", MODEL))


KNOWN = bindings_as_given(VIEW, beginning(TOOLS), "anthropic")


def test_each_names_the_one_before_and_the_oldest() -> None:
    """A binding that names another record would have all reasoning before it left out."""
    assert {n: (one.after, one.first) for n, one in KNOWN.items()} == {2: (0, 0), 4: (2, 2), 6: (4, 2), 8: (6, 2)}


def test_what_is_as_it_was_stands() -> None:
    """Reasoning would be thrown away for nothing: also where the same tools come in another order."""
    assert _standing(VIEW, KNOWN) == _standing(VIEW, KNOWN, TOOLS[::-1]) == [2, 4, 6, 8]


@pytest.mark.parametrize(
    ("changed", "stands"), [(1, []), (3, [2]), (4, [2, 4]), (5, [2, 4]), (7, [2, 4, 6]), (8, [2, 4, 6, 8])]
)
def test_all_behind_a_change_goes(changed: int, stands: list[int]) -> None:
    """What is behind a change would be refused; what is ahead of it is as valid as ever."""
    view = [
        _said(changed, shown.message.role, words="else", thought=changed % 2 == 0)
        if shown.records == (changed,)
        else shown
        for shown in VIEW
    ]
    assert _standing(view, KNOWN) == stands


def test_others_tools_take_all() -> None:
    """Tools stand ahead of everything."""
    assert _standing(VIEW, KNOWN, TOOLS[:1]) == []


def test_the_oldest_may_be_left_out_but_none_between() -> None:
    """The API refuses reasoning whose predecessor is missing while an older one is there."""
    assert _standing([VIEW[0], Shown(Message("assistant", (Text("word 2"),)), (2,)), *VIEW[2:]], KNOWN) == [4, 6, 8]
    unknown = {n: one for n, one in KNOWN.items() if n != 4}
    assert _standing(VIEW, unknown) == [6, 8]
    later = {**KNOWN, 8: Binding(KNOWN[8].prefix, after=2, first=2)}  # made while 4 and 6 were left out
    assert _standing(VIEW, later) == [2, 8]
    alone = {**KNOWN, 8: Binding(KNOWN[8].prefix)}  # made while all were
    assert _standing(VIEW, alone) == [8]
    cut = {**KNOWN, 8: Binding(KNOWN[8].prefix, after=6, first=4)}  # made while 2 was left out
    assert _standing(VIEW, cut) == [4, 6, 8]


def test_what_another_model_thought_is_not_there() -> None:
    """The API would drop it in silence, and refuse what names it as the reasoning before."""
    other = {**KNOWN, 4: Binding(KNOWN[4].prefix, 2, 2, "another"), 6: Binding(KNOWN[6].prefix, 2, 2)}
    assert _standing(VIEW, other) == [2, 6, 8]


def test_a_message_of_nothing_but_reasoning_is_nothing() -> None:
    """It leaves the request with its reasoning: what stands behind it must not go for that."""
    only = Shown(Message("assistant", (Reasoning("anthropic", "so", signature="s"),)), (9,))
    begin = beginning(TOOLS)
    assert Prefixes().of(begin, [*VIEW, only])[-1] == Prefixes().of(begin, VIEW)[-1]


def test_digests_are_the_same_however_they_were_come_by() -> None:
    """An open session and one opened anew would leave out other reasoning."""
    kept, begin = Prefixes(), beginning(TOOLS)
    for length in (3, 8, 5, 8, 0, 2):
        assert kept.of(begin, VIEW[:length]) == Prefixes().of(begin, VIEW[:length])
    other = beginning(TOOLS[:1])
    assert kept.of(other, VIEW) == Prefixes().of(other, VIEW) != kept.of(begin, VIEW)


def test_numbers_beyond_64_bits_and_halves_of_characters_have_a_digest() -> None:
    """A session with a call like that could make no request."""
    begin = beginning(TOOLS)
    strange = [Shown(Message("assistant", (ToolCall("c", "read", {"n": 1 << 70, "t": "\ud800"}),)), (1,))]
    assert len(Prefixes().of(begin, strange)) == 2


BODY: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 100,
    "system": "Be brief.",
    "messages": [
        {"role": "user", "content": "One?"},
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s1"}, {"type": "text", "text": "Yes."}],
        },
        {"role": "user", "content": "Two?"},
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "Ah.", "signature": "s2"}, {"type": "text", "text": "No."}],
        },
        {"role": "user", "content": "Three?"},
    ],
}


def _thoughts(body: dict[str, Any]) -> list[str]:
    blocks = [block for message in body["messages"] for block in message["content"] if isinstance(block, dict)]
    return [block["thinking"] for block in blocks if block["type"] == "thinking"]


def test_repair_of_a_body_takes_what_stands_behind_a_change() -> None:
    """A body that was repaired would be refused for its thinking."""
    assert turnlog.repair(BODY).body == BODY
    stray = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "gone", "content": "x"}]}
    damaged = {**BODY, "messages": [*BODY["messages"][:2], stray, *BODY["messages"][2:]]}
    request = turnlog.repair(damaged)
    assert _thoughts(request.body) == ["Hm."]
    assert [edit.records for edit in request.edits if edit.kind == "reasoning"] == [(6,)]


def test_whoever_asks_the_api_to_leave_it_out_keeps_it() -> None:
    """`drop_block` is the choice of who wants the API to decide."""
    thinking = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    session = turnlog.open("s", store=":memory:", target=turnlog.target("anthropic", MODEL, thinking=thinking))
    session.user("One?")
    session.request()
    session.receive({"role": "assistant", "type": "message", "model": MODEL, "content": BODY["messages"][1]["content"]})
    session.user("Two?")
    session.system("Be long.", replace=True)
    assert _thoughts(session.request().body) == ["Hm."]


@pytest.mark.parametrize(("model", "kept"), [("claude-fable-5-1", ["Hm."]), ("claude-sonnet-5-5", [])])
def test_a_switch_keeps_what_the_other_model_reads(model: str, kept: list[str]) -> None:
    """What it cannot read is dropped by the API without a word, so it must not be counted; what it reads would be
    thrown away for nothing. Back at the first model, its thinking is there again."""

    def aim(name: str) -> turnlog.Target:
        return turnlog.target("anthropic", name, thinking={"type": "adaptive"}, max_tokens=100)

    session = turnlog.open("s", store=":memory:", target=aim(MODEL))
    session.user("One?")
    session.request()
    session.receive({"role": "assistant", "type": "message", "model": MODEL, "content": BODY["messages"][1]["content"]})
    session.user("Two?")
    session.switch(aim(model))
    assert _thoughts(session.request().body) == kept
    session.receive({"role": "assistant", "type": "message", "model": model, "content": BODY["messages"][3]["content"]})
    session.user("Three?")
    assert _thoughts(session.request().body) == [*kept, "Ah."]
    session.switch(aim(MODEL))
    assert _thoughts(session.request().body) == ["Hm."]
