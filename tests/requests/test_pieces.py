"""A request put together from kept pieces is that of the whole view, for every short conversation there could be."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from draws import examples
from judging import TARGETS
from turnlog.log.messages import Message, Part, Reasoning, Role, Text, ToolCall, ToolResult
from turnlog.log.records import Configuration, MessageRecord
from turnlog.log.store import Draft
from turnlog.models.target import Target, target
from turnlog.requests.build import build
from turnlog.requests.pieces import RepairedPiece
from turnlog.requests.repaired import RepairedRun
from turnlog.requests.translate import plan
from turnlog.session.state import Context
from turnlog.stores import MemoryStore
from turnlog.view.types import Shown

JSON_MODE = (
    target("openai-chat", "gpt-4o", response_format={"type": "json_object"}),
    target("openai-responses", "gpt-5", text={"format": {"type": "json_object"}}),
)
KINDS = "UuAaSsCDRQPOJ"
"""A letter for each kind of message; small ones stand for those in which nothing is said."""


def conversation(kinds: str) -> Iterator[Message]:
    """Messages of these kinds; each result is of the first call that has none, or of no call if all have one."""
    open_calls: list[str] = []

    def result(number: int) -> ToolResult:
        return ToolResult(open_calls.pop(0) if open_calls else "none", "look", (Text(f"seen {number}"),))

    for number, kind in enumerate(kinds):
        calls = {"C": [f"c{number}"], "D": [f"c{number}", f"d{number}"]}.get(kind, [])
        open_calls += calls
        asked = tuple(ToolCall(call, "look", {}) for call in calls)
        said: tuple[Part, ...]
        match kind:
            case "U" | "A" | "S":
                said = (Text(f"word {number}"),)
            case "J":
                said = (Text("as JSON"),)
            case "u" | "a" | "s":
                said = (Text(" "),)
            case "C":
                said = asked
            case "D":
                said = (Reasoning("anthropic", "so", signature="signed"), Text("looking"), *asked)
            case "R":
                said = (result(number),)
            case "Q":
                said = (result(number), Text("and this"))
            case "P":
                said = (result(number), result(number))
            case _:
                said = (ToolResult("foreign", "look", (Text("lost"),)),)
        yield Message({"S": "system", "s": "system", **dict.fromkeys("AaCD", "assistant")}.get(kind, "user"), said)


@pytest.mark.slow
@pytest.mark.parametrize("aim", [*TARGETS, *JSON_MODE], ids=lambda aim: f"{aim.provider}-{aim.model}")
@given(kinds=st.text(KINDS, min_size=1, max_size=14))
@example(kinds="SUCsA")  # an answer that nothing parts from a call without a result
@example(kinds="SRS")  # system text that leads, as nothing is left ahead of it
@example(kinds="OS")
@settings(max_examples=examples(40, 2_000))
def test_a_conversation_of_any_kinds_is_sent_as_the_whole_would_be(aim: Target, kinds: str) -> None:
    """The living session sent another request than the one that is opened again: a prefix of which the provider has
    the other in its cache, or system text that stands somewhere else."""
    store = MemoryStore()
    store.create("s")
    context, shown = Context(store, "s"), []
    for message in conversation(kinds):
        (record,) = store.append("s", [Draft(MessageRecord(message))])
        context.take([record])
        shown.append(Shown(message, (record.n,)))
        made, whole = context.request(aim), build(plan(Configuration(), aim), shown, store.get_blob)
        assert made.body == whole.body
        assert json.loads(made.json()) == whole.body
        assert (made.edits, made.losses) == (whole.edits, whole.losses)


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
def test_a_new_message_adds_one_piece(aim: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request put the pieces before it together again, so that a turn cost more the longer the session was."""
    added, add = 0, RepairedRun.add

    def counting(run: RepairedRun, piece: RepairedPiece, follows: Role) -> None:
        nonlocal added
        added += 1
        add(run, piece, follows)

    monkeypatch.setattr(RepairedRun, "add", counting)
    store = MemoryStore()
    store.create("s")
    context, kinds = Context(store, "s"), "UCRDRRA" * 20
    for message in conversation(kinds):
        store.append("s", [Draft(MessageRecord(message))])
        context.refresh()
        context.request(aim)
    assert 0 < added <= 1.5 * len(kinds)


def test_the_path_of_an_edit_counts_messages_over_the_whole_request() -> None:
    """A path counted within its own piece would point at another message of the body."""
    store = MemoryStore()
    store.create("s")
    context, aim = Context(store, "s"), TARGETS[0]
    for number, name in enumerate(["ann", "b o b", "ann", "c|d", "ann"]):
        store.append("s", [Draft(MessageRecord(Message("user", (Text(f"word {number}"),), name=name)))])
        context.refresh()
        made = context.request(aim)
    paths = {edit.path for edit in made.edits}
    assert made._fragments and paths == {"messages[1].name", "messages[3].name"}
    assert [message["name"] for message in made.body["messages"]] == ["ann", "b_o_b", "ann", "c_d", "ann"]
    assert "path='messages[1].name'" in repr(made.edits)


def test_the_changes_of_a_request_do_not_depend_on_its_pieces() -> None:
    """The same request told its edits in another order, and one of them twice, once its session was opened again."""
    store, aim = MemoryStore(), TARGETS[0]
    store.create("s")
    context, name = Context(store, "s"), "a\ud800 b"
    for number in range(3):
        context.refresh()
        context.request(aim)
        message = Message("user", (Text(f"word {number}"),), name=name)
        call = ToolCall(f"call\ud800{number}", name, {})
        store.append("s", [Draft(MessageRecord(message)), Draft(MessageRecord(Message("assistant", (call,))))])
    context.refresh()
    living, anew = context.request(aim), Context(store, "s").request(aim)
    assert living.edits and (living.edits, living.losses) == (anew.edits, anew.losses)
