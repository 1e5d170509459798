"""File changes as they happen: recorded one by one, or found by looking at a folder before and after.

Only files that changed become blobs of the store. What happens is recorded once and in order, though watches stand
inside of each other: one that begins has those that are open tell what they alone could see, and what it tells is
news to none of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import Literal

from msgspec import Struct

from .._platform.paths import from_here
from ..errors import InputError
from ..log.messages import sha256_hex
from ..log.records import Body, FileChange, Note, Record
from .diff import is_inside, place_of, relative_to
from .snapshot import Folder, Seen, differences

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

_PERHAPS = "; only the time of its last change tells, so its content may be the same"


def folder_given(root: str | Path) -> str | Path:
    """`root`, if it can be a folder, there or not; else InputError: a look at a file finds no files in it."""
    try:
        text = os.fspath(root)
        wrong = not isinstance(text, str) or b"\0" in os.fsencode(text)
    except (TypeError, UnicodeEncodeError):
        wrong = True
    if wrong:
        raise InputError(f"the folder must be a path (str or Path), not {root!r}")
    if os.path.lexists(root) and not os.path.isdir(root):
        raise InputError(f"{text!r} is not a folder; give the folder that contains the file")
    from_here(root)
    return root


class LeftOut(Struct, frozen=True):
    """A file whose change is not on record, and why."""

    path: str
    why: str


class Watched(Struct):
    """What a watch found, complete when it ends: records of changes, without those that were recorded by others while
    it lasted, and files that were left out."""

    records: tuple[Record, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


class Watches:
    """The watches that are open in one session."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.open: list[_Watch] = []


class FileRecorder:
    """Records changes of the files under `root`. `append` records bodies, `put_blob` keeps contents, `watches` are
    those that record in the same log.

    Close it, or use it as a context manager, to let go of what it put aside.
    """

    def __init__(
        self,
        root: str | Path,
        append: Callable[..., tuple[Record, ...]],
        put_blob: Callable[[bytes], str],
        watches: Watches | None = None,
        *,
        ignore: Sequence[str] = IGNORED,
        file_limit: int = FILE_LIMIT,
        total_limit: int = TOTAL_LIMIT,
    ) -> None:
        self.root = Path(os.path.abspath(root))
        self._real = os.path.realpath(root)  # a folder that has two names is one
        self.folder = Folder(self.root, ignore, file_limit, total_limit)
        self._append = append
        self._put_blob = put_blob
        self._watches = watches or Watches()

    def __enter__(self) -> FileRecorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the contents that were put aside."""
        self.folder.close()

    def __repr__(self) -> str:
        return f"FileRecorder({str(self.root)!r})"

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
                raise InputError(f"{name} must be the file's content as bytes, not {type(data).__name__}; encode text")
        place, old = self.place(path), self.place(old_path) if old_path else ""
        if before == after and old in ("", place):
            return None
        if old and (before is None or after is None):
            raise InputError("old_path: for a rename give the content before and after; one of them is None")
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
            root=self._real,
        )
        with self._watches.lock:
            for watch in self._watches.open:
                if watch.doubts(change, "" if before is None else sha256_hex(before)):
                    watch.settle()
            return self.put_on_record([change], [])[0]

    def place(self, path: str | Path) -> str:
        """A path as it is recorded: relative to the root, with `/`, links to folders under the root followed. Raises
        InputError if it is outside."""
        if not isinstance(path, (str, os.PathLike)) or not isinstance(text := os.fspath(path), str):
            raise InputError(f"path must be the path of a file (str or Path), not {path!r}")
        for root in (str(self.root), self._real):
            place = relative_to(place_of(text, root), place_of(root))
            if is_inside(place):
                return self._real_place(place)
        raise InputError(
            f"{text!r} is not inside {str(self.root)!r}, or is part of .git; give the path of a file under that folder"
        )

    def _real_place(self, place: str) -> str:
        """A place without links to folders under the root on its way: a watch tells it so, and git takes no other."""
        folder, _, name = place.rpartition("/")
        real = place_of(os.path.realpath(os.path.join(self._real, folder)))
        found = relative_to(f"{real}/{name}", place_of(self._real))
        return found if folder and is_inside(found) else place

    def told_of(self, change: FileChange, *, old: bool = False) -> str:
        """The path under the root of the file that a change on record is of, as it was called before if `old`; empty if
        it is elsewhere."""
        place = place_of((old and change.old_path) or change.path, change.root or self._real)
        found = relative_to(place, place_of(self._real))
        return "" if found == place else found

    @contextmanager
    def watch(self, *, call_record: int = 0) -> Iterator[Watched]:
        """Look at the folder now and when the block ends, however it ends, and record what changed.

        Links are not followed and not recorded. A file that came to be with the content of one that went
        is renamed. What was left out is in a note, and in the `Watched` that this gives. What was recorded while it
        lasts, one by one or by a watch inside of it, is not recorded again; what such a one could not see is
        recorded when that begins.
        """
        with self._watches.lock:
            for one in self._watches.open:
                one.settle()
            mine = _Watch(self, call_record)
            self._watches.open.append(mine)
        try:
            yield mine.found
        finally:
            with self._watches.lock:
                self._watches.open.remove(mine)
                mine.settle()

    def touched(self, since: datetime, records: Iterable[Record] = ()) -> list[str]:
        """The files whose times say that they were made, changed or moved at `since` or later, and of which the newest
        of the changes among `records` does not tell that. That some are gone cannot be told."""
        told: dict[str, tuple[str, float]] = {}
        for record in records:
            if isinstance(record.body, FileChange):
                try:
                    at = datetime.fromisoformat(record.time).timestamp()
                except ValueError:  # a store holds any text; then nothing is of later
                    at = 1e10
                told[self.told_of(record.body)] = record.body.after, at
        return self.folder.touched(since.timestamp(), told)

    def changed(
        self, before: Mapping[str, Seen], after: Mapping[str, Seen], call_record: int
    ) -> tuple[list[FileChange], list[LeftOut]]:
        """The changes between two looks, their contents kept, and what is left out of them."""
        changes: list[FileChange] = []
        left_out: list[LeftOut] = []
        for path, old_path, was, now in differences(before, after):
            why = next((seen.why for seen in (was, now) if seen is not None and seen.why), "")
            if why:
                perhaps = was is not None and now is not None and was.is_placed_like(now) and was.mode == now.mode
                left_out.append(LeftOut(path, why + _PERHAPS * perhaps))
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
                root=self._real,
            )
            # Contents of which secrets were taken out may be the same then.
            if change.action != "modified" or (change.before, change.old_mode) != (change.after, change.mode):
                changes.append(change)
        return changes, left_out

    def put_on_record(self, changes: Sequence[FileChange], left_out: Sequence[LeftOut]) -> tuple[Record, ...]:
        """Record changes, and what is left out in a note; watches that are open take them for told."""
        bodies: list[Body] = list(changes)
        if left_out:
            text = "changed, and not kept: " + "; ".join(f"{each.path} ({each.why})" for each in left_out)
            bodies.append(Note("files", text, [{"path": each.path, "why": each.why} for each in left_out]))
        records = self._append(*bodies) if bodies else ()
        for watch in self._watches.open:
            for change in changes:
                watch.take(change)
        return records

    def _kept(self, seen: Seen) -> str:
        """The blob of a file as it was seen or told of."""
        if seen.is_told:
            return seen.sha256
        content = self.folder.content(seen)
        return "" if content is None else self._put_blob(content)


class _Watch:
    """A watch that is open: the folder as it was when it began, or as what is on record since says that it became."""

    def __init__(self, recorder: FileRecorder, call_record: int) -> None:
        self.found = Watched()
        self._recorder = recorder
        self._call_record = call_record
        self._before = recorder.folder.look()

    def settle(self) -> None:
        """Record what changed since the last time, and is not on record."""
        recorder, root = self._recorder, self._recorder.root
        after = recorder.folder.look()
        # A look passes over links and what is ignored: what was told of such a file is not denied.
        told = (path for path, seen in self._before.items() if seen.is_told and path not in after)
        passed = {path for path in told if os.path.lexists(root / path)}
        passed |= {path for path, seen in self._before.items() if seen.is_told and self._is_as_told(path, seen, after)}
        before, now = (
            {path: seen for path, seen in look.items() if path not in passed} for look in (self._before, after)
        )
        changes, left_out = recorder.changed(before, now, self._call_record)
        self._before = after
        self.found.records += recorder.put_on_record(changes, left_out)
        self.found.left_out += tuple(left_out)

    def _is_as_told(self, path: str, told: Seen, after: Mapping[str, Seen]) -> bool:
        """Whether a file that a look does not read, as it is too large, is what was told of it."""
        now = after.get(path)
        unread = now is not None and not now.sha256 and now.mode == told.mode
        return unread and self._recorder.folder.holds(path, told.sha256)

    def doubts(self, change: FileChange, before: str) -> bool:
        """Whether a file is not known as it was, by the hash `before`, when it was changed."""
        path = self._recorder.told_of(change, old=True)
        was = self._before.get(path)
        known = "" if was is None else was.sha256
        return bool(path) and known != before and not (was is not None and was.why)

    def take(self, change: FileChange) -> None:
        """Something is on record from here on."""
        old, place = (self._recorder.told_of(change, old=old) for old in (True, False))
        was = self._before.get(old)
        if change.action == "renamed" or not change.after:
            self._before.pop(old, None)
        if place and change.after:
            mode = change.mode or (was.mode if was is not None else "" if os.name == "nt" else "100644")
            self._before[place] = Seen(0, 0, 0, 0, mode, False, change.after)


def _action(was: Seen | None, now: Seen | None) -> Literal["modified", "created", "deleted"]:
    return "created" if was is None else "deleted" if now is None else "modified"
