"""What the fake server is made to answer: one reply for each way in which an answer can be built."""

from __future__ import annotations

from typing import Any

__all__ = ["REPLIES", "replies_of"]

_CALLS = [
    {"name": "read_file", "args": {"path": "src/naïve.py", "lines": [1, 200], "deep": {"none": None}}},
    {"name": "bash", "args": {"command": 'echo "数据 🙂" && ls'}},
]
_TEXT = "Let me look at both files first, then say what they hold. 🙂"
_THOUGHT = "The user wants to know what is in there; two calls at once will do."
_PATCH = "*** Begin Patch\n*** Add File: one.txt\n+one\n*** End Patch"

REPLIES: dict[str, dict[str, Any]] = {
    "text": {"text": _TEXT},
    "empty": {"text": ""},
    "thought": {"thinking": _THOUGHT, "text": _TEXT},
    "calls": {"tool_calls": _CALLS},
    "thought and calls": {"thinking": _THOUGHT, "text": _TEXT, "tool_calls": _CALLS},
    "call without arguments": {"tool_calls": [{"name": "bash", "args": {}}, _CALLS[0]]},
    "custom": {"thinking": _THOUGHT, "custom_calls": [{"name": "apply_patch", "input": _PATCH}]},
    "full": {"text": _TEXT, "stop": "max_tokens"},
    "refusal": {"text": _TEXT, "stop": "refusal"},
}
"""Replies of the fake server, by name."""


def replies_of(provider: str) -> list[str]:
    """The names of the replies that a provider can give: free-text calls are one API's alone, and
    Chat Completions shows no thoughts."""
    without = {"openai-chat": ("custom", "thought"), "openai-responses": ()}.get(provider, ("custom",))
    return [name for name in REPLIES if name not in without]
