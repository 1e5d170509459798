"""Sessions with more tools than a provider takes in one request."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from types import ModuleType
from typing import Any

import pytest

import turnlog
from judging import errors_of
from turnlog.log.messages import Message, ToolCall
from turnlog.log.records import Configuration, Record
from turnlog.models.target import Target
from turnlog.session.loader import read_landmarks
from turnlog.stores import MemoryStore

TAKES_ALL = turnlog.target("anthropic", "claude-sonnet-4-6", max_tokens=99)
TAKES_128 = (turnlog.target("openai-chat", "gpt-4o"), turnlog.target("openai-responses", "gpt-5"))


class Looked(MemoryStore):
    """Remembers which configurations were read by their kind."""

    settings: list[int] = []

    def of_kinds(
        self, session_id: str, kinds: Collection[str], *, first: int = 1, reverse: bool = False
    ) -> Iterator[Record]:
        """See `RecordStore.of_kinds`."""
        for record in super().of_kinds(session_id, kinds, first=first, reverse=reverse):
            self.settings = [*self.settings, *([record.n] if isinstance(record.body, Configuration) else [])]
            yield record


def tools(count: int) -> list[dict[str, Any]]:
    """So many tools, as a gateway to many servers declares them."""
    schema = {"type": "object", "properties": {"text": {"type": "string", "description": "What is to be done. " * 5}}}
    return [{"name": f"tool_{n}", "description": f"Does {n}.", "parameters": schema} for n in range(count)]


@pytest.mark.slow
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
            assert len(request.body["tools"]) == 128
            assert errors_of(oracle, aim, request.body) == []
            assert [loss.kind for loss in request.losses] == ["tool"] * (count > 128)
            assert request.edits == ()  # nobody's mistake: it is the target that takes no more
            assert session.window.breakdown().tokens == session.window.tokens
            fitted = turnlog.fit({**request.body, "tools": request.body["tools"] * 9}, max_tokens=60_000)
            sizes.append((session.window.tokens, fitted.tokens))
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
        before = session.request().json()
        lost = session.switch(aim)
        assert "'tool_127', 'tool_128', 'tool_130'" in "".join(loss.detail for loss in lost)
        declared = str(session.request().body["tools"])
        assert "tool_129" in declared and "tool_128" not in declared
        assert errors_of(oracle, aim, session.request().body) == []
        session.switch(TAKES_ALL)
        assert len(session.request().body["tools"]) == 131
        assert session.request().json()[:500] == before[:500]


def test_tools_that_others_took_the_place_of_are_not_kept_in_memory() -> None:
    """With tools disclosed turn by turn, each opening, and each decision after it, read every set of tools there had
    been, and opening held all of them at once: 40 sets of 500 tools were 150 MB."""
    store = Looked()
    with turnlog.open("s", store=store, target=TAKES_ALL) as session:
        for n in range(12):
            session.configure(tools=tools(5 + n), budget=4_000)
            session.user(f"Question {n}. " * 40)
            session.assistant(f"Answer {n}. " * 40)
        before = session.request().json()
        store.settings = []
        found = read_landmarks(store, "s")
        assert len(store.settings) == 1
        assert found.configuration.tools == session.configuration.tools
        assert len(found.configuration.tools) == 16
        assert session.fork("again").request().json() == before
        session.switch(TAKES_128[0])
        session.switch(TAKES_ALL)
        assert len(session.request().body["tools"]) == 16
