"""Sanitize single items for the Responses API; `repair` handles their order.

Before the schema is applied, `mended` puts understood items into the documented form; afterwards, `finished` checks
what the schema does not express: ids, and part types by role.
"""

from __future__ import annotations

from typing import Any

from ...log.messages import compact_json
from ...models.catalog import model_abilities
from ..edits import Edits, Object, changed
from .item_types import ID_MAY_GO, ID_PREFIX, id_fits, item_type
from .schema import ANSWER_PARTS, INPUT_PARTS

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
        kept = [part for part in content if part["type"] in allowed]
        item = item if len(kept) == len(content) else {**item, "content": kept}
    if kind == "reasoning" and content and not model_abilities(model).replays_reasoning:
        item = edits.drop(item, "content", "Array too long. Expected an array with maximum length 0.", path=path)
    if not id_fits(item) and (kind in ID_MAY_GO or kind.endswith("_call_output")):
        rule = f"Expected an id that begins with '{ID_PREFIX.get(kind, '')}'."
        item = edits.drop(item, "id", rule, path=path)
    return item
