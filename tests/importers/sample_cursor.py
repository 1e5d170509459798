"""An agent transcript of Cursor with a subagent beside it, and all that its lines hold."""

from __future__ import annotations

from typing import Any

from samples import Sample
from transcripts import jsonl


def _line(role: str, *content: Any) -> dict[str, Any]:
    return {"role": role, "message": {"content": list(content)}}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _call(name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "name": name, "input": arguments, **more}


_SENT = "<timestamp>Wednesday, Oct 7, 2026, 1:20 PM (UTC+3)</timestamp>\n"
_LINES = [
    {"type": "metadata", "metadata": {"overview": "The fjords of Norway"}},
    _line("user", _text(f"{_SENT}<user_query>\nName the fjords of Norway\n</user_query>")),
    _line(
        "assistant",
        {"type": "thinking", "thinking": "I have to look"},
        _text("I look."),
        _call("Shell", {"command": "ls"}),
    ),
    _line(
        "assistant", _call("Write", {"path": "a.txt", "contents": "Hardanger"}), _call("Read", {"path": "b"}, id=None)
    ),
    _line("user", {"type": "tool_result", "content": "Hardanger and Sogne"}),
    _line("assistant", _call("StrReplace", {"path": "a.txt", "old_string": "Hardanger", "new_string": "Sogne"})),
    {"type": "assistant", "message": {"content": "Hardanger and Sogne, they are."}},
    {"type": "turn_ended", "status": "success"},
    _line(
        "user",
        _text(
            "<open_files>\na list of all files\n</open_files>\n<user_query>\nAnd the lakes of Norway?\n</user_query>"
        ),
    ),
    _line(
        "user",
        _text("<system_notification>\nThe task is done\n</system_notification>\n<user_query>Go on then</user_query>"),
    ),
    {"type": "turn_ended", "status": "error", "error": "the connection was lost"},
    {"type": "later_kind", "text": "something that nobody knows"},
]
_SUBAGENT = [_line("user", _text("Count the fjords")), _line("assistant", _text("There are two."))]

SAMPLE = Sample(
    name="cursor",
    data=jsonl(_LINES),
    query="""
        map(select(.message)) as $said
        | [$said[].message.content[]? | .type] as $blocks
        | [$said[].message.content | arrays | .[0].text // "" | select(test("_files>.*<user_query"; "m"))] as $split
        | {messages: ($said + $split | length), calls: $blocks | map(select(. == "tool_use")) | length,
           results: $blocks | map(select(. == "tool_result")) | length, input: 0, output: 0}""",
    path=".cursor/projects/home-me-w/agent-transcripts/5f2b/5f2b.jsonl",
    warned=("'later_kind'",),
    others={"subagents/child.jsonl": jsonl(_SUBAGENT)},
)
