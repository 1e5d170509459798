"""JSON that stands as text: which of its pieces secrets lie in, so that it stays JSON without them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

__all__ = ["ARGUMENTS", "Cut", "EXACT", "MARK", "apart_by", "cuts", "decoded", "read"]

EXACT = frozenset(
    "id call_id item_id tool_call_id tool_use_id file_id response_id previous_response_id signature "
    "thought_signature thoughtSignature encrypted_content encryptedContent encrypted_index sha256 "
    "system_fingerprint".split()
)
"""Texts under these keys are a provider's own: ids, proofs and ciphers that have to come back byte for byte."""
ARGUMENTS = frozenset(("args", "arguments", "input"))
"""An object under one of these keys is what a tool was called with: in it, no key is the provider's."""
MARK = "[redacted:"
"""How a mark begins."""

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s"{}\[\],:]++', re.DOTALL)
_COLON = re.compile(r"\s*:")
_ESCAPE = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|.)", re.DOTALL)


class Cut(NamedTuple):
    """A part of JSON text that a mark takes the place of: of which finding, from where to where, and whether it
    stands in a string. What does not is a whole scalar."""

    finding: int
    start: int
    end: int
    quoted: bool


def cuts(text: str, spans: Sequence[tuple[int, int]], *, ids: bool) -> list[Cut]:
    """What of these `spans` of JSON text lies in its strings, keys and scalars, in order; the spans are too.

    With `ids`, texts under the keys of `EXACT` have none. An escape is cut out as a whole, and so is a number.
    """
    found: list[Cut] = []
    first = place = 0
    for start, end, quoted in _pieces(text, ids=ids):
        while first < len(spans) and spans[first][1] <= start:
            first += 1
        for number in range(first, len(spans)):
            if spans[number][0] >= end:
                break
            cut = start, end
            if quoted:
                begun, ended = max(start + 1, spans[number][0], place), min(end - 1, spans[number][1])
                cut = _with_escapes(text, start, begun, ended) if begun < ended else (place, place)
            if max(cut[0], place) < cut[1]:
                found.append(Cut(number, max(cut[0], place), cut[1], quoted))
                place = cut[1]
    return found


def decoded(text: str) -> str:
    """What a part of a JSON string says; `text` itself if it is none."""
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text


def read(text: str) -> Any:
    """The value of JSON text. Keys that read the same because marks stand in them stay two. Raises ValueError and
    RecursionError as `json.loads`."""

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        held: dict[str, Any] = {}
        for key, value in pairs:
            held[apart_by(key, held) if MARK in key else key] = value
        return held

    return json.loads(text, object_pairs_hook=made)


def apart_by(key: str, held: dict[str, Any]) -> str:
    """`key`, spelled as none of those that are `held` already."""
    while key in held:
        key += "'"
    return key


def _pieces(text: str, *, ids: bool) -> Iterator[tuple[int, int, bool]]:
    """Where strings, with their quotes, and scalars begin and end, without those that have to stay."""
    around: list[bool] = []
    name = ""
    for token in _TOKEN.finditer(text):
        start, end = token.span()
        char = text[start]
        if char == ":":
            continue
        if char == '"' and _COLON.match(text, end):
            yield start, end, True
            name = decoded(text[start + 1 : end - 1])
            continue
        if char in "{[":
            around.append(ids)
            ids = ids and not (char == "{" and name in ARGUMENTS)
        elif char in "}]":
            ids = around.pop() if around else ids
        elif char != "," and not (char == '"' and ids and name in EXACT):
            yield start, end, char == '"'
        name = ""


def _with_escapes(text: str, string: int, start: int, end: int) -> tuple[int, int]:
    """A part of a string that begins at `string`, with the whole of each escape that it has a part of."""
    for escape in _ESCAPE.finditer(text, string + 1):
        if escape.start() >= end:
            break
        if escape.end() > start:
            start, end = min(start, escape.start()), max(end, escape.end())
    return start, end
