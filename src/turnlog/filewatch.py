"""File changes as they happen: recorded one by one, or found by looking at a folder before and after.

A look remembers of each file its size, times and hash, and puts its content aside in a temporary file, so
that what was there before can be kept once it turns out to have changed. Only files that changed become
blobs of the store.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Literal

from msgspec import Struct

from .content import sha256_hex
from .diffs import is_inside, place_of, relative_to
from .errors import InputError
from .records import Body, FileChange, Note, Record

__all__ = ["FILE_LIMIT", "FileRecorder", "IGNORED", "LeftOut", "TOTAL_LIMIT", "Watched"]

IGNORED = (
    *(".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".gradle", ".DS_Store"),
)
"""Names of folders and files that a look passes over: what tools keep for themselves and make again.
Patterns as in a shell (`*.log`) may be given too. `.gitignore` is not read."""

FILE_LIMIT = 5 << 20
"""Bytes above which a file is not looked into."""

TOTAL_LIMIT = 256 << 20
"""Bytes that a recorder puts aside of all files together, on disk."""

_FILES_LIMIT = 50_000
_RACY_NS = 2_000_000_000
"""A file that was written this short a time before a look may be written again within the same time stamp
(2 s on FAT): such are read again."""


_TICK_NS = 20_000_000
"""So far may the time that a system gives to a file lie behind its clock."""


class LeftOut(Struct, frozen=True):
    """A file whose change is not on record, and why."""

    path: str
    why: str


class Watched(Struct):
    """What a watch found, filled when it ends: records of changes, and files that were left out."""

    records: tuple[Record, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


class _Seen(Struct, frozen=True):
    """A file at a look. `sha256` is empty if it was not read, `why` then says why. `offset` is where its
    content was put aside, -1 if it was not. `settled`: no write can have the same time stamp any more."""

    size: int
    mtime: int
    inode: int
    mode: str
    settled: bool
    sha256: str = ""
    offset: int = -1
    why: str = ""

    def is_like(self, other: _Seen) -> bool:
        """Whether two looks see the same file, by what the system says of it."""
        return (self.size, self.mtime, self.inode) == (other.size, other.mtime, other.inode)


class FileRecorder:
    """Records changes of the files under `root`. `append` records bodies, `put_blob` keeps contents.

    Close it, or use it as a context manager, to let go of what it put aside.
    """

    def __init__(
        self,
        root: str | Path,
        append: Callable[..., tuple[Record, ...]],
        put_blob: Callable[[bytes], str],
        *,
        ignore: Sequence[str] = IGNORED,
        file_limit: int = FILE_LIMIT,
        total_limit: int = TOTAL_LIMIT,
    ) -> None:
        self.root = Path(os.path.abspath(root))
        self._append = append
        self._put_blob = put_blob
        self._ignore = tuple(ignore)
        self._file_limit = file_limit
        self._total_limit = total_limit
        self._aside: IO[bytes] | None = None
        self._size = 0
        self._last: dict[str, _Seen] = {}

    def __enter__(self) -> FileRecorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the contents that were put aside."""
        if self._aside is not None:
            self._aside.close()
        self._aside, self._size, self._last = None, 0, {}

    def record(
        self,
        path: str | Path,
        before: bytes | None,
        after: bytes | None,
        *,
        old_path: str | Path = "",
        executable: bool | None = None,
        call_record: int = 0,
    ) -> Record | None:
        """Record that a file changed: what it held before and holds after, None where there was or is no
        file. `old_path` is where it was, if it was renamed. Nothing is recorded if nothing changed.

        `call_record` is the number of the message record whose call did it. Raises InputError for a path
        outside of the root.
        """
        for name, data in (("before", before), ("after", after)):
            if data is not None and not isinstance(data, bytes):
                raise InputError(f"{name}: a file's content is bytes, not {type(data).__name__}; encode a text first")
        place, old = self.place(path), self.place(old_path) if old_path else ""
        if before == after and old in ("", place):
            return None
        if old and (before is None or after is None):
            raise InputError("old_path: a file that was renamed was there before and is there after")
        action: Literal["modified", "created", "deleted", "renamed"] = (
            "renamed" if old else "created" if before is None else "deleted" if after is None else "modified"
        )
        mode = "" if executable is None else "100755" if executable else "100644"
        change = FileChange(
            path=place,
            action=action,
            before="" if before is None else self._put_blob(before),
            after="" if after is None else self._put_blob(after),
            old_path=old,
            call_record=call_record,
            old_mode="" if before is None else mode,
            mode="" if after is None else mode,
        )
        return self._append(change)[0]

    def place(self, path: str | Path) -> str:
        """A path as it is recorded: relative to the root, with `/`. Raises InputError if it is outside."""
        text = os.fspath(path)
        for root in (str(self.root), os.path.realpath(self.root)):
            place = relative_to(place_of(text, root), place_of(root))
            if is_inside(place):
                return place
        raise InputError(f"{text!r} is no file inside of {str(self.root)!r}; name one under the root")

    @contextmanager
    def watch(self, *, call_record: int = 0) -> Iterator[Watched]:
        """Look at the folder now and when the block ends, however it ends, and record what changed.

        Links are not followed and not recorded. A file that came to be with the content of one that went
        is renamed. What was left out is in a note, and in the `Watched` that this gives.
        """
        before, found = self._look(), Watched()
        try:
            yield found
        finally:
            changes, left_out = self._compared(before, self._look(), call_record)
            bodies: list[Body] = list(changes)
            if left_out:
                text = "changed, and not kept: " + "; ".join(f"{each.path} ({each.why})" for each in left_out)
                bodies.append(Note("files", text, [{"path": each.path, "why": each.why} for each in left_out]))
            found.records = self._append(*bodies) if bodies else ()
            found.left_out = tuple(left_out)

    def touched(self, since: datetime) -> list[str]:
        """The files whose times say that they were made, changed or moved at `since` or later. That some are gone
        cannot be told."""
        least = int(since.timestamp() * 1000) * 1_000_000 - _TICK_NS
        files = self._files(self.root, "")
        return [path for path, status in files if max(status.st_mtime_ns, status.st_ctime_ns) >= least]

    # -- looking ---------------------------------------------------------------------------------

    def _look(self) -> dict[str, _Seen]:
        now = time.time_ns()
        seen: dict[str, _Seen] = {}
        for path, status in self._files(self.root, ""):
            mode = "" if os.name == "nt" else "100755" if status.st_mode & stat.S_IXUSR else "100644"
            settled = status.st_mtime_ns < now - _RACY_NS
            found = _Seen(status.st_size, status.st_mtime_ns, status.st_ino, mode, settled)
            known = self._last.get(path)
            if known is not None and known.settled and known.is_like(found):
                found = _with(found, known.sha256, known.offset, known.why)
            elif len(seen) >= _FILES_LIMIT:
                found = _with(found, "", -1, f"there are more than {_FILES_LIMIT:,} files")
            elif status.st_size > self._file_limit:
                found = _with(found, "", -1, f"{status.st_size:,} bytes, the limit is {self._file_limit:,}")
            else:
                found = self._read(path, found, known)
            seen[path] = found
        self._last = seen
        return seen

    def _files(self, folder: Path, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
        """Regular files under a folder and what the system says of them. One that goes meanwhile is not
        there; a folder that cannot be read has none."""
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries:
            if any(fnmatchcase(entry.name, pattern) for pattern in self._ignore):
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    yield from self._files(Path(entry.path), f"{prefix}{entry.name}/")
                elif entry.is_file(follow_symlinks=False):
                    yield prefix + entry.name, entry.stat(follow_symlinks=False)
            except OSError:
                continue

    def _read(self, path: str, found: _Seen, known: _Seen | None) -> _Seen:
        """A file with its hash, its content put aside unless that is done already."""
        try:
            with open(self.root / path, "rb") as file:
                data = file.read(self._file_limit + 1)
        except OSError as error:
            return _with(found, "", -1, f"it cannot be read: {error.strerror}")
        name = sha256_hex(data)
        if known is not None and known.sha256 == name and known.size == len(data):
            return _with(found, name, known.offset, known.why)
        if self._size + len(data) > self._total_limit:
            return _with(found, name, -1, f"more than {self._total_limit:,} bytes would have to be put aside")
        if self._aside is None:
            import tempfile  # 10 ms of import, which only a watch needs

            self._aside = tempfile.TemporaryFile(prefix="turnlog-")  # noqa: SIM115 - open as long as the recorder
        self._aside.seek(self._size)
        self._aside.write(data)
        offset, self._size = self._size, self._size + len(data)
        return _Seen(len(data), found.mtime, found.inode, found.mode, found.settled, name, offset)

    def _kept(self, seen: _Seen) -> str:
        """The blob of a file as it was seen."""
        if self._aside is None:
            return ""
        self._aside.seek(seen.offset)
        return self._put_blob(self._aside.read(seen.size))

    def _compared(
        self, before: dict[str, _Seen], after: dict[str, _Seen], call_record: int
    ) -> tuple[list[FileChange], list[LeftOut]]:
        changes: list[FileChange] = []
        left_out: list[LeftOut] = []
        moved = _moved(before, after)
        for path in sorted(before.keys() | after.keys()):
            old_path = moved.get(path, path)
            was, now = before.get(old_path), after.get(path)
            went = now is None and path in moved.values()
            if went or (old_path == path and was is not None and now is not None and _same(was, now)):
                continue
            why = next((seen.why for seen in (was, now) if seen is not None and seen.offset < 0), "")
            if why:
                left_out.append(LeftOut(path, why))
                continue
            change = FileChange(
                path=path,
                action="renamed" if old_path != path else _action(was, now),
                before="" if was is None else self._kept(was),
                after="" if now is None else self._kept(now),
                old_path="" if old_path == path else old_path,
                call_record=call_record,
                old_mode="" if was is None else was.mode,
                mode="" if now is None else now.mode,
            )
            changes.append(change)
        return changes, left_out


def _with(seen: _Seen, sha256: str, offset: int, why: str) -> _Seen:
    return _Seen(seen.size, seen.mtime, seen.inode, seen.mode, seen.settled, sha256, offset, why)


def _same(was: _Seen, now: _Seen) -> bool:
    if was.sha256 and now.sha256:
        return was.sha256 == now.sha256 and was.mode == now.mode
    return was.is_like(now)


def _action(was: _Seen | None, now: _Seen | None) -> Literal["modified", "created", "deleted"]:
    return "created" if was is None else "deleted" if now is None else "modified"


def _moved(before: dict[str, _Seen], after: dict[str, _Seen]) -> dict[str, str]:
    """New places of files that went from elsewhere with all they held, and where they were."""
    gone: dict[str, list[str]] = {}
    for path in sorted(before.keys() - after.keys(), reverse=True):
        if before[path].sha256 and before[path].size:
            gone.setdefault(before[path].sha256, []).append(path)
    moved: dict[str, str] = {}
    for path in sorted(after.keys() - before.keys()):
        if places := gone.get(after[path].sha256):
            moved[path] = places.pop()
    return moved
