"""Taking out of a request what would be refused whatever the conversation says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...content import compact_json
from ...models import Target
from ...view.shown import Edit
from ..protocol import Rendered
from ..shapes import prune
from .rules import FIXED_SAMPLING, SHOWS_REASONING
from .shapes import NULL_REFUSED, REQUEST
from .wire import ID_MAY_GO, ID_PREFIX

__all__ = ["tidy"]

_LEAST_OUTPUT = 16
_RANGES = {"temperature": (0, 2), "top_p": (0, 1)}
_TEXT_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def tidy(request: dict[str, Any], target: Target) -> Rendered:
    """The request without unknown keys, refused nulls and ids, and settings that exclude each
    other; each an edit. A request that has none of them comes back as it is."""
    edits: list[Edit] = []
    body: dict[str, Any] = prune(request, REQUEST, "", edits)
    body = _without_nulls(body, "", "", edits)
    body = _settings(body, target, edits)
    items = body.get("input")
    if isinstance(items, list):
        tidied = [_tidy_item(item, f"input[{i}]", body, edits) for i, item in enumerate(items)]
        if any(new is not old for new, old in zip(tidied, items, strict=True)):
            body = {**body, "input": tidied}
    return Rendered(request=body, edits=tuple(edits))


def _without(body: dict[str, Any], key: str, path: str, rule: str, edits: list[Edit]) -> dict[str, Any]:
    where = f"{path}.{key}" if path else key
    edits.append(Edit("setting", f"{where} dropped", rule=rule))
    return {name: value for name, value in body.items() if name != key}


def _without_nulls(body: dict[str, Any], kind: str, path: str, edits: list[Edit]) -> dict[str, Any]:
    for key in sorted(NULL_REFUSED.get(kind, ())):
        if key in body and body[key] is None:
            body = _without(body, key, path, f"Invalid type for '{key}': null.", edits)
    return body


def _settings(body: dict[str, Any], target: Target, edits: list[Edit]) -> dict[str, Any]:
    if "model" not in body and not body.get("prompt") and target.model:
        edits.append(Edit("setting", "model added", rule="Missing required parameter: 'model'."))
        body = {**body, "model": target.model}
    if body.get("stream_options") is not None and not body.get("stream"):
        rule = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        body = _without(body, "stream_options", "", rule, edits)
    if body.get("previous_response_id") and body.get("conversation"):
        rule = "Mutually exclusive parameters: 'previous_response_id' or 'conversation'."
        body = _without(body, "previous_response_id", "", rule, edits)
    if body.get("tool_choice") not in (None, "auto", "none") and not _has_tools(body):
        body = _without(body, "tool_choice", "", "Tool choice must be specified with 'tools' parameter.", edits)
    model = body.get("model")
    if isinstance(model, str) and FIXED_SAMPLING.search(model):
        for key in ("temperature", "top_p"):
            if body.get(key) is not None and body[key] != 1:
                rule = f"Unsupported parameter: '{key}' is not supported with this model."
                body = _without(body, key, "", rule, edits)
    for key, (low, high) in _RANGES.items():
        value = body.get(key)
        if isinstance(value, (int, float)) and not low <= value <= high:
            body = {**body, key: min(max(value, low), high)}
            rule = f"Invalid '{key}': expected a value from {low} to {high}."
            edits.append(Edit("setting", f"{key} {value} sent as {body[key]}", rule=rule))
    limit = body.get("max_output_tokens")
    if isinstance(limit, int) and limit < _LEAST_OUTPUT:
        rule = f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {_LEAST_OUTPUT}."
        edits.append(Edit("setting", f"max_output_tokens raised from {limit} to {_LEAST_OUTPUT}", rule=rule))
        body = {**body, "max_output_tokens": _LEAST_OUTPUT}
    return body


def _has_tools(body: Mapping[str, Any]) -> bool:
    """Whether there are tools to choose from; a prompt, a conversation or an item may bring them."""
    if any(body.get(key) for key in ("tools", "prompt", "previous_response_id", "conversation")):
        return True
    items = body.get("input")
    return isinstance(items, list) and any(
        isinstance(item, dict) and item.get("type") in ("additional_tools", "tool_search_output") for item in items
    )


def _tidy_item(item: Any, path: str, body: Mapping[str, Any], edits: list[Edit]) -> Any:
    if not isinstance(item, dict):
        return item
    kind = str(item.get("type") or "message")
    item = _without_nulls(item, kind, path, edits)
    if kind == "reasoning" and item.get("content") and not SHOWS_REASONING.search(str(body.get("model"))):
        rule = f"Invalid '{path}.content': array too long. Expected an array with maximum length 0."
        item = _without(item, "content", path, rule, edits)
    if kind == "function_call" and not isinstance(item.get("arguments"), str):
        rule = f"Invalid type for '{path}.arguments': expected a string."
        edits.append(Edit("arguments", f"{path}.arguments sent as text", rule=rule))
        item = {**item, "arguments": compact_json(item.get("arguments"))}
    if kind in _TEXT_OUTPUTS and isinstance(item.get("output"), dict):
        rule = f"Invalid type for '{path}.output': expected a string, but got an object instead."
        edits.append(Edit("output", f"{path}.output sent as text", rule=rule))
        item = {**item, "output": compact_json(item["output"])}
    item_id = item.get("id")
    fits = not isinstance(item_id, str) or (
        _ID.fullmatch(item_id) is not None and item_id.startswith(ID_PREFIX.get(kind, ""))
    )
    if not fits and (kind in ID_MAY_GO or kind.endswith("_call_output")):
        rule = f"Invalid '{path}.id': expected an id that begins with '{ID_PREFIX.get(kind, '')}'."
        item = _without(item, "id", path, rule, edits)
    return item
