"""JSON mode of both OpenAI APIs requires the word "json" in a message that is sent."""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest

import turnlog
from judging import errors_of
from turnlog.log.budget import PRESETS
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.models.target import Target, target
from turnlog.stores import MemoryStore

AIMS = (
    target("openai-chat", "gpt-4o", response_format={"type": "json_object"}),
    target("openai-responses", "gpt-5", text={"format": {"type": "json_object"}}),
)
CHAT = {"model": "gpt-4o", "response_format": {"type": "json_object"}}
RESPONSES = {"model": "gpt-5", "text": {"format": {"type": "json_object"}}}


def bodies(*messages: dict[str, Any], instructions: str | None = None) -> list[dict[str, Any]]:
    """The same messages in a body of each API."""
    beside = {} if instructions is None else {"instructions": instructions}
    return [{**CHAT, "messages": list(messages)}, {**RESPONSES, **beside, "input": list(messages)}]


@pytest.mark.parametrize("said", ["Answer.", "", "J S O N"])
def test_a_body_without_the_word_is_refused_and_repaired(said: str, oracle: ModuleType) -> None:
    """The API answers 400: 'messages' must contain the word 'json' in some form."""
    for aim, body in zip(AIMS, bodies({"role": "user", "content": said or "Hello."}), strict=True):
        assert [violation.kind for violation in turnlog.check(body)] == ["word"]
        fixed = turnlog.repair(body)
        assert errors_of(oracle, aim, fixed.body) == []
        assert [edit.kind for edit in fixed.edits] == ["word"]
        assert turnlog.repair(fixed.body).body == fixed.body
        assert turnlog.check(fixed.body) == []


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
@pytest.mark.parametrize("word", ["json", "JSON", "jsonl"])
def test_a_body_with_the_word_stays_as_it_is(role: str, word: str) -> None:
    """A body that the API accepts would be changed, and its cached prefix with it."""
    for body in bodies({"role": role, "content": f"Use {word}."}, {"role": "user", "content": "Go on."}):
        assert turnlog.check(body) == []
        assert turnlog.repair(body).body == body


def test_instructions_are_no_message() -> None:
    """The Responses API looks for the word in the input, not in the instructions."""
    body = bodies({"role": "user", "content": "Go on."}, instructions="Answer in JSON.")[1]
    assert [violation.kind for violation in turnlog.check(body)] == ["word"]
    assert turnlog.check({**body, "previous_response_id": "resp_1"}) == []  # stored messages may have it


def test_other_formats_need_no_word() -> None:
    """A request for text or for a schema would get a message that nobody wants."""
    schema = {"name": "answer", "schema": {"type": "object", "properties": {}}}
    for format_ in ({"type": "text"}, {"type": "json_schema", "json_schema": schema}):
        body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi."}], "response_format": format_}
        assert turnlog.repair(body).body == body


def worded(aim: Target, strategy: str, said_by: str, budget: int | None) -> list[turnlog.Request]:
    """The requests of a session in which only one early record has the word."""
    store = MemoryStore()
    options = turnlog.Settings(strategy=strategy)
    session = turnlog.open("s", store=store, target=aim, budget=budget, settings=options)
    made = []
    session.user("The task" + (" in json." if said_by == "task" else "."))
    for n in range(30):
        made.append(session.request())
        session.add(Message("assistant", (Text(f"Step {n}."), ToolCall(f"c{n}", "read", {"n": n}))))
        word = " JSON " if said_by == "tool" and n == 2 else " words "
        session.add(Message("user", (ToolResult(f"c{n}", "read", (Text(f"{n}:" + word * 120),)),)))
        if said_by == "user" and n == 2:
            session.user("Answer in json from now on.")
        if n == 20 and said_by != "task":
            session.clear()
            session.user("Now this.")
    made.append(session.request())
    assert turnlog.Session(store, store.info("s")).request().json() == made[-1].json()
    return made


@pytest.mark.slow
@pytest.mark.parametrize("strategy", PRESETS)
@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.provider)
def test_every_view_has_the_word(aim: Target, strategy: str, oracle: ModuleType) -> None:
    """The word leaves with what a decision cuts, masks, summarises or clears, and the provider refuses the request."""
    for said_by in ("tool", "user", "task", "nobody"):
        edited = 0
        for request in worded(aim, strategy, said_by, 2_000):
            assert errors_of(oracle, aim, request.body) == []
            assert "json" in str(request.body["messages" if aim.provider == "openai-chat" else "input"]).lower()
            assert request.tokens <= 2_000
            edited += any(edit.kind == "word" for edit in request.edits)
        assert (edited == 0) == (said_by == "task")


@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.provider)
def test_the_added_message_leaves_the_prefix_alone(aim: Target) -> None:
    """A message in front of the conversation would take the whole prompt cache with it when it comes and goes."""
    key = "messages" if aim.provider == "openai-chat" else "input"
    requests = worded(aim, "auto", "user", None)
    for before, after in pairwise(requests[:20]):
        same = before.body[key][: -1 if any(edit.kind == "word" for edit in before.edits) else None]
        assert after.body[key][: len(same)] == same


@pytest.mark.parametrize("named", ["gone", "there"])
def test_a_choice_of_a_tool_that_is_gone_is_dropped(named: str) -> None:
    """Both APIs refuse a tool choice that names no declared tool."""
    function = {"name": "there", "parameters": {"type": "object", "properties": {}}}
    chat = {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": "Hi."}],
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": named}},
    }
    responses = {
        "model": "gpt-5",
        "input": "Hi.",
        "tools": [{"type": "function", **function, "strict": False}],
        "tool_choice": {"type": "function", "name": named},
    }
    for body in (chat, responses):
        expected = body if named == "there" else {key: value for key, value in body.items() if key != "tool_choice"}
        assert turnlog.repair(body).body == expected
        assert len(turnlog.check(body)) == (named == "gone")
