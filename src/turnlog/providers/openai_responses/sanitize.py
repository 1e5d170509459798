"""Remove from a request what the Responses API refuses, apart from the order of the conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...log.messages import compact_json
from ...models.catalog import model_abilities
from ...models.target import Target
from ..edits import Edits, Object, changed, sanitizer, without_lost_choice
from ..schema.walk import fit
from .item_types import ELSEWHERE, ID_MAY_GO, ID_PREFIX, id_fits, item_type
from .schema import ANSWER_PARTS, BODY, INPUT_PARTS
from .tools import tool_choice

# -- sanitize messages -----------------------------------------------------------------------------
#
# Sanitize single items for the Responses API; `repair` handles their order.
#
# Before the schema is applied, `mended` puts understood items into the documented form; afterwards, `finished` checks
# what the schema does not express: ids, and part types by role.

_ROLES = ("user", "assistant", "system", "developer")
_TEXT_PARTS = ("text", "input_text", "output_text")
_EMPTY: dict[str, tuple[str, Any]] = {
    "message": ("content", ""),
    "reasoning": ("summary", []),
    "function_call": ("arguments", "{}"),
    "custom_tool_call": ("input", ""),
    "function_call_output": ("output", ""),
    "custom_tool_call_output": ("output", ""),
    "local_shell_call_output": ("output", ""),
}
"""A key that an item type must have, and its empty value."""


def mended(item: Object, path: str, edits: Edits) -> Object:
    """The item with its role, content and output in the documented form."""
    kind = item_type(item)
    if kind not in _EMPTY:
        return item
    key, nothing = _EMPTY[kind]
    role = item.get("role")
    if kind == "message" and role not in _ROLES:
        lower = role.lower() if isinstance(role, str) else ""
        rule = f"Invalid value: '{role}'. Supported values are: {', '.join(_ROLES)}."
        item = edits.put(item, "role", lower if lower in _ROLES else "user", rule, path=path, kind="role")
    value = item.get(key)
    if not isinstance(value, (str, list, dict)):
        rule = "Missing required parameter."
        return edits.put(item, key, nothing, rule, path=path, detail="sent empty", kind=key)
    if isinstance(value, dict):
        rule = "Invalid type: expected a string."
        return edits.put(item, key, compact_json(value), rule, path=path, detail="sent as text", kind=key)
    if kind != "message" and key != "output":
        return item
    author = item["role"] if kind == "message" else "user"
    return changed(item, key, path, lambda part, where: _text_part(part, author, where, edits))


def _text_part(part: Object, role: Any, path: str, edits: Edits) -> Object:
    """A text part with the type that belongs to the role."""
    usual = "output_text" if role == "assistant" else "input_text"
    kind = part.get("type")
    if kind == usual or not (kind in _TEXT_PARTS or (kind == "refusal" and role != "assistant")):
        return part
    edits.add("part", path, f"of type {kind!r} sent as {usual!r}", f"Invalid value: '{kind}'.")
    rest = {key: value for key, value in part.items() if key not in ("type", "refusal")}
    return {"type": usual, "text": part.get("refusal"), **rest}


def finished(item: Object, path: str, model: str, edits: Edits) -> Object:
    """The item without parts, or an id, that its type does not allow."""
    kind = item_type(item)
    content = item.get("content")
    if kind == "message" and isinstance(content, list):
        allowed = ANSWER_PARTS if item.get("role") == "assistant" else INPUT_PARTS
        for i, part in enumerate(content):
            if part["type"] not in allowed:
                detail, rule = f"of type {part['type']!r} dropped", f"Invalid value: '{part['type']}'."
                edits.add("part", f"{path}.content[{i}]", detail, rule)
        allowed_parts = [part for part in content if part["type"] in allowed]
        item = item if len(allowed_parts) == len(content) else {**item, "content": allowed_parts}
    if kind == "reasoning" and content and not model_abilities(model).replays_reasoning:
        item = edits.drop(item, "content", "Array too long. Expected an array with maximum length 0.", path=path)
    if not id_fits(item) and (kind in ID_MAY_GO or kind.endswith("_call_output")):
        rule = f"Expected an id that begins with '{ID_PREFIX.get(kind, '')}'."
        item = edits.drop(item, "id", rule, path=path)
    return item


@sanitizer(BODY.keys)
def sanitize(body: Object, target: Target, edits: Edits) -> Object:
    """The request in the form that the API accepts; each change is an edit. Sanitizing again changes nothing."""
    body = changed(body, "input", "", lambda item, path: mended(item, path, edits))
    body = changed(body, "tools", "", lambda tool, path: _flat(tool, path, edits))
    body = fit(body, BODY, "", edits)
    model = str(body.get("model") or target.model)
    body = changed(body, "input", "", lambda item, path: finished(item, path, model, edits))
    return _settings(_without_duplicate_tools(body, edits), target, edits)


def _flat(tool: Object, path: str, edits: Edits) -> Object:
    """A tool whose keys are at the top level, not under `function` as in Chat Completions."""
    inner = tool.get("function")
    if "name" in tool or not isinstance(inner, dict):
        return tool
    edits.add("tool", f"{path}.function", "laid flat", "Missing required parameter: 'name'.")
    return {"type": "function", **{key: value for key, value in tool.items() if key != "function"}, **inner}


def _without_duplicate_tools(body: Object, edits: Edits) -> Object:
    """The request with only the first of several tools with the same name."""
    tools = body.get("tools") or []
    unique: list[Any] = []
    names: set[str] = set()
    for i, tool in enumerate(tools):
        name = tool.get("name") if tool["type"] in ("function", "custom") else None
        if name in names:
            edits.add("tool", f"tools[{i}]", f"dropped: a second {name!r}", f"Duplicate function name '{name}'.")
            continue
        names |= {name} if name else set()
        unique.append(tool)
    return body if len(unique) == len(tools) else {**body, "tools": unique}


def _settings(body: Object, target: Target, edits: Edits) -> Object:
    if not body.get("model") and not body.get("prompt") and target.model:
        body = edits.put(body, "model", target.model, "Missing required parameter.")
    if body.get("stream_options") is not None and not body.get("stream"):
        rule = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        body = edits.drop(body, "stream_options", rule)
    if body.get("previous_response_id") and body.get("conversation"):
        rule = "Mutually exclusive parameters: 'previous_response_id' or 'conversation'."
        body = edits.drop(body, "previous_response_id", rule)
    if body.get("tool_choice") not in (None, "auto", "none") and not _has_tools(body):
        body = edits.drop(body, "tool_choice", "Tool choice must be specified with 'tools' parameter.")
    if not _has_tools_elsewhere(body):
        names = {str(tool.get("name")) for tool in body.get("tools") or ()}
        body = without_lost_choice(body, tool_choice(body), names, edits)
    model = body.get("model")
    fixed = isinstance(model, str) and model_abilities(model).sampling == "default"
    for key in ("temperature", "top_p") if fixed else ():
        if body.get(key, 1) not in (1, None):
            body = edits.drop(body, key, f"Unsupported parameter: '{key}' is not supported with this model.")
    return body


def _has_tools(body: Mapping[str, Any]) -> bool:
    """Whether there are tools to choose from."""
    return bool(body.get("tools")) or _has_tools_elsewhere(body)


def _has_tools_elsewhere(body: Mapping[str, Any]) -> bool:
    """Whether a prompt, a conversation or an item may add tools."""
    if any(body.get(key) for key in ELSEWHERE):
        return True
    items = body.get("input")
    return isinstance(items, list) and any(
        isinstance(item, dict) and item.get("type") in ("additional_tools", "tool_search_output") for item in items
    )
