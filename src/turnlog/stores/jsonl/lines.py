"""The lines of a log: how they are written, read and checked, where a log ends, and which lines are incomplete appends.

    {"sum":"<64 hex>","messages":12,"left":0,"record":{...}}

`record` is the encoded record, byte for byte. `messages` counts the messages up to and including this record; `left` is
the number of lines of the same append that follow. `sum` is the SHA-256 of the previous sum, the two numbers and the
bytes of the record; so a line that is changed, moved or lost is detected. A record with a line break in its bytes, or
that is not UTF-8, is written as `base64`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from ..._platform.lazy import lazy_pattern
from ...errors import CorruptRecord
from ...log.codec import decode_record
from ...log.records import Record
from ..records import numbered

_CHUNK_BYTES = 1 << 16
_PREFIX = lazy_pattern(
    rb'\{"sum":"([0-9a-f]{64})","messages":(0|[1-9][0-9]*),"left":(0|[1-9][0-9]*),"(record|base64)":'
)


class StoredLine(NamedTuple):
    """A line as read from a file; its sum is not checked yet."""

    sum: str
    messages: int
    left: int
    raw: bytes


class Tail(NamedTuple):
    """The end of a log: how many bytes it has, its last record, and the sum and count of messages there.

    `size` is where the last complete append ends; bytes after it are an incomplete append. `damaged`: some of the last
    lines cannot be read, so only the number of records may be right. `lost` is how many records at the end were written
    and are missing in the file.
    """

    size: int
    records: int
    messages: int
    sum: str
    updated: str
    damaged: bool = False
    lost: int = 0

    @property
    def present(self) -> int:
        """The number of the last record that is in the file."""
        return self.records - self.lost

    def damage(self) -> CorruptRecord:
        """The error for a log that is `damaged`."""
        if self.lost:
            return CorruptRecord(missing(self.present + 1, self.records), record=self.present + 1)
        return CorruptRecord(f"record {self.records} cannot be read", record=self.records)


def digest(previous: str, messages: int, left: int, raw: bytes) -> str:
    """The sum of a line that follows a line with the sum `previous`."""
    return hashlib.sha256(b"%b %d %d %b" % (previous.encode(), messages, left, raw)).hexdigest()


def write_line(total: str, messages: int, left: int, raw: bytes) -> bytes:
    """A line with its line break."""
    kind, held = "record", raw
    if b"\n" in raw or b"\r" in raw or not _is_utf8(raw):
        kind, held = "base64", b'"%b"' % base64.b64encode(raw)
    return b'{"sum":"%b","messages":%d,"left":%d,"%b":%b}\n' % (total.encode(), messages, left, kind.encode(), held)


def read_line(line: bytes) -> StoredLine | None:
    """The line in these bytes (without a line break); None if they are not a line of a log."""
    match = _PREFIX.match(line)
    if match is None or not line.endswith(b"}"):
        return None
    raw = line[match.end() : -1]
    if match[4] == b"base64":
        try:
            raw = base64.b64decode(raw[1:-1], validate=True)
        except ValueError:
            return None
        if b'"%b"' % base64.b64encode(raw) != line[match.end() : -1]:
            return None
    return StoredLine(match[1].decode(), int(match[2]), int(match[3]), raw)


def is_base64(line: bytes) -> bool:
    """Whether a line contains its record as base64."""
    return b',"base64":' in line[:200]


def checked(n: int, previous: str, line: StoredLine | None) -> Record:
    """Record `n`, which is in `line`; `previous` is the sum before it. Raises CorruptRecord."""
    if line is None:
        raise CorruptRecord(f"record {n} cannot be read: its line is damaged", record=n)
    if digest(previous, line.messages, line.left, line.raw) != line.sum:
        raise CorruptRecord(f"record {n} does not match its checksum", record=n)
    return numbered(n, line.raw)


def missing(first: int, last: int) -> str:
    """The problem of records that were written at the end of a log and are missing."""
    return (
        f"record {first} was written and is missing"
        if first == last
        else f"records {first} to {last} were written and are missing"
    )


def lines_forwards(file: BinaryIO, end: int, *, skip: int = 0, start: int = 0) -> Iterator[bytes]:
    """The lines of a file from byte `start` to `end`, without line breaks and without the first `skip` lines."""
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
    """The lines in the first `end` bytes of a file, the last first, each with the position where it begins.

    The last byte must be a line break.
    """
    place, rest = end, b""
    while place:
        size = min(max(_CHUNK_BYTES, len(rest)), place)
        place -= size
        file.seek(place)
        rest = file.read(size) + rest
        *lines, _ = rest.split(b"\n")
        start, skipped = place + len(rest), 1 if place else 0
        for line in reversed(lines[skipped:]):
            start -= len(line) + 1
            yield start, line
        rest = lines[0] + b"\n"


def find_tail(file: BinaryIO, size: int, start: Tail, *, shortened: bool = False) -> Tail:
    """The end of the log in the first `size` bytes of a file; `start` is the end of an empty log.

    An incomplete append is not counted, unless the log was `shortened` on purpose. Unreadable lines at the end are
    counted, because each was a record.
    """
    end, damaged = _end_of_lines(file, size), 0
    for begins, held in lines_backwards(file, end):
        line = read_line(held)
        n = line and _number(line.raw)
        if line is None or n is None:
            damaged += 1
        elif line.left and not damaged and not shortened:  # the other lines of its append are missing
            end = begins
        else:
            time = decode_record(line.raw).time
            return Tail(end, n + damaged, line.messages, line.sum, time, bool(damaged))
    return start._replace(size=end, records=start.records + damaged, damaged=bool(damaged))


def _end_of_lines(file: BinaryIO, size: int) -> int:
    """The position after the last line break in the first `size` bytes."""
    place = size
    while place:
        piece = min(_CHUNK_BYTES, place)
        file.seek(place - piece)
        line_break = file.read(piece).rfind(b"\n")
        place -= piece
        if line_break >= 0:
            return place + line_break + 1
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
