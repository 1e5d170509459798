"""The Responses API: what others wrote is written legally, and ids go where they may."""

from __future__ import annotations

import base64
import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.log.messages import (
    Form,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
    parse_arguments,
    sha256_hex,
)
from turnlog.log.records import Configuration
from turnlog.models.target import target
from turnlog.providers.openai_responses import PROVIDER
from turnlog.providers.protocol import Rendered
from turnlog.requests.standalone import repair
from turnlog.view.types import Shown

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
BLOBS = {sha256_hex(PNG): PNG}
MODEL = target("openai-responses", "gpt-5")
NAME = "openai-responses"


def rendered(messages: list[Message], configuration: Configuration | None = None, **settings: Any) -> Rendered:
    """The request for messages as they are, record numbers counting from 1."""
    view = [Shown(message, (i,)) for i, message in enumerate(messages, 1)]
    return PROVIDER.render(
        view, configuration or Configuration(provider=NAME), MODEL.with_settings(**settings), BLOBS.__getitem__
    )


# -- what others wrote ---------------------------------------------------------------------------

CACHED = Form("anthropic", delta={"+": {"cache_control": {"type": "ephemeral"}}})
FOREIGN = st.sampled_from([None, CACHED, Form("google")])
WORDS = st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=12)
TEXTS = st.builds(Text, WORDS, FOREIGN)
MEDIA = st.sampled_from(
    [
        Media("image", "image/png", sha256_hex(PNG), len(PNG)),
        Media("image", url="https://example.com/a.png"),
        Media("document", "application/pdf", sha256_hex(PNG), len(PNG)),
        Media("document", "application/pdf", sha256_hex(PNG), len(PNG), name="a.pdf"),
    ]
)
UNTAKEN = st.sampled_from(
    [
        Media("video", "video/mp4", sha256_hex(PNG), len(PNG)),
        Media("image", file_id="files/1", provider="google"),
        Opaque("anthropic", "server_tool_use", {"type": "server_tool_use"}),
        Unknown("of_tomorrow"),
    ]
)


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Valid conversations of any provider: turns of user, answer and results, everything answered."""
    messages: list[Message] = []
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            messages.append(Message("system", tuple(draw(st.lists(TEXTS, min_size=1, max_size=2)))))
        user = draw(st.lists(TEXTS | MEDIA | UNTAKEN, max_size=2))
        messages.append(Message("user", (draw(TEXTS), *user), name=draw(st.sampled_from(["", "ann"]))))
        parts: list[Part] = []
        if draw(st.booleans()):
            parts.append(Reasoning(draw(st.sampled_from(["anthropic", NAME])), "t", ("s",), encrypted="blob"))
        parts.append(draw(TEXTS))
        results: list[Part] = []
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            kind = draw(st.sampled_from(["function", "custom", "shell", "computer", "tool_search", "bash"]))
            raw = draw(st.none() | WORDS)
            call = ToolCall(f"call_{number}", "tool", None if raw else {"a": number}, raw, kind, item_id="toolu_1")
            parts.append(call)
            inner = draw(st.lists(TEXTS | MEDIA, max_size=2))
            outcome = draw(st.sampled_from(["ok", "failed", "lost"]))
            results.append(ToolResult(call.id, "tool", tuple(inner), outcome, kind, synthetic=outcome == "lost"))
        messages.append(Message("assistant", tuple(parts)))
        if results:
            messages.append(Message("user", (*results, *draw(st.lists(TEXTS, max_size=1)))))
    return messages


def _said(messages: tuple[Message, ...] | list[Message]) -> list[tuple[str, str]]:
    """Texts, calls and results in order, whatever carries them."""
    said: list[tuple[str, str]] = []
    for message in messages:
        for part in message.parts:
            match part:
                case Text():
                    said.append((message.role, part.text))
                case ToolCall():
                    # What is no function becomes one; free text becomes its `input`.
                    foreign = part.kind not in ("function", "custom")
                    arguments = {"input": part.raw} if part.raw is not None and foreign else part.raw_arguments
                    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
                    said.append((part.id, str(parse_arguments(text)[0] or text)))
                case ToolResult():
                    said.append((part.call_id, ""))
                    said.extend((part.call_id, inner.text) for inner in part.parts if isinstance(inner, Text))
    return said


@given(histories())
def test_foreign_histories_are_accepted_whole_and_in_order(oracle: ModuleType, history: list[Message]) -> None:
    """A conversation must move to this provider with every text, call, argument and result."""
    out = rendered(history, store=False)
    assert oracle.check_openai_responses(out.body) == []
    assert PROVIDER.sanitize(out.body, MODEL).body is out.body
    again = PROVIDER.parse(out.body)
    assert _said(again.messages) == _said(history)
    kinds = {loss.kind for loss in out.losses}
    parts = [part for message in history for part in message.parts]
    assert ("reasoning" in kinds) == any(isinstance(part, Reasoning) and part.provider != NAME for part in parts)
    silent = [part for part in parts if isinstance(part, ToolResult) and part.outcome != "ok" and not part.synthetic]
    assert ("outcome" in kinds) == bool(silent)
    assert ("opaque" in kinds) == any(isinstance(part, (Opaque, Unknown)) for part in parts)
    assert all(loss.records for loss in out.losses)


@given(histories())
def test_a_longer_history_starts_with_the_shorter_one(history: list[Message]) -> None:
    """A rendering that moved earlier items would pay for the cached prefix again."""
    whole = rendered(history).body["input"]
    for end in range(len(history)):
        part = rendered(history[:end]).body["input"]
        assert whole[: len(part)] == part


def test_an_sdk_users_spelling() -> None:
    """The default spelling is the plain one: strings where one text is all, flat calls."""
    out = rendered(
        [
            Message("system", (Text("be brief"),)),
            Message("user", (Text("look"), Media("image", url="https://example.com/a.png"))),
            Message("assistant", (Text("hm"), ToolCall("c1", "f", {"a": 1}))),
            Message("user", (ToolResult("c1", "f", (Text("7"),)),)),
        ],
        Configuration(provider=NAME, tools=(Tool("f", "d", {"type": "object"}),)),
    )
    assert out == Rendered(
        body={
            "model": "gpt-5",
            "input": [
                {"role": "system", "content": "be brief"},
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "look"},
                        {"type": "input_image", "image_url": "https://example.com/a.png"},
                    ],
                },
                {"role": "assistant", "content": "hm"},
                {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a":1}'},
                {"type": "function_call_output", "call_id": "c1", "output": "7"},
            ],
            "tools": [
                {
                    "type": "function",
                    "name": "f",
                    "description": "d",
                    "parameters": {"type": "object"},
                    "strict": False,
                }
            ],
        }
    )


# -- ids -----------------------------------------------------------------------------------------

REASONED = {
    "id": "resp_1",
    "status": "completed",
    "model": "gpt-5",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "phase": "commentary",
            "content": [{"type": "output_text", "text": "first", "annotations": [], "logprobs": []}],
        },
        {
            "type": "message",
            "id": "msg_2",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": "second", "annotations": []},
                {"type": "refusal", "refusal": "no"},
            ],
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "c1",
            "name": "f",
            "arguments": "{}",
            "status": "completed",
        },
    ],
}


def answer(encrypted: str = "") -> Message:
    """The answer above, its reasoning with or without an encrypted blob."""
    extra = {"encrypted_content": encrypted} if encrypted else {}
    output = [{**REASONED["output"][0], **extra}, *REASONED["output"][1:]]  # type: ignore[dict-item]
    return PROVIDER.parse_response({**REASONED, "output": output}).message


def ids(items: list[dict[str, Any]]) -> list[str | None]:
    """The ids of items, None where one has none."""
    return [item.get("id") for item in items]


def test_an_answer_is_replayed_item_by_item() -> None:
    """Two output messages in a row must stay two, each with its id, phase and status."""
    items = rendered([answer()]).body["input"]
    expected: Any = json.loads(json.dumps(REASONED["output"]))
    del expected[1]["content"][0]["logprobs"]
    assert items == expected


def test_ids_go_with_the_reasoning() -> None:
    """A stored item with its id is refused without the reasoning that it came from."""
    whole = answer()
    out = rendered([Message("assistant", whole.parts[1:])])
    assert ids(out.body["input"]) == [None, None, None]
    assert [loss.kind for loss in out.losses] == ["extra"] * 3


@pytest.mark.parametrize("encrypted", ["", "blob"])
def test_reasoning_stands_only_before_what_it_led_to(oracle: ModuleType, encrypted: str) -> None:
    """Stored reasoning whose follower left the view is refused: only its blob can be replayed."""
    whole = answer(encrypted)
    view = [Message("assistant", (whole.parts[0], *whole.parts[2:4])), Message("user", (Text("go on"),))]
    out = rendered(view)
    assert ids(out.body["input"]) == ([None, None, None] if encrypted else [None, None])
    assert oracle.check_openai_responses(out.body) == []


def test_reasoning_before_foreign_text_goes_without_its_id(oracle: ModuleType) -> None:
    """An answer that was cut off has no id of its own; the reasoning must not claim one."""
    blob = Reasoning(NAME, encrypted="blob", id="rs_1")
    bare = Reasoning(NAME, id="rs_2")
    for part, expected in ((blob, [None, None]), (bare, [None])):
        out = rendered([Message("assistant", (part, Text("half")))])
        assert ids(out.body["input"]) == expected
        assert oracle.check_openai_responses(out.body) == []


def test_an_edited_item_goes_without_its_id() -> None:
    """The provider keeps the whole text under the id; the view shows another."""
    whole = answer("blob")
    shown = Shown(whole, (4,), "masked")
    out = PROVIDER.render([shown], Configuration(provider=NAME), MODEL, BLOBS.__getitem__)
    assert ids(out.body["input"]) == [None] * 4
    assert {loss.records for loss in out.losses} == {(4,)}


def test_no_id_comes_twice(oracle: ModuleType) -> None:
    """A message that a fork shows again must not repeat its ids."""
    call = ToolResult("c1", "f", (Text("1"),))
    out = rendered([answer("blob"), Message("user", (call,)), answer("blob"), Message("user", (call,))])
    assert oracle.check_openai_responses(out.body) == []
    assert ids(out.body["input"])[5:] == [None] * 5


def test_foreign_item_ids_are_never_sent() -> None:
    """`Invalid 'input[1].id': 'toolu_x'. Expected an ID that begins with 'fc'.`"""
    foreign = Message("assistant", (ToolCall("toolu_x", "f", {}, item_id="toolu_x", provider="anthropic"),))
    assert ids(rendered([foreign]).body["input"]) == [None]


def test_text_joined_to_an_answer_stays_outside_its_items() -> None:
    """Joining messages must not put a text under the id of somebody else's item."""
    whole = answer("blob")
    joined = Message("assistant", (*whole.parts[:2], Text("later")))
    items = rendered([joined]).body["input"]
    assert [item.get("content") for item in items[1:]] == [
        [{"type": "output_text", "text": "first", "annotations": []}],
        "later",
    ]


def test_instructions_stay_instructions_only_where_they_lead() -> None:
    """`instructions` stands before everything: system text from the middle must not jump there."""
    parsed = PROVIDER.parse({"model": "m", "instructions": "A", "input": "x"})
    lead, user = parsed.messages
    out = rendered([lead, user, lead])
    assert out.body["instructions"] == "A"
    assert out.body["input"] == [{"role": "user", "content": "x"}, {"role": "system", "content": "A"}]


@st.composite
def answers(draw: st.DrawFn, turn: int) -> list[dict[str, Any]]:
    """The output items of one response, ids as the provider gives them; what thinks goes on to act."""
    items: list[dict[str, Any]] = []
    encrypted = {"encrypted_content": "blob"} if draw(st.booleans()) else {}
    kinds = draw(st.lists(st.sampled_from(["reasoning", "message", "function_call", "file_search_call"]), max_size=5))
    for i, kind in enumerate([*kinds, "message"]):
        name = f"{turn}_{i}"
        if kind == "reasoning":
            items.append({"type": kind, "id": f"rs_{name}", "summary": [], **encrypted})
        elif kind == "message":
            content = [{"type": "output_text", "text": name, "annotations": []}]
            items.append({"type": kind, "id": f"msg_{name}", "role": "assistant", "content": content})
        elif kind == "function_call":
            items.append({"type": kind, "id": f"fc_{name}", "call_id": name, "name": "f", "arguments": "{}"})
        else:
            items.append({"type": kind, "id": f"fs_{name}", "status": "completed", "queries": []})
    return items


def refused(sent: list[dict[str, Any]], stored: list[list[dict[str, Any]]]) -> list[str]:
    """What the provider says of ids that it keeps, checked against the responses it keeps."""
    errors: list[str] = []
    sent_ids = ids(sent)
    for output in stored:
        reasoning = None
        for item, follower in zip(output, [*output[1:], None], strict=True):
            at = sent_ids.index(item["id"]) if item["id"] in sent_ids else None
            if item["type"] == "reasoning":
                reasoning = item["id"]
                if at is not None and follower and follower["type"] != "reasoning":
                    errors += [f"{item['id']} without {follower['id']}"] * (sent_ids[at + 1] != follower["id"])
            elif reasoning and at is not None:
                errors += [f"{item['id']} without {reasoning}"] * (reasoning not in sent_ids[:at])
    return errors


@given(st.data())
def test_what_is_left_of_answers_is_accepted(oracle: ModuleType, data: st.DataObject) -> None:
    """Whatever a view leaves out of stored answers, no id may be sent that needs what is gone."""
    stored = [data.draw(answers(turn)) for turn in range(data.draw(st.integers(1, 3)))]
    view: list[Shown] = []
    for output in stored:
        whole = PROVIDER.parse_response({"status": "completed", "output": output}).message
        parts = [part for part in whole.parts if data.draw(st.integers(0, 5))]
        if data.draw(st.booleans()):
            parts.insert(data.draw(st.integers(0, len(parts))), Text("a foreign text"))
        last = max((i for i, part in enumerate(parts) if not isinstance(part, Reasoning)), default=-1)
        parts = parts[: last + 1]  # reasoning at the end is repair's to take out
        results = [ToolResult(part.id, "f", (Text("r"),)) for part in parts if isinstance(part, ToolCall)]
        treatment = data.draw(st.sampled_from(["verbatim", "repaired", "masked"]))
        view += [
            Shown(Message("assistant", tuple(parts)), (1,), treatment),
            Shown(Message("user", tuple(results)), (2,)),
        ]
    view = [shown for shown in view if shown.message.parts]
    if data.draw(st.booleans()):
        view += view
    sent = PROVIDER.render(view, Configuration(provider=NAME), MODEL, BLOBS.__getitem__).body["input"]
    assert refused(sent, stored) == []
    assert not sent or oracle.check_openai_responses({"model": "gpt-5", "input": sent}) == []


def test_an_own_call_that_lacks_something_is_shown_as_a_function_call(oracle: ModuleType) -> None:
    """An item without what its type must have is refused, and its answer with it."""
    items = [
        {"role": "user", "content": "q"},
        {"type": "computer_call", "call_id": "c1", "action": {"type": "wait"}},
        {
            "type": "local_shell_call",
            "call_id": "a b",
            "status": "completed",
            "action": {"type": "exec", "command": []},
        },
        {"type": "local_shell_call_output", "id": "a b", "output": "done"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "f", "input": "x"},
        {"type": "function_call_output", "call_id": "c2", "output": "done"},
    ]
    prepared = repair({"model": "gpt-5", "input": items}, "openai-responses")
    assert oracle.check_openai_responses(prepared.body) == []
    sent = sorted((item["call_id"], item["type"]) for item in prepared.body["input"][1:])
    assert sent == [
        ("a b", "function_call"),
        ("a b", "function_call_output"),
        ("c1", "function_call"),
        ("c1", "function_call_output"),
        ("c2", "custom_tool_call"),
        ("c2", "custom_tool_call_output"),
    ]
    assert [loss.records for loss in prepared.losses if loss.kind == "extra"] == [(3,)]
    assert [edit.records for edit in prepared.edits if edit.kind == "output"] == [(6,)]


def test_an_id_that_is_none_of_the_providers_binds_nothing(oracle: ModuleType) -> None:
    """An id that sanitizing takes off would leave the reasoning before it without its follower."""
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "role": "assistant", "id": "not one", "content": [{"type": "output_text", "text": "a"}]},
        {"role": "user", "content": "q"},
    ]
    prepared = repair({"model": "gpt-5", "input": items}, "openai-responses")
    assert oracle.check_openai_responses(prepared.body) == []
    assert [(loss.kind, loss.records) for loss in prepared.losses] == [("reasoning", (1,))]
