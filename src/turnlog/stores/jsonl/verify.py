"""Verifies a JSONL store: derives again everything that can be derived, and compares it."""

from __future__ import annotations

import os
from contextlib import suppress

from ...errors import CorruptRecord, SessionNotFound
from ...log.codec import decode_record
from ...log.store import Problem
from ..blobs import BlobCheck, BlobFolder
from ..records import blob_names, damage_in, is_said, numbered
from .files import LogFolder, SessionFile, start_sum
from .lines import checked, lines_forwards, missing, read_line
from .packs import beside
from .reading import line_at, segments_of
from .rewrite import half_made
from .torn import lost_before


def verify_folder(folder: LogFolder, blobs: BlobFolder, stem: str | None) -> list[Problem]:
    """The damage in the whole store; or in one session, the records it shares, and the blobs it needs."""
    check = _Check(folder, blobs)
    if stem is None:
        for each_stem in folder.stems():
            check.log(each_stem, None)
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
