"""JSON that stands as text: which of its pieces secrets lie in, so that it stays JSON without them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..log.messages import compact_json

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
_OPENED = re.compile(r'"(?:[^"\\]++|\\.)*+(?P<end>"|\\?\Z)|[{}\[\]]', re.DOTALL)
_CUT_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*(?P<escape>\\(?:u[0-9A-Fa-f]{0,3})?)\Z")
_CLOSING = {"{": "}", "[": "]"}
_REST_OF_WORD = ("", "null", '"":null', ":null", "0", *(w[n:] for w in ("true", "false", "null") for n in range(1, 5)))
"""What may be missing of JSON that breaks off between texts, ahead of the brackets that close it."""
_COLON = re.compile(r"\s*:")
_ESCAPE = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|.)", re.DOTALL)


class Cut(NamedTuple):
    """A part of JSON text that a mark takes the place of: of which finding, from where to where, and whether it
    stands in a string. What does not is a whole scalar."""

    finding: int
    start: int
    end: int
    quoted: bool


class Begun(NamedTuple):
    """What JSON text that breaks off says so far: its value with what is `missing` behind it, brackets last."""

    value: Any
    missing: str
    brackets: str

    def text(self, value: Any) -> str:
        """This value in the place of the other, as JSON text that breaks off where that did."""
        whole = compact_json(value)
        behind = self.missing if whole.endswith(self.missing) else self.brackets
        return whole.removesuffix(behind)


def begun(text: str) -> Begun | None:
    """What an object or array in JSON says of which the end has not come; None if `text` is none."""
    if text.lstrip()[:1] not in _CLOSING:
        return None
    open_brackets: list[str] = []
    in_string = False
    for token in _OPENED.finditer(text):
        char = token[0][0]
        in_string = char == '"' and token["end"] != '"'
        if char in _CLOSING:
            open_brackets.append(_CLOSING[char])
        elif char in "}]" and (not open_brackets or open_brackets.pop() != char):
            return None
    brackets = "".join(reversed(open_brackets))
    if in_string and (cut := _CUT_ESCAPE.search(text)):
        text = text[: cut.start("escape")]
    endings = ('"', '":null') if in_string else _REST_OF_WORD if brackets else ()
    for ending in endings:
        try:
            value = read(text + ending + brackets)
            compact_json(value)  # is asked for later, of values that are not too deep
        except (ValueError, RecursionError):
            continue
        return Begun(value, ending + brackets, brackets)
    return None


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
