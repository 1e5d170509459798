"""Programs that speak in the user's name, as agents put it on record."""

from __future__ import annotations

import re

from ..log.messages import Message, Text

# What Claude Code and Codex put on record in the user's name: the whole of a message is made of such.
_ELEMENT = re.compile(
    r"\s*(?:<(local-command-(?:caveat|stdout|stderr)|command-(?:name|message|contents)|system-reminder|turn_aborted"
    r"|environment_context|bash-std(?:out|err)|task-notification|ide_opened_file|ide_selection)>.*?</\1>"
    r"|<command-args>\s*</command-args>|\[Request interrupted by user[^\]\n]*\])",
    re.DOTALL,
)
_FORM = "Please always provide EXACTLY ONE action in triple backticks"  # mini-swe-agent
# Codex's, of what stands in files for agents: orders, and no task.
_INSTRUCTIONS = re.compile(r"# AGENTS\.md instructions for |<user_instructions>.*</user_instructions>\s*\Z", re.DOTALL)


def is_of_program(text: str) -> bool:
    """Whether a program wrote the whole of what stands there in the user's name."""
    if text.lstrip()[:1] not in ("<", "["):
        return text.startswith(_FORM)
    at = 0
    while (found := _ELEMENT.match(text, at)) is not None:
        at = found.end()
    return at > 0 and not text[at:].strip()


def is_preface(message: Message) -> bool:
    """Whether a message in the user's name says nothing but what an agent puts ahead of the task."""
    texts = [part.text if isinstance(part, Text) else "" for part in message.parts]
    return bool(texts) and all(is_of_program(text) or _INSTRUCTIONS.match(text) is not None for text in texts)
