"""The folder of a JSONL store: a log file, a head and a card for each session.

    sessions/ID.jsonl   the log: one line for each record, only ever appended to
    sessions/ID.jsonl.zst   the log, compressed, if the session is packed
    sessions/ID.head    where the log ended after the last append; shows if the log became shorter
    sessions/ID.json    the card: title, parent, when it was created; replaced as a whole
    sessions/ID.kept    empty: the session is protected from `gc`
    sessions/ID.torn    incomplete appends that were moved out of the log, each as a line of JSON
    blobs/SHA256        media
    labels.json         the index of labels, which can be derived again (see labels.py)
    open/ID             locked by every process that has the session open
    lock                locked while sessions are created, forked, renamed or deleted

If a session was deleted and forks still need its log, a new session with the same id gets the name `ID~2`, and so on.
The name of a log, its *stem*, never changes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from ..._platform.files import CAN_REPLACE_OPEN, open_handle
from ..._platform.lazy import lazy_pattern
from ..._platform.msgspec_init import ready
from ...errors import CorruptRecord, NewerStore, SessionNotFound, StoreError, StoreNotFound
from ...log.store import Problem, file_name
from ..folders import advice, make_private, refusals, write_whole
from .lines import Tail, find_tail, lines_backwards, missing
from .packs import PACKED, beside, open_packed, pack_log, packed_path, size_of, thaw_log
from .torn import add_torn

# -- heads -----------------------------------------------------------------------------------------
#
# Heads: where a log of a JSONL store ended after the last append. One line of fixed length in a separate file.

_HEAD = lazy_pattern(rb"([0-9]{12}) ([0-9]{15}) ([0-9]{12}) ([0-9a-f]{64}) ([!-~]{1,40} *) ([0-9a-f]{16})\n")
_TIME = lazy_pattern("[!-~]{1,40}")


def read_head(path: Path) -> Tail | None:
    """The end of the log according to its head; None if there is no head or it cannot be read. Raises StoreError."""
    with suppress(FileNotFoundError):
        with refusals(path):
            held = path.read_bytes()
        match = _HEAD.fullmatch(held)
        if match and _check(held[:-18]) == match[6]:
            n, size, messages, total, time, _ = (group.decode().rstrip() for group in match.groups())
            return Tail(int(size), int(n), int(messages), total, time)
    return None


def write_head(path: Path, tail: Tail, *, sync: bool) -> None:
    """Write where a log ends, with one write in place: all heads have the same length.

    If that fails, the head is removed, as the lines also show the end. An error here must not make a complete append
    look like a failed one, which would then be repeated.
    """
    time = tail.updated if _TIME.fullmatch(tail.updated) else ""
    held = f"{tail.records:012} {tail.size:015} {tail.messages:012} {tail.sum} {time or '-':<40}".encode()
    try:
        handle = open_handle(path, os.O_WRONLY | os.O_CREAT)
        try:
            os.write(handle, held + b" " + _check(held) + b"\n")
            if sync:
                os.fsync(handle)
        finally:
            os.close(handle)
    except OSError:
        with suppress(OSError):
            path.unlink()


def _check(held: bytes) -> bytes:
    return hashlib.sha256(held).hexdigest()[:16].encode()


try:
    import fcntl
except ImportError:  # Windows: only threads of one process lock each other out
    fcntl = None  # type: ignore[assignment]

FILES_VERSION = 2
"""Version of the folder's layout. A store with a newer version is not opened. A folder stays at version 1 until it is
encrypted or a session in it is packed: until then older readers can use it, and afterwards they would report damage."""

MARKER = "turnlog.json"
"""The file that makes a folder a store."""

_LOG = lazy_pattern(r"\.jsonl(\.zst)?$")
_STEM = lazy_pattern(r"(.+?)(?:~([0-9]+))?")


@ready
class SessionFile(Struct, frozen=True):
    """What is stored about a session apart from its records.

    `order` is when it was created, in nanoseconds since 1970. `base` is the stem of the log with record
    `parent_records`; `start` is the sum, and `messages` the count of messages, at that record. `deleted`: the session
    was deleted, but forks still need its records.
    """

    v: int
    session: str
    title: str
    created: str
    order: int
    parent: str = ""
    parent_records: int = 0
    base: str = ""
    messages: int = 0
    start: str = ""
    deleted: bool = False
    check: str = ""

    def sealed(self) -> SessionFile:
        """The card with the checksum of all its other fields."""
        bare = msgspec.json.encode(replace(self, check=""))
        return replace(self, check=hashlib.sha256(bare).hexdigest())

    def encoded(self) -> bytes:
        """The bytes of the card's file."""
        return json.dumps(asdict(self), ensure_ascii=True, indent=1).encode() + b"\n"

    def empty(self) -> Tail:
        """The end of the session's log while it has no records."""
        return Tail(0, self.parent_records, self.messages, self.start, self.created)


class LogFolder:
    """The files of a store by stem. This class does not know about forks and deleted sessions, except to prune."""

    KINDS = ("kept", PACKED, "jsonl", "head", "torn", "json")
    """The kinds of files of a stem, the card last."""

    def __init__(self, path: Path, *, sync: bool, finish: Callable[[LogFolder], None]) -> None:
        self.path = path
        self.sessions = path / "sessions"
        self.sync = sync
        self._finish = finish

    def file(self, stem: str, kind: str = "jsonl") -> Path:
        """The path of the file of this kind."""
        return self.sessions / f"{stem}.{kind}"

    def stems(self) -> list[str]:
        """Every stem that has a card, sorted."""
        with suppress(FileNotFoundError):
            return sorted(name[:-5] for name in os.listdir(self.sessions) if name.endswith(".json"))
        return []

    def lacks_card(self, stem: str) -> bool:
        """Whether a stem has records but no card, which somebody then removed. (A session that is being created or
        deleted has no records while it has no card.)"""
        if self.file(stem, "json").exists():
            return False
        for kind in ("jsonl", PACKED):
            with suppress(OSError):
                if os.stat(self.file(stem, kind)).st_size:
                    return not self.file(stem, "json").exists()
        return False

    def without_card(self) -> list[str]:
        """Every stem that lacks its card, sorted."""
        with suppress(FileNotFoundError):
            names = set(os.listdir(self.sessions))
            logs = {name.removesuffix(f".{PACKED}").removesuffix(".jsonl") for name in names if _LOG.search(name)}
            return sorted(stem for stem in logs if f"{stem}.json" not in names and self.lacks_card(stem))
        return []

    def stems_of(self, session_id: str) -> Iterator[str]:
        """The stems that a session with this id may have; case is ignored."""
        wanted = file_name(session_id).lower()
        for stem in self.stems():
            match = _STEM.fullmatch(stem)
            if match and match[1].lower() == wanted:
                yield stem

    def free_stem(self, session_id: str) -> str:
        """A stem that no file of any kind has yet."""
        name = file_name(session_id)
        with suppress(FileNotFoundError):
            taken = {file.rpartition(".")[0].lower() for file in os.listdir(self.sessions)}
            number, stem = 1, name
            while stem.lower() in taken:
                number += 1
                stem = f"{name}~{number}"
            return stem
        return name

    def card(self, stem: str) -> SessionFile:
        """The card of a stem. Raises FileNotFoundError, StoreError, CorruptRecord."""
        with refusals(self.file(stem, "json")):
            held = self.file(stem, "json").read_bytes()
        try:
            card = msgspec.json.decode(held, type=SessionFile)
        except (msgspec.MsgspecError, ValueError) as error:
            raise CorruptRecord(f"{self.file(stem, 'json')} cannot be read: {error}") from error
        if card.sealed() != card or card.encoded() != held:
            raise CorruptRecord(f"{self.file(stem, 'json')} does not match its checksum")
        return card

    def check_log(self, stem: str) -> None:
        """Raises CorruptRecord if the log is missing although a card exists. (A session is marked as deleted on its
        card before its log is removed.)"""
        with suppress(FileNotFoundError):
            if not self.file(stem).exists() and not self.card(stem).deleted and not self.file(stem).exists():
                raise CorruptRecord(f"{self.file(stem)} is missing; restore it from a copy, or delete the session")

    def write_card(self, stem: str, card: SessionFile) -> SessionFile:
        """Replace a card: whole and on disk, or not at all."""
        write_whole(self.file(stem, "json"), card.sealed().encoded())
        return card.sealed()

    def head(self, stem: str) -> Tail | None:
        """Where the log ended after the last append; None before the first append, or if the head cannot be read."""
        return read_head(self.file(stem, "head"))

    def write_head(self, stem: str, tail: Tail) -> None:
        """Write where the log ends after an append."""
        write_head(self.file(stem, "head"), tail, sync=self.sync)

    def tail(self, stem: str, file: BinaryIO, card: SessionFile) -> Tail:
        """The end of a log: from its head, if the file has the size noted there; otherwise from its lines. Records that
        the head counts and the file lacks count as unreadable records, so that their numbers are not given again."""
        size, head = size_of(file), self.head(stem)
        if head is not None and head.size == size and head.updated != "-":
            return head
        tail = find_tail(file, size, card.empty(), shortened=card.deleted) if size else card.empty()
        if head is None:
            return tail
        if not card.deleted and head.records > tail.records:
            if size:  # the append of the last lines was complete, although some of its lines are missing now
                tail = find_tail(file, size, card.empty(), shortened=True)
            lost = max(head.records - tail.records, 0)
            tail = tail._replace(records=tail.records + lost, messages=head.messages, damaged=True, lost=lost)
        return tail._replace(updated=max(tail.updated, head.updated))

    def torn_end(self, stem: str, file: BinaryIO, card: SessionFile, tail: Tail) -> Problem | None:
        """The damage at the end of a log: an incomplete append, or missing records. None if there is none."""
        rest = max(size_of(file) - tail.size, 0)
        if tail.lost:
            left = f"; {rest} bytes are left of them" if rest else ""
            return Problem(card.session, tail.present + 1, missing(tail.present + 1, tail.records) + left)
        what = f"{rest} bytes of an unfinished append are at the end of the log"
        return Problem(card.session, tail.records + 1, what) if rest else None

    def set_aside(self, stem: str, file: BinaryIO, tail: Tail) -> None:
        """Move everything after the last complete append to the `.torn` file."""
        head = self.head(stem)
        file.seek(tail.size)
        acknowledged = head.records if head is not None else None
        add_torn(self.file(stem, "torn"), file.read(), records=tail.records, acknowledged=acknowledged)
        os.ftruncate(file.fileno(), tail.size)
        self.write_head(stem, tail)

    def is_packed(self, stem: str) -> bool:
        """Whether a log is packed. Packed logs cannot end in an incomplete append."""
        return packed_path(self.file(stem)).exists()

    def pack(self, stem: str) -> tuple[int, int]:
        """Pack a log; returns its bytes before and after. The caller must hold the store's lock."""
        if self.is_packed(stem):
            return 0, 0
        write_marker(self)
        with self.opened(stem, write=True) as file:
            tail = self.tail(stem, file, self.card(stem))
            file.seek(0)
            lines = file.read(tail.size)
            if tail.lost:
                raise tail.damage()
            if len(lines) != tail.size:
                raise StoreError(
                    f"{self.file(stem)} cannot be packed: fewer bytes were read than it has; run `turnlog verify`"
                )
            if not CAN_REPLACE_OPEN:  # nor is there a lock, which would end with this
                file.close()
            return len(lines), pack_log(self.file(stem), lines) if lines else 0

    def size(self, stem: str) -> int:
        """The bytes that the files of a stem take."""
        total = 0
        for kind in self.KINDS:
            with suppress(FileNotFoundError):
                total += self.file(stem, kind).stat().st_size
        return total

    def make(self, stem: str, card: SessionFile) -> None:
        """Create the files of a new session, the card last, because the session exists once it has a card."""
        os.close(open_handle(self.file(stem), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        try:
            self.write_card(stem, card)
        except BaseException:
            self.file(stem).unlink()
            raise

    def prune(self, stem: str) -> None:
        """Remove what no fork needs of the deleted session `stem`, and of the deleted sessions that it was forked
        from."""
        while stem:
            card = self.card(stem)
            if not card.deleted:
                return
            cards = [self.card(other) for other in self.stems()]
            needed = max((other.parent_records for other in cards if other.base == stem), default=0)
            if needed:
                self._shorten(stem, card, needed)
                return
            for kind in self.KINDS:  # the card last: until then it marks the session as deleted
                self.file(stem, kind).unlink(missing_ok=True)
            stem = card.base

    def _shorten(self, stem: str, card: SessionFile, records: int) -> None:
        with self.opened(stem, write=True) as file:
            tail = self.tail(stem, file, card)
            lines = lines_backwards(file, tail.size)
            place = next((start for start, _ in islice(lines, max(tail.records - records - 1, 0), None)), tail.size)
            if records < tail.records:
                os.ftruncate(file.fileno(), place)
                self.write_head(stem, find_tail(file, place, card.empty(), shortened=True))
            self.file(stem, "torn").unlink(missing_ok=True)

    def stamp(self, stem: str) -> tuple[int, int, int] | None:
        """A value that changes whenever a card is replaced; None if there is no card."""
        try:
            status = os.stat(self.file(stem, "json"))
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    @contextmanager
    def opened(self, stem: str, *, write: bool) -> Iterator[BinaryIO]:
        """The log of a stem, locked: exclusively with `write`, otherwise together with other readers."""
        log = self.file(stem)
        flags = os.O_RDWR | os.O_APPEND if write else os.O_RDONLY
        while True:
            with (
                refusals(log),
                FileIO(open_handle(log, flags), "r+" if write else "r") as file,
                locked(file.fileno(), alone=write),
            ):
                if os.fstat(file.fileno()).st_ino != os.stat(log).st_ino:
                    continue  # packed or unpacked while we waited for the lock: the log is another file now
                packed = open_packed(log)
                if packed is None:
                    yield cast(BinaryIO, file)
                    return
                with packed:
                    if not write:
                        yield packed
                        return
                    if held := beside(log, packed):  # written by an older version, which ignored the packed log
                        add_torn(self.file(stem, "torn"), held, records=None, acknowledged=None)
                    packed.seek(0)
                    lines = packed.read()
                    if not CAN_REPLACE_OPEN:
                        packed.close()
                        file.close()
                    thaw_log(log, lines)

    @contextmanager
    def reading(self, stem: str) -> Iterator[tuple[BinaryIO, Tail]]:
        """The log of a stem, and its end when it was opened. It is open without a lock, because nothing before the end
        ever changes."""
        try:
            with self.opened(stem, write=False) as locked_file:
                tail = self.tail(stem, locked_file, self.card(stem))
                file = type(locked_file)(os.dup(locked_file.fileno()))  # type: ignore[call-arg]
        except FileNotFoundError:
            self.check_log(stem)
            raise SessionNotFound(f"the log {self.file(stem)} was deleted while it was being read") from None
        with file:
            yield file, tail

    @contextmanager
    def store_lock(self) -> Iterator[None]:
        """Lock the store while the set of sessions changes. Work that a killed process left unfinished is finished
        first. Errors of the operating system inside the block become StoreErrors."""
        with refusals(self.path, missing=True):
            handle = open_handle(self.path / "lock", os.O_RDWR | os.O_CREAT)
            try:
                with locked(handle, alone=True):
                    self._finish(self)
                    yield
            finally:
                os.close(handle)


def open_folder(folder: LogFolder, *, read_only: bool) -> None:
    """Create the folder of a store, or check that it is one. Raises StoreError, NewerStore."""
    marker = folder.path / MARKER
    try:
        if not marker.exists() and not read_only:
            make_private(folder.path)
            others = (name for name in os.listdir(folder.path) if name not in ("lock", "open", "sessions"))
            if not all(name.startswith(MARKER) for name in others) and not marker.exists():
                raise StoreError(
                    f"{folder.path} is not empty and not a turnlog store; name a new folder, or an existing store. If "
                    f"it was one, its file {MARKER} is gone: restore it from a copy"
                )
            folder.sessions.mkdir(mode=0o700, exist_ok=True)
            with folder.store_lock():
                if not marker.exists():  # somebody who opened it at the same time may have made it, and locked it
                    write_whole(marker, b'{"turnlog":"files","version":1}\n')
        held = json.loads(marker.read_bytes())
        version = held["version"] if held["turnlog"] == "files" else None
    except FileNotFoundError:
        raise StoreNotFound(folder.path) from None
    except NotADirectoryError:
        raise StoreError(f"{folder.path} is a file; a store of files is a folder") from None
    except OSError as error:
        raise StoreError(f"cannot open the store {folder.path}: {error.strerror}{advice(error)}") from error
    except (ValueError, KeyError, TypeError):
        version = None
    if not isinstance(version, int):
        raise StoreError(f"{marker} does not say that this is a turnlog store of files")
    if version > FILES_VERSION:
        raise NewerStore(
            f"{folder.path} was written by a newer turnlog (version {version}, this one reads up to {FILES_VERSION}); "
            "nothing was changed: upgrade turnlog to open it"
        )


def marked(folder: LogFolder) -> dict[str, Any]:
    """The content of the folder's marker. Raises CorruptRecord."""
    marker = folder.path / MARKER
    try:
        held: dict[str, Any] = json.loads(marker.read_bytes())
    except (OSError, ValueError) as error:
        raise CorruptRecord(f"{marker} cannot be read: {error}") from error
    return held


def write_marker(folder: LogFolder, **fields: Any) -> None:
    """Write these fields and the present version to the marker. The caller must hold the store's lock."""
    held = {**marked(folder), "version": FILES_VERSION, **fields}
    write_whole(folder.path / MARKER, json.dumps(held, separators=(",", ":")).encode() + b"\n")


def start_sum(stem: str, order: int, base_sum: str) -> str:
    """The sum before the first line of a log. It differs from log to log."""
    return hashlib.sha256(f"{stem} {order} {base_sum}".encode()).hexdigest()


@contextmanager
def locked(handle: int, *, alone: bool) -> Iterator[None]:
    """Locks an open file (an advisory lock); does nothing if the disk or the system has no such locks."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
    try:
        yield
    finally:
        if fcntl is not None:  # closing the file does not unlock it if a forked child has it open, too
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)
