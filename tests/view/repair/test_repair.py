"""Repair: any history becomes valid, and nothing more is done than that takes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from draws import examples
from judging import TARGETS, shown
from repairing import repair
from turnlog.log.messages import Media, Message, Reasoning, Text, Tool, ToolCall, ToolResult, text_of
from turnlog.models.target import Target, target
from turnlog.providers import provider
from turnlog.testing.histories import History
from turnlog.testing.strategies import damaged_histories, sound_histories
from turnlog.view.repair.arrange import synthetic_result
from turnlog.view.repair.repair import CONTINUE, declare_tools
from turnlog.view.rules import Rules
from turnlog.view.types import Edit, Shown

CHAT = target("openai-chat", "gpt-4o")
CLAUDE = target("anthropic", "claude-sonnet-4-5")
GEMINI = target("google", "gemini-3-pro")
RESPONSES = target("openai-responses", "gpt-5", store=False)

CALL = ToolCall("call_1", "read", arguments={"path": "a"})
RESULT = ToolResult("call_1", name="read", parts=(Text("content of a"),))


def rules(aim: Target) -> Rules:
    return provider(aim.provider).rules(aim, aim.settings)


def numbered(*messages: Message) -> list[Shown]:
    return [Shown(message, (n,)) for n, message in enumerate(messages, start=1)]


def user(*parts: object) -> Message:
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))  # type: ignore[misc]


def assistant(*parts: object) -> Message:
    return Message("assistant", tuple(Text(part) if isinstance(part, str) else part for part in parts))  # type: ignore[misc]


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
@given(history=damaged_histories())
@settings(max_examples=examples(25, 1_000))
def test_repairing_twice_changes_nothing_more(aim: Target, history: History) -> None:
    """If repair did not reach a fixpoint, a stored view would change each time it is sent."""
    once = repair(shown(history), rules(aim))
    again = repair(once.view, rules(aim))
    assert again.view == once.view
    assert [edit for edit in again.edits if edit.kind != "thinking"] == []


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
@given(history=damaged_histories())
@settings(max_examples=examples(15, 1_000))
def test_repair_is_a_function_of_history_and_rules(aim: Target, history: History) -> None:
    """A clock or a random id in repair would break prompt caches and replays."""
    assert repair(shown(history), rules(aim)) == repair(shown(history), rules(aim))


@given(history=sound_histories())
def test_a_sound_history_needs_no_edits_where_any_end_is_legal(history: History) -> None:
    """Edits on an undamaged conversation would teach people to ignore edits."""
    found = repair(shown(history), rules(CHAT)).edits
    assert [edit for edit in found if edit.kind not in ("empty",)] == []


@given(history=damaged_histories())
def test_edits_name_records_that_exist(history: History) -> None:
    """An edit that names no real record cannot be looked up in the log."""
    numbers = set(range(1, len(history.messages) + 1))
    for aim in TARGETS:
        repaired = repair(shown(history), rules(aim))
        for change in (*repaired.edits, *repaired.losses):
            assert set(change.records) <= numbers
            assert change.records or change.kind == "empty"


def test_an_unanswered_call_gets_a_result_that_says_what_is_known() -> None:
    """Without it every provider refuses the request; with a wrong word the model repeats a side effect."""
    view = numbered(user("go"), assistant(CALL), user("and?"))
    repaired = repair(view, rules(CLAUDE), {(2, "call_1"): "aborted"})
    synthetic = Shown(Message("user", (synthetic_result(CALL, "aborted"),)), (2,), "synthetic")
    assert repaired.view == (view[0], view[1], synthetic, view[2])
    assert [edit.kind for edit in repaired.edits] == ["unanswered"]
    assert "may have run" in synthetic.message.parts[0].parts[0].text  # type: ignore[union-attr]


def test_a_result_that_came_late_stands_behind_its_call() -> None:
    """A user's word between call and result is refused by three of four providers."""
    view = numbered(user("go"), assistant(CALL), user("meanwhile"), user(RESULT))
    repaired = repair(view, rules(CHAT))
    assert [shown.records for shown in repaired.view] == [(1,), (2,), (4,), (3,)]
    assert [(edit.kind, edit.records) for edit in repaired.edits] == [("moved", (4, 2))]


def test_where_results_may_stand_anywhere_later_nothing_moves() -> None:
    """Responses takes answers anywhere behind the call: moving them would only break the prefix."""
    view = numbered(user("go"), assistant(CALL), user("meanwhile"), user(RESULT))
    assert repair(view, rules(RESPONSES)).view == tuple(view)


def test_reused_ids_are_paired_by_position() -> None:
    """A map by id would give the second call the first one's result (seen in real logs)."""
    second = ToolResult("call_1", name="read", parts=(Text("second"),))
    view = numbered(user("go"), assistant(CALL), user(RESULT), assistant(CALL), user(second))
    chat = repair(view, rules(CHAT))
    assert (chat.view, chat.edits) == (tuple(view), ())
    parts = [shown.message.parts[0] for shown in repair(view, rules(RESPONSES)).view]
    assert [getattr(part, "id", getattr(part, "call_id", "")) for part in parts[1:]] == [
        "call_1", "call_1", "call_4_0", "call_4_0",
    ]  # fmt: skip


def test_a_real_result_takes_the_place_of_a_synthetic_one() -> None:
    """Otherwise the model would go on believing that the result was lost."""
    view = numbered(user("go"), assistant(CALL), user(synthetic_result(CALL, "lost")), user(RESULT))
    repaired = repair(view, rules(CHAT))
    assert [shown.records for shown in repaired.view] == [(1,), (2,), (4,)]


def test_orphans_and_duplicates_leave_the_view_by_name() -> None:
    """Both are refused; both must be findable by record number."""
    again = ToolResult("call_1", parts=(Text("again"),))
    stray = ToolResult("call_9", parts=(Text("stray"),))
    view = numbered(user("go"), assistant(CALL), user(RESULT), user(again), user(stray))
    repaired = repair(view, rules(CLAUDE))
    assert [shown.records for shown in repaired.view] == [(1,), (2,), (3,)]
    assert {(edit.kind, edit.records) for edit in repaired.edits} == {("duplicate", (4,)), ("orphan", (5,))}


def test_an_open_loop_of_foreign_calls_goes_without_thinking() -> None:
    """Anthropic refuses thinking in a tool loop that it did not begin with thinking."""
    aim = target("anthropic", "claude-sonnet-4-5", thinking={"type": "enabled", "budget_tokens": 2000}, max_tokens=4000)
    view = numbered(user("go"), assistant(CALL), user(RESULT))
    assert repair(view, rules(aim)).thinking_off
    closed = numbered(user("go"), assistant(CALL), user(RESULT), assistant("done"), user("next"))
    assert not repair(closed, rules(aim)).thinking_off
    thought = Reasoning("anthropic", text="hm", signature="c2ln")
    own = numbered(user("go"), assistant(thought, CALL), user(RESULT))
    assert not repair(own, rules(aim)).thinking_off


def test_unsigned_foreign_calls_carry_the_documented_stand_in() -> None:
    """Gemini 3 refuses the first call of a step without a signature."""
    other = ToolCall("call_2", "read", arguments={"path": "b"})
    answers = user(RESULT, ToolResult("call_2", name="read", parts=(Text("b"),)))
    repaired = repair(numbered(user("go"), assistant(CALL, other), answers), rules(GEMINI))
    first, second = repaired.view[1].message.parts
    assert isinstance(first, ToolCall) and first.signature == rules(GEMINI).step_signature
    assert second == other
    assert [(loss.kind, loss.records) for loss in repaired.losses] == [("signature", (2,))]


def test_media_that_a_model_cannot_take_becomes_a_visible_placeholder() -> None:
    """Silently dropping it would leave the model answering about an image it never saw."""
    picture = Media("image", mime="image/png", sha256="0" * 64, size=12_345, name="plan.png")
    repaired = repair(numbered(user("look", picture)), rules(target("openai-chat", "o3-mini")))
    assert repaired.view[0].message.parts[1] == Text(
        "[image left out (plan.png, 12,345 bytes): this model takes no image here]"
    )
    assert [(loss.kind, loss.records) for loss in repaired.losses] == [("media", (1,))]


@pytest.mark.parametrize("url", ["http://[", "http://[::1/a.png"])
@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
def test_an_address_that_is_none_is_a_placeholder_and_never_an_error(aim: Target, url: str) -> None:
    """A picture at what only looks like an address would keep its session from making any request again."""
    view = numbered(user("Look:", Media("image", url=url)))
    (message,) = repair(view, rules(aim)).view
    assert not any(isinstance(part, Media) for part in message.message.parts)


def test_a_view_ends_with_a_user_where_no_prefill_is_taken() -> None:
    """The newest Claude models and Gemini refuse a conversation that ends with an answer."""
    repaired = repair(numbered(user("go"), assistant("done")), rules(target("anthropic", "claude-opus-4-8")))
    assert repaired.view[-1] == Shown(user(CONTINUE), (2,), "synthetic")


def test_tools_that_nobody_declared_are_declared_from_their_calls() -> None:
    """Anthropic refuses tool blocks without tools."""
    view = numbered(user("go"), assistant(CALL), user(RESULT))
    tools, edits = declare_tools(view, (), rules(CLAUDE))
    assert tools == (Tool("read", parameters={"type": "object", "properties": {}}),)
    assert edits == [Edit("tool", "tool 'read' is called but not declared: declared for any arguments", (2,))]


def test_a_tool_is_declared_though_a_call_of_another_kind_has_its_name() -> None:
    """A call of what the provider has itself, as a shell, is declared by its kind; a function of the same name that is
    called after it was declared nowhere, and the request refused."""
    own = ToolCall("c0", CALL.name, {}, kind="shell")
    given = rules(target("openai-responses", "gpt-5"))
    assert own.kind in given.call_kinds
    view = numbered(user("go"), assistant(own), user(ToolResult("c0", CALL.name, (Text("ok"),))), assistant(CALL))
    tools, _ = declare_tools(view, (), given)
    assert tools == (Tool(CALL.name, parameters={"type": "object", "properties": {}}),)


def test_a_tool_that_was_taken_away_stays_away() -> None:
    """Declaring it again would let the model call what is no longer there."""
    other = Tool("other", parameters={"type": "object"})
    view = numbered(user("go"), assistant(CALL), user(RESULT))
    assert declare_tools(view, (other,), rules(CLAUDE)) == ((other,), [])


@pytest.mark.parametrize("call_id", ["", "same"])
@pytest.mark.parametrize("order", [("read", "list"), ("list", "read")])
def test_results_under_one_id_go_by_the_names_of_their_tools(call_id: str, order: tuple[str, ...]) -> None:
    """Calls of one answer that all have no id, or the same one, had each other's results: the model read that one tool
    had said what the other did."""
    calls = [ToolCall(call_id, name, arguments={}) for name in ("read", "list")]
    results = [ToolResult(call_id, name=name, parts=(Text(f"of {name}"),)) for name in order]
    made = repair(numbered(user("go"), assistant(*calls), user(*results)), rules(RESPONSES))
    called = {part.id: part.name for one in made.view for part in one.message.parts if isinstance(part, ToolCall)}
    told = [part for one in made.view for part in one.message.parts if isinstance(part, ToolResult)]
    assert sorted(called.values()) == ["list", "read"]
    assert {called[part.call_id]: text_of(Message("user", part.parts)) for part in told} == {  # type: ignore[arg-type]
        "read": "of read",
        "list": "of list",
    }


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
@pytest.mark.parametrize("raw", ["", " \n"])
def test_empty_arguments_are_no_arguments(aim: Target, raw: str) -> None:
    """Models call tools without parameters with an empty text. Servers answer 400 to that, and as the value of an
    argument `input` it is one that the tool does not have."""
    call = ToolCall("call_1", "read", raw=raw)
    made = repair(numbered(user("go"), assistant(call), user(RESULT)), rules(aim))
    [sent] = [part for one in made.view for part in one.message.parts if isinstance(part, ToolCall)]
    assert (sent.arguments, sent.raw) == ({}, None)
    assert Edit("arguments", "empty arguments of 'read' sent as {}", (2,)) in made.edits
