"""Items as the Responses API takes them, one by one: their order is repair's.

`mended` gives what is understood the shape that the API wants, before the shapes are applied;
`finished` looks after it at what a shape does not say: ids, and parts by role.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...log.messages import compact_json, unchanged
from ...view.types import Edit
from .rules import SHOWS_REASONING
from .schema import ANSWER_PARTS, INPUT_PARTS
from .wire import ID_MAY_GO, ID_PREFIX, id_fits, item_type

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
"""What an item type must have, and what stands for nothing of it."""


def mended(items: Any, edits: list[Edit]) -> Any:
    """The items with roles, contents and outputs spelled as documented; the same list if all were."""
    return _each(items, "input", lambda item, path: _mended(item, path, edits))


def finished(items: Any, model: str, edits: list[Edit]) -> Any:
    """The items, each with parts and an id that are of its kind; the same list if all were so."""
    return _each(items, "input", lambda item, path: _finished(item, path, model, edits))


def _each(items: Any, path: str, change: Callable[[dict[str, Any], str], Any]) -> Any:
    """What `change` makes of each object in a list; the same list if that changes none."""
    if not isinstance(items, list):
        return items
    new = [change(item, f"{path}[{i}]") if isinstance(item, dict) else item for i, item in enumerate(items)]
    return items if unchanged(new, items) else new


def _mended(item: dict[str, Any], path: str, edits: list[Edit]) -> dict[str, Any]:
    kind = item_type(item)
    key, nothing = _EMPTY.get(kind, ("", None))
    if not key:
        return item
    changed: dict[str, Any] = {}
    role = item.get("role")
    if kind == "message" and role not in _ROLES:
        lower = role.lower() if isinstance(role, str) else ""
        changed["role"] = lower if lower in _ROLES else "user"
        rule = f"Invalid value: '{role}'. Supported values are: {', '.join(_ROLES)}."
        edits.append(Edit("role", f"of role {role!r} sent as {changed['role']!r}", rule=rule, path=path))
    value = item.get(key)
    if not isinstance(value, (str, list, dict)):
        changed[key] = nothing
        edits.append(Edit(key, "sent empty", rule="Missing required parameter.", path=f"{path}.{key}"))
    elif isinstance(value, dict):
        changed[key] = compact_json(value)
        edits.append(Edit(key, "sent as text", rule="Invalid type: expected a string.", path=f"{path}.{key}"))
    elif kind == "message" or key == "output":
        author = changed.get("role", role) if kind == "message" else "user"
        changed[key] = _each(value, f"{path}.{key}", lambda part, where: _text_part(part, author, where, edits))
    return {**item, **changed} if any(value is not item.get(key) for key, value in changed.items()) else item


def _text_part(part: dict[str, Any], role: Any, path: str, edits: list[Edit]) -> dict[str, Any]:
    """A text as the type that its role says."""
    usual = "output_text" if role == "assistant" else "input_text"
    kind = part.get("type")
    if kind == usual or not (kind in _TEXT_PARTS or (kind == "refusal" and role != "assistant")):
        return part
    edits.append(Edit("part", f"of type {kind!r} sent as {usual!r}", rule=f"Invalid value: '{kind}'.", path=path))
    rest = {key: value for key, value in part.items() if key not in ("type", "refusal")}
    return {"type": usual, "text": part.get("refusal"), **rest}


def _finished(item: dict[str, Any], path: str, model: str, edits: list[Edit]) -> dict[str, Any]:
    kind = item_type(item)
    if kind == "message" and isinstance(item.get("content"), list):
        allowed = ANSWER_PARTS if item.get("role") == "assistant" else INPUT_PARTS
        kept = [part for part in item["content"] if part["type"] in allowed]
        if len(kept) < len(item["content"]):
            for i, part in enumerate(item["content"]):
                if part["type"] not in allowed:
                    rule, where = f"Invalid value: '{part['type']}'.", f"{path}.content[{i}]"
                    edits.append(Edit("part", f"of type {part['type']!r} dropped", rule=rule, path=where))
            item = {**item, "content": kept}
    if kind == "reasoning" and item.get("content") and not SHOWS_REASONING.search(model):
        rule = "Array too long. Expected an array with maximum length 0."
        item = _without(item, "content", path, rule, edits)
    if not id_fits(item) and (kind in ID_MAY_GO or kind.endswith("_call_output")):
        rule = f"Expected an id that begins with '{ID_PREFIX.get(kind, '')}'."
        item = _without(item, "id", path, rule, edits)
    return item


def _without(item: dict[str, Any], key: str, path: str, rule: str, edits: list[Edit]) -> dict[str, Any]:
    edits.append(Edit("setting", "dropped", rule=rule, path=f"{path}.{key}"))
    return {name: value for name, value in item.items() if name != key}
