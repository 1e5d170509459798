"""A request without what Chat Completions refuses outside the order of the conversation."""

from __future__ import annotations

import re
from typing import Any

from ...content import compact_json
from ...models import Target
from ...view.shown import Edit
from ..protocol import Rendered
from ..shapes import prune
from .rules import fixed_sampling, no_stop, no_system, renamed_limit
from .shapes import NOT_NULL, PART_TYPES, request_shape, takes_reasoning

__all__ = ["tidy"]

_SAMPLING = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
"""Sampling settings and the only value that models with fixed sampling take."""

_RANGES = {"temperature": (0, 2), "top_p": (0, 1), "presence_penalty": (-2, 2), "frequency_penalty": (-2, 2)}
_MAX_STOPS = 4
_NAME_MAX = 64
_NOT_IN_NAME = re.compile(r"[\s<|\\/>]")


def tidy(request: dict[str, Any], target: Target) -> Rendered:
    """`request` as the API takes it, and an edit for each change. Tidying twice changes nothing."""
    edits: list[Edit] = []
    model = target.model or str(request.get("model") or "")
    body: dict[str, Any] = dict(prune(request, request_shape(model), "", edits))
    for step in (_model, _nulls, _tools, _limits, _habits, _ranges, _messages):
        step(body, model, edits)
    return Rendered(request=body, edits=tuple(edits))


def _drop(body: dict[str, Any], key: str, why: str, edits: list[Edit]) -> None:
    del body[key]
    edits.append(Edit("setting", f"{key} dropped", rule=why))


def _model(body: dict[str, Any], model: str, edits: list[Edit]) -> None:
    if not isinstance(body.get("model"), str) and model:
        body["model"] = model
        edits.append(Edit("setting", f"model {model} added", rule="Missing required parameter: 'model'."))


def _nulls(body: dict[str, Any], model: str, edits: list[Edit]) -> None:
    for key in [key for key, value in body.items() if value is None and key in NOT_NULL]:
        _drop(body, key, f"Invalid type for '{key}': null.", edits)


def _tools(body: dict[str, Any], model: str, edits: list[Edit]) -> None:
    """What is only allowed beside tools."""
    for key in ("tools", "functions"):
        if body.get(key) == []:
            _drop(body, key, f"Invalid '{key}': empty array.", edits)
    if "tools" not in body:
        for key in ("tool_choice", "parallel_tool_calls"):
            if key in body and body[key] != "none":
                _drop(body, key, f"'{key}' is only allowed when 'tools' are specified.", edits)
    if "function_call" in body and "functions" not in body:
        _drop(body, "function_call", "'function_call' is only allowed when 'functions' are specified.", edits)


def _limits(body: dict[str, Any], model: str, edits: list[Edit]) -> None:
    """Settings that exclude each other, and numbers of things."""
    if body.get("stream_options") is not None and not body.get("stream"):
        _drop(body, "stream_options", "'stream_options' is only allowed when 'stream' is enabled.", edits)
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        _drop(body, "max_tokens", "'max_tokens' and 'max_completion_tokens' exclude each other.", edits)
    stop = body.get("stop")
    if isinstance(stop, list) and len(stop) > _MAX_STOPS:
        body["stop"] = stop[:_MAX_STOPS]
        edits.append(Edit("setting", f"stop cut to {_MAX_STOPS} sequences", rule="Invalid 'stop': array too long."))


def _habits(body: dict[str, Any], model: str, edits: list[Edit]) -> None:
    """What models that reason do not take."""
    if renamed_limit(model) and "max_tokens" in body:
        limit = body.pop("max_tokens")
        body["max_completion_tokens"] = limit
        edits.append(
            Edit(
                "setting",
                "max_tokens sent as max_completion_tokens",
                rule="Unsupported parameter: 'max_tokens' is not supported with this model.",
            )
        )
    if fixed_sampling(model):
        for key, default in _SAMPLING.items():
            if body.get(key, default) not in (default, None):
                _drop(body, key, f"Unsupported value: '{key}' with this model.", edits)
    if no_stop(model) and body.get("stop"):
        _drop(body, "stop", "Unsupported parameter: 'stop' is not supported with this model.", edits)


def _ranges(body: dict[str, Any], model: str, edits: list[Edit]) -> None:
    for key, (low, high) in _RANGES.items():
        value = body.get(key)
        if isinstance(value, (int, float)) and not low <= value <= high:
            body[key] = min(max(value, low), high)
            rule = f"Invalid '{key}': expected a value from {low} to {high}."
            edits.append(Edit("setting", f"{key} {value} sent as {body[key]}", rule=rule))


def _messages(body: dict[str, Any], model: str, edits: list[Edit]) -> None:
    messages = body.get("messages")
    if not isinstance(messages, list):
        return
    fixed = [_message(message, f"messages[{i}]", model, edits) for i, message in enumerate(messages)]
    if any(new is not old for new, old in zip(fixed, messages, strict=True)):
        body["messages"] = fixed


def _message(message: Any, path: str, model: str, edits: list[Edit]) -> Any:
    if not isinstance(message, dict):
        return message
    changed: dict[str, Any] = {}
    role = message.get("role")
    if role in ("system", "developer") and no_system(model):
        changed["role"] = "user"
        edits.append(
            Edit("role", f"{path}: {role} text sent as a user's", rule=f"'{role}' is not supported by {model}")
        )
    name = message.get("name")
    if isinstance(name, str) and role != "function":
        fitting = _NOT_IN_NAME.sub("_", name)[:_NAME_MAX] or "_"
        if fitting != name:
            changed["name"] = fitting
            edits.append(Edit("name", f"{path}.name sent as {fitting!r}", rule="string does not match pattern"))
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        fixed = _calls(calls, f"{path}.tool_calls", edits)
        if not fixed:
            message = {key: value for key, value in message.items() if key != "tool_calls"}
        elif fixed is not calls:
            changed["tool_calls"] = fixed
    content = _content(message, path, model, edits)
    if content is not message.get("content", ...):
        changed["content"] = content
    return {**message, **changed} if changed else message


def _content(message: dict[str, Any], path: str, model: str, edits: list[Edit]) -> Any:
    """The content without parts that have no place in the role, and never missing where it must be."""
    content = message.get("content", ...)
    if isinstance(content, list):
        allowed = PART_TYPES.get(str(message.get("role")))
        kept = []
        for i, part in enumerate(content):
            kind = part.get("type") if isinstance(part, dict) else None
            # Compatible servers have parts of their own (`video_url`, `thinking`).
            if allowed is not None and kind not in allowed and not takes_reasoning(model):
                rule = f"Invalid value: '{kind}'. (param: {path}.content[{i}].type)"
                edits.append(Edit("part", f"{path}.content[{i}] of type {kind!r} dropped", rule=rule))
                continue
            kept.append(_url_object(part, f"{path}.content[{i}]", edits))
        if len(kept) == len(content) and all(new is old for new, old in zip(kept, content, strict=True)):
            kept = content
        if kept:
            return kept
        content = None
    if content is not None and content is not ...:
        return content
    if message.get("role") == "function" or any(
        message.get(key) for key in ("tool_calls", "function_call", "audio", "refusal")
    ):
        return None if isinstance(message.get("content"), list) else content
    edits.append(Edit("setting", f"{path}.content set to an empty string", rule="expected a string, got null."))
    return ""


def _url_object(part: Any, path: str, edits: list[Edit]) -> Any:
    if not isinstance(part, dict) or not isinstance(part.get("image_url"), str):
        return part
    edits.append(Edit("part", f"{path}.image_url sent as an object", rule="expected an object, but got a string"))
    return {**part, "image_url": {"url": part["image_url"]}}


def _calls(calls: list[Any], path: str, edits: list[Edit]) -> list[Any]:
    """The calls that are calls, each in its documented shape; the same list if all were."""
    if not calls:
        edits.append(Edit("setting", f"{path} dropped", rule=f"Invalid '{path}': empty array."))
    fixed: list[Any] = []
    for i, call in enumerate(calls):
        if isinstance(call, dict) and (isinstance(call.get("function"), dict) or isinstance(call.get("custom"), dict)):
            fixed.append(_call(call, f"{path}[{i}]", edits))
        else:
            edits.append(Edit("call", f"{path}[{i}], neither function nor custom, dropped", rule="Invalid value"))
    same = len(fixed) == len(calls) and all(new is old for new, old in zip(fixed, calls, strict=True))
    return calls if same else fixed


def _call(call: dict[str, Any], path: str, edits: list[Edit]) -> dict[str, Any]:
    """A call with its type, and arguments as text."""
    function = call.get("function")
    if isinstance(function, dict) and call.get("type") != "function":
        call = {**call, "type": "function"}
        edits.append(Edit("call", f"{path}.type set to 'function'", rule=f"Missing required parameter: '{path}.type'."))
    if isinstance(function, dict) and not isinstance(function.get("arguments"), str):
        value = function.get("arguments")
        call = {**call, "function": {**function, "arguments": "{}" if value is None else compact_json(value)}}
        edits.append(Edit("call", f"{path}.function.arguments sent as text", rule="expected a string"))
    return call
