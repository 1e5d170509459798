"""A store that is a folder of JSON Lines, whose logs can be read with grep and jq.

docs/format.md describes the files. Each append to a log is one write under a lock; every line has a checksum that also
covers the checksum of the line before.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

from msgspec.structs import replace

from ..._platform.files import open_handle
from ..._platform.paths import from_here, from_home
from ..._platform.stdlib import LOG
from ...errors import CorruptRecord, SessionNotFound, StoreError, StoreGone
from ...log.messages import sha256_hex
from ...log.records import Record
from ...log.store import (
    SWEEP_GRACE_SECONDS,
    Draft,
    Inventory,
    Packed,
    Problem,
    SessionFacts,
    SessionInfo,
    Swept,
    check_parent,
    check_session_id,
    file_name,
    folded_id,
    utc_now,
)
from ..base import BaseStore, KeySlot
from ..blobs import BlobFolder, is_blob_name, unused, whole_blob
from ..folders import FREE_SOME, Durability, advice, check_durability
from ..labels import decoded_facts, has_labels, where_given
from ..leases import FolderLocks
from ..records import (
    Segment,
    check_expected,
    check_free,
    check_unchanged,
    damage_named,
    damaged_session,
    fork_point,
    is_said,
    kind_finder,
    no_session,
    number_drafts,
    of_any,
    storable,
)
from .damaged import mended
from .files import MARKER, LogFolder, SessionFile, marked, open_folder, start_sum, write_marker
from .labels import LabelEntry, entry_now, read_entries, write_entries
from .lines import Tail, digest, write_line
from .reading import LogSegment, line_at, read_records, segments_of
from .retention import clear_up, delete, inventory, records_of
from .rewrite import clear_half_done, finish_rewrite, rewrite
from .verify import verify_folder

# -- key slot --------------------------------------------------------------------------------------
#
# The lock of an encrypted JSONL store, in a field of the folder's marker.


class FilesKeySlot(KeySlot):
    """The lock of a JSONL store."""

    def __init__(self, folder: LogFolder, *, read_only: bool, opened_by_key: bool) -> None:
        super().__init__(folder.path, opened_by_key=opened_by_key)
        self._folder = folder
        self._read_only = read_only

    def read(self) -> bytes | None:
        lock = marked(self._folder).get("lock")
        return None if lock is None else json.dumps(lock, separators=(",", ":")).encode()

    def write(self, lock: bytes, *, was: bytes | None) -> bool:
        if self._read_only:
            raise StoreError(f"the store {self._folder.path} is open for reading only")
        with self._folder.store_lock():
            if self.read() != was:
                return False
            if was is None and (self._folder.stems() or (self._folder.path / "blobs").exists()):
                raise self._not_empty()
            write_marker(self._folder, lock=json.loads(lock))
        return True


# -- append ----------------------------------------------------------------------------------------
#
# Appends to a log of a JSONL store, with one write of whole lines.


def write_records(folder: LogFolder, stem: str, file: BinaryIO, tail: Tail, records: Sequence[Record]) -> None:
    """Append records to a log in one write, all or none. The caller must hold the log's lock. Raises StoreError."""
    total, messages, lines = tail.sum, tail.messages, []
    for left, record in zip(range(len(records) - 1, -1, -1), records, strict=True):
        raw = record.raw or b""
        messages += is_said(record.body)
        total = digest(total, messages, left, raw)
        lines.append(write_line(total, messages, left, raw))
    data = b"".join(lines)
    try:
        done = os.write(file.fileno(), data)
        if done == len(data) and folder.sync:
            os.fsync(file.fileno())
    except OSError as error:
        os.ftruncate(file.fileno(), tail.size)
        raise StoreError(f"{folder.file(stem)}: {error.strerror}{advice(error)}") from error
    if done != len(data):
        os.ftruncate(file.fileno(), tail.size)
        raise StoreError(f"{folder.file(stem)}: the disk is full{FREE_SOME}")
    updated = max(tail.updated, records[-1].time)  # a clock may be set back
    end = Tail(tail.size + done, records[-1].n, messages, total, updated)
    folder.write_head(stem, end)


class _Known(NamedTuple):
    stem: str
    card: SessionFile
    stamp: tuple[int, int, int]


class FilesStore(BaseStore):
    """Logs as files in the folder `path`, which is created if it does not exist.

    `durability`, `read_only` and `sealed` are as in `SqliteStore`. Threads may share a store; processes may share a
    folder if the system has file locks. `torn` is the damage found at the ends of logs since the store was opened:
    appends that a killed process or a power cut left incomplete, and missing records. Unless `read_only`, incomplete
    appends are moved out of the log, and appending continues after the last complete one.
    """

    def __init__(
        self, path: str | Path, *, durability: Durability = "normal", read_only: bool = False, sealed: bool = False
    ) -> None:
        check_durability(durability)
        super().__init__()
        self.path = from_here(from_home(path))
        self._holds = FolderLocks(self.path / "open", read_only=read_only)
        self.torn: list[Problem] = []
        self._read_only = read_only
        self._closed = False
        self._known: dict[str, _Known] = {}
        self._entries: dict[str, LabelEntry] = {}
        self._folder = LogFolder(self.path, sync=durability == "full", finish=finish_rewrite)
        self._blob_files = BlobFolder(self.path / "blobs")
        open_folder(self._folder, read_only=read_only)
        self.key_slot = FilesKeySlot(self._folder, read_only=read_only, opened_by_key=sealed)
        self.key_slot.check()
        if not read_only:
            with self._folder.store_lock():  # also completes an interrupted rewrite
                self._folder.sessions.mkdir(mode=0o700, exist_ok=True)  # a copy of the store may lack the empty folder
                clear_half_done(self._folder)
        self._watched = self._folder.sessions if self._folder.sessions.is_dir() else self.path
        self._there = _identity(self._watched)
        self._marker = self.path / MARKER
        self._told = False
        for stem in self._folder.stems():
            self._look_at_end(stem)

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        """See `Store.append`. Raises CorruptRecord if the end of the log cannot be read."""
        self._check_open(write=True)
        with self._lock, self._log(session_id, write=True) as (log, file):
            tail = self._whole_end(log.stem, file, log.card)
            check_expected(session_id, expected, tail.records)
            if tail.damaged:
                raise damaged_session(session_id, tail.damage())
            records = number_drafts(drafts, after=tail.records)
            if records:
                write_records(self._folder, log.stem, file, tail, records)
        return records

    def read(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record]:
        """See `Store.read`. Records appended after the call are not read."""
        end, segments = self._segments_of(session_id)
        first, last = max(first, 1), end if last is None else min(last, end)
        if first > last:
            return iter(())
        return self._while_open(session_id, read_records(self._folder, segments, first, last, reverse=reverse))

    def of_kinds(
        self, session_id: str, kinds: Collection[str], *, first: int = 1, reverse: bool = False
    ) -> Iterator[Record]:
        """See `Store.of_kinds`. Searches every line for the kinds."""
        end, segments = self._segments_of(session_id)
        may_be = kind_finder(kinds)
        some = read_records(self._folder, segments, max(first, 1), end, reverse=reverse, may_be=may_be)
        return self._while_open(session_id, filter(of_any(kinds), some))

    def _mended(self, session_id: str, first: int, last: int) -> Iterator[Record | Problem]:
        return mended(self._folder, session_id, self._segments_of(session_id)[1], first, last)

    def create(self, session_id: str, *, title: str = "", created: str = "", parent: str = "") -> SessionInfo:
        check_session_id(session_id)
        check_parent(session_id, parent)
        with self._changing():
            self.key_slot.check()  # the store may have been encrypted since it was opened
            self._check_free(session_id)
            card = SessionFile(1, session_id, storable(title), created or utc_now(), time.time_ns(), parent)
            return self._make_log(card, "")

    def info(self, session_id: str) -> SessionInfo:
        self._check_open()
        with self._lock, self._log(session_id) as (log, file):
            return _info(log.card, self._folder.tail(log.stem, file, log.card))

    def sessions(self, *, limit: int | None = None, where: Mapping[str, str] | None = None) -> list[SessionInfo]:
        """See `Store.sessions`. A session whose card is damaged or missing is listed by its file name."""
        asked = where_given(where)
        logs, damaged = self._readable_logs()
        if asked:
            self._update_index(logs)
            known = {stem: decoded_facts(entry.labels) for stem, entry in self._entries.items()}
            logs = [log for log in logs if log[0] in known and has_labels(known[log[0]].labels, asked)]
            damaged = []
        logs.sort(key=lambda each: (each[2].updated, each[1].order), reverse=True)
        return [*(_info(card, tail) for _, card, tail in logs), *damaged][:limit]

    def facts(self) -> dict[str, SessionFacts]:
        logs, _ = self._readable_logs()
        self._update_index(logs)
        names = {stem: card.session for stem, card, _ in logs}
        return {names[stem]: decoded_facts(entry.labels) for stem, entry in self._entries.items()}

    def _readable_logs(self) -> tuple[list[tuple[str, SessionFile, Tail]], list[SessionInfo]]:
        """The logs with their cards and ends, and the sessions whose card is damaged or missing, by their file name."""
        self._check_open()
        logs = []
        damaged = [SessionInfo(stem.partition("~")[0], "", "", "", 0, 0) for stem in self._folder.without_card()]
        with self._lock:
            for stem in self._folder.stems():
                try:
                    with suppress(FileNotFoundError):
                        if not (card := self._folder.card(stem)).deleted:
                            with self._folder.opened(stem, write=False) as file:
                                logs.append((stem, card, self._folder.tail(stem, file, card)))
                        continue
                    self._folder.check_log(stem)
                except CorruptRecord:
                    damaged.append(SessionInfo(stem.partition("~")[0], "", "", "", 0, 0))
        return logs, damaged

    def _update_index(self, logs: Sequence[tuple[str, SessionFile, Tail]]) -> None:
        """Bring the entries of the index up to date, also on disk unless the store is open for reading only."""
        stored_entries = read_entries(self._folder)
        if self._read_only:
            stored_entries |= self._entries
        current_entries = {
            stem: entry_now(self._folder, stem, card, tail, stored_entries.get(stem)) for stem, card, tail in logs
        }
        self._entries = {stem: entry for stem, entry in current_entries.items() if entry is not None}
        if self._entries != stored_entries and not self._read_only:
            write_entries(self._folder, self._entries)

    def rename(self, session_id: str, title: str) -> None:
        with self._changing():
            log = self._find_log(session_id)
            self._folder.write_card(log.stem, replace(log.card, title=storable(title)))

    def fork(self, session_id: str, new_id: str, *, at: int | None = None, title: str = "") -> SessionInfo:
        """See `Store.fork`. Nothing is copied: the new log continues the old one."""
        check_session_id(new_id)
        with self._changing():
            end, segments = self._segments_of(session_id)
            shared = fork_point(session_id, end, at)
            self._check_free(new_id)
            card = SessionFile(1, new_id, storable(title), utc_now(), time.time_ns(), session_id, shared)
            if not shared:
                return self._make_log(card, "")
            segment = next(each for each in segments if each.first <= shared <= each.last)
            with damage_named(session_id):
                line = line_at(self._folder, segment, shared)
            return self._make_log(replace(card, base=segment.key, messages=line.messages), line.sum)

    def put_blob(self, data: bytes, *, name: str = "") -> str:
        """See `Store.put_blob`. Replaces a damaged blob."""
        name = name or sha256_hex(data)
        with self._changing():  # no sweep may run at the same time
            self._blob_files.put(name, data)
        return name

    def get_blob(self, sha256: str) -> bytes:
        self._check_open()
        return whole_blob(sha256, self._blob_files.get(sha256) if is_blob_name(sha256) else None, self.path)

    def rewrite(
        self,
        session_id: str,
        records: Mapping[int, bytes],
        *,
        blobs: Sequence[str] = (),
        was: Mapping[int, bytes] | None = None,
    ) -> None:
        """See `Store.rewrite`. Incomplete appends that were moved out of the log are removed as well."""
        with self._changing():
            check_unchanged(self.read, session_id, was)
            rewrite(self._folder, self._segments_of(session_id)[1], records)
            self._blob_files.remove(filter(is_blob_name, blobs))

    def pack(
        self, session_id: str, *, instead: Mapping[int, bytes] | None = None, was: Mapping[int, bytes] | None = None
    ) -> Packed:
        """See `Store.pack`."""
        with self._changing():
            check_unchanged(self.read, session_id, was)
            end, segments = self._segments_of(session_id)
            if instead:
                rewrite(self._folder, segments, instead)
            log = self._find_log(session_id)
            with damage_named(session_id):
                before, after = self._folder.pack(log.stem)
        return Packed(end - log.card.parent_records if before else 0, before, after)

    def unpacked(self) -> frozenset[str]:
        self._check_open()
        session_ids = set()
        for stem in self._folder.stems():
            with suppress(FileNotFoundError, CorruptRecord):
                card = self._folder.card(stem)
                if not card.deleted and not self._folder.is_packed(stem) and self._folder.file(stem).stat().st_size:
                    session_ids.add(card.session)
        return frozenset(session_ids)

    def verify(self, session_id: str | None = None) -> list[Problem]:
        """See `Store.verify`. Also reports the damage in `torn`."""
        self._check_open()
        stem = None if session_id is None else self._find_log(session_id).stem
        torn = [problem for problem in self.torn if session_id in (None, problem.session)]
        return [
            *torn,
            *(damage for damage in verify_folder(self._folder, self._blob_files, stem) if damage not in torn),
        ]

    def _delete(self, session_id: str, expected: int | None) -> None:
        with self._changing():
            delete(self._folder, self._find_log(session_id).stem, expected)

    def keep(self, session_id: str, *, kept: bool = True) -> None:
        """See `Store.keep`. The mark is an empty file next to the log."""
        with self._changing():
            mark = self._folder.file(self._find_log(session_id).stem, "kept")
            if kept:
                os.close(open_handle(mark, os.O_WRONLY | os.O_CREAT))
            else:
                mark.unlink(missing_ok=True)

    def sweep(self, *, grace: float = SWEEP_GRACE_SECONDS) -> Swept:
        """See `Store.sweep`. Reads all logs."""
        with self._changing():
            names, swept = unused(self._blob_files.puts(), records_of(self._folder), grace)
            self._blob_files.remove(names)
        return swept

    def inventory(self) -> Inventory:
        self._check_open()
        with self._lock, nullcontext() if self._read_only else self._folder.store_lock():
            return inventory(self._folder, self._blob_files, self._holds.taken())

    def used(self) -> int:
        self._check_open()
        blobs = sum(put.size for put in self._blob_files.puts().values())
        return blobs + sum(map(self._folder.size, self._folder.stems()))

    def reclaim(self) -> None:
        """See `Store.reclaim`. Removes what killed processes left; deleted files have freed their space already."""
        self._check_open(write=True)
        self._holds.clear()
        with self._changing():
            clear_up(self._folder)

    def _searchable(self) -> Iterator[tuple[str, list[Segment]]]:
        self._check_open()
        cards = []
        for stem in self._folder.stems():
            with suppress(FileNotFoundError, CorruptRecord):
                cards.append(self._folder.card(stem))
        for card in sorted(cards, key=lambda card: card.order):
            with suppress(CorruptRecord, SessionNotFound):  # perhaps deleted just now
                if not card.deleted:
                    yield card.session, [Segment(*each[:3]) for each in self._segments_of(card.session)[1]]

    def close(self) -> None:
        """Close the store. Warns if its folder is gone and no error has said so."""
        if not (self._read_only or self._told or self._closed):
            try:
                self._check_open(write=True)
            except StoreGone as error:
                LOG.warning("%s", error)
        if not self._read_only:
            self._holds.leave()
        self._closed = True

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Lock out other threads and processes while the set of sessions or blobs changes."""
        self._check_open(write=True)
        with self._lock, self._folder.store_lock():
            yield

    def _check_open(self, *, write: bool = False) -> None:
        """Raises StoreError if the store is closed, and StoreGone if its folder is gone, as the store would look empty.
        With `write`, also if the marker file is gone: it makes the folder a store that can be opened, and has the key
        of an encrypted store."""
        if self._closed or (write and self._read_only):
            raise StoreError(f"the store {self.path} is {'closed' if self._closed else 'open for reading only'}")
        identity = _identity(self._watched)
        if identity != self._there:
            self._told = True
            what = "deleted or moved" if identity is None else "replaced by another"
            raise StoreGone(
                f"{self.path} was {what} while it was open; nothing is read or written here: move it back to go on, or "
                "open the store again"
            )
        if write and not self._marker.exists():
            self._told = True
            raise StoreGone(
                f"{self._marker} was deleted or moved while the store was open; nothing more is written: move it back, "
                "or restore it from a copy, to go on; or export what you need from here"
            )
        self._told = False

    def _while_open(self, session_id: str, records: Iterator[Record]) -> Iterator[Record]:
        try:
            for record in records:
                if self._closed:
                    self._check_open()
                yield record
        except CorruptRecord as error:
            self._find_log(session_id)  # deleted meanwhile? Then its log keeps only what forks read
            raise damaged_session(session_id, error) from error

    def _look_at_end(self, stem: str) -> None:
        """Report an incomplete append at the end of a log; unless read-only, also move it out of the log."""
        if self._folder.is_packed(stem):
            return
        try:
            card = self._folder.card(stem)
            with self._folder.opened(stem, write=not self._read_only) as file:
                self._whole_end(stem, file, card)
        except (OSError, StoreError):
            return  # `verify` and every use of the session report it

    def _whole_end(self, stem: str, file: BinaryIO, card: SessionFile) -> Tail:
        tail = self._folder.tail(stem, file, card)
        problem = self._folder.torn_end(stem, file, card, tail)
        if problem is not None:
            self.torn.append(problem)
            if not self._read_only and not tail.lost:  # or nothing would show what is missing
                self._folder.set_aside(stem, file, tail)
        return tail

    def _find_log(self, session_id: str) -> _Known:
        """The stem and card of a session that was not deleted. Cached until the card is replaced."""
        log = self._known.get(session_id)
        if log is not None and self._folder.stamp(log.stem) == log.stamp:
            return log
        likely, near = file_name(session_id), ""  # the first saves reading the folder
        for stem in chain((likely,), self._folder.stems_of(session_id)):
            stamp = self._folder.stamp(stem)
            try:
                card = self._folder.card(stem)
            except FileNotFoundError:
                continue
            if card.session == session_id and not card.deleted and stamp is not None:
                self._known[session_id] = log = _Known(stem, card, stamp)
                return log
            if not card.deleted and folded_id(card.session) == folded_id(session_id):
                near = card.session
        self._known.pop(session_id, None)
        if self._folder.lacks_card(likely):
            raise CorruptRecord(
                f"{self._folder.file(likely, 'json')} is missing, although the log of session {session_id!r} is there; "
                "restore that file from a copy"
            )
        raise no_session(session_id, near)

    @contextmanager
    def _log(self, session_id: str, *, write: bool = False) -> Iterator[tuple[_Known, BinaryIO]]:
        """The log of a session, locked. A session that is deleted while this waits for the lock is not written to."""
        while True:
            log = self._find_log(session_id)
            with suppress(FileNotFoundError), self._folder.opened(log.stem, write=write) as file:
                again = self._find_log(session_id)
                if again.stem == log.stem:
                    yield again, file
                    return
            self._folder.check_log(log.stem)

    def _segments_of(self, session_id: str) -> tuple[int, list[LogSegment]]:
        """The number of the last record, and the segments with the records of a session."""
        self._check_open()
        with self._lock, self._log(session_id) as (log, file):
            end = self._folder.tail(log.stem, file, log.card).records
            return end, segments_of(self._folder, log.stem, log.card, end)

    def _check_free(self, session_id: str) -> None:
        for stem in self._folder.stems_of(session_id):
            card = self._folder.card(stem)
            if not card.deleted:
                check_free(session_id, card.session)

    def _make_log(self, card: SessionFile, base_sum: str) -> SessionInfo:
        stem = self._folder.free_stem(card.session)
        card = replace(card, start=start_sum(stem, card.order, base_sum))
        self._folder.make(stem, card)
        return _info(card, card.empty())


def _identity(folder: Path) -> tuple[int, int] | None:
    """The identity of the folder at a path; None if there is none."""
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_ino, status.st_dev


def _info(card: SessionFile, tail: Tail) -> SessionInfo:
    return SessionInfo(
        id=card.session,
        title=card.title,
        created=card.created,
        updated=tail.updated,
        records=tail.records,
        messages=tail.messages,
        parent=card.parent,
        parent_records=card.parent_records,
    )
