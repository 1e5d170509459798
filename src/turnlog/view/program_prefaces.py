"""Texts that agents record as user messages although a program wrote them."""

from __future__ import annotations

import re

from .._platform.lazy import lazy_pattern
from ..log.messages import Message, Text

# Elements that Claude Code and Codex record as user messages; such a message consists of nothing else. Those of Codex:
# codex-rs, core/src/contextual_user_message.rs.
_ELEMENT = lazy_pattern(
    r"\s*(?:<(local-command-(?:caveat|stdout|stderr)|command-(?:name|message|contents)|system-reminder|turn_aborted"
    r"|environment_context|bash-std(?:out|err)|task-notification|ide_opened_file|ide_selection|skill|user_shell_command"
    r"|subagent_notification|subagents|plugins|hook_prompt)(?:\s[^>]*)?>.*?</\1>"
    r"|<command-args>\s*</command-args>|\[Request interrupted by user[^\]\n]*\])",
    re.DOTALL,
)
_FORM = "Please always provide EXACTLY ONE action in triple backticks"  # mini-swe-agent
# Codex's text with the contents of files for agents: instructions, not a task.
_INSTRUCTIONS = lazy_pattern(
    r"# AGENTS\.md instructions for |<user_instructions>.*</user_instructions>\s*\Z", re.DOTALL
)
# Claude Code: the text of a skill that the agent loaded, and its own summary of an earlier session.
_REQUEST = "## My request for Codex:"  # between the context of Codex's editor plug-ins and the user's words
_CONTINUED = "This session is being continued from a previous conversation "
_SKILL = "Base directory for this skill: "
# What an agent wrote for its successor: Claude Code; Codex (codex-rs, summary_prefix.md); gemini-cli.
_HANDED_OVER = (
    _CONTINUED,
    "Another language model started to solve this problem and produced a summary of its thinking process",
    "<state_snapshot>",
)


def is_handover(text: str) -> bool:
    """Whether a text begins like the note that an agent wrote for its successor when a conversation became too long."""
    return text.lstrip().startswith(_HANDED_OVER)


def is_inserted(text: str) -> bool:
    """Whether a program composed the text of a user message from other texts."""
    return text.startswith(_SKILL) or is_handover(text)


def request_in(text: str) -> tuple[str, str]:
    """The context that an editor's plug-in wrote before the user's words ("" if there is none), and these words."""
    before, heading, said = text.rpartition(_REQUEST)
    return before + heading, said


def is_of_program(text: str) -> bool:
    """Whether a program wrote the whole text of a user message."""
    if text.lstrip()[:1] not in ("<", "["):
        return text.startswith(_FORM)
    position = 0
    while (element := _ELEMENT.match(text, position)) is not None:
        position = element.end()
    return position > 0 and not text[position:].strip()


def is_preface(message: Message) -> bool:
    """Whether a user message consists only of texts that an agent puts before the task."""
    texts = [part.text if isinstance(part, Text) else "" for part in message.parts]
    return bool(texts) and all(is_of_program(text) or _INSTRUCTIONS.match(text) is not None for text in texts)
