"""Remove from a request what Chat Completions refuses, apart from the order of the conversation."""

from __future__ import annotations

from typing import Any

from ..._platform.lazy import lazy_pattern
from ...log.messages import compact_json
from ...models.catalog import model_abilities
from ...models.target import Target
from ..edits import Edits, Object, changed, sanitizer, without_lost_choice
from ..protocol import Rendered
from ..schema.walk import fit
from .parts import tool_choice
from .schema import BODY, TEXT_TYPES, body_shape
from .servers import on_server

# -- sanitize messages -----------------------------------------------------------------------------
#
# Sanitize single messages for Chat Completions; `repair` handles their order.
#
# Before the schema is applied, `mended` puts understood messages into the documented form; afterwards, `finished`
# fills values that must not be empty, and `split` distributes calls that are too many for one message.

_NAME_MAX = 64
_NOT_IN_NAME = lazy_pattern(r"[\s<|\\/>]")
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
    has_own_type = model_abilities(model).replays_reasoning and isinstance(call.get("type"), str)
    if isinstance(call.get(kind), dict) and call.get("type") != kind and not has_own_type:
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
    index = 0
    while index < len(messages):
        message, path = messages[index], f"messages[{index}].tool_calls"
        index += 1
        calls = message.get("tool_calls") or []
        if len(calls) <= _MAX_CALLS:
            out.append(message)
            continue
        edits.add("call", path, "spread over several messages", "Array too long.")
        answers = []
        while index < len(messages) and messages[index].get("role") == "tool":
            answers.append(messages[index])
            index += 1
        for start in range(0, len(calls), _MAX_CALLS):
            some = calls[start : start + _MAX_CALLS]
            ids = {call.get("id") for call in some}
            out.append({**(message if start == 0 else {"role": "assistant"}), "tool_calls": some})
            out += [answer for answer in answers if answer.get("tool_call_id") in ids]
    return {**body, "messages": out}


_SAMPLING = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
"""Sampling settings, each with the only value that models with fixed sampling accept."""

_FUNCTION = ("name", "description", "parameters", "strict")
_MISSING = "Missing required parameter."


def sanitize(body: Object, target: Target) -> Rendered:
    """The request in the form that the API accepts, and then as the target's server accepts it; each change is an edit.
    Sanitizing again changes nothing."""
    rendered = _sanitized(body, target)
    if not target.server:
        return rendered
    edits = Edits()
    fitted = on_server(rendered.body, target, edits)
    return Rendered(body=fitted, edits=(*rendered.edits, *edits.made))


@sanitizer(BODY.keys)
def _sanitized(body: Object, target: Target, edits: Edits) -> Object:
    model = target.model or str(body.get("model") or "")
    body = changed(body, "messages", "", lambda message, path: mended(message, path, model, edits))
    body = changed(body, "tools", "", lambda tool, path: _tool(tool, path, model, edits))
    body = fit(body, body_shape(model, target.server_row), "", edits)
    body = changed(body, "messages", "", lambda message, path: finished(message, path, edits))
    body = split(body, edits)
    for step in (_model, _tools, _limits, _habits):
        body = step(body, model, edits)
    return body


def _tool(tool: Object, path: str, model: str, edits: Edits) -> Object:
    """A tool in this API's format: with its type, and a function's keys under `function`."""
    kind = tool.get("type")
    if kind is None and isinstance(tool.get("function"), dict):
        tool = {"type": "function", **edits.put(tool, "type", "function", _MISSING, path=path, kind="tool")}
    elif kind == "function" and "function" not in tool and isinstance(tool.get("name"), str):
        edits.add("tool", path, "put under 'function'", "Missing required parameter: 'function'.")
        rest = {key: value for key, value in tool.items() if key not in _FUNCTION}
        tool = {**rest, "function": {key: tool[key] for key in _FUNCTION if key in tool}}
    function = tool.get("function")
    schema = function.get("parameters") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(schema, dict) or not schema:
        return tool
    if schema.get("type") == "object" or model_abilities(model).replays_reasoning:
        return tool
    rule = "Invalid schema for function: schema must be a JSON Schema of 'type: \"object\"'."
    schema = edits.put(schema, "type", "object", rule, path=f"{path}.function.parameters", kind="tool")
    return {**tool, "function": {**function, "parameters": schema}}


def _model(body: Object, model: str, edits: Edits) -> Object:
    return body if not model or isinstance(body.get("model"), str) else edits.put(body, "model", model, _MISSING)


def _tools(body: Object, model: str, edits: Edits) -> Object:
    """Drop settings that are allowed only with tools."""
    for key in ("tools", "functions"):
        if body.get(key) == []:
            body = edits.drop(body, key, "Empty array.")
    for key in ("tool_choice", "parallel_tool_calls"):
        if "tools" not in body and body.get(key, "none") != "none":
            body = edits.drop(body, key, f"'{key}' is only allowed when 'tools' are specified.")
    if "function_call" in body and "functions" not in body:
        body = edits.drop(body, "function_call", "'function_call' is only allowed when 'functions' are specified.")
    return without_lost_choice(body, tool_choice(body), _names(body), edits)


def _names(body: Object) -> set[str]:
    """The names of the declared tools."""
    declarations = (tool.get("function") or tool.get("custom") for tool in body.get("tools") or ())
    return {str(tool.get("name")) for tool in declarations if isinstance(tool, dict)}


def _limits(body: Object, model: str, edits: Edits) -> Object:
    """Drop one of two settings that exclude each other."""
    if body.get("stream_options") is not None and not body.get("stream"):
        body = edits.drop(body, "stream_options", "'stream_options' is only allowed when 'stream' is enabled.")
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        body = edits.drop(body, "max_tokens", "'max_tokens' and 'max_completion_tokens' exclude each other.")
    return body


def _habits(body: Object, model: str, edits: Edits) -> Object:
    """Drop or rename settings that reasoning models do not accept."""
    abilities = model_abilities(model)
    # "... Use 'max_completion_tokens' instead."
    if abilities.max_completion_tokens and "max_tokens" in body:
        rule = "Unsupported parameter: 'max_tokens' is not supported with this model."
        edits.add("setting", "max_tokens", "sent as max_completion_tokens", rule)
        rest = {key: value for key, value in body.items() if key != "max_tokens"}
        body = {**rest, "max_completion_tokens": body["max_tokens"]}
    for key, default in _SAMPLING.items() if abilities.sampling == "default" else ():
        if body.get(key, default) not in (default, None):
            body = edits.drop(body, key, f"Unsupported value: '{key}' with this model.")
    if not abilities.stop and body.get("stop"):
        body = edits.drop(body, "stop", "Unsupported parameter: 'stop' is not supported with this model.")
    return body
