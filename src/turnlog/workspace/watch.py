"""File changes as they happen: recorded one by one, or found by comparing a folder before and after.

Only files that changed become blobs of the store. Each change is recorded once and in order, even if watches are
nested: when a watch begins, the open ones first record the changes that only they could see; and the changes that a
watch records are not recorded again by the others.
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
from .diff.paths import is_inside, place_of, relative_to
from .snapshot import Folder, SeenFile, differences

IGNORED = (
    *(".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".gradle", ".DS_Store"),
)
"""Names of folders and files that are not watched: those that tools keep for themselves and can create again. You can
also give patterns as in a shell (`*.log`). `.gitignore` is not read."""

FILE_LIMIT = 5 << 20
"""The most bytes of a file that is read."""

TOTAL_LIMIT = 256 << 20
"""The most bytes that a recorder saves of all files together, on disk."""

_PERHAPS = "; only its time of last change differs, so its content may be the same"


def folder_given(root: str | Path) -> str | Path:
    """`root`, if it can be a folder, whether it exists or not; otherwise raises InputError, as watching a file would
    find no files."""
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
    """A file whose change is not recorded, and why."""

    path: str
    why: str


class Watched(Struct):
    """The result of a watch, complete when the watch ends: the records of changes, without those recorded by others
    during the watch, and the files that were left out."""

    records: tuple[Record, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


class Watches:
    """The open watches of one session."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.open: list[_Watch] = []

    def look(self) -> None:
        """Record what changed until now: first what the innermost sees, which the others then leave alone."""
        with self.lock:
            for watch in reversed(self.open):
                watch.record_changes()

    def forget(self) -> None:
        """Record nothing when they end."""
        with self.lock:
            self.open.clear()


class FileRecorder:
    """Records changes of the files under `root`. `append` records bodies, `put_blob` keeps contents, `watches` are the
    watches that record in the same log.

    Close it, or use it as a context manager, to delete the contents that it saved.
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
        self._real = os.path.realpath(root)  # two names of a folder give one root
        self.folder = Folder(self.root, ignore, file_limit, total_limit)
        self._append = append
        self._put_blob = put_blob
        self._watches = watches or Watches()

    def __enter__(self) -> FileRecorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the saved contents."""
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
        """Record that a file changed, with its content before and after, None if there was or is no file. `old_path` is
        its earlier path, if it was renamed. If nothing changed, nothing is recorded.

        `call_record` is the number of the message record whose call changed the file. Raises InputError for a path
        outside the root.
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
                if watch.differs_from(change, "" if before is None else sha256_hex(before)):
                    watch.record_changes()
            return self.put_on_record([change], [])[0]

    def place(self, path: str | Path) -> str:
        """A path in the form that is recorded: relative to the root, with `/`, and with links to folders under the root
        resolved. Raises InputError if it is outside the root."""
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
        """A place with links to folders under the root resolved: watches record it in this form, and git accepts no
        other."""
        folder, _, name = place.rpartition("/")
        real = place_of(os.path.realpath(os.path.join(self._real, folder)))
        inside = relative_to(f"{real}/{name}", place_of(self._real))
        return inside if folder and is_inside(inside) else place

    def told_of(self, change: FileChange, *, old: bool = False) -> str:
        """The path, under the root, of the file in a recorded change; with `old`, its path before the change. Empty if
        the file is elsewhere."""
        place = place_of((old and change.old_path) or change.path, change.root or self._real)
        path = relative_to(place, place_of(self._real))
        return "" if path == place else path

    @contextmanager
    def watch(self, *, call_record: int = 0) -> Iterator[Watched]:
        """Take a snapshot of the folder now and when the block ends, however it ends, and record what changed.

        Links are not followed and not recorded. A new file with the content of one that disappeared is recorded as
        renamed. Files that were left out are listed in a note, and in the `Watched` that this yields. Changes recorded
        during the watch, one by one or by a watch inside it, are not recorded again. Changes that an inner watch could
        not see are recorded when it begins.
        """
        with self._watches.lock:
            for open_watch in self._watches.open:
                open_watch.record_changes()
            mine = _Watch(self, call_record)
            self._watches.open.append(mine)
        try:
            yield mine.found
        finally:
            with self._watches.lock:
                if mine in self._watches.open:  # it is not if the session was lost
                    self._watches.open.remove(mine)
                    mine.record_changes()

    def touched(self, since: datetime, records: Iterable[Record] = ()) -> list[str]:
        """The files that were created, changed or moved at `since` or later according to their times, and whose newest
        change in `records` does not account for that. Deleted files cannot be found."""
        recorded: dict[str, tuple[str, float]] = {}
        for record in records:
            if isinstance(record.body, FileChange):
                try:
                    seconds = datetime.fromisoformat(record.time).timestamp()
                except ValueError:  # a store accepts any text as a time; then no file counts as later
                    seconds = 1e10
                recorded[self.told_of(record.body)] = record.body.after, seconds
        return self.folder.touched(since.timestamp(), recorded)

    def changed(
        self, before: Mapping[str, SeenFile], after: Mapping[str, SeenFile], call_record: int
    ) -> tuple[list[FileChange], list[LeftOut]]:
        """The changes between two snapshots, with their contents kept as blobs; and the files that are left out."""
        changes: list[FileChange] = []
        left_out: list[LeftOut] = []
        for path, old_path, earlier, present in differences(before, after):
            why = next((seen.why for seen in (earlier, present) if seen is not None and seen.why), "")
            if why:
                perhaps = (
                    earlier is not None
                    and present is not None
                    and earlier.is_placed_like(present)
                    and earlier.mode == present.mode
                )
                left_out.append(LeftOut(path, why + _PERHAPS * perhaps))
                continue
            change = FileChange(
                path=path,
                action="renamed" if old_path != path else _action(earlier, present),
                before="" if earlier is None else self._kept(earlier),
                after="" if present is None else self._kept(present),
                old_path="" if old_path == path else old_path,
                call_record=call_record,
                old_mode="" if earlier is None else earlier.mode,
                mode="" if present is None else present.mode,
                root=self._real,
            )
            # Contents may be equal after their secrets were removed.
            if change.action != "modified" or (change.before, change.old_mode) != (change.after, change.mode):
                changes.append(change)
        return changes, left_out

    def put_on_record(self, changes: Sequence[FileChange], left_out: Sequence[LeftOut]) -> tuple[Record, ...]:
        """Record these changes, and a note about the files left out. Open watches will not record the changes again."""
        bodies: list[Body] = list(changes)
        if left_out:
            text = "changed, and not kept: " + "; ".join(f"{each.path} ({each.why})" for each in left_out)
            bodies.append(Note("files", text, [{"path": each.path, "why": each.why} for each in left_out]))
        records = self._append(*bodies) if bodies else ()
        for watch in self._watches.open:
            for change in changes:
                watch.take(change)
        return records

    def _kept(self, seen: SeenFile) -> str:
        """The blob of a file in a snapshot or in the log."""
        if seen.is_from_log:
            return seen.sha256
        content = self.folder.content(seen)
        return "" if content is None else self._put_blob(content)


class _Watch:
    """An open watch: the state of the folder when it began, updated with the changes recorded since."""

    def __init__(self, recorder: FileRecorder, call_record: int) -> None:
        self.found = Watched()
        self._recorder = recorder
        self._call_record = call_record
        self._before = recorder.folder.look()

    def record_changes(self) -> None:
        """Record the changes since the last call that are not recorded yet."""
        recorder, root = self._recorder, self._recorder.root
        after = recorder.folder.look()
        recorded = {path: seen for path, seen in self._before.items() if seen.is_from_log}
        # Snapshots skip links and ignored files, so a recorded file that is missing in one may still exist.
        skipped = {path for path in recorded if path not in after and os.path.lexists(root / path)}
        skipped |= {path for path, seen in recorded.items() if self._is_as_recorded(path, seen, after)}
        before, present = (
            {path: seen for path, seen in look.items() if path not in skipped} for look in (self._before, after)
        )
        changes, left_out = recorder.changed(before, present, self._call_record)
        self._before = after
        self.found.records += recorder.put_on_record(changes, left_out)
        self.found.left_out += tuple(left_out)

    def _is_as_recorded(self, path: str, recorded: SeenFile, after: Mapping[str, SeenFile]) -> bool:
        """Whether a file that is too large for snapshots to read has the recorded content."""
        present = after.get(path)
        unread = present is not None and not present.sha256 and present.mode == recorded.mode
        return unread and self._recorder.folder.holds(path, recorded.sha256)

    def differs_from(self, change: FileChange, before: str) -> bool:
        """Whether this watch has another state of a file than the one before `change`, whose hash is `before`."""
        path = self._recorder.told_of(change, old=True)
        was = self._before.get(path)
        known_hash = "" if was is None else was.sha256
        return bool(path) and known_hash != before and not (was is not None and was.why)

    def take(self, change: FileChange) -> None:
        """Update the state with a recorded change."""
        old, place = (self._recorder.told_of(change, old=old) for old in (True, False))
        was = self._before.get(old)
        if change.action == "renamed" or not change.after:
            self._before.pop(old, None)
        if place and change.after:
            mode = change.mode or (was.mode if was is not None else "" if os.name == "nt" else "100644")
            self._before[place] = SeenFile(0, 0, 0, 0, mode, False, change.after)


def _action(was: SeenFile | None, now: SeenFile | None) -> Literal["modified", "created", "deleted"]:
    return "created" if was is None else "deleted" if now is None else "modified"
