"""The file of a transcript: its bytes, the JSON values in them, and its damage."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import DecodeError, Struct
from msgspec.json import Decoder as JSONDecoder

from .._platform.lazy import cached_property, lazy_pattern
from .._platform.texts import plain_utf8
from .._platform.units import an, counted
from ..errors import ImportFailed
from ..log.messages import sha256_hex
from .protocol import Damage, Lost, Origin, contents, origin_name

DEEPEST = 200
"""No transcript is nested nearly as deeply as this; deeper values could make recursive code fail."""

_decoder = json.JSONDecoder()
_quick_decoder = JSONDecoder()
_NOT_SO = object()
_GAP = lazy_pattern(r"[\s,\0]*")


class Line(Struct, frozen=True):
    """A JSON value and the number of its line, from 1; 0 for a value inside a document."""

    number: int
    value: Any


class Transcript:
    """One file of a transcript. Damaged parts become warnings, and the rest is read.

    `path` is None if only the bytes are known; `name` is the name of the file in messages.
    """

    def __init__(self, origin: Origin) -> None:
        self.path = origin if isinstance(origin, Path) else None
        self.name = origin_name(origin)
        self.warnings: list[Damage] = []
        self._is_padded = False
        self._origin = origin

    @cached_property
    def data(self) -> bytes:
        """The bytes of the file, in UTF-8. Raises ImportFailed if it cannot be read."""
        return plain_utf8(contents(self._origin))

    @property
    def digest(self) -> str:
        """The id of a transcript that has none: the whole file's, which changes when it grows."""
        return sha256_hex(self.data)[:16]

    def warn(self, line: int, message: str, lost: Lost = "part") -> None:
        """Report damage on a line (0: the whole file), and what is lost by it."""
        self.warnings.append(Damage(self.name, line, message, lost))

    def refused(self, missing: str, advice: str) -> ImportFailed:
        """The error for a file that contains no part that its format requires."""
        reason = f" ({self.warnings[0].message})" if self.warnings else ""
        return ImportFailed(f"{self.name}: no {missing} in it{reason}; {advice}")

    def lines(self, *, among_text: bool = False) -> Iterator[Line]:
        """Every JSON value of a JSON-lines file, in order.

        Blank lines, CRLF, and several values on one line (an append after a crash) are accepted. NUL bytes (left by
        file systems after a power cut) and bytes that are not UTF-8 are reported, and the rest of the line is read if
        it still is JSON. With `among_text`, other programs may print between: lines without an object are counted in
        one warning, and text before an object is passed over.
        """
        plain: list[int] = []
        for number, raw in enumerate(self.data.split(b"\n"), 1):
            stripped = raw.strip()
            if b"\0" in stripped:
                stripped = stripped.replace(b"\0", b"").strip()
                self.warn(number, "NUL bytes left out", "nothing")
            if among_text and stripped[:1] != b"{":
                start = stripped.find(b'{"')
                if start < 0:
                    plain += [number] if stripped else []
                    continue
                stripped = stripped[start:]
            if (value := _quickly(stripped)) is not _NOT_SO:
                yield Line(number, value)
                continue
            try:
                text = stripped.decode("utf-8")
            except UnicodeDecodeError:
                text = stripped.decode("utf-8", "replace")
                self.warn(number, "bytes that are not UTF-8 were read as U+FFFD")
            yield from self._values(text, number)
        if plain:
            what = f"not read: {counted(len(plain), 'line')} of text that no agent wrote, the first here"
            self.warnings.append(Damage(self.name, plain[0], what, "nothing", len(plain)))

    def _values(self, text: str, number: int) -> Iterator[Line]:
        position = 0
        while position < len(text):
            try:
                value, end = _decoder.raw_decode(text, position)
            except (ValueError, RecursionError) as error:
                reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
                start = text[position : position + 60]
                self.warn(number, f"left out: not JSON ({reason}); it begins {start!r}")
                return
            position = end
            if too_deep(value):
                self.warn(number, f"left out: nested deeper than {DEEPEST} levels")
            else:
                yield Line(number, value)
            while position < len(text) and text[position].isspace():
                position += 1

    def entries(self, kind: str, *keys: str) -> list[Line]:
        """The objects of the file, as JSON lines, or in one document: the list that it is, or under the first of `keys`
        that it has. Positions in a document count from 1. In a damaged document, those before the damage."""
        start = self.data.lstrip(b"\0 \t\r\n")[:1]
        value = self.document_or_none()
        if value is None and (start == b"[" or not self._has_lines()):
            value = next(filter(None, map(self.document_or_rest, ("",) if start == b"[" else keys)), None)
        for key in keys if isinstance(value, dict) else ():
            if isinstance(value.get(key), list):
                value = value[key]
        if isinstance(value, list):
            return self.objects(kind, (Line(number, item) for number, item in enumerate(value, 1)))
        return self.objects(kind)

    def _has_lines(self) -> bool:
        """Whether a first line of the file is a JSON value of its own."""
        try:
            return json_document(self.data.strip().split(b"\n")[0]) is not None
        except ValueError:
            return False

    def objects(self, kind: str, values: Iterator[Line] | None = None) -> list[Line]:
        """The lines, or other `values` of the file, that are non-empty objects; anything else is damage. `kind` is the
        word for such an object in warnings."""
        objects: list[Line] = []
        for line in self.lines() if values is None else values:
            if isinstance(line.value, dict) and line.value:
                objects.append(line)
            else:
                self.warn(line.number, f"left out: {an(kind)} must be a JSON object", "entry")
        return objects

    def document(self) -> Any:
        """The single JSON value of the file, without NUL bytes that a power cut left behind it. Raises ValueError."""
        data = self.data.rstrip(b"\0 \t\r\n")
        value = json_document(data)
        if b"\0" in self.data[len(data) :] and not self._is_padded:
            self._is_padded = True
            self.warn(0, "NUL bytes left out", "nothing")
        return value

    def document_or_none(self) -> Any:
        """The single JSON value of the file, None if the file does not contain exactly one."""
        return self._whole

    @cached_property
    def _whole(self) -> Any:
        try:
            return self.document()
        except ValueError:
            return None

    def whole_document(self, kind: str) -> Any:
        """The single JSON value of the file. Raises ImportFailed."""
        try:
            return self.document()
        except ValueError as error:
            raise ImportFailed(
                f"{self.name}: the JSON is damaged or cut off ({error}); {an(kind)} is one JSON document: copy the "
                "file again"
            ) from error

    def document_or_rest(self, key: str) -> Any:
        """The single JSON value of the file. If it is damaged, the items before the damage of the list at `key`, as
        `{key: [...]}`; with an empty `key`, of the list that is the document itself. None if there are none."""
        try:
            return self.document()
        except ValueError as error:
            reason = str(error)
        text = self.data.decode("utf-8", "replace")
        start = re.search(rf'"{re.escape(key)}"\s*:\s*\[' if key else r"\A[\s\0]*\[", text)
        if start is None:
            return None
        entries: list[Any] = []
        position = start.end()
        while True:
            gap = _GAP.match(text, position)
            position = gap.end() if gap else position
            try:
                _, end = _decoder.raw_decode(text, position)
                entries.append(json_document(text[position:end].encode("utf-8", "surrogatepass")))
            except (ValueError, RecursionError):
                break
            position = end
        if not entries:
            return None
        line = text.count("\n", 0, position) + 1
        self.warn(line, f"the JSON is damaged ({reason}): {len(entries)} entries before the damage were read")
        return {key: entries} if key else entries


def _quickly(data: bytes) -> Any:
    """The single JSON value in `data`; `_NOT_SO` if there may be none, or one that msgspec does not take as `json` does
    (NaN, 1e999, lone surrogates, several values), or one that is nested too deeply."""
    try:
        value = _quick_decoder.decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return _NOT_SO
    if data.count(b"[") + data.count(b"{") >= DEEPEST and too_deep(value):
        return _NOT_SO
    return value


def json_document(data: bytes) -> Any:
    """The single JSON value in `data`. Raises ValueError."""
    plain = plain_utf8(data)
    if (value := _quickly(plain)) is not _NOT_SO:
        return value
    try:
        value = json.loads(plain.decode("utf-8"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if too_deep(value):
        raise ValueError(f"nested deeper than {DEEPEST} levels")
    return value


def too_deep(value: Any) -> bool:
    """Whether a value is nested deeper than any transcript is."""
    level = [value]
    for _ in range(DEEPEST):
        deeper = [item for item in level if isinstance(item, (dict, list))]
        if not deeper:
            return False
        level = [inner for item in deeper for inner in (item.values() if isinstance(item, dict) else item)]
    return True
