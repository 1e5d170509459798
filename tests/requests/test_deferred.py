"""Deferred tools are part of the prompt from the search on that found them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog

NAMES = tuple("abcdef")


def tool(name: str, words: int, *, deferred: bool) -> dict[str, Any]:
    more = {"defer_loading": True} if deferred else {}
    return {"name": name, "description": f"{name} " * words, "input_schema": {"type": "object"}, **more}


def asked(found: list[str], *, by_server: bool) -> list[dict[str, Any]]:
    """A search that found these tools: by the provider's tool, or by one of the caller's own."""
    references = [{"type": "tool_reference", "tool_name": name} for name in found]
    if by_server:
        call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {"query": "x"}}
        inner = {"type": "tool_search_tool_search_result", "tool_references": references}
        answer = {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": inner}
        said = [{"role": "assistant", "content": [call, answer, {"type": "text", "text": "found"}]}]
        return [*said, {"role": "user", "content": "go on"}]
    call = {"type": "tool_use", "id": "t1", "name": "find", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": references}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def body(tools: list[dict[str, Any]], messages: list[dict[str, Any]]) -> dict[str, Any]:
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    own = {"name": "find", "input_schema": {"type": "object"}}
    head = {"model": "claude-sonnet-4-5", "max_tokens": 100, "tools": [search, own, *tools]}
    return {**head, "messages": [{"role": "user", "content": "hi"}, *messages]}


@given(st.sets(st.sampled_from(NAMES)), st.sets(st.sampled_from(NAMES)), st.booleans())
def test_a_tool_counts_once_it_was_found(deferred: set[str], found: set[str], by_server: bool) -> None:
    """Declarations of thousands of tokens that nobody is billed for, or found ones that are forgotten: the body counts
    like one that declares just the tools that are in the prompt. A session's request agrees."""
    said = asked(sorted(found), by_server=by_server)
    given_body = body([tool(name, 200, deferred=name in deferred) for name in NAMES], said)
    shown = [tool(name, 200, deferred=False) for name in NAMES if name not in deferred or name in found]
    wanted = turnlog.count(body(shown, said)).parts
    assert turnlog.count(given_body).parts == wanted
    assert turnlog.repair(given_body).tokens == sum(wanted.values())


@pytest.mark.slow
@given(st.lists(st.booleans(), min_size=1, max_size=6))
def test_a_session_counts_what_was_found_so_far(by_server: list[bool]) -> None:
    """A session that goes on to count as before the search, since it measured its tools then."""
    tools = [tool(name, 200, deferred=True) for name in NAMES]
    whole = body(tools, [])
    with turnlog.open("s", store=":memory:", target=turnlog.target("anthropic", "claude-sonnet-4-5")) as session:
        session.configure(tools=whole["tools"])
        session.extend(whole["messages"])
        for name, server in zip(NAMES, by_server, strict=False):
            session.extend(asked([name], by_server=server))
            now = session.request()
            assert now.tokens == turnlog.count(now.body).tokens


@pytest.mark.parametrize("api", ["openai-responses"])
def test_openai_shows_name_and_description(api: str) -> None:
    """A schema that is billed before it was found, or a description that is not; and namespaces likewise."""
    schema = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(40)}}
    function = {"type": "function", "name": "f", "description": "does f", "strict": False}

    def counted(*tools: dict[str, Any]) -> int:
        head = {"model": "gpt-5.4", "input": [{"role": "user", "content": "hi"}]}
        return turnlog.count({**head, "tools": [{"type": "tool_search"}, *tools]}, api).tokens

    later = {**function, "parameters": schema, "defer_loading": True}
    assert counted(later) == counted({**function, "parameters": None})
    assert counted({**function, "parameters": schema}) > counted(later) + 40
    space = {"type": "namespace", "name": "n", "description": "many"}
    assert counted({**space, "tools": [later, function]}) == counted({**space, "tools": [function]})


def test_elsewhere_a_tool_is_declared_whole() -> None:
    """A tool that another provider is shown whole, counted as if it were deferred there too."""
    given_body = body([tool("big", 400, deferred=True)], [])
    for to, model in (("openai-responses", "gpt-5"), ("google", "gemini-2.5-pro"), ("openai-chat", "gpt-5")):
        made = turnlog.convert(given_body, to=to, model=model)
        assert made.tokens > 400, to
        assert any("deferred tools" in loss.detail for loss in made.losses)
