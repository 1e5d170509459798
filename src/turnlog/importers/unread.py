"""The content of a message that could not be read.

Parsers accept unknown keys and blocks, which are sent back to their provider unchanged but shown to nobody. In a
transcript of another program they may contain what was said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..log.messages import Form, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, extra_keys
from ..log.validation import unreadable
from ..providers import PROVIDERS
from ..providers.schema.shapes import Tagged

_CONTENT = frozenset(
    {
        *("args", "arguments", "content", "functionCall", "functionResponse", "input", "message", "output"),
        *("parameters", "parts", "response", "result", "run", "text", "thinking", "toolCalls", "toolInvocations"),
        *("toolResult", "toolUse", "toolUseID", "tool_calls", "tool_plan", "tool_results", "tool_uses"),
        *("attachments", "executed_tools"),
    }
)
"""Keys under which programs keep what was said, called or returned."""

ANSWERS = frozenset(
    {
        *("answer", "candidates", "chosen", "choices", "completion", "completions", "generations", "modelOutput"),
        *("original_response", "output", "outputs", "rejected", "response", "responseBody", "response_body"),
    }
)
"""Keys under which programs that record requests keep the answer, beside the request or in it."""

_POINTERS = ("type", "id", "name")
"""A block whose keys all end in one of these points to something and has no content."""


def unread(message: Message) -> list[str]:
    """The unread content of a message, each piece described for a warning."""
    descriptions = list(_in_parts(message.parts))
    if not message.parts and message.form is not None and message.form.shape == "absent":
        return [f"{named(list(extra_keys(message.form))) or 'nothing'} in place of the content of a message"]
    if keys := _keys(message.form, is_empty=not message.parts):
        descriptions.append(f"{named(keys)} of a message")
    if role := _unknown_role(message):
        descriptions.append(f"the role {role!r}: the message is taken for the user's")
    return descriptions


def _unknown_role(message: Message) -> str:
    """The unknown role of a message that was taken for the user's; "" if the role is known."""
    if message.role != "user" or message.form is None or not message.form.delta:
        return ""
    given = message.form.delta.get("+", {})
    role = given.get("role") if isinstance(given, dict) else None
    has_results = any(isinstance(part, ToolResult) for part in message.parts)
    if has_results or not isinstance(role, str) or role.lower() == "user":
        return ""
    return role


def is_hollow(message: Message) -> bool:
    """Whether a message has content, but none that could be read."""
    return bool(unreadable(message, _is_known) or _is_blank(message)) and bool(unread(message))


def _is_blank(message: Message) -> bool:
    """Whether a message consists of results that neither say anything nor name their call."""
    return all(isinstance(part, ToolResult) and not (part.call_id or part.parts) for part in message.parts)


def _is_known(part: Opaque) -> bool:
    provider = PROVIDERS.get(part.provider)
    if provider is None or not provider.knows(part):
        return False
    signs = provider.signs
    shapes = signs.blocks.shapes if isinstance(signs.blocks, Tagged) else {}
    return signs.server_blocks is None or part.kind in signs.server_blocks or part.kind in shapes


def _in_parts(parts: tuple[Part, ...]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, (Text, Reasoning, ToolCall)) and part.form is None:
            continue
        match part:
            case Opaque(kind=kind, data=data):
                if not _is_known(part) and not _is_pointer(data):
                    yield f"a block of type {kind!r}"
            case ToolResult(parts=inner, form=form):
                yield from _in_parts(inner)
                if keys := _keys(form, is_empty=not inner):
                    yield f"{named(keys)} of a tool result"
            case ToolCall(form=form):
                if keys := _keys(form, is_empty=not part.arguments and not part.raw):
                    yield f"{named(keys)} of a tool call"
            case Text(text=text, form=form) | Reasoning(text=text, form=form):
                if keys := _keys(form, is_empty=not text and not getattr(part, "encrypted", "")):
                    yield f"{named(keys)} of a text"


def _keys(form: Form | None, *, is_empty: bool) -> list[str]:
    """The unknown keys of a form that hold content."""
    return [] if form is None else unread_keys(dict(_extras(form.delta or {}, "")), is_empty=is_empty)


def unread_keys(values: Mapping[str, Any], *, is_empty: bool) -> list[str]:
    """The keys of `values` that hold content; no importer reads them. A key holds content if its name says so or, where
    the message or part has no other content (`is_empty`), if its value has a text of several words or such a name
    inside."""
    return [
        key
        for key, value in values.items()
        if value not in (None, "", [], {}, False)
        and (key.rpartition(".")[2].partition("[")[0] in _CONTENT or (is_empty and _says(value)))
    ]


def _says(value: Any) -> bool:
    """Whether a value has a text of several words, or a key for content."""
    if isinstance(value, dict):
        return any(key in _CONTENT or _says(inner) for key, inner in value.items())
    if isinstance(value, list):
        return any(map(_says, value))
    return isinstance(value, str) and " " in value


def _extras(delta: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    """The unknown keys in the difference that a form holds (`Form.delta`), as paths, and their values."""
    for key, value in delta.get("+", {}).items():
        yield path + key, value
    for key, inner in delta.get("~", {}).items():
        yield from _extras(inner, f"{path}{key}.")


def _is_pointer(data: Any) -> bool:
    return isinstance(data, dict) and all(key.endswith(_POINTERS) for key in data)


def named(keys: list[str]) -> str:
    """The keys as a warning lists them."""
    return ", ".join(f"`{key}`" for key in keys)
