"""Messages as Chat Completions takes them, one by one: their order is repair's.

`mended` gives what is understood the shape that the API wants, before the shapes are applied;
`finished` fills what must not be empty, and cuts what is too long, after it.
"""

from __future__ import annotations

import re
from typing import Any

from ...log.messages import compact_json, unchanged
from ...view.types import Edit
from .rules import no_system
from .schema import TEXT_TYPES, takes_reasoning

_NAME_MAX = 64
_NOT_IN_NAME = re.compile(r"[\s<|\\/>]")
_MAX_CALLS = 128
_INSTEAD = ("tool_calls", "function_call", "audio", "refusal")
"""What an assistant message may have instead of content."""


def mended(messages: Any, model: str, edits: list[Edit]) -> Any:
    """The messages with roles, images and calls spelled as documented; the same list if all were."""
    return _each(messages, "messages", lambda message, path: _mended(message, path, model, edits))


def finished(messages: Any, edits: list[Edit]) -> Any:
    """The messages, none without content or with too much of anything; the same list if all were so."""
    return _split(_each(messages, "messages", lambda message, path: _finished(message, path, edits)), edits)


def _each(items: Any, path: str, change: Any) -> Any:
    """What `change` makes of each object in a list; the same list if that changes none."""
    if not isinstance(items, list):
        return items
    new = [change(item, f"{path}[{i}]") if isinstance(item, dict) else item for i, item in enumerate(items)]
    return items if unchanged(new, items) else new


def _mended(message: dict[str, Any], path: str, model: str, edits: list[Edit]) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    role = message.get("role")
    if role in ("system", "developer") and no_system(model):
        changed["role"] = "user"
        rule = f"'{role}' is not supported by {model}"
        edits.append(Edit("role", f"{role} text sent as a user's", rule=rule, path=path))
    content = message.get("content")
    if role == "function":
        if not (isinstance(message.get("name"), str) and message["name"]):
            changed["role"] = "user"
            rule = "Missing parameter 'name'"
            edits.append(Edit("role", "text of no function sent as a user's", rule=rule, path=path))
        elif isinstance(content, list):
            texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
            changed["content"] = "\n".join(texts)
            rule = "expected a string, got an array"
            edits.append(Edit("part", "sent as one text", rule=rule, path=f"{path}.content"))
    elif role == "tool" and "name" in message:  # as many clients write it: so often that the shapes need not find it
        edits.append(Edit("unknown_key", "dropped", rule="Unknown parameter.", path=f"{path}.name"))
        message = {key: value for key, value in message.items() if key != "name"}
    if content is not None and role != "function":
        changed["content"] = _each(content, f"{path}.content", lambda part, where: _part(part, where, edits))
    if "tool_calls" in message:
        calls = message["tool_calls"]
        changed["tool_calls"] = _each(calls, f"{path}.tool_calls", lambda call, where: _call(call, where, model, edits))
    same = all(value is message.get(key) for key, value in changed.items())
    return message if same else {**message, **changed}


def _part(part: dict[str, Any], path: str, edits: list[Edit]) -> dict[str, Any]:
    if part.get("type") in TEXT_TYPES[1:]:
        kind = part["type"]
        edits.append(Edit("part", f"of type {kind!r} sent as 'text'", rule=f"Invalid value: '{kind}'.", path=path))
        return {**part, "type": "text"}
    if not isinstance(part.get("image_url"), str):
        return part
    rule = "expected an object, but got a string"
    edits.append(Edit("part", "sent as an object", rule=rule, path=f"{path}.image_url"))
    return {**part, "image_url": {"url": part["image_url"]}}


def _call(call: dict[str, Any], path: str, model: str, edits: list[Edit]) -> dict[str, Any]:
    """A call with its type, and arguments as text."""
    function = call.get("function")
    kind = "function" if isinstance(function, dict) else "custom"
    own = takes_reasoning(model) and isinstance(call.get("type"), str)  # a server's own, such as `builtin_function`
    if isinstance(call.get(kind), dict) and call.get("type") != kind and not own:
        call = {**call, "type": kind}
        edits.append(Edit("call", f"set to {kind!r}", rule="Missing required parameter.", path=f"{path}.type"))
    if isinstance(function, dict) and not isinstance(function.get("arguments"), str):
        value = function.get("arguments")
        call = {**call, "function": {**function, "arguments": "{}" if value is None else compact_json(value)}}
        edits.append(Edit("call", "sent as text", rule="expected a string", path=f"{path}.function.arguments"))
    return call


def _finished(message: dict[str, Any], path: str, edits: list[Edit]) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    name = message.get("name")
    if isinstance(name, str):
        fitting = _NOT_IN_NAME.sub("_", name)[:_NAME_MAX] or "_"
        if fitting != name:
            changed["name"] = fitting
            rule = "string does not match pattern"
            edits.append(Edit("name", f"sent as {fitting!r}", rule=rule, path=f"{path}.name"))
    if message.get("tool_calls") == []:
        edits.append(Edit("setting", "dropped", rule="Empty array.", path=f"{path}.tool_calls"))
        message = {key: value for key, value in message.items() if key != "tool_calls"}
    if not message.get("content") and message.get("content") != "" and message.get("role") != "function":
        if any(message.get(key) for key in _INSTEAD):
            if message.get("content") == []:
                changed["content"] = None
                edits.append(Edit("setting", "set to null", rule="Empty array.", path=f"{path}.content"))
        else:
            changed["content"] = ""
            rule = "expected a string, got null."
            edits.append(Edit("setting", "set to an empty string", rule=rule, path=f"{path}.content"))
    return {**message, **changed} if changed else message


def _split(messages: Any, edits: list[Edit]) -> Any:
    """The messages, none with more calls than one may hold: the surplus stands in further ones, each
    with its own answers behind it."""
    if not isinstance(messages, list) or all(len(m.get("tool_calls") or ()) <= _MAX_CALLS for m in messages):
        return messages
    out: list[Any] = []
    at = 0
    while at < len(messages):
        message, path = messages[at], f"messages[{at}].tool_calls"
        at += 1
        calls = message.get("tool_calls") or []
        if len(calls) <= _MAX_CALLS:
            out.append(message)
            continue
        edits.append(Edit("call", "spread over several messages", rule="Array too long.", path=path))
        answers = []
        while at < len(messages) and messages[at].get("role") == "tool":
            answers.append(messages[at])
            at += 1
        for start in range(0, len(calls), _MAX_CALLS):
            some = calls[start : start + _MAX_CALLS]
            ids = {call.get("id") for call in some}
            out.append({**(message if start == 0 else {"role": "assistant"}), "tool_calls": some})
            out += [answer for answer in answers if answer.get("tool_call_id") in ids]
    return out
