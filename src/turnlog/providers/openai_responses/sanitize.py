"""Taking out of a request what would be refused whatever the conversation says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import FormatError
from ...log.messages import unchanged
from ...models.target import Target
from ...view.types import Edit
from ..protocol import Rendered
from ..schema import fit
from .rules import FIXED_SAMPLING
from .sanitize_items import finished, mended
from .schema import BODY
from .wire import ELSEWHERE


def sanitize(request: dict[str, Any], target: Target) -> Rendered:
    """The request without unknown keys, refused values and ids, and settings that exclude each
    other; each an edit. A request that has none of them comes back as it is. Raises FormatError if
    arguments are nested more deeply than Python can write."""
    edits: list[Edit] = []
    try:
        body = _with(request, "input", mended(request.get("input"), edits))
    except RecursionError as error:
        raise FormatError("arguments nested too deeply to be sent", path="input") from error
    body = _with(body, "tools", _flat_tools(body.get("tools"), edits))
    body = fit(body, BODY, "", edits)
    body = _with(body, "input", finished(body.get("input"), str(body.get("model") or target.model), edits))
    body = _with(body, "tools", _told_apart(body.get("tools"), edits))
    body = _settings(body, target, edits)
    return Rendered(body=body, edits=tuple(edits))


def _with(body: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    return {**body, key: value} if key in body and value is not body[key] else body


def _without(body: dict[str, Any], key: str, rule: str, edits: list[Edit]) -> dict[str, Any]:
    edits.append(Edit("setting", "dropped", rule=rule, path=key))
    return {name: value for name, value in body.items() if name != key}


def _flat_tools(tools: Any, edits: list[Edit]) -> Any:
    """Tools without the `function` that another API puts their keys under."""
    if not isinstance(tools, list):
        return tools
    flat: list[Any] = []
    for i, tool in enumerate(tools):
        inner = tool.get("function") if isinstance(tool, dict) and "name" not in tool else None
        if isinstance(inner, dict):
            rule = "Missing required parameter: 'name'."
            edits.append(Edit("tool", "laid flat", rule=rule, path=f"tools[{i}].function"))
            tool = {"type": "function", **{key: value for key, value in tool.items() if key != "function"}, **inner}
        flat.append(tool)
    return tools if unchanged(flat, tools) else flat


def _told_apart(tools: Any, edits: list[Edit]) -> Any:
    """Tools without a second one of a name."""
    if not isinstance(tools, list):
        return tools
    kept: list[Any] = []
    names: set[str] = set()
    for i, tool in enumerate(tools):
        name = tool.get("name") if tool["type"] in ("function", "custom") else None
        if name in names:
            rule = f"Duplicate function name '{name}'."
            edits.append(Edit("tool", f"dropped: a second {name!r}", rule=rule, path=f"tools[{i}]"))
            continue
        names |= {name} if name else set()
        kept.append(tool)
    return tools if len(kept) == len(tools) else kept


def _settings(body: dict[str, Any], target: Target, edits: list[Edit]) -> dict[str, Any]:
    if not body.get("model") and not body.get("prompt") and target.model:
        edits.append(Edit("setting", "added", rule="Missing required parameter.", path="model"))
        body = {**body, "model": target.model}
    if body.get("stream_options") is not None and not body.get("stream"):
        rule = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        body = _without(body, "stream_options", rule, edits)
    if body.get("previous_response_id") and body.get("conversation"):
        rule = "Mutually exclusive parameters: 'previous_response_id' or 'conversation'."
        body = _without(body, "previous_response_id", rule, edits)
    if body.get("tool_choice") not in (None, "auto", "none") and not _has_tools(body):
        body = _without(body, "tool_choice", "Tool choice must be specified with 'tools' parameter.", edits)
    model = body.get("model")
    if isinstance(model, str) and FIXED_SAMPLING.search(model):
        for key in ("temperature", "top_p"):
            if body.get(key) is not None and body[key] != 1:
                rule = f"Unsupported parameter: '{key}' is not supported with this model."
                body = _without(body, key, rule, edits)
    return body


def _has_tools(body: Mapping[str, Any]) -> bool:
    """Whether there are tools to choose from; a prompt, a conversation or an item may bring them."""
    if any(body.get(key) for key in ("tools", *ELSEWHERE)):
        return True
    items = body.get("input")
    return isinstance(items, list) and any(
        isinstance(item, dict) and item.get("type") in ("additional_tools", "tool_search_output") for item in items
    )
