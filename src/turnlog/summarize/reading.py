"""Messages as a summarizer reads them: who said what, with long texts cut to save time.

The findings about a text are stored (`TextFindings`), so that the same text need not be read again for the next
summary.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeGuard

from msgspec import Struct, field
from msgspec.structs import replace

from .._platform.lazy import lazy_pattern
from .._platform.texts import clip
from ..log.messages import Media, Message, Part, Text, ToolCall, ToolResult
from ..view.curate.lines import without_escapes
from ..view.repair.pairing import At, Pairing
from ..view.types import Shown
from .failures import Failure, failure_of, is_harmless

# -- speakers --------------------------------------------------------------------------------------
#
# Find the speaker if the role does not show it: an agent that writes its commands into its text.

# How mini-swe-agent and SWE-agent mark the output of a command, and the command in the agent's text before it.
_TAIL = 2_000  # characters at the end of a text that are searched for a prompt
_STATUS, _KILLED = "<returncode>", "The last command <command>"
_PROMPT = lazy_pattern(r"\n\(Open file: [^\n]*\)\n\(Current directory: [^\n]*\)\n\S*\$\s*\Z")
_OPENS, _CLOSES = lazy_pattern(r"^```(\w*)[ \t]*\n", re.MULTILINE), lazy_pattern(r"\n?^```[ \t]*$", re.MULTILINE)
_SHELLS = ("bash", "mswea_bash_command", "sh", "")
_SHELL, _ID = "bash", "said"


def is_output(message: Message) -> bool:
    """Whether a user message is the output of a command that an agent wrote into its text."""
    return _report(message) is not None


def with_calls(messages: Sequence[Shown]) -> Sequence[Shown]:
    """The messages, in which commands that an agent wrote into its answers become calls, and the user messages with
    their output become results. Most agents use calls: then the messages are returned unchanged."""
    reports = [index for index, shown in enumerate(messages) if _report(shown.message) is not None]
    if not reports:
        return messages
    changed = list(messages)
    for index in reports:
        changed[index] = replace(changed[index], message=_report(changed[index].message))
        if index and changed[index - 1].message.role == "assistant":
            changed[index - 1] = replace(changed[index - 1], message=_acting(changed[index - 1].message))
    return changed


def _report(message: Message) -> Message | None:
    """The message with its text as a result, if it is a user message with the output of a command; else None."""
    part = message.parts[0] if message.role == "user" and len(message.parts) == 1 else None
    if not isinstance(part, Text):
        return None
    text = part.text
    prompt = text[-3:].rstrip()[-1:] == "$" and _PROMPT.search(text, max(0, len(text) - _TAIL)) is not None
    if not prompt and not text.startswith((_STATUS, _KILLED)):
        return None
    result = ToolResult(_ID, _SHELL, (part,), "timeout" if text.startswith(_KILLED) else "ok")
    return replace(message, parts=(result,))


def _acting(message: Message) -> Message:
    """An answer with its command as a call; unchanged if it has none or several."""
    blocks = [
        (index, text, opens, closes)
        for index, part in enumerate(message.parts)
        if isinstance(part, Text) and "```" in (text := part.text)
        for opens, closes in _blocks(text)
        if opens[1] in _SHELLS
    ]
    named = [block for block in blocks if block[2][1]] or blocks
    if len(named) != 1:
        return message
    (index, text, opens, closes), parts = named[0], message.parts
    rest = Text(text[: opens.start()] + text[closes.end() :])
    call = ToolCall(_ID, _SHELL, {"command": text[opens.end() : closes.start()]})
    return replace(message, parts=(*parts[:index], rest, call, *parts[index + 1 :]))


def _blocks(text: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """The beginnings and ends of code blocks. A block without an end is ignored, with everything after it."""
    position = 0
    while (opens := _OPENS.search(text, position)) and (closes := _CLOSES.search(text, opens.end())):
        yield opens, closes
        position = closes.end()


Who = Literal["user", "assistant", "call", "result"]

LOOK = 1_200_000
"""The most characters of all texts together that are examined; if there are more, each text is cut to its two ends."""

_LEAST = 400  # characters that are examined in any text
_JSON = 40_000  # a text up to this many characters is tried as JSON
_NAME = 80  # characters of a tool's name, which is put on one line
_DEPTH = 12  # levels of JSON that are laid out as lines; deeper values stay JSON
_SCALARS = 200  # characters of one line of keys and values
_LINE_NUMBERS = lazy_pattern(r"\n[ ]*\d+(?:→|\t)")  # of each line but the first; faster than with `^`
_spell = json.JSONEncoder(ensure_ascii=False, default=str).encode  # made once: `json.dumps` would make it each time


class TextFindings(Struct, gc=False):
    """The findings about one text by itself.

    - `words`: its identifiers, each once.
    - `brief`: the arguments of a call, shortened; `named`: the identifiers in `brief`.
    - `failure`: what went wrong, if the text is a result that says that its call failed.
    - `changes`: the files that a call changes, each with the change.
    - `tasks`: the lines of a list of tasks, each with whether it is finished; None if there is no list.
    - `line`: what was said, on one line; for a result, what the user said when refusing the call; "" if a program wrote
      a user message.
    - `orders`: whether the user gives lasting orders.
    - `decisions`: sentences about the assistant's decisions; `sentences`: all that it said.
    - `quotes`: the places of the words that were searched so far; None for words that are not in the text.
    - `text`: the text laid out; dropped once the digest for which it was first read is made.
    """

    words: tuple[str, ...] = ()
    brief: str = ""
    named: tuple[str, ...] = ()
    failure: Failure | None = None
    changes: tuple[tuple[str, str], ...] = ()
    tasks: tuple[tuple[str, bool], ...] | None = None
    line: str = ""
    orders: bool = False
    decisions: tuple[str, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    quotes: dict[str, Place | None] = field(default_factory=dict)
    text: str = ""


class Place(Struct, frozen=True, gc=False):
    """The position of a word in a text, and the quote that contains it."""

    at: int
    quote: Quote


class Quote(Struct, frozen=True, gc=False):
    """A line of a text, or the quoted part of it: where it begins and how long it is in the text, and its identifiers.
    There are thousands of quotes, so little more than the text of each is kept."""

    start: int
    length: int
    text: str
    words: tuple[str, ...]


class Sentence(Struct, frozen=True, gc=False):
    """A sentence of the agent: its quote, whether it only announces a call or is code (`passing`), and how many words
    of findings and results it has (`telling`)."""

    quote: Quote
    passing: bool
    telling: int


class Said(Struct, gc=False):
    """One text of the conversation and the number of its record.

    `tool` and `brief` describe the call, of a call or of a result; `call` is the position of the call that a result
    answers, `asked` is that call, and `error` what went wrong in it. `limit` is the number of characters of the text
    that are examined.
    """

    record: int
    who: Who
    part: Text | ToolCall | ToolResult
    limit: int
    note: TextFindings
    tool: str = ""
    brief: str = ""
    call: int | None = None
    asked: Text | ToolCall | ToolResult | None = None
    error: str = ""

    @property
    def text(self) -> str:
        """The text, laid out."""
        return self.note.text or laid_out(self.part, spelled(self.part), self.limit)


def read(messages: Iterable[Shown], take: Callable[[Message, int], Sequence[TextFindings]]) -> list[Said]:
    """The texts of the messages, in order. System texts are left out, as they stay in every request; so is reasoning.

    `take` returns the notes about a message, one for each of `texts_of`; it is given the number of characters to
    examine in each text.
    """
    conversation = [shown for shown in messages if shown.message.role != "system"]
    limit = _limit([_length(part) for shown in conversation for part in shown.message.parts])
    texts: list[Said] = []
    pairing, calls = Pairing(), dict[At, int]()
    for shown in conversation:
        pairing.see(shown)
        record = shown.records[0] if shown.records else 0
        speaker: Who = "assistant" if shown.message.role == "assistant" else "user"
        places = [j for j, part in enumerate(shown.message.parts) if _has_text(part)]
        for j, part, note in zip(places, texts_of(shown.message), take(shown.message, limit), strict=True):
            if isinstance(part, ToolCall):
                calls[pairing.seen - 1, j] = len(texts)
                texts.append(Said(record, "call", part, limit, note, clip(part.name, _NAME), note.brief))
            elif isinstance(part, ToolResult):
                answered = pairing.answered.get(j)
                call_index = calls.get(answered[0]) if answered is not None else None
                tool, brief = (
                    (texts[call_index].tool, texts[call_index].brief)
                    if call_index is not None
                    else (clip(part.name, _NAME), "")
                )
                asked = texts[call_index].part if call_index is not None else None
                error = _error(note, asked)
                texts.append(Said(record, "result", part, limit, note, tool, brief, call_index, asked, error))
            else:
                texts.append(Said(record, speaker, part, limit, note))
    return texts


def _error(note: TextFindings, asked: object) -> str:
    """What went wrong in a call, from what its result says; "" if nothing did."""
    return "" if note.failure is None or is_harmless(asked, note.failure) else note.failure.text


def texts_of(message: Message) -> list[Text | ToolCall | ToolResult]:
    """The parts of a message that contain text: calls, results, and texts that are not blank."""
    return [part for part in message.parts if _has_text(part)]


def _has_text(part: Part) -> TypeGuard[Text | ToolCall | ToolResult]:
    return isinstance(part, (ToolCall, ToolResult)) or (isinstance(part, Text) and bool(part.text.strip()))


def spelled(part: Text | ToolCall | ToolResult) -> str:
    """The text of a part; the arguments of a call are lines of keys and values."""
    if isinstance(part, ToolCall):
        value = part.arguments
        return "\n".join(flat_lines(value)) if isinstance(value, (dict, list)) else part.raw_arguments
    return part.text if isinstance(part, Text) else _result_text(part)


def laid_out(part: Text | ToolCall | ToolResult, text: str, limit: int) -> str:
    """`text`, the text of a part, in the form in which it is quoted: JSON as lines of keys and values, and only the two
    ends of a long text, `limit` characters in all."""
    text = without_escapes(text)
    text = text if len(text) <= limit else f"{text[: limit * 2 // 3]}\n{text[len(text) - limit // 3 :]}"
    return text if isinstance(part, ToolCall) else _laid_out(text)


def failure_in(result: ToolResult) -> Failure | None:
    """What went wrong, if a result shows that its call failed, whatever the call (see `is_harmless`); else None."""
    return failure_of(laid_out(result, spelled(result), LOOK), result.outcome)


def flat_lines(value: Any, name: str = "", depth: int = 0) -> Iterator[str]:
    """A JSON object or list as lines of `key=value`.

    The scalars of one object share a line, which begins with the path of the object: `passengers.0: age=31, ...`. A
    text of several lines follows its key unchanged.
    """
    entries = list(value.items()) if isinstance(value, dict) else [(str(i), item) for i, item in enumerate(value)]
    line = f"{name}: " if name else ""
    empty = len(line)
    for key, item in entries:
        if _nested(item, depth):
            continue
        spelled_value = item if isinstance(item, str) else _value(item)
        piece = f"{key}={spelled_value}" if isinstance(value, dict) else spelled_value
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


def _value(item: Any) -> str:
    """A value as JSON. The encoder creates a new encoder for each value, which would take as long as all the other work
    on most values, so simple ones are written without it."""
    if type(item) is int:
        return str(item)
    if item is None or type(item) is bool:
        return "null" if item is None else "true" if item else "false"
    return _spell(item)


def _nested(item: Any, depth: int) -> bool:
    """Whether `item` gets lines of its own."""
    if isinstance(item, str):
        return "\n" in item.strip()
    return isinstance(item, (dict, list)) and bool(item) and depth < _DEPTH


def _laid_out(text: str) -> str:
    """`text` as lines of keys and values if it is a JSON object or list; else without the line numbers that tools put
    before the lines of a file: they cost more than they are worth, and are wrong after the next edit."""
    if text[:1] in ("{", "[") and len(text) <= _JSON:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        if isinstance(value, (dict, list)):
            return "\n".join(flat_lines(value))
    return _LINE_NUMBERS.sub("\n", f"\n{text}")[1:] if "\t" in text or "→" in text else text


def _result_text(result: ToolResult) -> str:
    texts = (part.text if isinstance(part, Text) else f"[{part.kind}]" for part in result.parts if _readable(part))
    return "\n".join(texts)


def _readable(part: object) -> bool:
    return isinstance(part, (Text, Media))


def _length(part: object) -> int:
    """About how many characters of a part there are to examine."""
    if isinstance(part, Text):
        return len(part.text)
    if isinstance(part, ToolResult):
        return sum(len(inner.text) for inner in part.parts if isinstance(inner, Text))
    return _LEAST if isinstance(part, ToolCall) else 0


def _limit(lengths: list[int]) -> int:
    """How many characters of each text are examined, so that all texts together stay within `LOOK`. It is one of few
    numbers, so that it seldom changes while a conversation grows."""
    left = LOOK
    for nth, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - nth)
        if length > share:
            return _LEAST << max(0, (share // _LEAST).bit_length() - 1)
        left -= length
    return LOOK
