"""Messages as a summarizer reads them: who said what, and no more of it than is worth the time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from msgspec import Struct

from ..content import Media, Outcome, Text, ToolCall, ToolResult
from ..view.shown import Shown

__all__ = ["Said", "Who", "clip", "flat_lines", "read"]

Who = Literal["user", "assistant", "call", "result"]

_LOOK = 1_200_000  # characters of all texts together that are looked at; beyond it each is cut to its two ends
_LEAST = 400  # characters that are looked at in any text
_JSON = 40_000  # a text up to this many characters is tried as JSON
_DEPTH = 12  # levels of JSON that are laid out; what lies deeper stays as it is
_SCALARS = 200  # characters of one line of keys and values
_LINE_NUMBERS = re.compile(r"^[ ]*\d+(?:→|\t)", re.MULTILINE)


class Said(Struct):
    """One text of the conversation and the number of its record.

    `tool` and `brief` (its arguments in few words) say which call a call or result is about; `call` is the
    position of the call that a result answers, and `arguments` what the call had.
    """

    record: int
    who: Who
    text: str
    tool: str = ""
    brief: str = ""
    call: int | None = None
    outcome: Outcome = "ok"
    arguments: Any = None


def read(messages: Iterable[Shown]) -> list[Said]:
    """What was said, in order. System texts are left out, since they stay in every request, and so is reasoning."""
    found = [(one, part) for one in messages if one.message.role != "system" for part in one.message.parts]
    limit = _limit([_length(part) for _, part in found])
    said: list[Said] = []
    calls: dict[str, int] = {}
    for one, part in found:
        record = one.records[0] if one.records else 0
        if isinstance(part, ToolCall):
            calls[part.id] = len(said)
            said.append(_call(part, record, limit))
        elif isinstance(part, ToolResult):
            at = calls.pop(part.call_id, None)
            call = said[at] if at is not None else Said(0, "call", "", part.name)
            text = _laid_out(_bounded(_result_text(part), limit))
            said.append(Said(record, "result", text, call.tool, call.brief, at, part.outcome))
        elif isinstance(part, Text) and part.text.strip():
            who: Who = "assistant" if one.message.role == "assistant" else "user"
            said.append(Said(record, who, _laid_out(_bounded(part.text, limit))))
    return said


def clip(text: str, room: int) -> str:
    """`text` on one line of at most `room` characters; what is left out of the middle is marked."""
    if len(text) > room * 4:
        text = f"{text[: room * 2]} … {text[-room:]}"
    text = " ".join(text.split())
    if len(text) <= room:
        return text
    tail = max(0, room // 3 - 3)
    return f"{text[: room - tail - 3]} … {text[len(text) - tail :]}" if tail else text[:room]


def flat_lines(value: Any, name: str = "", depth: int = 0) -> Iterator[str]:
    """A JSON object or list as lines of `key=value`.

    The scalars of one object share a line, which begins with where the object stands: `passengers.0: age=31, ...`.
    A text of several lines follows its key as it is.
    """
    entries = list(value.items()) if isinstance(value, dict) else [(str(i), item) for i, item in enumerate(value)]
    line = f"{name}: " if name else ""
    empty = len(line)
    for key, item in entries:
        if _nested(item, depth):
            continue
        said = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False, default=str)
        piece = f"{key}={said}" if isinstance(value, dict) else said
        if empty < len(line) and len(line) + len(piece) > _SCALARS:
            yield line
            line = line[:empty]
        line += f"{', ' if len(line) > empty else ''}{piece}"
    if len(line) > empty:
        yield line
    for key, item in entries:
        if _nested(item, depth):
            inner = f"{name}.{key}" if name else key
            if isinstance(item, str):
                yield f"{inner}:"
                yield item
            else:
                yield from flat_lines(item, inner, depth + 1)


def _nested(item: Any, depth: int) -> bool:
    """Whether `item` gets lines of its own."""
    if isinstance(item, str):
        return "\n" in item.strip()
    return isinstance(item, (dict, list)) and bool(item) and depth < _DEPTH


def _laid_out(text: str) -> str:
    """`text` as lines of keys and values if it is a JSON object or list; else without the line numbers that
    tools put before the lines of a file: they cost more than they say, and are stale after the next edit."""
    if text[:1] in ("{", "[") and len(text) <= _JSON:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        if isinstance(value, (dict, list)):
            return "\n".join(flat_lines(value))
    return _LINE_NUMBERS.sub("", text)


def _call(call: ToolCall, record: int, limit: int) -> Said:
    value = call.arguments
    text = "\n".join(flat_lines(value)) if isinstance(value, (dict, list)) else call.raw_arguments
    text = _bounded(text, limit)
    return Said(record, "call", text, call.name, clip(text, 120), arguments=value)


def _result_text(result: ToolResult) -> str:
    texts = (part.text if isinstance(part, Text) else f"[{part.kind}]" for part in result.parts if _readable(part))
    return "\n".join(texts)


def _readable(part: object) -> bool:
    return isinstance(part, (Text, Media))


def _length(part: object) -> int:
    """About how many characters there are to look at."""
    if isinstance(part, Text):
        return len(part.text)
    if isinstance(part, ToolResult):
        return sum(len(inner.text) for inner in part.parts if isinstance(inner, Text))
    return _LEAST if isinstance(part, ToolCall) else 0


def _limit(lengths: list[int]) -> int:
    """How many characters of each text are looked at so that all of them stay within reason."""
    left = _LOOK
    for nth, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - nth)
        if length > share:
            return max(share, _LEAST)
        left -= length
    return max(lengths, default=0)


def _bounded(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit * 2 // 3]}\n{text[len(text) - limit // 3 :]}"
