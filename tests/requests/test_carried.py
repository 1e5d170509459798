"""Deferred tools, and tools that a conversation adds, in requests to another provider."""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import Any

import pytest

import turnlog
from judging import errors_of
from turnlog.models.target import target
from turnlog.requests.standalone import convert

SCHEMA = {"type": "object", "properties": {"p": {"type": "string"}}}
TARGETS = {
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-5.5",
    "anthropic": "claude-opus-5-5",
    "google": "gemini-2.5-pro",
    "google-interactions": "gemini-2.5-pro",
}
WAITS = ("openai-responses", "anthropic")
"""Providers whose model can search for tools."""


def _anthropic(name: str, *, late: bool = True) -> dict[str, Any]:
    more = {"defer_loading": True} if late else {}
    return {"name": name, "description": f"To {name}.", "input_schema": SCHEMA, **more}


def _responses(name: str, *, late: bool = True) -> dict[str, Any]:
    more = {"defer_loading": True} if late else {}
    return {
        "type": "function",
        "name": name,
        "description": f"To {name}.",
        "parameters": SCHEMA,
        "strict": False,
        **more,
    }


def _interactions(name: str, *, late: bool = True) -> dict[str, Any]:
    more = {"defer_loading": True} if late else {}
    return {"type": "function", "name": name, "description": f"To {name}.", "parameters": SCHEMA, **more}


_REFERENCES = [{"type": "tool_reference", "tool_name": "found"}]
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "a search by Anthropic": (
        "anthropic",
        {
            "model": "claude-opus-5-5",
            "max_tokens": 100,
            "tools": [
                {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
                _anthropic("plain", late=False),
                _anthropic("found"),
                _anthropic("unfound"),
            ],
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": [
                        {
                            "type": "server_tool_use",
                            "id": "srvtoolu_1",
                            "name": "tool_search_tool_regex",
                            "input": {"query": "f"},
                        },
                        {
                            "type": "tool_search_tool_result",
                            "tool_use_id": "srvtoolu_1",
                            "content": {"type": "tool_search_tool_search_result", "tool_references": _REFERENCES},
                        },
                        {"type": "tool_use", "id": "t1", "name": "found", "input": {"p": "x"}},
                    ],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "done"}]},
            ],
        },
    ),
    "a search by the client": (
        "anthropic",
        {
            "model": "claude-opus-5-5",
            "max_tokens": 100,
            "tools": [_anthropic("plain", late=False), _anthropic("found"), _anthropic("unfound")],
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "plain", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": _REFERENCES}]},
            ],
        },
    ),
    "changes of tools": (
        "anthropic",
        {
            "model": "claude-opus-5-5",
            "max_tokens": 100,
            "tools": [_anthropic("plain", late=False), _anthropic("gone", late=False), _anthropic("unfound")],
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "system",
                    "content": [
                        {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "gone"}},
                        {
                            "type": "tool_addition",
                            "tool": {"type": "tool_definition", "definition": _anthropic("found", late=False)},
                        },
                    ],
                },
            ],
        },
    ),
    "a search by OpenAI": (
        "openai-responses",
        {
            "model": "gpt-5.5",
            "tools": [
                {"type": "tool_search"},
                _responses("plain", late=False),
                {
                    "type": "namespace",
                    "name": "crm",
                    "description": "Customers.",
                    "tools": [_responses("found"), _responses("unfound")],
                },
            ],
            "input": [
                {"role": "user", "content": "hi"},
                {
                    "type": "tool_search_call",
                    "execution": "server",
                    "call_id": None,
                    "status": "completed",
                    "arguments": {"paths": ["crm"]},
                },
                {
                    "type": "tool_search_output",
                    "execution": "server",
                    "call_id": None,
                    "status": "completed",
                    "tools": [
                        {
                            "type": "namespace",
                            "name": "crm",
                            "description": "Customers.",
                            "tools": [_responses("found")],
                        }
                    ],
                },
                {"type": "function_call", "call_id": "c1", "name": "found", "namespace": "crm", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": "done"},
            ],
        },
    ),
    "a search by OpenAI's client": (
        "openai-responses",
        {
            "model": "gpt-5.5",
            "tools": [
                {"type": "tool_search", "execution": "client"},
                _responses("plain", late=False),
                _responses("unfound"),
            ],
            "input": [
                {"role": "user", "content": "hi"},
                {"type": "tool_search_call", "execution": "client", "call_id": "s1", "arguments": {"q": "f"}},
                {"type": "tool_search_output", "execution": "client", "call_id": "s1", "tools": [_responses("found")]},
            ],
        },
    ),
    "added tools": (
        "openai-responses",
        {
            "model": "gpt-5.5",
            "tools": [{"type": "tool_search"}, _responses("plain", late=False), _responses("unfound")],
            "input": [
                {"role": "user", "content": "hi"},
                {"type": "additional_tools", "role": "developer", "tools": [_responses("found", late=False)]},
            ],
        },
    ),
    "a search by Google": (
        "google-interactions",
        {
            "model": "gemini-2.5-pro",
            "store": False,
            "tools": [{"type": "tool_search"}, _interactions("plain", late=False), _interactions("unfound")],
            "input": [
                {"type": "user_input", "content": [{"type": "text", "text": "hi"}]},
                {"type": "tool_search_call", "id": "s1", "arguments": {"function_names": ["found"]}},
                {"type": "tool_search_result", "call_id": "s1", "result": [_interactions("found", late=False)]},
                {"type": "function_call", "id": "c1", "name": "found", "arguments": {}},
                {"type": "function_result", "call_id": "c1", "result": "done"},
            ],
        },
    ),
}


def _declared(body: dict[str, Any]) -> dict[str, bool]:
    """The functions that a body declares, and whether each is deferred."""
    tools = list(itertools.chain.from_iterable(tool.get("functionDeclarations", [tool]) for tool in body["tools"]))
    functions = (tool.get("function", tool) for tool in tools if "search" not in str(tool.get("type")))
    return {tool["name"]: bool(tool.get("defer_loading")) for tool in functions}


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("name", BODIES)
def test_what_was_found_is_declared_and_the_rest_waits_where_it_can(oracle: ModuleType, name: str, to: str) -> None:
    """The model would lose tools that it used, or be told of hundreds that it does not need."""
    source, body = BODIES[name]
    aim = target(to, TARGETS[to])
    made = convert(body, source, to=to, model=aim.model)
    assert errors_of(oracle, aim, made.body) == []
    if to == source:
        assert made.body == body
        return
    assert _declared(made.body) == {"plain": False, "found": False, "unfound": to in WAITS}
    own_search = [tool for tool in made.body["tools"] if str(tool.get("type", "")).startswith("tool_search")]
    assert len(own_search) == (to in WAITS)
    told = [loss.detail for loss in made.losses]
    assert any("unfound" in detail for detail in told) == (to not in WAITS)
    assert told  # the items of the search, at least


@pytest.mark.parametrize("name", BODIES)
def test_tools_are_kept_counted_and_paired_by_their_own_provider(oracle: ModuleType, name: str) -> None:
    """A body that is sent as it is would be changed, refused, or counted with what the model does not see."""
    source, body = BODIES[name]
    assert turnlog.check(body, source) == []
    assert turnlog.repair(body, source).body == body
    more = [tool for tool in body["tools"] if "unfound" not in str(tool)]
    fewer = turnlog.count({**body, "tools": more}, source).tokens
    described = 0 if source == "anthropic" else 40  # the others see its name and description
    assert 0 <= turnlog.count(body, source).tokens - fewer <= described


def test_a_call_of_a_search_goes_without_its_result() -> None:
    """The API refuses a search without its result, and a result without its search."""
    source, body = BODIES["a search by Anthropic"]
    messages = [dict(message) for message in body["messages"]]
    messages[1]["content"] = [block for block in messages[1]["content"] if block["type"] != "server_tool_use"]
    repaired = turnlog.repair({**body, "messages": messages}, source).body
    kinds = [block["type"] for block in repaired["messages"][1]["content"]]
    assert kinds == ["tool_use"]


def test_a_session_goes_on_with_another_provider() -> None:
    """After a switch, a session would declare every deferred tool, or forget those that it found; back again, all is as
    it was."""
    source, body = BODIES["a search by Anthropic"]
    session = turnlog.open("s", store=":memory:", target=target(source, body["model"], max_tokens=100))
    session.configure(tools=body["tools"], strategy=turnlog.Strategy(cache_marks=False))
    session.extend(body["messages"])
    before = session.preview().body
    for to in ("openai-responses", "openai-chat"):
        session.switch(target(to, TARGETS[to]))
        made = session.request().body
        assert _declared(made) == {"plain": False, "found": False, "unfound": to in WAITS}
        assert turnlog.Session(session._store, session._store.info("s")).request().body == made
    session.switch(target(source, body["model"], max_tokens=100))
    assert session.preview().body == before


def test_an_older_model_is_told_of_changes_at_the_beginning(oracle: ModuleType) -> None:
    """A model that does not know changes of tools would lose a tool that was added, and keep one that was removed."""
    _, body = BODIES["changes of tools"]
    made = turnlog.repair(body, "anthropic", model="claude-sonnet-4-5")
    assert list(_declared(made.body)) == ["plain", "unfound", "found"]
    assert oracle.check_anthropic({**made.body, "model": "claude-sonnet-4-5"}) == []
    assert [loss.records for loss in made.losses] == [(2,), (2,)]
