"""Prompt-cache marks (`cache_control`) within the API's limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..edits import Edits, Object
from ..protocol import CacheMarks

MAX_MARKS = 4
"""Maximum number of marks in a request, including the automatic mark at top level."""

_PLAIN = {"type": "ephemeral"}
_LONG = {"type": "ephemeral", "ttl": "1h"}

_Path = tuple[str | int, ...]


def sanitize_marks(request: Object, edits: Edits) -> Object:
    """The request with at most `MAX_MARKS` marks, in an allowed order of lifetimes, on blocks that may have a mark."""
    for path, rule in list(_misplaced(request)):
        request = _without_mark(request, path, rule, edits)
    marks = list(_marks(request))
    allowed = MAX_MARKS - (1 if isinstance(request.get("cache_control"), Mapping) else 0)
    # Marks on older messages are removed first: a later mark covers everything before it, and other conversations share
    # the marks on tools and system text.
    in_messages = [path for path, _ in marks if path[0] == "messages"]
    elsewhere = [path for path, _ in marks if path[0] != "messages"]
    surplus = [*in_messages, *reversed(elsewhere)][: max(0, len(marks) - allowed)]
    for path in surplus:
        rule = f"A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {len(marks)}."
        request = _without_mark(request, path, rule, edits)
    return _ordered(request, edits)


def _without_mark(request: Object, path: _Path, rule: str, edits: Edits) -> Object:
    edits.add("setting", f"{_name(path)}.cache_control", "dropped", rule)
    changed: Object = _changed(request, path, None)
    return changed


def mark_cache(request: Object, marks: CacheMarks) -> Object:
    """The request with a cache mark after the system text or the tools, and after the messages that `marks` names. A
    request that already has marks is returned unchanged."""
    if request.get("cache_control") or next(_marks(request), None) is not None:
        return request
    mark = _LONG if marks.long else _PLAIN
    text = request.get("system")
    front: Object = {}
    if isinstance(text, str) and text:
        front = {"system": [{"type": "text", "text": text, "cache_control": mark}]}
    elif isinstance(text, list) and text:
        front = {"system": [*text[:-1], {**text[-1], "cache_control": mark}]}
    elif (index := _last_shown(request.get("tools") or [])) >= 0:
        tools = request["tools"]
        front = {"tools": [*tools[:index], {**tools[index], "cache_control": mark}, *tools[index + 1 :]]}
    wire = list(request.get("messages") or [])
    for index in [index for index in marks.messages if 0 <= index < len(wire)][-(MAX_MARKS - bool(front)) :]:
        wire[index] = _with_mark(wire[index], mark)
    return {**request, **front, "messages": wire}


def _last_shown(tools: Sequence[Mapping[str, Any]]) -> int:
    """The index of the last tool that may have a mark, or -1. A tool with deferred loading may not."""
    return max((i for i, tool in enumerate(tools) if not tool.get("defer_loading")), default=-1)


def _with_mark(message: Object, mark: Object) -> Object:
    """A message with a mark on its last block that may have one."""
    content = message.get("content")
    if isinstance(content, str):
        return (
            {**message, "content": [{"type": "text", "text": content, "cache_control": mark}]} if content else message
        )
    blocks = list(content or [])
    for i in range(len(blocks) - 1, -1, -1):
        if blocks[i].get("type") not in ("thinking", "redacted_thinking") and blocks[i].get("text") != "":
            blocks[i] = {**blocks[i], "cache_control": mark}
            return {**message, "content": blocks}
    return message


def _ordered(request: Object, edits: Edits) -> Object:
    """Change a one-hour mark after a five-minute mark to five minutes: the API forbids that order."""
    short_seen = False
    for path, mark in list(_marks(request)):
        if (mark.get("ttl") or "5m") == "5m":
            short_seen = True
        elif short_seen:
            rule = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block."
            edits.add("setting", f"{_name(path)}.cache_control.ttl", "dropped", rule)
            request = _changed(request, path, {key: value for key, value in mark.items() if key != "ttl"})
    return request


def _marks(request: Mapping[str, Any]) -> Iterator[tuple[_Path, Mapping[str, Any]]]:
    """Every mark in the order in which the API processes them: tools, system, messages."""
    for path, block in _blocks(request):
        if isinstance(block.get("cache_control"), Mapping):
            yield path, block["cache_control"]


def _misplaced(request: Mapping[str, Any]) -> Iterator[tuple[_Path, str]]:
    for path, block in _blocks(request):
        if not block.get("cache_control"):
            continue
        if path[0] == "tools" and block.get("defer_loading"):
            yield path, "a tool with defer_loading cannot also carry cache_control"
        elif block.get("type") == "text" and block.get("text") == "":
            yield path, "cache_control cannot be set for empty text blocks"


def _blocks(request: Mapping[str, Any]) -> Iterator[tuple[_Path, Mapping[str, Any]]]:
    yield from _items(request.get("tools"), ("tools",))
    yield from _items(request.get("system"), ("system",))
    for path, message in _items(request.get("messages"), ("messages",)):
        for inner, block in _items(message.get("content"), (*path, "content")):
            if block.get("type") == "tool_result":
                yield from _items(block.get("content"), (*inner, "content"))
            yield inner, block


def _items(value: Any, path: _Path) -> Iterator[tuple[_Path, Mapping[str, Any]]]:
    if isinstance(value, list):
        for i, item in enumerate(value):
            if isinstance(item, Mapping):
                yield (*path, i), item


def _changed(value: Any, path: _Path, mark: Object | None) -> Any:
    """`value` with the mark on the block at `path` replaced or removed. Containers on the path are copied."""
    if not path:
        rest = {key: item for key, item in value.items() if key != "cache_control"}
        return rest if mark is None else {**rest, "cache_control": mark}
    step, *further = path
    copy: Any = list(value) if isinstance(value, list) else dict(value)
    copy[step] = _changed(value[step], tuple(further), mark)
    return copy


def _name(path: _Path) -> str:
    first, *further = path
    return f"{first}" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in further)
