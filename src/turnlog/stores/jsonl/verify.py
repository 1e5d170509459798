"""Verifies a JSONL store: derives again everything that can be derived, and compares it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from ...errors import CorruptRecord, SessionNotFound, StoreError
from ...log.codec import decode_record
from ...log.records import Record
from ...log.store import Inventory, Problem, StoredPiece
from ..blobs import BlobCheck, BlobFolder, named
from ..damaged import WHOLE, StoredEntry, judged, number_of
from ..folders import is_full
from ..records import blob_names, check_expected, damage_in, is_said, numbered
from . import labels
from .files import LogFolder, SessionFile, start_sum
from .lines import StoredLine, checked, digest, lines_forwards, missing, read_line
from .packs import beside, open_packed, size_of
from .reading import LogSegment, line_at, segments_of
from .rewrite import clear_half_done, half_made
from .torn import lost_before

# -- the inventory of a JSONL store, deleting sessions, and removing what killed processes left ----


def delete(folder: LogFolder, stem: str, expected: int | None) -> None:
    """See `Store.delete`. The caller must hold the store's lock."""
    card = folder.card(stem)
    gone = replace(card, title="", parent="", deleted=True)
    try:
        # The lock waits for an append that is under way; the next append reads the new card.
        with folder.opened(stem, write=False) as file:  # with write=True, a packed log would be unpacked
            check_expected(card.session, expected, folder.tail(stem, file, card).records)
            _mark(folder, stem, gone)
    except FileNotFoundError:  # the log file was removed by hand
        folder.write_card(stem, gone)
    labels.forget(folder, stem)
    with suppress(FileNotFoundError):  # then there is nothing that forks could need
        folder.prune(stem)
    clear_half_done(folder)


def _mark(folder: LogFolder, stem: str, gone: SessionFile) -> None:
    """Write the card of a deleted session. On a full disk, its other files that the forks do not need make room."""
    try:
        folder.write_card(stem, gone)
    except StoreError as error:
        if not is_full(error.__cause__):
            raise
        for kind in ("torn", "head"):
            folder.file(stem, kind).unlink(missing_ok=True)
        folder.write_card(stem, gone)


def inventory(folder: LogFolder, blob_files: BlobFolder, in_use: frozenset[str] | None) -> Inventory:
    """See `Store.inventory`. Reads all logs."""
    blobs = {name: put.size for name, put in blob_files.puts().items()}
    pieces, readers, kept = {}, dict[str, set[str]](), set()
    for stem in folder.stems():
        card = folder.card(stem)
        owner = "" if card.deleted else card.session
        names = set[str]()
        with suppress(FileNotFoundError):  # a killed process has deleted it only in part
            for raw in _records_in(folder.file(stem)):
                names |= named(raw, blobs)
        if owner:
            with folder.reading(stem) as (_, tail):
                pass
            for segment in segments_of(folder, stem, card, tail.records):
                readers.setdefault(segment.key, set()).add(owner)
            if folder.file(stem, "kept").exists():
                kept.add(owner)
        pieces[stem] = StoredPiece(owner, frozenset(), folder.size(stem), frozenset(names))
    found = (replace(piece, readers=frozenset(readers.get(stem, ()))) for stem, piece in pieces.items())
    return Inventory(tuple(found), blobs, frozenset(kept), in_use)


def clear_up(folder: LogFolder) -> None:
    """Remove what killed processes left: logs of sessions that were being deleted, and files that were being
    written."""
    for stem in folder.stems():
        with suppress(FileNotFoundError):  # removed together with a log that was based on it
            if folder.card(stem).deleted:
                folder.prune(stem)
    clear_half_done(folder)


def records_of(folder: LogFolder) -> Iterator[bytes]:
    """The bytes of every record, including damaged ones and those in logs without a card. Raises CorruptRecord for a
    damaged pack."""
    for path in sorted(folder.sessions.glob("*.jsonl")):
        yield from _records_in(path)


def _records_in(log: Path) -> Iterator[bytes]:
    with open_packed(log) or log.open("rb") as file:
        for held_line in lines_forwards(file, size_of(file)):
            line = read_line(held_line)
            yield held_line if line is None else line.raw


# -- the records of a damaged log of a JSONL store, line by line, also where a line break is lo ----

_BEGIN = re.compile(rb'\{"sum":"[0-9a-f]{64}","messages":[0-9]{1,15},"left":[0-9]{1,15},"(?:record|base64)":')
_SUM = re.compile(rb'\{"sum":"([0-9a-f]{64})"')


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
        found = judged(session_id, entries[: segment.last - segment.first + 1], segment.start.encode(), after)
        if first <= torn <= min(last, segment.last):
            yield Problem(session_id, torn, WHOLE)
        yield from (one for one in found if first <= number_of(one) <= last)


def _entries(data: bytes, first: int, last: int) -> tuple[list[StoredEntry], int]:
    """What stands in the places of records `first` to `last`, which are all records of a log; and the first record that
    has no line of its own although it is whole, 0 if there is none."""
    lines = data.removesuffix(b"\n").split(b"\n")
    if len(lines) == last - first + 1 and all(map(_is_one, lines)):
        return [_entry(n, held, read_line(held)) for n, held in enumerate(lines, first)], 0
    found = _by_number(lines)
    pieces = _by_number(_pieces(data))
    torn = min((n for n in pieces.keys() - found.keys() if first <= n <= last), default=0)
    return [_entry(n, b"", found.get(n) or pieces.get(n)) for n in range(first, last + 1)], torn


def _by_number(lines: Iterable[bytes]) -> dict[int, StoredLine]:
    """The lines that can be read, each by the number of its record; of several with one number, the first."""
    found: dict[int, StoredLine] = {}
    for line in filter(None, map(read_line, lines)):
        found.setdefault(_number(line.raw), line)
    return found


def _is_one(held: bytes) -> bool:
    """Whether a line holds at most one record."""
    line = read_line(held)
    return line is None or len(_BEGIN.findall(held)) == 1 or bool(_number(line.raw))


def _pieces(data: bytes) -> Iterator[bytes]:
    """The pieces of a log between what look like the beginnings of lines, each without the byte after its last brace,
    which was a line break; and each up to its first line break."""
    begins = [found.start() for found in _BEGIN.finditer(data)]
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


def verify_folder(folder: LogFolder, blobs: BlobFolder, stem: str | None) -> list[Problem]:
    """The damage in the whole store; or in one session, the records it shares, and the blobs it needs."""
    check = _Check(folder, blobs)
    if stem is None:
        for found in folder.stems():
            check.log(found, None)
        check.strays()
        check.problems += check.blobs.rest()
    else:
        check.session(stem)
    return check.problems


class _Check:
    """One verification of a store: collects problems."""

    def __init__(self, folder: LogFolder, blobs: BlobFolder) -> None:
        self.problems: list[Problem] = []
        self.blobs = BlobCheck(blobs.names(), blobs.get)
        self._folder = folder

    def session(self, stem: str) -> None:
        """Check one session with all records that it shares."""
        name = stem.partition("~")[0]
        try:
            card = self._folder.card(stem)
            with self._folder.reading(stem) as (_, tail):
                segments = segments_of(self._folder, stem, card, tail.records)
            for segment in segments:
                if segment.key != stem:
                    self.log(segment.key, card.session, last=segment.last)
        except (CorruptRecord, SessionNotFound) as error:
            self._add(name, 0, str(error))
        self.log(stem, None)

    def log(self, stem: str, name: str | None, *, last: int | None = None) -> None:
        """Check the log of a stem and its card. Problems are reported for the session `name`, or for the log's own
        session."""
        try:
            card = self._folder.card(stem)
            session = name or card.session
            with self._folder.opened(stem, write=False) as file:
                tail = self._folder.tail(stem, file, card)
                torn = self._folder.torn_end(stem, file, card, tail)
                if torn is not None and name is None:
                    self._add(session, torn.record, torn.what)
                if name is None:
                    self.problems += lost_before(self._folder.file(stem, "torn"), session)
                if self._folder.file(stem, "head").exists() and self._folder.head(stem) is None:
                    self._add(session, 0, f"{self._folder.file(stem, 'head')} cannot be read")
                if name is None and (held := beside(self._folder.file(stem), file)):
                    what = f"{self._folder.file(stem)} has {len(held)} bytes that the packed log does not contain"
                    self._add(session, 0, what)
                lines = list(lines_forwards(file, tail.size))
        except FileNotFoundError:
            if name is None and self._half_deleted(stem):
                return
            self._add(name or stem.partition("~")[0], 0, f"{self._folder.file(stem)} is missing")
            return
        except CorruptRecord as error:
            self._add(name or stem.partition("~")[0], 0, str(error))
            return
        if name is None:
            self._start(stem, card)
        total, messages, n = self._lines(session, card, lines, last)
        if last is not None and n < last:
            self._add(session, n + 1, missing(n + 1, last))
        if last is None and (n, messages, total) != (tail.records, tail.messages, tail.sum) and not tail.damaged:
            self._add(session, max(n, tail.records), "the last record is not the one that was acknowledged")

    def _half_deleted(self, stem: str) -> bool:
        """Whether a log is missing because a process was killed while it deleted the session. Forks that need the log
        are reported separately."""
        with suppress(FileNotFoundError, CorruptRecord):
            return self._folder.card(stem).deleted
        return False

    def _start(self, stem: str, card: SessionFile) -> None:
        base_sum, messages = "", 0
        try:
            if card.base:
                base = self._folder.card(card.base)
                segment = segments_of(self._folder, card.base, base, card.parent_records)[-1]
                line = line_at(self._folder, segment, card.parent_records)
                base_sum, messages = line.sum, line.messages
        except (CorruptRecord, SessionNotFound, FileNotFoundError, IndexError) as error:
            self._add(card.session, card.parent_records, f"the session it was forked from cannot be read: {error}")
            return
        if (card.start, card.messages) != (start_sum(stem, card.order, base_sum), messages):
            self._add(card.session, card.parent_records, "the log that it was forked from was replaced or changed")

    def _lines(self, session: str, card: SessionFile, lines: list[bytes], last: int | None) -> tuple[str, int, int]:
        """Check the lines of a log. Returns the last sum, the messages up to it, and the number of the last record."""
        previous: str | None = card.start
        messages, n = card.messages, card.parent_records
        for held in lines:
            if n == last:
                break
            n += 1
            line = read_line(held)
            try:
                if line is None or previous is not None:
                    record = checked(n, previous or "", line)
                else:
                    record = numbered(n, line.raw)  # the line before is damaged, so there is no sum to check with
            except CorruptRecord as error:
                self._add(session, n, damage_in(error, n))
                if line is not None:  # lines may be missing: go on with the record's own number
                    n = max(n, _number_in(line.raw))
            else:
                self.problems += self.blobs.problems(session, n, blob_names(record))
                messages += is_said(record.body)
                if line is not None and line.messages != messages and previous is not None:
                    self._add(session, n, f"its line counts {line.messages} messages up to it, not {messages}")
            previous = None if line is None else line.sum
            messages = messages if line is None else line.messages
        return previous or "", messages, n

    def strays(self) -> None:
        """Add a problem for each file that belongs to no session."""
        stems = set(self._folder.stems())
        unmade = {log.name for log in half_made(self._folder)}  # removed by the next opening: not damage
        for name in sorted(set(os.listdir(self._folder.sessions)) - unmade):
            stem, _, kind = name.rpartition(".")
            if kind in ("jsonl", "head", "torn", "zst") and stem.removesuffix(".jsonl") not in stems:
                self._add("", 0, f"{self._folder.sessions / name} belongs to no session")

    def _add(self, session: str, record: int, what: str) -> None:
        self.problems.append(Problem(session, record, what))


def _number_in(raw: bytes) -> int:
    try:
        return decode_record(raw).n
    except CorruptRecord:
        return 0
