"""A log as lines of a file: how a line is made and read, where a file ends, what is torn.

    {"sum":"<64 hex>","messages":12,"left":0,"record":{...}}

`record` is the encoded record byte for byte. `messages` counts the messages up to it, `left` the
lines of the same append that follow. `sum` is the SHA-256 of the sum before, the two numbers and
the bytes of the record, so that a line that is changed, moved or lost shows. A record whose bytes
hold a line break, or are no UTF-8, stands as `base64`.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from ...errors import CorruptRecord
from ...log.codec import decode_record
from ...log.records import Record
from ..records import numbered

_CHUNK_BYTES = 1 << 16
_PREFIX = re.compile(rb'\{"sum":"([0-9a-f]{64})","messages":(0|[1-9][0-9]*),"left":(0|[1-9][0-9]*),"(record|base64)":')


class Line(NamedTuple):
    """A line as it stands in a file, not yet compared with its sum."""

    sum: str
    messages: int
    left: int
    raw: bytes


class Tail(NamedTuple):
    """The end of a log: its last record and the sum and count there, and how many bytes hold it.

    `size` is where the last whole append ends; what follows is torn. `damaged`: lines were there
    that nobody can read, so that the number may be all that is known.
    """

    size: int
    records: int
    messages: int
    sum: str
    updated: str
    damaged: bool = False


def digest(previous: str, messages: int, left: int, raw: bytes) -> str:
    """The sum of a line after the one with the sum `previous`."""
    return hashlib.sha256(b"%b %d %d %b" % (previous.encode(), messages, left, raw)).hexdigest()


def write_line(total: str, messages: int, left: int, raw: bytes) -> bytes:
    """A line with its line break."""
    kind, held = "record", raw
    if b"\n" in raw or b"\r" in raw or not _is_utf8(raw):
        kind, held = "base64", b'"%b"' % base64.b64encode(raw)
    return b'{"sum":"%b","messages":%d,"left":%d,"%b":%b}\n' % (total.encode(), messages, left, kind.encode(), held)


def read_line(line: bytes) -> Line | None:
    """A line without its line break; None if it is none of ours."""
    found = _PREFIX.match(line)
    if found is None or not line.endswith(b"}"):
        return None
    raw = line[found.end() : -1]
    if found[4] == b"base64":
        try:
            raw = base64.b64decode(raw[1:-1], validate=True)
        except ValueError:
            return None
        if b'"%b"' % base64.b64encode(raw) != line[found.end() : -1]:
            return None
    return Line(found[1].decode(), int(found[2]), int(found[3]), raw)


def is_base64(line: bytes) -> bool:
    """Whether the bytes of a line's record cannot be read in it as they are."""
    return b',"base64":' in line[:200]


def checked(n: int, previous: str, line: Line | None) -> Record:
    """The record number `n` in `line`, where `previous` is the sum before. Raises CorruptRecord."""
    if line is None:
        raise CorruptRecord(f"record {n} cannot be read: its line is damaged", record=n)
    if digest(previous, line.messages, line.left, line.raw) != line.sum:
        raise CorruptRecord(f"record {n} does not match its checksum", record=n)
    return numbered(n, line.raw)


def lines_forwards(file: BinaryIO, end: int, *, skip: int = 0, start: int = 0) -> Iterator[bytes]:
    """The lines of a file from byte `start` to `end`, without their line breaks, after `skip` of them."""
    place, rest = start, b""
    while place < end:
        file.seek(place)
        chunk = file.read(min(max(_CHUNK_BYTES, len(rest)), end - place))
        if not chunk:
            return
        place += len(chunk)
        *lines, rest = (rest + chunk).split(b"\n")
        passed = min(skip, len(lines))
        skip -= passed
        yield from lines[passed:]


def lines_backwards(file: BinaryIO, end: int) -> Iterator[tuple[int, bytes]]:
    """The lines of the first `end` bytes of a file, the last first, each with the place where it begins.

    The last of the bytes has to be a line break.
    """
    place, rest = end, b""
    while place:
        size = min(max(_CHUNK_BYTES, len(rest)), place)
        place -= size
        file.seek(place)
        rest = file.read(size) + rest
        *lines, _ = rest.split(b"\n")
        start, kept = place + len(rest), 1 if place else 0
        for line in reversed(lines[kept:]):
            start -= len(line) + 1
            yield start, line
        rest = lines[0] + b"\n"


def find_tail(file: BinaryIO, size: int, start: Tail, *, shortened: bool = False) -> Tail:
    """The end of the log in the first `size` bytes of a file; `start` is what it is if there is none.

    An append that is not there whole does not count, unless the log was `shortened` on purpose. Where
    the last lines cannot be read, they are counted, since each was a record once.
    """
    end, damaged = _end_of_lines(file, size), 0
    for begins, held in lines_backwards(file, end):
        line = read_line(held)
        n = line and _number(line.raw)
        if line is None or n is None:
            damaged += 1
        elif line.left and not damaged and not shortened:  # the lines that should follow never came
            end = begins
        else:
            time = decode_record(line.raw).time
            return Tail(end, n + damaged, line.messages, line.sum, time, bool(damaged))
    return start._replace(size=end, records=start.records + damaged, damaged=bool(damaged))


def _end_of_lines(file: BinaryIO, size: int) -> int:
    """Where the last line break of the first `size` bytes ends."""
    place = size
    while place:
        piece = min(_CHUNK_BYTES, place)
        file.seek(place - piece)
        found = file.read(piece).rfind(b"\n")
        place -= piece
        if found >= 0:
            return place + found + 1
    return 0


def _number(raw: bytes) -> int | None:
    try:
        return decode_record(raw).n
    except CorruptRecord:
        return None


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
