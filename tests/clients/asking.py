"""Sessions that ask: one for each provider, with the settings an agent would use."""

from __future__ import annotations

from typing import Any

import turnlog
from turnlog.models.target import Target, target
from turnlog.stores import MemoryStore

__all__ = ["AGENTS", "TOOLS", "asking"]

AGENTS: tuple[Target, ...] = (
    target("openai-chat", "gpt-4o"),
    target("openai-responses", "gpt-5", store=False, include=["reasoning.encrypted_content"]),
    target("anthropic", "claude-sonnet-4-6", max_tokens=8000, thinking={"type": "enabled", "budget_tokens": 2000}),
    target("google-interactions", "gemini-3-pro"),
    target("google", "gemini-3-pro"),
)
"""A target for each provider, all of them thinking where they can."""

TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": "read_file", "description": "Reads a file.", "parameters": {"type": "object"}},
    {"type": "function", "name": "bash", "description": "Runs a command.", "parameters": {"type": "object"}},
    {"type": "custom", "name": "apply_patch", "description": "Applies a patch."},
]


def asking(aim: Target) -> turnlog.Session:
    """A fresh session with tools, a system text and a question."""
    session = turnlog.open("asking", target=aim, store=MemoryStore())
    session.configure(tools=TOOLS)
    session.system("Be brief.")
    session.user("What do the two files hold?")
    return session
