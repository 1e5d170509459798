"""The programs that a session can be handed to."""

from __future__ import annotations

from typing import Literal

Program = Literal["claude", "codex", "gemini"]
"""The command of a program."""

MODELS: dict[Program, tuple[str, str]] = {
    "claude": ("anthropic", "claude-sonnet-4-5"),
    "codex": ("openai-responses", "gpt-5"),
    "gemini": ("google", "gemini-2.5-pro"),
}
"""The provider and the model by which the tokens of a prompt are counted, by program."""
