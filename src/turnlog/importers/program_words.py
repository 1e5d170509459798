"""The words of the output of agent programs, for the importers and the runners that read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CODEX_TOOLS = {
    "command_execution": ("shell", ("command",)),
    "web_search": ("web_search", ("query", "action")),
    "file_change": ("apply_patch", ("changes",)),
    "collab_tool_call": ("", ("receiver_thread_ids", "prompt")),
    "mcp_tool_call": ("", ("arguments",)),
}
"""Items of `codex exec --json` that are tool calls: the name of the tool ("": the item says it), and the keys of its
arguments (`ThreadItem` in codex-rs/exec/src/exec_events.rs)."""


def codex_call(item: Mapping[str, Any]) -> tuple[str, Any]:
    """The name of the tool that an item called, and its arguments."""
    name, keys = CODEX_TOOLS[item["type"]]
    tool = item.get("tool")
    arguments: Any = {key: item[key] for key in keys if item.get(key) is not None}
    named = name or (tool if isinstance(tool, str) else "")
    return named, arguments.get("arguments", {}) if keys == ("arguments",) else arguments


CODEX_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "cached_input_tokens",
    "cache_write": "cache_write_input_tokens",
    "reasoning": "reasoning_output_tokens",
}
"""The figures of Codex's usage: input includes what was cached, output the reasoning."""

GEMINI_USAGE = {"input": "input_tokens", "output": "output_tokens", "cached": "cached"}
"""The figures of the `stats` of gemini-cli: input includes what was cached; thoughts are only in `total_tokens`."""
