"""Two runs of `codex exec --json` in the log of a build, with every item of its events."""

from __future__ import annotations

from typing import Any

from samples import Sample
from transcripts import jsonl


def _item(n: int, kind: str, event: str = "item.completed", **more: Any) -> dict[str, Any]:
    return {"type": event, "item": {"id": f"item_{n}", "type": kind, **more}}


_RUN = "in_progress"
_SHELL = {"command": "bash -lc 'ls the fjords'"}
_MCP = {"server": "docs", "tool": "search", "arguments": {"words": "of the fjords"}}
_BLOCKS = {"content": [{"type": "text", "text": "three fjords were found"}], "structured_content": None}
_AGENTS = {"tool": "spawn_agent", "sender_thread_id": "t", "receiver_thread_ids": ["t2"], "prompt": "look at the lakes"}
_USAGE = {"input_tokens": 900, "cached_input_tokens": 600, "output_tokens": 70, "reasoning_output_tokens": 30}
_EVENTS: list[dict[str, Any]] = [
    {"type": "thread.started", "thread_id": "019fd2bf-ffe8-7c23-bd20-436c6938519f"},
    {"type": "turn.started"},
    _item(0, "error", message="Skill descriptions were shortened"),
    _item(1, "reasoning", text="**I look** at the files"),
    _item(2, "command_execution", "item.started", **_SHELL, aggregated_output="", exit_code=None, status=_RUN),
    _item(2, "command_execution", **_SHELL, aggregated_output="Hardanger, Sogne\n", exit_code=0, status="completed"),
    _item(3, "command_execution", command="cat x", aggregated_output="no such file", exit_code=1, status="failed"),
    _item(4, "mcp_tool_call", **_MCP, result=_BLOCKS, error=None, status="completed"),
    _item(5, "mcp_tool_call", **_MCP, result=None, error={"message": "the server is gone"}, status="failed"),
    _item(6, "file_change", changes=[{"path": "a.txt", "kind": "add"}], status="completed"),
    _item(7, "web_search", query="depth of the Sognefjord", action={"type": "search"}),
    _item(8, "todo_list", items=[{"text": "name all of them", "completed": False}]),
    _item(
        9, "collab_tool_call", **_AGENTS, agents_states={"t2": {"message": "the lakes are cold"}}, status="completed"
    ),
    _item(10, "hologram", text="something that nobody knows"),
    _item(11, "agent_message", text="Hardanger and Sogne."),
    {"type": "turn.completed", "usage": _USAGE},
    {"type": "turn.started"},
    {"type": "error", "message": "Reconnecting... 1/5 of them"},
    _item(12, "command_execution", "item.started", command="sleep 900", aggregated_output="", status=_RUN),
    {"type": "turn.failed", "error": {"message": "stream disconnected before completion"}},
    {"type": "thread.started", "thread_id": "another"},
    {"type": "turn.started"},
    _item(0, "agent_message", text="There are no lakes."),
    {"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 5}},
]

SAMPLE = Sample(
    name="codex-exec",
    data=b"Reading additional input from stdin...\n" + jsonl(_EVENTS),
    query="""
        map(.item | select(.) | select(.type | IN("command_execution", "mcp_tool_call", "file_change", "web_search",
            "collab_tool_call"))) as $tools
        | map(select(.type == "item.completed").item | if .type | IN("agent_message", "reasoning") then ["said"]
            elif .type | IN("error", "todo_list", "hologram") then [] else ["said", "result"] end) as $speakers
        | map(select(.type == "turn.completed").usage) as $usage
        | {messages: ($speakers | add | [foreach .[] as $one ({}; {last: $one, is_new: ($one != .last)})
              | select(.is_new)] | length + 2),  # the call without an end, and the second thread
           calls: $tools | map(.id) | unique | length,
           results: map(select(.type == "item.completed" and (.item.status or .item.query))) | length,
           input: $usage | map(.input_tokens) | add, output: $usage | map(.output_tokens) | add}""",
    is_log=True,
    warned=("1 line of text", "'hologram'", "`item.text`"),
)
