"""What items say about tools, whatever they hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.log.messages import Opaque, Tool
from turnlog.providers import PROVIDERS
from turnlog.requests.carried import news_of

_KINDS = (
    "tool_addition", "tool_removal", "tool_reference", "tool_search_tool_result", "tools", "tool_search_output",
    "additional_tools", "tool_search_result",
)  # fmt: skip
_KEYS = ("type", "name", "tool", "tools", "result", "content", "tool_references", "tool_name", "definition",
         "parameters", "input_schema", "description")  # fmt: skip
_WORDS = ("function", "custom", "namespace", "tool_reference", "tool_definition", "tool_search", "x")
_LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from(_WORDS))
_DATA = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5)),
    max_leaves=20,
)


@given(st.sampled_from([*PROVIDERS, "another"]), st.sampled_from(_KINDS), _DATA)
def test_any_item_can_be_asked(name: str, kind: str, data: Any) -> None:
    """A session with one broken item of another program could make no request, and could not even be counted."""
    news = news_of(Opaque(name, kind, data))
    assert all(isinstance(tool, str) or (isinstance(tool, Tool) and tool.kind != "hosted") for tool in news.added)
    assert all(isinstance(tool, str) for tool in news.removed)


@given(st.sampled_from(sorted(PROVIDERS)), _DATA)
def test_any_declaration_can_be_opened(name: str, data: Any) -> None:
    """The same for a hosted tool that is no group of tools."""
    tools = PROVIDERS[name].client_tools(Tool("x", kind="hosted", provider=name, data=data))
    assert all(tool.kind != "hosted" for tool in tools)


@pytest.mark.parametrize(
    ("kind", "data", "added", "removed"),
    [
        ("tool_addition", {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "a"}}, ["a"], []),
        ("tool_removal", {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "a"}}, [], ["a"]),
        (
            "tool_removal",
            {"type": "tool_removal", "tool": {"type": "mcp_toolset_reference", "server_name": "a"}},
            [],
            [],
        ),
    ],
)
def test_changes_are_read(kind: str, data: dict[str, Any], added: list[str], removed: list[str]) -> None:
    """A tool that was removed would be declared again at another provider, or one that was added lost."""
    news = news_of(Opaque("anthropic", kind, data))
    assert ([*news.added], [*news.removed]) == (added, removed)
