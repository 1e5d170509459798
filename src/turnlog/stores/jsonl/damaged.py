"""Reads a damaged log of a JSONL store line by line, even if a line break is missing or added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from ..._platform.lazy import lazy_pattern
from ...errors import CorruptRecord
from ...log.codec import decode_record
from ...log.records import Record
from ...log.store import Problem
from ..damaged import WHOLE, StoredEntry, judged, number_of
from .files import LogFolder
from .lines import StoredLine, digest, read_line
from .reading import LogSegment

_BEGIN = lazy_pattern(rb'\{"sum":"[0-9a-f]{64}","messages":[0-9]{1,15},"left":[0-9]{1,15},"(?:record|base64)":')


_SUM = lazy_pattern(rb'\{"sum":"([0-9a-f]{64})"')


def mended(
    folder: LogFolder, session_id: str, segments: Sequence[LogSegment], first: int, last: int
) -> Iterator[Record | Problem]:
    """The records `first` to `last` of a session, with a Problem for each damaged one. Raises SessionNotFound if it is
    deleted meanwhile."""
    for segment in segments:
        if segment.first > last or segment.last < first:
            continue
        with folder.reading(segment.key) as (file, tail):
            try:
                file.seek(0)
                data = file.read(tail.size)
            except CorruptRecord as error:  # a compressed log is damaged as a whole
                for n in range(max(first, segment.first), min(last, segment.last) + 1):
                    yield Problem(session_id, n, str(error))
                continue
        after = tail.sum.encode() if tail.records == segment.last and not tail.damaged else None
        entries, torn = _entries(data, segment.first, tail.records)
        records = judged(session_id, entries[: segment.last - segment.first + 1], segment.start.encode(), after)
        if first <= torn <= min(last, segment.last):
            yield Problem(session_id, torn, WHOLE)
        yield from (record for record in records if first <= number_of(record) <= last)


def _entries(data: bytes, first: int, last: int) -> tuple[list[StoredEntry], int]:
    """The entries of records `first` to `last`, which are all records of a log; and the first intact record without a
    line of its own, 0 if there is none."""
    lines = data.removesuffix(b"\n").split(b"\n")
    if len(lines) == last - first + 1 and all(map(_is_one, lines)):
        return [_entry(n, held, read_line(held)) for n, held in enumerate(lines, first)], 0
    whole_lines = _by_number(lines)
    pieces = _by_number(_pieces(data))
    torn = min((n for n in pieces.keys() - whole_lines.keys() if first <= n <= last), default=0)
    return [_entry(n, b"", whole_lines.get(n) or pieces.get(n)) for n in range(first, last + 1)], torn


def _by_number(lines: Iterable[bytes]) -> dict[int, StoredLine]:
    """The readable lines by the number of their record; of several with one number, the first."""
    first_lines: dict[int, StoredLine] = {}
    for line in filter(None, map(read_line, lines)):
        first_lines.setdefault(_number(line.raw), line)
    return first_lines


def _is_one(held: bytes) -> bool:
    """Whether a line holds at most one record."""
    line = read_line(held)
    return line is None or len(_BEGIN.findall(held)) == 1 or bool(_number(line.raw))


def _pieces(data: bytes) -> Iterator[bytes]:
    """The text from each apparent beginning of a line to the next: without its last byte, in the place of the line
    break, and again only up to its first line break."""
    begins = [match.start() for match in _BEGIN.finditer(data)]
    for begin, end in pairwise([*begins, len(data) + 1]):
        yield data[begin : end - 1]
        yield data[begin:end].partition(b"\n")[0]


def _entry(n: int, held: bytes, line: StoredLine | None) -> StoredEntry:
    if line is None:
        total = _SUM.match(held)
        return StoredEntry(n, None, total[1] if total else None)
    return StoredEntry(n, line.raw, line.sum.encode(), lambda before: _digest(before, line))


def _digest(before: bytes, line: StoredLine) -> bytes:
    return digest(before.decode(), line.messages, line.left, line.raw).encode()


def _number(raw: bytes) -> int:
    try:
        return decode_record(raw).n
    except CorruptRecord:
        return 0
