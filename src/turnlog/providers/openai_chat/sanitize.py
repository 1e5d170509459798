"""Remove from a request what Chat Completions refuses, apart from the order of the conversation."""

from __future__ import annotations

from ...models.catalog import model_abilities
from ...models.target import Target
from ..edits import Edits, Object, changed, sanitizer, without_lost_choice
from ..schema import fit
from .sanitize_messages import finished, mended, split
from .schema import BODY, body_shape
from .tool_choice import tool_choice

_SAMPLING = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
"""Sampling settings, with the only value that models with fixed sampling accept."""

_FUNCTION = ("name", "description", "parameters", "strict")
_MISSING = "Missing required parameter."


@sanitizer(BODY.keys)
def sanitize(body: Object, target: Target, edits: Edits) -> Object:
    """The request in the form that the API accepts; each change is an edit. Sanitizing again changes nothing."""
    model = target.model or str(body.get("model") or "")
    body = changed(body, "messages", "", lambda message, path: mended(message, path, model, edits))
    body = changed(body, "tools", "", lambda tool, path: _tool(tool, path, model, edits))
    body = fit(body, body_shape(model), "", edits)
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
    found = (tool.get("function") or tool.get("custom") for tool in body.get("tools") or ())
    return {str(tool.get("name")) for tool in found if isinstance(tool, dict)}


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
