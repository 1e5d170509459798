"""Determine from its shape which of the five APIs a request body or a list of messages belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..providers.gemini import is_interaction, is_step
from ..providers.google.keys import DATA, camel

LIST_KEYS = {
    "openai-chat": "messages",
    "anthropic": "messages",
    "openai-responses": "input",
    "google": "contents",
    "google-interactions": "input",
}
"""The key of the conversation in each API's request."""

_ANTHROPIC_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "document", "server_tool_use", "search_result"}
)
_ANTHROPIC_KEYS = frozenset({"system", "stop_sequences", "thinking", "top_k", "anthropic_version"})
_CHAT_PARTS = frozenset({"image_url", "input_audio", "file", "refusal"})
_CHAT_KEYS = frozenset({"tool_calls", "function_call", "tool_call_id", "refusal", "audio", "name"})
_CHAT_ROLES = ("system", "developer", "tool", "function")
_ROLES = ("system", "developer", "user", "assistant", "model", "tool", "function")
_RESPONSES_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file"})


def is_message(value: Any) -> bool:
    """Whether a JSON value looks like a message, an item or a step of one of the APIs.

    Content blocks without a type belong to another API (Bedrock Converse).
    """
    if not isinstance(value, dict):
        return False
    if not value.get("role") and _has_google_parts(value.get("parts")):
        return True
    if value.get("role") in _ROLES:
        content = value.get("content")
        first = content[0] if isinstance(content, list) and content else None
        return not isinstance(first, dict) or isinstance(first.get("type"), str)
    return _is_item(value) or is_step(value)


def is_body(value: Any) -> bool:
    """Whether a JSON value looks like a request body."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("input"), str) and isinstance(value.get("model"), str):
        return True
    items = value.get("input")
    if isinstance(items, list) and all(isinstance(item, dict) and item.keys() & {"type", "role"} for item in items):
        return True
    if isinstance(value.get("contents"), dict):
        return is_message(value["contents"])
    lists = [value[key] for key in ("messages", "contents") if isinstance(value.get(key), list)]
    return any(all(is_message(item) for item in messages[:3]) for messages in lists)


def api_of(body: Mapping[str, Any]) -> str:
    """The API of a request body."""
    if isinstance(body.get("contents"), (list, dict)):
        return "google"
    messages = body.get("messages")
    if not isinstance(messages, list):
        return "google-interactions" if is_interaction(body) else "openai-responses"
    if body.keys() & _ANTHROPIC_KEYS or _has_anthropic_tools(body.get("tools")):
        return "anthropic"
    found = api_of_messages(messages)
    if found == "openai-chat" and "claude" in str(body.get("model")) and "max_tokens" in body:
        return "openai-chat" if _only_chat(messages) else "anthropic"
    return found if found in ("openai-chat", "anthropic") else "openai-chat"


def api_of_messages(messages: Sequence[Any]) -> str:
    """The API of a list of messages; OpenAI chat, the most common one, if all APIs allow them."""
    for message in messages:
        if not isinstance(message, dict):
            continue
        if "parts" in message:
            return "google"
        if is_step(message):
            return "google-interactions"
        types = _part_types(message)
        if _is_item(message) or types & _RESPONSES_PARTS:
            return "openai-responses"
        if _only_chat([message]):
            return "openai-chat"
        if types & _ANTHROPIC_BLOCKS or _has_source(message):
            return "anthropic"
    return "openai-chat"


def _has_google_parts(parts: Any) -> bool:
    """Whether these are parts of a Google content. A request with a single turn needs no role ("single turn requests
    end with a user role or the role field is empty")."""
    found = [parts] if isinstance(parts, dict) else parts
    if not isinstance(found, list) or not found:
        return False
    return all(isinstance(part, dict) and any(camel(key) in DATA for key in part) for part in found)


def _is_item(message: Mapping[str, Any]) -> bool:
    kind = message.get("type")
    if not isinstance(kind, str):
        return False
    return (
        (kind == "message" and "role" in message and "model" not in message)
        or kind in ("reasoning", "compaction")
        or kind.endswith(("_call", "_call_output", "_output"))
        or kind == "item_reference"
    )  # fmt: skip


def _only_chat(messages: Sequence[Any]) -> bool:
    return any(
        isinstance(message, dict)
        and (message.keys() & _CHAT_KEYS or message.get("role") in _CHAT_ROLES or _part_types(message) & _CHAT_PARTS)
        for message in messages
    )


def _part_types(message: Mapping[str, Any]) -> set[str]:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return {part["type"] for part in parts if isinstance(part, dict) and isinstance(part.get("type"), str)}


def _has_source(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, dict) and part.get("type") == "image" and "source" in part for part in parts)


def _has_anthropic_tools(tools: Any) -> bool:
    return isinstance(tools, list) and any(isinstance(tool, dict) and "input_schema" in tool for tool in tools)
