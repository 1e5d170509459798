"""Find the speaker if the role does not show it: a user who refuses a call, and an agent that writes its commands into
its text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ..log.messages import Message, Text, ToolCall, ToolResult
from ..view.types import Shown

REFUSED = "refused by the user"

_ENDS = 2_000  # characters at the beginning of a result that are searched for a refusal
# The wordings of Claude Code, cline and its relatives, gemini-cli and turnlog itself.
_REFUSAL = re.compile(
    r"\s*(?:the user (?:doesn't want to (?:proceed with this tool use|take this action)|denied this operation"
    r"|did not allow this call)|user (?:denied execution|rejected tool use|did not allow tool call)\b)",
    re.IGNORECASE,
)
_WORDS = re.compile(
    r"(?:the user said:|following reason for the rejection:|following feedback:\s*<feedback>"
    r"|did not allow this call; it did not run\.)(.+?)(?:</feedback>|\n\nNote:|\Z)",
    re.DOTALL | re.IGNORECASE,
)

# How mini-swe-agent and SWE-agent mark the output of a command, and the command in the agent's text before it.
_STATUS, _KILLED = "<returncode>", "The last command <command>"
_PROMPT = re.compile(r"\n\(Open file: [^\n]*\)\n\(Current directory: [^\n]*\)\n\S*\$\s*\Z")
_OPENS, _CLOSES = re.compile(r"^```(\w*)[ \t]*\n", re.MULTILINE), re.compile(r"\n?^```[ \t]*$", re.MULTILINE)
_SHELLS = ("bash", "mswea_bash_command", "sh", "")
_SHELL, _ID = "bash", "said"


def refusal_of(text: str) -> str | None:
    """What the user said when refusing a call, from the result `text` of the call: "" if nothing, None if the call was
    not refused."""
    if _REFUSAL.match(text) is None:
        return None
    match = _WORDS.search(text, 0, _ENDS)
    return match[1].strip() if match is not None else ""


def is_output(message: Message) -> bool:
    """Whether a user message is the output of a command that an agent wrote into its text."""
    return _report(message) is not None


def with_calls(messages: Sequence[Shown]) -> Sequence[Shown]:
    """The messages, in which commands that an agent wrote into its answers become calls, and the user messages with
    their output become results. Most agents use calls: then the messages are returned unchanged."""
    reports = [index for index, shown in enumerate(messages) if _report(shown.message) is not None]
    if not reports:
        return messages
    changed = list(messages)
    for index in reports:
        changed[index] = replace(changed[index], message=_report(changed[index].message))
        if index and changed[index - 1].message.role == "assistant":
            changed[index - 1] = replace(changed[index - 1], message=_acting(changed[index - 1].message))
    return changed


def _report(message: Message) -> Message | None:
    """The message with its text as a result, if it is a user message with the output of a command; else None."""
    part = message.parts[0] if message.role == "user" and len(message.parts) == 1 else None
    if not isinstance(part, Text):
        return None
    text = part.text
    prompt = text[-3:].rstrip()[-1:] == "$" and _PROMPT.search(text, max(0, len(text) - _ENDS)) is not None
    if not prompt and not text.startswith((_STATUS, _KILLED)):
        return None
    result = ToolResult(_ID, _SHELL, (part,), "timeout" if text.startswith(_KILLED) else "ok")
    return replace(message, parts=(result,))


def _acting(message: Message) -> Message:
    """An answer with its command as a call; unchanged if it has none or several."""
    blocks = [
        (index, text, opens, closes)
        for index, part in enumerate(message.parts)
        if isinstance(part, Text) and "```" in (text := part.text)
        for opens, closes in _blocks(text)
        if opens[1] in _SHELLS
    ]
    named = [block for block in blocks if block[2][1]] or blocks
    if len(named) != 1:
        return message
    (index, text, opens, closes), parts = named[0], message.parts
    rest = Text(text[: opens.start()] + text[closes.end() :])
    call = ToolCall(_ID, _SHELL, {"command": text[opens.end() : closes.start()]})
    return replace(message, parts=(*parts[:index], rest, call, *parts[index + 1 :]))


def _blocks(text: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """The beginnings and ends of code blocks. A block without an end is ignored, with everything after it."""
    position = 0
    while (opens := _OPENS.search(text, position)) and (closes := _CLOSES.search(text, opens.end())):
        yield opens, closes
        position = closes.end()
