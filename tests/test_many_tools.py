"""Sessions with more tools than a provider takes in one request."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import turnlog
from judging import errors_of
from turnlog.content import Message, ToolCall
from turnlog.models import Target

TAKES_ALL = turnlog.target("anthropic", "claude-sonnet-4-6", max_tokens=99)
TAKES_128 = (turnlog.target("openai-chat", "gpt-4o"), turnlog.target("openai-responses", "gpt-5"))


def tools(count: int) -> list[dict[str, Any]]:
    """So many tools, as a gateway to many servers declares them."""
    schema = {"type": "object", "properties": {"text": {"type": "string", "description": "What is to be done. " * 5}}}
    return [{"name": f"tool_{n}", "description": f"Does {n}.", "parameters": schema} for n in range(count)]


@pytest.mark.parametrize("aim", TAKES_128, ids=lambda aim: aim.provider)
def test_only_tools_that_are_sent_are_counted(oracle: ModuleType, aim: Target) -> None:
    """Tools that were left out counted: with 2,000 every request was refused as too large, with 300 the conversation
    was compacted in half of the window."""
    sizes = []
    for count in (128, 2_000):
        with turnlog.open("s", store=":memory:", target=aim) as session:
            session.configure(tools=tools(count))
            session.user("Begin.")
            request = session.request()
            assert len(request.request["tools"]) == 128
            assert errors_of(oracle, aim, request.request) == []
            assert [loss.kind for loss in request.losses] == ["tool"] * (count > 128)
            assert request.edits == ()  # nobody's mistake: it is the target that takes no more
            assert session.breakdown().tokens == session.token_count
            fitted = turnlog.fit({**request.request, "tools": request.request["tools"] * 9}, max_tokens=60_000)
            sizes.append((session.token_count, fitted.tokens))
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("aim", TAKES_128, ids=lambda aim: aim.provider)
def test_a_switch_says_which_tools_a_target_has_no_room_for(oracle: ModuleType, aim: Target) -> None:
    """Nothing was said by the switch, and the tool that has to be called was among those left out: the API refuses a
    choice of a tool that is not declared."""
    with turnlog.open("s", store=":memory:", target=TAKES_ALL) as session:
        session.configure(tools=tools(131), tool_choice={"type": "tool", "name": "tool_129"})
        session.user("Begin.")
        call = ToolCall("c", "tool_130", {"text": "x"})
        session.add(Message("assistant", (call,)))
        session.tool_result(call, "done")
        before = session.request().body()
        lost = session.switch(aim)
        assert "'tool_127', 'tool_128', 'tool_130'" in "".join(loss.detail for loss in lost)
        declared = str(session.request().request["tools"])
        assert "tool_129" in declared and "tool_128" not in declared
        assert errors_of(oracle, aim, session.request().request) == []
        session.switch(TAKES_ALL)
        assert len(session.request().request["tools"]) == 131
        assert session.request().body()[:500] == before[:500]
