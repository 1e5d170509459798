"""Whether anything of a conversation went missing from a request in silence.

Independent of how repair works: it looks for every text, call, result and image in the finished
request, and what is not there must be named, by its record number, by an edit or a loss of a kind
that speaks of leaving out.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from turnlog.log.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, Unknown
from turnlog.view.types import Edit, Loss

WHOLE = {"clear", "compact", "rewind", "window"}
LEAVES_OUT: dict[type, set[str]] = {
    Text: WHOLE,
    Media: WHOLE | {"media"},
    ToolCall: WHOLE | {"misplaced"},
    ToolResult: WHOLE | {"duplicate", "misplaced", "orphan"},
    Reasoning: WHOLE | {"misplaced", "reasoning"},
    Opaque: WHOLE | {"opaque", "server_tool"},
    Unknown: WHOLE | {"unknown"},
}
"""For each kind of part, the edits and losses that speak of leaving it out."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def unaccounted(
    messages: Iterable[tuple[int, Message]],
    request: Mapping[str, Any],
    changes: Sequence[Edit | Loss],
    blobs: Mapping[str, bytes],
) -> list[str]:
    """What is neither in the request nor named, as sentences; `messages` come with their numbers."""
    named: dict[int, set[str]] = defaultdict(set)
    for change in changes:
        through = getattr(change, "through", 0)
        for n in range(change.records[0], through + 1) if through else change.records:
            named[n].add(change.kind)
    leaves = Counter(_leaves(request))
    # A result's text is looked for without the line ends that a call's arguments keep.
    stripped: Counter[str] = Counter()
    for leaf, times in leaves.items():
        stripped[leaf.rstrip()] += times
    keys_went = any(change.kind in ("unknown_key", "unknown_value") for change in changes)
    needed: Counter[str] = Counter()
    within: set[str] = set()  # what may stand within a longer text
    origin: dict[str, int] = {}
    missing: list[str] = []
    for n, message in messages:
        for part in message.parts:
            if named[n] & LEAVES_OUT[type(part)]:
                continue
            if isinstance(part, (Opaque, Unknown, Reasoning)):
                if not _is_sent(part, leaves, keys_went):
                    missing.append(f"record {n}: {type(part).__name__} is gone and no edit or loss says so")
                continue
            for needle in _needles(part, blobs, named[n]):
                needed[needle] += 1
                within.update([needle] if "part" in named[n] else ())
                origin.setdefault(needle, n)
    for needle, times in needed.items():
        if max(leaves[needle], stripped[needle]) < times and _occurrences(needle, leaves, within) < times:
            kinds = named[origin[needle]]
            missing.append(f"record {origin[needle]}: {needle[:80]!r} is gone ({sorted(kinds)})")
    return missing


def _occurrences(needle: str, leaves: Counter[str], within: Container[str] = ()) -> int:
    if needle in leaves:
        inside = sum(leaf.count(needle) * times for leaf, times in leaves.items()) if needle in within else 0
        return max(leaves[needle], inside)
    return sum(leaf.count(needle) * times for leaf, times in leaves.items() if len(leaf) > len(needle))


def _is_sent(part: Opaque | Unknown | Reasoning, leaves: Counter[str], keys_went: bool) -> bool:
    if isinstance(part, Reasoning):
        proof = part.signature or part.encrypted or part.text
        return not proof or _occurrences(proof, leaves) > 0
    if isinstance(part, Opaque):
        strings = [leaf for leaf in _leaves(part.data) if leaf]
        return (any if keys_went else all)(_occurrences(leaf, leaves) > 0 for leaf in strings)
    return False


def _needles(part: Part, blobs: Mapping[str, bytes], named: set[str]) -> Iterable[str]:
    """The strings by which a part is found in a request."""
    if isinstance(part, Text):
        text = _SURROGATE.sub("\ufffd", part.text)
        if text.strip():
            yield text.rstrip()
    elif isinstance(part, Media):
        if "media" not in named:
            yield base64.b64encode(blobs[part.sha256]).decode() if part.sha256 else part.url or part.file_id
    elif isinstance(part, ToolCall):
        if part.arguments is None:
            raw = _SURROGATE.sub("\ufffd", part.raw or "")
            if raw.strip():
                yield raw
        else:
            yield from (_SURROGATE.sub("\ufffd", leaf) for leaf in _leaves(part.arguments) if leaf.strip())
    elif isinstance(part, ToolResult):
        for inner in part.parts:
            yield from _needles(inner, blobs, named)


def _leaves(value: Any) -> Iterable[str]:
    """All strings of a JSON value; a string that is itself JSON is looked into as well."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
            if item[:1] in "{[" and item[-1:] in "}]":
                try:
                    stack.append(json.loads(item))
                except (ValueError, RecursionError):
                    pass
        elif isinstance(item, Mapping):
            stack.extend(item.values())
        elif isinstance(item, (list, tuple)):
            stack.extend(item)
