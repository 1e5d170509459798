"""Files that hold many conversations: data exports and data sets, of any size.

A conversation is a JSON object with its messages under one key, in a list, in JSON lines, or alone. They are read one
after the other, so that only the text of a few is in memory.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from msgspec.structs import replace

from .._platform.lazy import lazy_pattern
from .._platform.units import counted
from .fields import Fields
from .json_values import mapping, without
from .protocol import Imported, Origin, session_id_of, with_damage
from .transcript import DEEPEST, Line, Transcript, too_deep
from .writing import SessionWriter

_PIECE = 1 << 20
"""Bytes of a file that are read at once."""

_decoder = json.JSONDecoder()
_GAP = lazy_pattern(r"[\s,\0]*")

Reader = Callable[[Transcript, dict[str, Any], int], Imported]
"""Makes the session of a conversation, which is at this place of the file, from 1."""


def read_conversations(origin: Origin, key: str, kind: type, read_one: Reader, advice: str) -> Iterator[Imported]:
    """The sessions that `read_one` makes of the objects with something under `key`, of this kind.

    A number is appended to ids that occur more than once. Raises ImportFailed if there are none: `advice` says what to
    give.
    """
    file = Transcript(origin)
    last: Imported | None = None
    seen: dict[str, int] = {}
    silent = 0
    for line in values_of(file):
        said = line.value.get(key) if isinstance(line.value, dict) else None
        if not isinstance(said, kind):
            file.warn(line.number, f"left out: a conversation must be an object with `{key}`", "entry")
        elif not said:
            silent += 1
        else:
            if last is not None:
                yield last
            last = read_one(file, line.value, line.number)
            count = seen[last.session_id] = seen.get(last.session_id, 0) + 1
            if count > 1:
                last = replace(last, session_id=session_id_of(f"{last.session_id}-{count}"))
            file.warnings.clear()  # they are the session's
    if last is None:
        raise file.refused(f"conversation with `{key}`", advice)
    if silent:
        file.warn(0, f"{counted(silent, 'conversation')} without a message left out", "nothing")
    yield with_damage(last, *file.warnings)


def take_rest(writer: SessionWriter, key: str) -> None:
    """Note what stands beside the list under `key`, if the file is one object; and warn if it may be content."""
    document = mapping(writer.file.document_or_none())
    if isinstance(document.get(key), list):
        writer.take(Fields(without(document, (key,))), 0, "document", {"document": lambda *_: None})


def in_order(parents: Mapping[str, str], leaf: str) -> list[str]:
    """The messages of a tree, each behind its parent. Of several answers, the one on the way to `leaf` comes last, the
    others come in the order of `parents`. What hangs on no root is at the end."""
    way: set[str] = set()
    while leaf in parents and leaf not in way:
        way.add(leaf)
        leaf = parents[leaf]
    children: dict[str, list[str]] = {}
    for message, parent in parents.items():
        children.setdefault(parent if parent in parents else "", []).append(message)
    order: dict[str, None] = {}
    waiting = sorted(children.get("", ()), key=way.__contains__)[::-1]
    while waiting:
        message = waiting.pop()
        order[message] = None
        waiting += sorted(children.get(message, ()), key=way.__contains__)[::-1]
    return list(order | dict.fromkeys(parents))


# -- reading ---------------------------------------------------------------------------------------


def values_of(file: Transcript) -> Iterator[Line]:
    """The items of the list that a file is, with their positions from 1, or its JSON lines, with their numbers. In a
    damaged list, those before the damage."""
    pieces = _texts(file)
    text, position, number, is_list = "", 0, 0, False
    is_begun = False
    line = 1
    while True:
        start, position = position, _behind_gap(text, position)
        line += text.count("\n", start, position)
        if position == len(text):
            text, position = next(pieces, ""), 0
            if not text:
                return
        elif not is_begun:
            is_begun, is_list = True, text[position] == "["
            position += is_list
        elif is_list and text[position] == "]":
            return
        else:
            try:
                value, end = _decoder.raw_decode(text, position)
            except (ValueError, RecursionError) as error:
                if more := _more(error, text, position, pieces):
                    text, position = text[position:] + more, 0
                    continue
                reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
                if is_list:
                    what = f"the JSON is damaged ({reason}): {number} entries before the damage were read"
                    file.warn(number + 1, what, "entry")
                    return
                file.warn(line, f"left out: not JSON ({reason}); it begins {text[position : position + 60]!r}", "entry")
                end = text.find("\n", position)
                position = end if end >= 0 else len(text)
                continue
            number += 1
            if too_deep(value):
                file.warn(number if is_list else line, f"left out: nested deeper than {DEEPEST} levels", "entry")
            else:
                yield Line(number if is_list else line, value)
            line += text.count("\n", position, end)
            position = end


def _behind_gap(text: str, position: int) -> int:
    gap = _GAP.match(text, position)
    return gap.end() if gap else position


def _more(error: Exception, text: str, position: int, pieces: Iterator[str]) -> str:
    """More text, at least as much as there is, if a value only fails as its end is not there yet; else ""."""
    if not isinstance(error, json.JSONDecodeError):
        return ""
    is_cut = error.msg.startswith("Unterminated") or error.pos > len(text) - 16
    return "".join(islice(pieces, 1 + (len(text) - position) // _PIECE)) if is_cut else ""


def _texts(file: Transcript) -> Iterator[str]:
    """The text of a file, piece by piece. Bytes that are not UTF-8 are read as U+FFFD, with a warning."""
    if file.path is None or not file.path.is_file():
        yield file.data.decode("utf-8", "replace")
        return
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    replaced = 0
    with file.path.open("rb") as stream:
        while piece := stream.read(_PIECE):
            if stream.tell() == len(piece) and piece.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                yield file.data.decode("utf-8", "replace")
                return
            text = decoder.decode(piece)
            replaced += text.count("\ufffd") - piece.count(b"\xef\xbf\xbd")
            yield text
    if replaced > 0:
        file.warn(0, "bytes that are not UTF-8 were read as U+FFFD")
    yield decoder.decode(b"", True)
