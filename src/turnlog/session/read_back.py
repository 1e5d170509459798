"""Reading back what requests leave out: by a program, and by the model itself through a tool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._platform.lazy import lazy_pattern
from ..errors import InputError
from ..log.messages import Media, Message, Opaque, Reasoning, Text, Tool, ToolCall, Unknown, is_compaction
from ..log.records import Configuration
from ..log.store import RecordStore
from ..log.texts import leaf_parts
from ..models.makers import default_model
from ..models.target import target
from ..requests.translate import plan
from ..tokens.encrypted import texts_in
from ..view.decisions import Rewinds

_LINE = 1_000
"""How many characters count as one line; a longer line counts as several."""

_TO_THE_END = 1 << 62

_DIGITS = 19
"""The most digits of a record number in a text; a number with more cannot be one."""

_NAMED = lazy_pattern(r"(?i)(?:record\s+)?(?:#?(\d+)|\[#?(\d+)\]|\(#?(\d+)\))")
"""A record as summaries and placeholders name it, and models after them: `#4`, `(#4)`, `[4]`, `record 4`."""

READ_BACK = Tool(
    name="read_back",
    description=(
        "Read back the text of a record of this conversation that is no longer shown in full: one that was summarised, "
        "masked, shortened or left out. Summaries and placeholders name the numbers of the records that they stand "
        "for. Images and other media have no text and cannot be read back."
    ),
    parameters={
        "type": "object",
        "properties": {
            "record": {"type": "integer", "description": "Number of the record."},
            "first_line": {
                "type": "integer",
                "description": (
                    "First line to read, counted from 1. Default: 1. A line of over 1,000 characters counts as one for "
                    "each 1,000."
                ),
            },
            "last_line": {"type": "integer", "description": "Last line to read, inclusive. Default: the last."},
        },
        "required": ["record"],
    },
)
"""The tool with which a model reads back: give it among the tools of `Session.configure`, and answer its calls with
`Session.answer_read_back`."""


def read_back_tool(provider: str, model: str = "") -> dict[str, Any]:
    """The declaration of `READ_BACK` as a provider's request has it, an element of its `tools`."""
    return declaration(READ_BACK, provider, model)


def declaration(tool: Tool, provider: str, model: str) -> dict[str, Any]:
    """A tool as a provider's request has it. Without a model, the usual one of the provider."""
    usual = default_model(provider) if isinstance(provider, str) else ""
    aim = target(provider, model or usual)  # the declaration is the same for each model
    ways = plan(Configuration(provider=provider, tools=(tool,)), aim)
    request = ways.provider.render([], ways.local, aim, _no_blob).body
    declared: dict[str, Any] = request["tools"][0]
    return declared


def _no_blob(sha256: str) -> bytes:
    raise InputError(f"a tool's declaration holds no media ({sha256})")


def read_back(store: RecordStore, session_id: str, n: int, lines: tuple[int, int] | None = None) -> str:
    """The text of message record `n` as it is on record; with `lines`, from the first to the last line number, counted
    from 1. A line of over 1,000 characters counts as one line for each 1,000, so that it can be read in parts.

    Media, and parts that only their provider can read, are named. Raises InputError if there is no such message, or if
    it has no such lines.
    """
    return _read(_message(store, session_id, n), n, lines)


def _message(store: RecordStore, session_id: str, n: int) -> Message:
    records = list(store.read(session_id, first=n, last=n)) if isinstance(n, int) and n > 0 else []
    message = records[0].message if records else None
    if message is None:
        raise InputError(f"record {n!r} of session {session_id!r} is no message that could be read back")
    return message


def _read(message: Message, n: int, lines: tuple[int, int] | None) -> str:
    text = "\n".join(_texts(message))
    if lines is None:
        return text
    every = list(pieces(text))
    if not (isinstance(lines, (tuple, list)) and len(lines) == 2 and all(isinstance(line, int) for line in lines)):
        raise InputError(f"lines={lines!r}: give the first and the last, from 1 on, such as lines=(1, 20)")
    first, last = lines
    if not 1 <= first <= last or first > len(every):
        asked = f"{first} to {last}" if last < _TO_THE_END else f"from {first} on"
        raise InputError(
            f"no lines {asked} in record {n}, which has {len(every)}: give the first and the last, from 1 on"
        )
    return "".join(every[first - 1 : last]).removesuffix("\n")


def pieces(text: str) -> Iterator[str]:
    """The lines of a text with their line ends; long lines are split."""
    for line in text.split("\n"):
        starts = range(0, max(1, len(line)), _LINE)
        for start in starts:
            yield line[start : start + _LINE] + ("\n" if start == starts[-1] else "")


def read_back_for(store: RecordStore, session_id: str, call: ToolCall) -> tuple[str, bool]:
    """The text that answers a call of `READ_BACK`, and whether the call succeeded; it fails if the record has no text.
    Raises InputError for a call of another tool."""
    if not isinstance(call, ToolCall):
        raise InputError(f"call must be a ToolCall, one of `Answer.tool_calls`, not {type(call).__name__}")
    if call.name != READ_BACK.name:
        raise InputError(
            f"call {call.id!r} calls the tool {call.name!r}, not {READ_BACK.name!r}; answer it with tool_result()"
        )
    asked = call.arguments if isinstance(call.arguments, dict) else {}
    first, last = asked.get("first_line"), asked.get("last_line")
    lines = None if first is None and last is None else (_number(first, 1), _number(last, _TO_THE_END))
    n = _record(asked.get("record"))
    if n < 1:
        return "give `record`, the number of a record, as an integer from 1 on", False
    if Rewinds.of(store.of_kinds(session_id, ("decision",))).by(n):
        return f"record {n} was taken back: it is no longer part of this conversation", False
    try:
        message = _message(store, session_id, n)
        return _read(message, n, lines), not _holds_no_text(message)
    except InputError as error:
        return str(error), False


def _record(value: Any) -> int:
    """The number of a record, given as a number or as text that names it; 0 if it is not the number of a record."""
    named = _NAMED.fullmatch(value.strip()) if isinstance(value, str) else None
    return _number(next(filter(None, named.groups())) if named else value, 0)


def _number(value: Any, default: int) -> int:
    """A number as models write it: some give 2.0 or "2" for 2."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < _DIGITS:
        return int(value)
    if isinstance(value, float) and value.is_integer() and value < _TO_THE_END:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _texts(message: Message) -> list[str]:
    """The text of a message, without its reasoning unless it has nothing else."""
    parts = list(leaf_parts(message.parts))
    texts = [_told(part) for part in parts if not isinstance(part, Reasoning)]
    return texts or ["[reasoning: it cannot be read back]"] * bool(parts)


def _holds_no_text(message: Message) -> bool:
    """Whether a message has content, but none that can be read back."""
    parts = [*leaf_parts(message.parts)]
    return bool(parts) and not any(isinstance(part, (Text, ToolCall)) or _summary(part) for part in parts)


def _summary(part: object) -> str:
    """What can be read of a provider's compaction; "" for other parts."""
    return "\n".join(texts_in(part.data)) if isinstance(part, Opaque) and is_compaction(part) else ""


def _told(part: Text | ToolCall | Media | Opaque | Unknown) -> str:
    """A text, a call, or a placeholder for media and for what only a provider can read."""
    match part:
        case Text(text=text):
            return text
        case ToolCall(name=name):
            return f"{name}({part.raw_arguments})"
    if summary := _summary(part):
        return summary
    name = part.name if isinstance(part, Media) else ""
    return f"[{part.kind}{f' {name}' if name else ''}: not text, it cannot be read back]"
