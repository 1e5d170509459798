"""Calls whose arguments are streamed (Vertex, `streamFunctionCallArguments`): each fragment sets values at JSON paths,
a string may be split over several fragments, and the last fragment has no `willContinue`."""

from __future__ import annotations

import re
from typing import Any

from ...errors import FormatError
from ...log.messages import ToolCall, compact_json
from .form import NAME

_STEP = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]|\[(\d+)\]")
_ESCAPED = re.compile(r"\\(['\"\\/])")
_DIGITS, _STEPS = 5, 100
"""Maximum number of digits of an index and of steps of a path, so that a fragment cannot make turnlog build huge
values."""
_VALUES = ("stringValue", "numberValue", "boolValue")


def starts_partial(call: dict[str, Any]) -> bool:
    """Whether this `functionCall` is the first fragment of a call."""
    return bool(call.get("willContinue") or call.get("partialArgs"))


class PartialCall:
    """A call so far."""

    def __init__(self) -> None:
        self.name = ""
        self.complete = False
        self._inner: dict[str, Any] = {}
        self._others: dict[str, Any] = {}
        self._arguments: Any = {}
        self._open: tuple[str | int, ...] | None = None

    def feed(self, part: dict[str, Any], call: dict[str, Any], where: str) -> None:
        """Process the next fragment, whose path is `where`. Raises FormatError."""
        self._others.update({key: value for key, value in part.items() if key != "functionCall"})
        self._inner.update({key: call[key] for key in ("id", "name") if call.get(key)})
        self.name = self._inner.get("name", "")
        if isinstance(call.get("args"), dict):
            had = self._arguments if isinstance(self._arguments, dict) else {}
            self._arguments = {**had, **call["args"]}
        for i, piece in enumerate(call.get("partialArgs") or ()):
            self._set(piece, f"{where}.partialArgs[{i}]")
        self.complete = not call.get("willContinue")

    def part(self) -> dict[str, Any]:
        """The whole call as a wire part."""
        return {"functionCall": {**self._inner, "args": self._arguments}, **self._others}

    def fragment(self) -> ToolCall:
        """The call so far, as a part that is never sent."""
        call_id = self._inner.get("id", "")
        return ToolCall(id=call_id, name=self.name, raw=compact_json(self._arguments), provider=NAME)

    def _set(self, piece: dict[str, Any], where: str) -> None:
        path = _path(piece.get("jsonPath") or "$", where)
        value = next((piece[key] for key in _VALUES if key in piece), None)
        if path == self._open and isinstance(value, str):
            value = _get(self._arguments, path) + value
        self._arguments = _put(self._arguments, path, value)
        self._open = path if piece.get("willContinue") else None


def _path(text: str, where: str) -> tuple[str | int, ...]:
    steps: list[str | int] = []
    for match in _STEP.finditer(text.removeprefix("$")):
        key = next(group for group in match.groups() if group is not None)
        if match.group(1) is None:
            key = _ESCAPED.sub(r"\1", key)
        if (match.group(4) is not None and len(key) > _DIGITS) or len(steps) == _STEPS:
            raise FormatError("the path has too many steps or too large an index", path=f"{where}.jsonPath")
        steps.append(int(key) if match.group(4) is not None else key)
    return tuple(steps)


def _get(value: Any, path: tuple[str | int, ...]) -> str:
    """The text at `path`; "" if there is another value."""
    for step in path:
        try:
            value = value[step]
        except (IndexError, KeyError, TypeError):
            return ""
    return value if isinstance(value, str) else ""


def _put(holder: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """`holder` with `value` at `path`; missing containers are created."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        items = list(holder) if isinstance(holder, list) else []
        items += [None] * (step + 1 - len(items))
        items[step] = _put(items[step], rest, value)
        return items
    keys = dict(holder) if isinstance(holder, dict) else {}
    keys[step] = _put(keys.get(step), rest, value)
    return keys
