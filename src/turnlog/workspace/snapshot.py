"""Snapshots of a folder: for each file its size, times and hash. Its content is saved to a temporary file.

So the earlier content is still available when the file turns out to have changed.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

from msgspec import Struct
from msgspec.structs import replace

from ..log.messages import sha256_hex

_FILES_LIMIT = 50_000

_RACY_NS = 2_000_000_000
"""A file that was written this short a time before a snapshot may be written again with the same time stamp (the
resolution is 2 s on FAT), so it is read again."""

_TICK_NS = 20_000_000
"""How far the time stamp that the system gives a file may be behind the system's clock."""

_NOTHING = sha256_hex(b"")


class SeenFile(Struct, frozen=True):
    """A file in a snapshot, or as the log describes it. `sha256` is empty if the file was not read; then `why` says
    why. `offset` is the position of its saved content, -1 if it was not saved. `stable`: no later write can have the
    same time stamp."""

    size: int
    mtime: int
    ctime: int
    inode: int
    mode: str
    stable: bool
    sha256: str = ""
    offset: int = -1
    why: str = ""

    @property
    def is_from_log(self) -> bool:
        """Whether this is the state according to the log, and not from a snapshot."""
        return self.offset < 0 and not self.why

    def is_same(self, now: SeenFile) -> bool:
        """Whether the file is unchanged: by its content if that is known on both sides, otherwise by its size, times
        and inode."""
        if self.sha256 and now.sha256:
            return self.sha256 == now.sha256 and self.mode == now.mode
        return self.is_like(now)

    def is_like(self, other: SeenFile) -> bool:
        """Whether size, times and inode are the same in both snapshots."""
        return self.is_placed_like(other) and self.ctime == other.ctime

    def is_placed_like(self, other: SeenFile) -> bool:
        """As `is_like`, but without ctime, which programs cannot set and which changes with the mode, too."""
        return (self.size, self.mtime, self.inode) == (other.size, other.mtime, other.inode)


class Folder:
    """A folder of which snapshots are taken. Names that match the patterns in `ignore` are skipped. `file_limit` is the
    most bytes of a file that is read, `total_limit` the most bytes of saved content."""

    def __init__(self, root: Path, ignore: Sequence[str], file_limit: int, total_limit: int) -> None:
        self.root = root
        self._ignore = tuple(ignore)
        self._file_limit = file_limit
        self._total_limit = total_limit
        self._saved: IO[bytes] | None = None
        self._size = 0
        self._last: dict[str, SeenFile] = {}

    def close(self) -> None:
        """Delete the saved contents."""
        if self._saved is not None:
            self._saved.close()
        self._saved, self._size, self._last = None, 0, {}

    def look(self) -> dict[str, SeenFile]:
        """Take a snapshot: the files by path, with `/`."""
        start = time.time_ns()
        seen: dict[str, SeenFile] = {}
        for path, status in self.files():
            if isinstance(status, OSError):
                why = f"it could not be examined: {status.strerror}; it may be unchanged"
                seen[path] = SeenFile(-1, 0, 0, 0, "", False, why=why)
                continue
            mode = "" if os.name == "nt" else "100755" if status.st_mode & stat.S_IXUSR else "100644"
            stable = max(status.st_mtime_ns, status.st_ctime_ns) < start - _RACY_NS
            seen_file = SeenFile(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, mode, stable)
            previous = self._last.get(path)
            if previous is not None and previous.stable and previous.is_like(seen_file):
                seen_file = replace(seen_file, sha256=previous.sha256, offset=previous.offset, why=previous.why)
            elif len(seen) >= _FILES_LIMIT:
                seen_file = replace(seen_file, why=f"there are more than {_FILES_LIMIT:,} files")
            elif status.st_size > self._file_limit:
                seen_file = replace(seen_file, why=f"{status.st_size:,} bytes, the limit is {self._file_limit:,}")
            elif (read := self._read(path, seen_file, previous)) is None:
                continue
            else:
                seen_file = read
            seen[path] = seen_file
        if any(file.ctime > start - _TICK_NS for file in seen.values() if not file.sha256):
            time.sleep(_TICK_NS / 1e9)  # later writes to files that were not read get another time stamp
        self._last = seen
        return seen

    def files(self) -> Iterator[tuple[str, os.stat_result | OSError]]:
        """The regular files under the folder, each with its status. Files deleted meanwhile are left out. A folder that
        cannot be listed is given as a path that ends with `/`, with the error; the folder itself is then `/`."""
        waiting = list(self._entries("", os.fspath(self.root)))
        while waiting:
            path, entry = waiting.pop()
            if isinstance(entry, OSError):
                yield path, entry
                continue
            if any(fnmatchcase(entry.name, pattern) for pattern in self._ignore):
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting += self._entries(f"{path}/", entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield path, entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                yield path, error

    def _entries(self, prefix: str, folder: str) -> list[tuple[str, os.DirEntry[str] | OSError]]:
        """The entries of a folder, the last first; or the error that prevents listing it, unless the folder does not
        exist."""
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name, reverse=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            return [(prefix or "/", error)]
        return [(prefix + entry.name, entry) for entry in entries]

    def _read(self, path: str, found: SeenFile, known: SeenFile | None) -> SeenFile | None:
        """A file with its hash. Its content is saved unless it was saved before. None if the file was deleted
        meanwhile. The size is that of the content read, because the file may have been written since its status was
        taken."""
        try:
            with open(self.root / path, "rb") as file:
                data = file.read(self._file_limit + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return replace(found, why=f"it cannot be read: {error.strerror}")
        if len(data) > self._file_limit:
            why = f"it grew while it was read, the limit is {self._file_limit:,} bytes"
            return replace(found, why=why, size=len(data))
        name = sha256_hex(data)
        if known is not None and known.sha256 == name and known.size == len(data):
            return replace(found, sha256=name, offset=known.offset, why=known.why, size=len(data))
        if self._size + len(data) > self._total_limit:
            return replace(found, sha256=name, why=f"more than {self._total_limit:,} bytes would have to be saved")
        if self._saved is None:
            import tempfile  # 10 ms of import, which only a watch needs

            self._saved = tempfile.TemporaryFile(prefix="turnlog-")  # noqa: SIM115 - open as long as the recorder
        self._saved.seek(self._size)
        self._saved.write(data)
        offset, self._size = self._size, self._size + len(data)
        return replace(found, sha256=name, offset=offset, size=len(data))

    def touched(self, since: float, recorded: Mapping[str, tuple[str, float]] | None = None) -> list[str]:
        """The files that were created, changed or moved at `since` (seconds since 1970) or later, according to their
        times. `recorded` is the last recorded hash and time of files, by path: such a file is left out unless it is
        newer and has another content."""
        least = int(since * 1000) * 1_000_000 - _TICK_NS
        paths = []
        for path, status in self.files():
            if isinstance(status, OSError) or (time := max(status.st_mtime_ns, status.st_ctime_ns)) < least:
                continue
            sha256, seconds = (recorded or {}).get(path, ("", 0.0))
            # Recorded content without its secrets has another hash, so compare times (in milliseconds) first.
            if not seconds or (time > (int(seconds * 1000) + 1) * 1_000_000 and not self.holds(path, sha256)):
                paths.append(path)
        return paths

    def holds(self, path: str, sha256: str) -> bool:
        """Whether a file has the content with this hash, however large it is; False if it cannot be read."""
        try:
            with open(self.root / path, "rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == sha256
        except OSError:
            return False

    def content(self, seen: SeenFile) -> bytes | None:
        """The saved content of a file; None if this folder was closed."""
        if self._saved is None:
            return None
        self._saved.seek(seen.offset)
        return self._saved.read(seen.size)


def differences(
    before: Mapping[str, SeenFile], after: Mapping[str, SeenFile]
) -> Iterator[tuple[str, str, SeenFile | None, SeenFile | None]]:
    """The files that changed, by path: the present path, the earlier path, the earlier state and the present state. A
    new file with the whole content of one that disappeared is the same file, renamed. For a file in a folder that could
    not be listed, the state is that of the folder."""
    moved = _moved(before, after)
    went = set(moved.values())
    for path in sorted(before.keys() | after.keys()):
        old_path = moved.get(path, path)
        if path.endswith("/") or (path in went and path not in after):
            continue
        earlier, present = _seen(old_path, before), _seen(path, after)
        if old_path != path or earlier is None or present is None or not earlier.is_same(present):
            yield path, old_path, earlier, present


def _seen(path: str, look: Mapping[str, SeenFile]) -> SeenFile | None:
    """A file in a snapshot, or the folder above it that could not be listed."""
    if path in look:
        return look[path]
    ends = (place for place, char in enumerate(path, 1) if char == "/")
    return next((look[folder] for folder in ("/", *(path[:end] for end in ends)) if folder in look), None)


def _moved(before: Mapping[str, SeenFile], after: Mapping[str, SeenFile]) -> dict[str, str]:
    """The new paths of files that disappeared elsewhere with the same content, each with the old path."""
    gone: dict[str, list[str]] = {}
    for path in sorted(before.keys() - after.keys(), reverse=True):
        if before[path].sha256 not in ("", _NOTHING) and _seen(path, after) is None:
            gone.setdefault(before[path].sha256, []).append(path)
    moved: dict[str, str] = {}
    for path in sorted(after.keys() - before.keys()):
        if _seen(path, before) is None and (places := gone.get(after[path].sha256)):
            moved[path] = places.pop()
    return moved
