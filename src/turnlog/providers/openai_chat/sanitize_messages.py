"""Sanitize single messages for Chat Completions; `repair` handles their order.

Before the schema is applied, `mended` puts understood messages into the documented form; afterwards, `finished` fills
values that must not be empty, and `split` distributes calls that are too many for one message.
"""

from __future__ import annotations

import re
from typing import Any

from ...log.messages import compact_json
from ...models.catalog import model_abilities
from ..edits import Edits, Object, changed
from .schema import TEXT_TYPES

_NAME_MAX = 64
_NOT_IN_NAME = re.compile(r"[\s<|\\/>]")
_MAX_CALLS = 128
_INSTEAD = ("tool_calls", "function_call", "audio", "refusal")
"""Keys that an assistant message may have instead of content."""


def mended(message: Object, path: str, model: str, edits: Edits) -> Object:
    """The message with its role, images and calls in the documented form."""
    role, content = message.get("role"), message.get("content")
    if role in ("system", "developer") and not model_abilities(model).system_role:
        rule = f"'{role}' is not supported by {model}"
        message = edits.put(message, "role", "user", rule, path=path, kind="role")
    if role in ("tool", "function") and isinstance(content, dict):
        rule, detail = "expected a string, got an object", "sent as text"
        message = edits.put(message, "content", compact_json(content), rule, path=path, detail=detail, kind="part")
        content = message["content"]
    if role == "function":
        if not (isinstance(message.get("name"), str) and message["name"]):
            return edits.put(message, "role", "user", "Missing parameter 'name'", path=path, kind="role")
        if not isinstance(content, list):
            return message
        texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
        rule, detail = "expected a string, got an array", "sent as one text"
        return edits.put(message, "content", "\n".join(texts), rule, path=path, detail=detail, kind="part")
    if role == "tool" and "name" in message:  # so common that walking the schema for it would be slow
        message = edits.drop(message, "name", "Unknown parameter.", path=path, kind="unknown_key")
    message = changed(message, "content", path, lambda part, where: _part(part, where, edits))
    return changed(message, "tool_calls", path, lambda call, where: _call(call, where, model, edits))


def _part(part: Object, path: str, edits: Edits) -> Object:
    if part.get("type") in TEXT_TYPES[1:]:
        return edits.put(part, "type", "text", f"Invalid value: '{part['type']}'.", path=path, kind="part")
    url = part.get("image_url")
    if not isinstance(url, str):
        return part
    rule, detail = "expected an object, but got a string", "sent as an object"
    return edits.put(part, "image_url", {"url": url}, rule, path=path, detail=detail, kind="part")


def _call(call: Object, path: str, model: str, edits: Edits) -> Object:
    """A call with its type, and arguments as text."""
    function = call.get("function")
    kind = "function" if isinstance(function, dict) else "custom"
    # For example `builtin_function`.
    own = model_abilities(model).replays_reasoning and isinstance(call.get("type"), str)
    if isinstance(call.get(kind), dict) and call.get("type") != kind and not own:
        call = edits.put(call, "type", kind, "Missing required parameter.", path=path, kind="call")
    if not isinstance(function, dict) or isinstance(function.get("arguments"), str):
        return call
    value = function.get("arguments")
    text = "{}" if value is None else compact_json(value)
    edits.add("call", f"{path}.function.arguments", "sent as text", "expected a string")
    return {**call, "function": {**function, "arguments": text}}


def finished(message: Object, path: str, edits: Edits) -> Object:
    """The message with an allowed name, and with content or a key that may replace it."""
    name, content = message.get("name"), message.get("content")
    if isinstance(name, str):
        fitting = _NOT_IN_NAME.sub("_", name)[:_NAME_MAX] or "_"
        if fitting != name:
            message = edits.put(message, "name", fitting, "string does not match pattern", path=path, kind="name")
    if message.get("tool_calls") == []:
        message = edits.drop(message, "tool_calls", "Empty array.", path=path)
    if content or content == "" or message.get("role") == "function":
        return message
    if any(message.get(key) for key in _INSTEAD):
        return edits.put(message, "content", None, "Empty array.", path=path) if content == [] else message
    return edits.put(message, "content", "", "expected a string, got null.", path=path)


def split(body: Object, edits: Edits) -> Object:
    """The request without messages that have more calls than allowed: the surplus is put into further messages, each
    followed by its own results."""
    messages = body.get("messages")
    if not isinstance(messages, list) or all(len(m.get("tool_calls") or ()) <= _MAX_CALLS for m in messages):
        return body
    out: list[Any] = []
    at = 0
    while at < len(messages):
        message, path = messages[at], f"messages[{at}].tool_calls"
        at += 1
        calls = message.get("tool_calls") or []
        if len(calls) <= _MAX_CALLS:
            out.append(message)
            continue
        edits.add("call", path, "spread over several messages", "Array too long.")
        answers = []
        while at < len(messages) and messages[at].get("role") == "tool":
            answers.append(messages[at])
            at += 1
        for start in range(0, len(calls), _MAX_CALLS):
            some = calls[start : start + _MAX_CALLS]
            ids = {call.get("id") for call in some}
            out.append({**(message if start == 0 else {"role": "assistant"}), "tool_calls": some})
            out += [answer for answer in answers if answer.get("tool_call_id") in ids]
    return {**body, "messages": out}
