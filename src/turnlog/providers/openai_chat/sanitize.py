"""A request without what Chat Completions refuses outside the order of the conversation."""

from __future__ import annotations

from typing import Any

from ...errors import FormatError
from ...log.messages import unchanged
from ...models.target import Target
from ...view.types import Edit
from ..protocol import Rendered
from ..schema import fit
from .rules import fixed_sampling, no_stop, renamed_limit
from .sanitize_messages import finished, mended
from .schema import body_shape, takes_reasoning

_SAMPLING = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
"""Sampling settings and the only value that models with fixed sampling take."""

_FUNCTION = ("name", "description", "parameters", "strict")


def sanitize(request: dict[str, Any], target: Target) -> Rendered:
    """`request` as the API takes it, and an edit for each change. Tidying twice changes nothing. Raises
    FormatError if arguments are nested more deeply than Python can write."""
    edits: list[Edit] = []
    model = target.model or str(request.get("model") or "")
    body = dict(request)
    try:
        _mend(body, "messages", mended(body.get("messages"), model, edits))
    except RecursionError as error:
        raise FormatError("arguments nested too deeply to be sent", path="messages") from error
    _mend(body, "tools", _declared(body.get("tools"), model, edits))
    body = dict(fit(body, body_shape(model), "", edits))
    _mend(body, "messages", finished(body.get("messages"), edits))
    for step in (_model, _tools, _limits, _habits):
        step(body, model, edits)
    return Rendered(body=body, edits=tuple(edits))


def _mend(body: dict[str, Any], key: str, value: Any) -> None:
    if key in body:
        body[key] = value


def _drop(body: dict[str, Any], key: str, why: str, edits: list[Edit]) -> None:
    del body[key]
    edits.append(Edit("setting", "dropped", rule=why, path=key))


def _model(body: dict[str, Any], model: str, edits: list[Edit]) -> None:
    if not isinstance(body.get("model"), str) and model:
        body["model"] = model
        edits.append(Edit("setting", f"set to {model}", rule="Missing required parameter.", path="model"))


def _declared(tools: Any, model: str, edits: list[Edit]) -> Any:
    """Tools in this API's shape: with their type, a function's keys under `function`."""
    if not isinstance(tools, list):
        return tools
    declared = [_tool(tool, f"tools[{i}]", model, edits) for i, tool in enumerate(tools)]
    return tools if unchanged(declared, tools) else declared


def _tool(tool: Any, path: str, model: str, edits: list[Edit]) -> Any:
    if not isinstance(tool, dict):
        return tool
    kind = tool.get("type")
    if kind is None and isinstance(tool.get("function"), dict):
        edits.append(Edit("tool", "set to 'function'", rule="Missing required parameter.", path=f"{path}.type"))
        tool = {"type": "function", **{key: value for key, value in tool.items() if key != "type"}}
    elif kind == "function" and "function" not in tool and isinstance(tool.get("name"), str):
        rule = "Missing required parameter: 'function'."
        edits.append(Edit("tool", "put under 'function'", rule=rule, path=path))
        rest = {key: value for key, value in tool.items() if key not in _FUNCTION}
        tool = {**rest, "function": {key: tool[key] for key in _FUNCTION if key in tool}}
    function = tool.get("function")
    schema = function.get("parameters") if isinstance(function, dict) else None
    if not isinstance(schema, dict) or not schema or schema.get("type") == "object" or takes_reasoning(model):
        return tool
    rule = "Invalid schema for function: schema must be a JSON Schema of 'type: \"object\"'."
    edits.append(Edit("tool", "set to 'object'", rule=rule, path=f"{path}.function.parameters.type"))
    return {**tool, "function": {**function, "parameters": {**schema, "type": "object"}}}


def _tools(body: dict[str, Any], model: str, edits: list[Edit]) -> None:
    """What is only allowed beside tools."""
    for key in ("tools", "functions"):
        if body.get(key) == []:
            _drop(body, key, "Empty array.", edits)
    if "tools" not in body:
        for key in ("tool_choice", "parallel_tool_calls"):
            if key in body and body[key] != "none":
                _drop(body, key, f"'{key}' is only allowed when 'tools' are specified.", edits)
    if "function_call" in body and "functions" not in body:
        _drop(body, "function_call", "'function_call' is only allowed when 'functions' are specified.", edits)


def _limits(body: dict[str, Any], model: str, edits: list[Edit]) -> None:
    """Settings that exclude each other."""
    if body.get("stream_options") is not None and not body.get("stream"):
        _drop(body, "stream_options", "'stream_options' is only allowed when 'stream' is enabled.", edits)
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        _drop(body, "max_tokens", "'max_tokens' and 'max_completion_tokens' exclude each other.", edits)


def _habits(body: dict[str, Any], model: str, edits: list[Edit]) -> None:
    """What models that reason do not take."""
    if renamed_limit(model) and "max_tokens" in body:
        limit = body.pop("max_tokens")
        body["max_completion_tokens"] = limit
        edits.append(
            Edit(
                "setting",
                "sent as max_completion_tokens",
                rule="Unsupported parameter: 'max_tokens' is not supported with this model.",
                path="max_tokens",
            )
        )
    if fixed_sampling(model):
        for key, default in _SAMPLING.items():
            if body.get(key, default) not in (default, None):
                _drop(body, key, f"Unsupported value: '{key}' with this model.", edits)
    if no_stop(model) and body.get("stop"):
        _drop(body, "stop", "Unsupported parameter: 'stop' is not supported with this model.", edits)
