"""Calls that a provider answers itself belong to one answer each, by the same law as other calls."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judging import numbered
from turnlog.log.messages import Message, Opaque, Text
from turnlog.models.target import target
from turnlog.providers import provider
from turnlog.view.repair.repair import own_calls
from turnlog.view.types import Edit

ANTHROPIC = provider("anthropic").rules(target("anthropic", "claude-sonnet-4-5"), {})
GOOGLE = provider("google-interactions").rules(target("google-interactions", "gemini-3-pro"), {})
TOOLS = ("web_search", "web_fetch", "mcp", "tool_search")
Drawn = Sequence[Sequence[tuple[bool, str, str]]]


def own(called: bool, call_id: str, tool: str) -> Opaque:
    """A call of Anthropic's own tool, or an answer of it."""
    if not called:
        kind = f"{tool}_tool_result"
        return Opaque("anthropic", kind, {"type": kind, "tool_use_id": call_id, "content": []})
    if tool == "mcp":
        return Opaque("anthropic", "mcp_tool_use", {"type": "mcp_tool_use", "id": call_id, "name": "read"})
    name = "tool_search_tool_bm25" if tool == "tool_search" else tool
    return Opaque("anthropic", "server_tool_use", {"type": "server_tool_use", "id": call_id, "name": name})


@given(
    st.lists(
        st.lists(
            st.tuples(st.booleans(), st.sampled_from(("s1", "s2")), st.sampled_from(TOOLS)), min_size=1, max_size=4
        ),
        min_size=1,
        max_size=3,
    )
)
@example([[(True, "s1", "web_search")], [(True, "s1", "web_search"), (False, "s1", "web_search")]])
@example([[(True, "s1", "web_search"), (False, "s1", "web_fetch")]])
@example([[(True, "s1", "web_search"), (False, "s1", "web_search"), (False, "s1", "web_search")]])
def test_an_answer_stays_with_the_newest_call_of_its_tool(drawn: Drawn) -> None:
    """An answer of one tool stood for that of another, or a second answer for that of an older call: the provider
    refuses such a request, and the model reads what it did not ask for."""
    messages = [Message("assistant", tuple(own(*one) for one in parts)) for parts in drawn]
    view = numbered([*messages, Message("user", (Text("Go on."),))])
    edits: list[Edit] = []
    kept = own_calls(view, ANTHROPIC, edits, more=False)

    flat = [(i, *one) for i, parts in enumerate(drawn) for one in parts]
    staying: set[int] = set()
    for place, (_, called, call_id, tool) in enumerate(flat):
        if not called:
            fitting = [n for n, one in enumerate(flat[:place]) if one[1:] == (True, call_id, tool)]
            free = [n for n in fitting if flat[n][0] == flat[fitting[-1]][0] and n not in staying]
            staying |= {free[0], place} if free else set()
    left = [part for shown in kept[:-1] for part in shown.message.parts]
    everything = [part for message in messages for part in message.parts]
    assert left == [part for place, part in enumerate(everything) if place in staying]
    assert [edit.kind for edit in edits] == ["server_tool"] * (len(everything) - len(staying))


@pytest.mark.parametrize("kind", ["google_search", "code_execution", "mcp_server_tool", "url_context"])
def test_a_tool_of_google_is_told_by_its_kind(kind: str) -> None:
    """A call and its answer would both be left out, or an answer of another tool would stay."""
    call = Opaque("google-interactions", f"{kind}_call", {"id": "s1"})
    answer = Opaque("google-interactions", f"{kind}_result", {"call_id": "s1"})
    other = Opaque("google-interactions", "file_search_result", {"call_id": "s1"})
    edits: list[Edit] = []
    view = numbered([Message("assistant", (call, other, answer)), Message("user", (Text("Go on."),))])
    kept = own_calls(view, GOOGLE, edits, more=False)
    assert [shown.message.parts for shown in kept] == [(call, answer), (Text("Go on."),)]
    assert [edit.kind for edit in edits] == ["server_tool"]
