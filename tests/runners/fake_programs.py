"""Small scripts that stand in for agent programs: each prints what a real one prints, and notes how it was called."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

_HEAD = """\
#!{python} -IS
import json, os, sys
HERE = {here!r}
prompt = sys.stdin.read() if {reads} else ""
with open(os.path.join(HERE, "calls.jsonl"), "a") as calls:
    calls.write(json.dumps({{"arguments": sys.argv[1:], "prompt": prompt, "pid": os.getpid()}}) + "\\n")
def say(value):
    print(value if isinstance(value, str) else json.dumps(value), flush=True)
run = sum(1 for line in open(os.path.join(HERE, "calls.jsonl")))
"""


class FakeProgram:
    """A program made of a few lines of Python. `calls` tells how it was run."""

    def __init__(self, folder: Path, body: str, *, reads: bool = True) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "program"
        self._calls = folder / "calls.jsonl"
        head = _HEAD.format(python=sys.executable, here=str(folder), reads=reads)
        self.path.write_text(f"{head}\n{body}\n", "utf-8")
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The arguments, the prompt and the process of each run."""
        if not self._calls.exists():
            return []
        return [json.loads(line) for line in self._calls.read_text("utf-8").splitlines()]


def lines(program: str, text: str, session: str = "s1", *, usage: tuple[int, int] = (100, 5)) -> list[Any]:
    """What a program prints that answers with `text`, in today's shape."""
    read, wrote = usage
    half = len(text) // 2
    match program:
        case "claude":
            delta = [
                {"type": "stream_event", "event": {"type": "content_block_delta", "delta": {"text": piece}}}
                for piece in (text[:half], text[half:])
            ]
            tool = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}
            bill = {"input_tokens": read - 60, "cache_read_input_tokens": 60, "output_tokens": wrote}
            return [
                {"type": "system", "subtype": "init", "session_id": session, "tools": ["Bash"]},
                {"type": "assistant", "message": {"content": [tool]}, "parent_tool_use_id": None},
                {
                    "type": "assistant",
                    "message": {"content": [{"type": "text", "text": "x"}]},
                    "parent_tool_use_id": "t",
                },
                *delta,
                {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}},
                {"type": "result", "subtype": "success", "is_error": False, "result": text, "usage": bill},
            ]
        case "gemini":
            return [
                {"type": "init", "session_id": session, "model": "m"},
                {"type": "message", "role": "user", "content": "?"},
                {"type": "tool_use", "tool_name": "Bash", "tool_id": "t", "parameters": {"command": "ls"}},
                {"type": "tool_result", "tool_id": "t", "status": "success"},
                *(
                    {"type": "message", "role": "assistant", "content": piece, "delta": True}
                    for piece in text.split("|")
                ),
                {
                    "type": "result",
                    "status": "success",
                    "stats": {"input_tokens": read, "output_tokens": wrote, "cached": 60},
                },
            ]
        case _:
            bill = {"input_tokens": read, "cached_input_tokens": 60, "output_tokens": wrote}
            command = {"type": "command_execution", "command": "ls", "status": "completed"}
            return [
                {"type": "thread.started", "thread_id": session},
                {"type": "turn.started"},
                {"type": "error", "message": "Reconnecting... 1/5"},
                {"type": "item.completed", "item": command},
                {"type": "item.completed", "item": {"type": "agent_message", "text": text}},
                {"type": "turn.completed", "usage": bill},
            ]


def saying(program: str, text: str, **more: Any) -> str:
    """The body of a program that answers with `text`."""
    return f"for line in json.loads({json.dumps(lines(program, text, **more))!r}): say(line)"
