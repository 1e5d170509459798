"""The net change of each file over a session, or over one turn of it, computed from records.

It keeps one entry for each file, and no contents. A file that was created and deleted again gives no change; one that
was renamed and then changed gives one rename. Contents are read only for a difference (`file_diff`), one file at a
time.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from ...errors import BlobMissing, InputError
from ...log.records import FileChange, Record
from .hunks import Hunk, apply_hunks, hunks_between, read_hunks, reverse_hunks
from .matching import EqualLines, shared_runs
from .patch import Action, FileDiff, diff_contents, diff_hunks
from .paths import common_root, is_inside, place_of, relative_to

# -- composing -------------------------------------------------------------------------------------
#
# Combines several patches of one file into one, without knowing the file.
#
# A patch contains some lines of the file and their positions. Each old line is represented by its number until a
# patch contains its text. In the end, the remaining lines are compared with the original ones.

_LINES = 1_000_000
"""The highest line number that a patch may reach; all lines before it are represented one by one."""

_UNKNOWN = b"\0"
"""The beginning of a placeholder for a line whose text is not known. Texts that have patches never contain it."""

_Line = int | bytes
"""An old line, as its number (from 0), or the text of a new line."""


def compose(patches: Iterable[tuple[Hunk, ...]]) -> tuple[Hunk, ...]:
    """The hunks that do the same as `patches` applied one after the other. Raises InputError if a patch does not fit
    the result of those before it."""
    texts: dict[int, bytes] = {}
    lines: list[_Line] = []
    length = 0
    for number, hunks in enumerate(patches, 1):
        shift = end = 0
        for hunk in hunks:
            start = hunk.old_start - 1 + shift if hunk.old_count else hunk.old_start + shift
            missing = start + hunk.old_count - len(lines)
            if start < end or length + missing > _LINES:
                raise InputError(f"patch {number}: its hunks are out of order, or reach beyond line {_LINES:,}")
            end = start + hunk.new_count
            lines += range(length, length + missing)
            length += max(missing, 0)
            lines[start : start + hunk.old_count] = _spliced(lines, start, hunk, texts, number)
            shift += hunk.new_count - hunk.old_count
    old = [_shown(line, texts) for line in range(length)]
    new = [_shown(line, texts) for line in lines]
    return tuple(part for hunk in hunks_between(old, new, _runs(lines, old, new)) for part in _known_parts(hunk))


def _runs(lines: list[_Line], old: list[bytes], new: list[bytes]) -> list[EqualLines]:
    """The shared lines: old lines that are still there, and between them lines that were removed and added again.

    Computed in this way, each change keeps the unchanged lines around it that its patch contained: git expects a hunk
    without any after it at the end of the file.
    """
    runs: list[EqualLines] = []
    low = new_low = 0
    for place, line in enumerate([*lines, len(old)]):
        if isinstance(line, int):
            between = shared_runs(old[low:line], new[new_low:place])
            runs += [EqualLines(low + run.old, new_low + run.new, run.length) for run in between]
            runs.append(EqualLines(line, place, 1))
            low, new_low = line + 1, place + 1
    return runs[:-1]


def _spliced(lines: list[_Line], start: int, hunk: Hunk, known: dict[int, bytes], number: int) -> list[_Line]:
    """The lines that replace a hunk's old lines. The texts of unknown lines in the hunk are added to `known`."""
    new_lines: list[_Line] = []
    place = start
    for text in hunk.lines:
        if text[:1] == b"+":
            new_lines.append(text[1:])
            continue
        line = lines[place]
        place += 1
        if text[1:2] == _UNKNOWN:
            raise InputError(f"patch {number} is not a text patch")
        if text[1:] != (known.setdefault(line, text[1:]) if isinstance(line, int) else line):
            raise InputError(f"patch {number} cannot be applied to the result of the patches before it")
        if text[:1] == b" ":
            new_lines.append(line)
    return new_lines


def _shown(line: _Line, known: dict[int, bytes]) -> bytes:
    if isinstance(line, bytes):
        return line
    return known.get(line, b"%b%d\n" % (_UNKNOWN, line))


def _known_parts(hunk: Hunk) -> Iterator[Hunk]:
    """The hunk without its unknown lines, split at each of them."""
    old, new = hunk.old_start - bool(hunk.old_count), hunk.new_start - bool(hunk.new_count)
    part: list[bytes] = []
    for text in [*hunk.lines, b" " + _UNKNOWN]:
        if text[1:2] != _UNKNOWN:
            part.append(text)
            continue
        old_count, new_count = (sum(line[:1] != sign for line in part) for sign in (b"+", b"-"))
        if any(line[:1] != b" " for line in part):
            yield Hunk(old + bool(old_count), old_count, new + bool(new_count), new_count, tuple(part))
        old, new = old + old_count + 1, new + new_count + 1
        part = []


_Blob = Callable[[str], bytes]


class FileStep(Struct, frozen=True, repr_omit_defaults=True):
    """A recorded change of a file's content: the hashes before and after, None if unknown, and the hash of a patch that
    leads from one to the other, "" if there is none."""

    before: str | None
    after: str | None
    patch: str = ""


class NetChange(Struct, frozen=True, repr_omit_defaults=True):
    """The net change of one file over a range of records.

    Paths are relative to the root if the file is inside it. `steps` lead from the earlier content to the present one;
    consecutive steps with known contents are merged. `records` are the numbers of the first and last record about the
    file.
    """

    path: str
    action: Action
    old_path: str = ""
    old_mode: str = ""
    mode: str = ""
    steps: tuple[FileStep, ...] = ()
    old_steps: tuple[FileStep, ...] | None = None
    records: tuple[int, int] = (0, 0)

    @property
    def applies(self) -> bool:
        """Whether the change may be part of a patch: its paths stay inside the root."""
        return is_inside(self.path) and (not self.old_path or is_inside(self.old_path))


class _File(Struct):
    """A file while the records are read. `origin` is its path before the first record, None if it did not exist;
    `place` is its path now, None if it was deleted."""

    origin: str | None
    place: str | None
    steps: list[FileStep]
    old_mode: str
    mode: str
    first: int
    last: int


def net_changes(records: Iterable[Record], *, root: str = "") -> list[NetChange]:
    """The net change of each file over these records, by path; records of other kinds are ignored.

    Paths are given relative to `root`. If `root` is relative, it starts from `root_of` these records; if it is empty,
    it is `root_of`. The same change may be recorded several times, by nested watches.
    """
    changes = [(record.n, record.body) for record in records if isinstance(record.body, FileChange)]
    fold = _Fold(common_root(change.root for _, change in changes))
    for n, change in changes:
        fold.take(n, change)
    shown = place_of(root, root_of(change for _, change in changes))
    return sorted((_relative(change, shown) for change in fold.net()), key=lambda change: change.path)


def root_of(changes: Iterable[FileChange]) -> str:
    """The folder that paths are shown relative to: the working folder, or the folder that contains all working folders,
    as far as the changes name them. Otherwise, if all paths are absolute, the folder that contains all files. "" if
    paths are relative already."""
    roots, folders = dict[str, None](), dict[str, None]()
    for change in changes:
        roots.setdefault(change.root)
        folders.setdefault(posixpath.dirname(place_of(change.path, change.root)))
    if common := common_root(roots):
        return common
    return posixpath.commonpath(folders) if folders and all(folder.startswith("/") for folder in folders) else ""


def _relative(change: NetChange, root: str) -> NetChange:
    return replace(change, path=relative_to(change.path, root), old_path=relative_to(change.old_path, root))


class _Fold:
    """The files in the records so far: existing ones by path, and deleted ones.

    A path that was named before and has no file now is known to be empty: a record of a file that left it repeats a
    change that an outer or inner watch has recorded already. `home` is the root for relative paths in records without a
    root.
    """

    def __init__(self, home: str) -> None:
        self._home = home
        self._there: dict[str, _File] = {}
        self._gone: list[_File] = []
        self._met_places: set[str] = set()
        self._last_gone: dict[str, _File] = {}

    def take(self, n: int, change: FileChange) -> None:
        """Add one change."""
        root = change.root or self._home
        place = place_of(change.path, root)
        if change.action == "renamed":
            self._renamed(n, change, place_of(change.old_path, root), place)
            return
        file = self._there.get(place)
        if file is None:
            was_there = change.action != "created" and place not in self._met_places
            file = self._there[place] = self._met(n, change, place if was_there else None, place)
        file.last = n
        if change.action == "deleted":
            self._leave(self._there.pop(place), place, FileStep(change.before or None, ""))
            return
        if not file.mode and file.origin is not None:
            file.old_mode = file.old_mode or change.old_mode
        file.mode = change.mode or file.mode
        before = "" if file.origin is None and not file.steps else change.before or None
        _step(file, FileStep(before, change.after or None, change.patch))

    def _met(self, n: int, change: FileChange, origin: str | None, place: str) -> _File:
        """A file that these records name for the first time."""
        self._met_places.update((origin or place, place))
        return _File(origin, place, [], "" if origin is None else change.old_mode, change.mode, n, n)

    def _renamed(self, n: int, change: FileChange, old: str, new: str) -> None:
        file = self._there.pop(old, None)
        if file is None and old in self._met_places:
            file = self._again(n, change, old, new)
        file = file or self._met(n, change, old, new)
        over = self._there.pop(new, None)
        if over is not None and over is not file:
            over.last = n
            self._leave(over, new, FileStep(None, ""))
        self._met_places.add(new)
        file.place, file.last, file.mode = new, n, change.mode or file.mode
        self._there[new] = file
        if change.before or change.after or change.patch:
            _step(file, FileStep(change.before or None, change.after or None, change.patch))

    def _again(self, n: int, change: FileChange, old: str, new: str) -> _File:
        """The file of a repeated rename from a path without a file: the file at the new path if there is one; otherwise
        the file that was recorded as deleted from the old path; otherwise a new one."""
        existing, gone = self._there.get(new), self._last_gone.get(old)
        if existing is not None:
            return existing
        if gone is not None and change.after:
            self._gone.remove(self._last_gone.pop(old))
            return gone
        return self._met(n, change, None, new)

    def _leave(self, file: _File, place: str, step: FileStep) -> None:
        """A file was deleted, or replaced by another."""
        if file.origin is not None:
            _step(file, step)
            file.place = None
            self._gone.append(file)
            self._last_gone[place] = file

    def net(self) -> Iterator[NetChange]:
        """The net changes."""
        files = [*self._there.values(), *self._gone]
        before = {file.origin: file for file in files if file.origin is not None}
        after = {file.place: file for file in files if file.place is not None}
        for place in sorted(before.keys() | after.keys()):
            earlier, present = before.get(place), after.get(place)
            if present is None and earlier is not None:
                if earlier.place is None or earlier.place in before:  # gone, or moved to where another file was
                    yield _net(earlier, place, "deleted")
            elif earlier is None and present is not None:
                if present.origin is None or present.origin in after:
                    yield _net(present, place, "created")
                else:
                    yield _net(present, place, "renamed", present.origin)
            elif present is earlier and present is not None:
                if not _is_same(present):
                    yield _net(present, place, "modified")
            elif (
                earlier is not None
                and present is not None
                and (change := _replaced(earlier, present, place)) is not None
            ):
                yield change


def _step(file: _File, step: FileStep) -> None:
    """Add a step. If it continues from a step with a known beginning and has a known end, the two become one."""
    if file.steps and file.steps[-1].before is not None and step.after is not None:
        step = FileStep(file.steps.pop().before, step.after)
    file.steps.append(step)


def _is_same(file: _File) -> bool:
    ends = [(step.before, step.after) for step in file.steps]
    same = not ends or (len(ends) == 1 and ends[0][0] is not None and ends[0][0] == ends[0][1])
    return same and not _other_mode(file.old_mode, file.mode)


def _other_mode(old: str, new: str) -> bool:
    return bool(old and new and old != new)


def _net(file: _File, place: str, action: Action, old_path: str = "") -> NetChange:
    return NetChange(
        path=place,
        action=action,
        old_path=old_path,
        old_mode="" if action == "created" else file.old_mode,
        mode="" if action == "deleted" else file.mode,
        steps=tuple(file.steps),
        records=(file.first, file.last),
    )


def _replaced(was: _File, now: _File, place: str) -> NetChange | None:
    """The change of a path at which another file is now; None if it has the same content and mode."""
    before = was.steps[0].before if was.steps else None
    after = now.steps[-1].after if now.steps else None
    if before is not None and before == after and not _other_mode(was.old_mode, now.mode):
        return None
    records = min(was.first, now.first), max(was.last, now.last)
    return NetChange(place, "modified", "", was.old_mode, now.mode, tuple(now.steps), tuple(was.steps), records)


def file_diff(change: NetChange, blob: _Blob) -> FileDiff | None:
    """The difference for a net change; `blob` returns contents by hash. None if too little is recorded. Raises
    BlobMissing as `blob` does."""
    facts = {"old_path": change.old_path, "old_mode": change.old_mode, "mode": change.mode}
    if not change.steps and change.action == "renamed":
        return diff_hunks(change.path, (), **facts)
    before, after = _ends(change.steps, blob)
    if change.old_steps is not None:
        before = _ends(change.old_steps, blob)[0]
    before = b"" if change.action == "created" else before
    after = b"" if change.action == "deleted" else after
    if before is not None and after is not None:
        return diff_contents(change.path, change.action, before, after, **facts)
    if change.old_steps is not None or change.action not in ("modified", "renamed"):
        return None
    try:
        return diff_hunks(change.path, compose(_patch(step, blob) for step in change.steps), **facts)
    except InputError:
        return None


def differences(changes: Iterable[NetChange], blob: _Blob) -> Iterator[tuple[NetChange, FileDiff | str]]:
    """Each net change with its difference, or with the reason why there is none. Changes that left their file as it was
    are left out."""
    for change in changes:
        difference: FileDiff | str
        try:
            difference = file_diff(change, blob) or "its change was not recorded"
        except BlobMissing as error:
            difference = str(error)
        if isinstance(difference, str) or not difference.is_nothing:
            yield change, difference


def _ends(steps: tuple[FileStep, ...], blob: _Blob) -> tuple[bytes | None, bytes | None]:
    """The first and the last content, computed with patches if necessary; None for a content that cannot be
    computed."""
    if not steps:
        return None, None
    return _follow(steps, blob, back=True), _follow(steps, blob, back=False)


def _follow(steps: tuple[FileStep, ...], blob: _Blob, *, back: bool) -> bytes | None:
    """The content at one end, computed with patches from the nearest step with a known content."""
    way = steps if back else steps[::-1]
    pending: list[FileStep] = []
    for step in way:
        near, far = (step.before, step.after) if back else (step.after, step.before)
        for name, over in ((near, pending), (far, [*pending, step])):
            if name is not None:
                return _patched(blob(name) if name else b"", over, blob, back=back)
        pending.append(step)
    return None


def _patched(content: bytes, steps: list[FileStep], blob: _Blob, *, back: bool) -> bytes | None:
    """`content` after the patches of `steps`, applied from the last to the first; None if a patch is missing or does
    not fit."""
    try:
        for step in reversed(steps):
            hunks = _patch(step, blob)
            content = apply_hunks(content, reverse_hunks(hunks) if back else hunks)
    except InputError:
        return None
    return content


def _patch(step: FileStep, blob: _Blob) -> tuple[Hunk, ...]:
    """The hunks of a step. Raises InputError if none are on record."""
    if not step.patch:
        raise InputError("what this step changed is not on record")
    return read_hunks(blob(step.patch))
