"""Match the ids of results with those of their calls."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from ..edits import Edits, Object
from .keys import find

_At = tuple[int, int]


def with_matching_ids(body: Object, edits: Edits) -> Object:
    """The request in which either all results of a turn have the ids of their calls, or no result has an id. Results
    are matched by id, else by name, in order."""
    key = find(body, "contents")
    contents = body.get(key)
    if not isinstance(contents, list):
        return body
    calls: list[Object] = []
    changed: dict[_At, str] = {}
    for model, group in groupby(enumerate(contents), key=lambda entry: _role(entry[1]) == "model"):
        turn = list(group)
        if model:
            calls = [call for _, call in _found(turn, "functionCall")]
        else:
            changed |= _mismatched(calls, _found(turn, "functionResponse"))
    for (i, j), call_id in changed.items():
        detail = (f"set to {call_id!r}" if call_id else "dropped") + ", as its call has it"
        rule = "functionResponse.id must be that of a functionCall"
        edits.add("id", f"contents[{i}].parts[{j}].functionResponse.id", detail, rule)
        contents = [*contents[:i], _with_id(contents[i], j, call_id), *contents[i + 1 :]]
    return {**body, key: contents} if changed else body


def _role(content: Any) -> Any:
    return content.get("role") if isinstance(content, dict) else None


def _found(turn: list[tuple[int, Any]], key: str) -> list[tuple[_At, Object]]:
    """The calls or results of a turn, with their positions."""
    found: list[tuple[_At, Object]] = []
    for i, content in turn:
        parts = content.get("parts") if isinstance(content, dict) else None
        for j, part in enumerate(parts if isinstance(parts, list) else [parts]):
            inner = part.get(find(part, key)) if isinstance(part, dict) else None
            if isinstance(inner, dict):
                found.append(((i, j), inner))
    return found


def _mismatched(calls: list[Object], results: list[tuple[_At, Object]]) -> dict[_At, str]:
    """Results that need another id, or none, by position."""
    called = [call["id"] for call in calls if isinstance(call.get("id"), str) and call["id"]]
    result_ids = [result["id"] for _, result in results if isinstance(result.get("id"), str) and result["id"]]
    if not called or not result_ids or sorted(called) == sorted(result_ids):
        return {}
    waiting = [(call.get("name"), call.get("id") or "") for call in calls]
    changed: dict[_At, str] = {}
    for at, result in sorted(results, key=lambda entry: entry[1].get("id") not in called):
        name, given = result.get("name"), result.get("id") or ""
        exact = [call for call in waiting if given and call[1] == given]
        call = next(iter(exact or [call for call in waiting if call[0] == name]), (name, ""))
        if call in waiting:
            waiting.remove(call)
        if call[1] != given:
            changed[at] = call[1]
    return changed


def _with_id(content: Object, j: int, call_id: str) -> Object:
    single = not isinstance(content["parts"], list)
    parts = [content["parts"]] if single else list(content["parts"])
    key = find(parts[j], "functionResponse")
    inner = {name: value for name, value in parts[j][key].items() if name != "id"}
    parts[j] = {**parts[j], key: {"id": call_id, **inner} if call_id else inner}
    return {**content, "parts": parts[0] if single else parts}
