"""Finds the parts of JSON text to replace so that the text is still JSON without its secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .._platform.lazy import lazy_pattern
from ..log.messages import compact_json

EXACT = frozenset(
    "id call_id item_id tool_call_id tool_use_id file_id response_id previous_response_id signature "
    "thought_signature thoughtSignature encrypted_content encryptedContent encrypted_index sha256 "
    "system_fingerprint".split()
)
"""Texts under these keys are a provider's own: ids, proofs and ciphertexts that must be returned byte for byte."""
ARGUMENTS = frozenset(("args", "arguments", "input"))
"""An object under one of these keys contains the arguments of a tool; in it, no key is the provider's."""
MARK = "[redacted:"
"""The beginning of a mark."""

_TOKEN = lazy_pattern(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s"{}\[\],:]++', re.DOTALL)
_OPENED = lazy_pattern(r'"(?:[^"\\]++|\\.)*+(?P<end>"|\\?\Z)|[{}\[\]]', re.DOTALL)
_CUT_ESCAPE = lazy_pattern(r"(?<!\\)(?:\\\\)*(?P<escape>\\(?:u[0-9A-Fa-f]{0,3})?)\Z")
_CLOSING = {"{": "}", "[": "]"}
_REST_OF_WORD = ("", "null", '"":null', ":null", "0", *(w[n:] for w in ("true", "false", "null") for n in range(1, 5)))
"""What may be missing at the end of JSON that breaks off outside a string, before the closing brackets."""
_COLON = lazy_pattern(r"\s*:")
_ESCAPE = lazy_pattern(r"\\(?:u[0-9A-Fa-f]{4}|.)", re.DOTALL)


class Cut(NamedTuple):
    """A part of JSON text to replace with a mark: the index of its finding, its start and end, and whether it is inside
    a string. If not, it is a whole scalar."""

    finding: int
    start: int
    end: int
    quoted: bool


class Begun(NamedTuple):
    """Incomplete JSON text: its value when `missing` is added to it. `missing` ends with `brackets`."""

    value: Any
    missing: str
    brackets: str

    def text(self, value: Any) -> str:
        """The JSON text of another value, broken off at the same place."""
        whole = compact_json(value)
        behind = self.missing if whole.endswith(self.missing) else self.brackets
        return whole.removesuffix(behind)


def begun(text: str) -> Begun | None:
    """The content of an incomplete object or array in JSON; None if `text` is not one."""
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
            compact_json(value)  # needed later; raises an error for values that are nested too deeply
        except (ValueError, RecursionError):
            continue
        return Begun(value, ending + brackets, brackets)
    return None


def cuts(text: str, spans: Sequence[tuple[int, int]], *, ids: bool) -> list[Cut]:
    """The parts of these `spans` of JSON text that are in its strings, keys and scalars, in order. `spans` must be in
    order.

    With `ids`, texts under the keys in `EXACT` are skipped. An escape is always cut out as a whole, and so is a number.
    """
    parts: list[Cut] = []
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
                parts.append(Cut(number, max(cut[0], place), cut[1], quoted))
                place = cut[1]
    return parts


def decoded(text: str) -> str:
    """The text that a part of a JSON string represents; `text` itself if it is not valid."""
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text


def read(text: str) -> Any:
    """The value of JSON text. If marks made two keys equal, both are kept, the second with another spelling. Raises
    ValueError and RecursionError as `json.loads`."""

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        held: dict[str, Any] = {}
        for key, value in pairs:
            held[apart_by(key, held) if MARK in key else key] = value
        return held

    return json.loads(text, object_pairs_hook=made)


def apart_by(key: str, held: dict[str, Any]) -> str:
    """`key`, changed until it differs from all keys in `held`."""
    while key in held:
        key += "'"
    return key


def _pieces(text: str, *, ids: bool) -> Iterator[tuple[int, int, bool]]:
    """The start and end of each string (quotes included) and scalar, and whether it is a string. Those that must stay
    are left out."""
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
    """A part of the string that begins at `string`, extended so that it contains no incomplete escape."""
    for escape in _ESCAPE.finditer(text, string + 1):
        if escape.start() >= end:
            break
        if escape.end() > start:
            start, end = min(start, escape.start()), max(end, escape.end())
    return start, end
