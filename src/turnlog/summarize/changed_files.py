"""The files that calls changed, each with its last state: one fold for the memory of a session and for its digests.

A call that did not run, or that failed, changed nothing; a change that was taken back is none. Files of one folder
share a line, and folders that begin alike a line above them, so that many files take little room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from .._platform.lazy import lazy_pattern
from ..log.messages import ToolCall
from ..view.file_edits import BY_SHELL, FOLDER, TreeChange, changed_before_last, shell_text, tree_changes, words_of
from .failures import Failure
from .reading import Said
from .sections import SectionLine

# -- lines -----------------------------------------------------------------------------------------

_LEAST_ROOT = 8  # characters of a folder that is worth a line of its own
_LEAST_LINE = len("a edited [1]")  # characters that a file takes at least
_MORE = "{} more, changed before these"
_STATED = lazy_pattern(r"(?:, )?(.+?) ((?:created|edited|deleted|moved|undone)[a-z ]*) \[(\d+)\]")


class FileState(NamedTuple):
    """A file that was changed: its path, what was done to it last, and the record that says so."""

    path: str
    state: str
    record: int


class FileStates(NamedTuple):
    """The files that were changed, the last changed first, and how many `more` were changed before these."""

    states: Sequence[FileState]
    more: int = 0


def lines_of(files: FileStates, room: float) -> list[SectionLine]:
    """The lines of the section for `files`: as many of them as have `room` characters. A last line says how many more
    there are."""
    low, high = 0, min(len(files.states), int(min(max(0, room), 1 << 30)) // _LEAST_LINE + 1)
    notes = [*map(_note, files.states[:high])]
    whole = len(files.states) + files.more
    while low < high:
        middle = (low + high + 1) // 2
        size = sum(len(text) + 1 for text in _texts(notes[:middle], whole))
        low, high = (middle, high) if size <= room else (low, middle - 1)
    return [SectionLine(place, text) for place, text in enumerate(_texts(notes[:low], whole))] if low else []


def _note(file: FileState) -> tuple[str, str]:
    """The folder of a file, and what is said of it there."""
    folder, slash, name = " ".join(file.path.splitlines()).rpartition("/")
    return folder + slash, f"{name} {file.state} [{file.record}]"


def _texts(notes: Sequence[tuple[str, str]], whole: int) -> list[str]:
    """The lines that say this of files, and how many there are beside these on the `whole`."""
    folders: dict[str, list[str]] = {}
    for folder, note in notes:
        folders.setdefault(folder, []).append(note)
    root = _root([folder for folder in folders if folder.startswith("/")]) or _root([*folders])
    lines = [f"in {root}" for _ in range(1) if root]
    for folder, names in folders.items():
        place = folder.removeprefix(root) if root and folder.startswith(root) else folder
        lines.append(f"{place or './'}: {', '.join(names)}")
    if len(notes) < whole:
        lines.append(_MORE.format(whole - len(notes)))
    return lines


def _root(folders: Sequence[str]) -> str:
    """The folder that all of `folders` are in, if naming it once saves room."""
    if len(folders) < 2:
        return ""
    first, last = min(folders), max(folders)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    root = first[: first.rfind("/", 0, same) + 1]
    return root if len(root) >= _LEAST_ROOT else ""


def states_in(lines: Iterable[str]) -> list[FileState]:
    """The files that lines as of `lines_of` name, for a digest that has to go on from an earlier one."""
    root, states = "", []
    for line in lines:
        folder, colon, names = line.partition(": ")
        if line.startswith("in ") and not colon:
            root = line[3:]
        elif colon:
            place = folder if folder.startswith(("/", "~")) else root + ("" if folder == "./" else folder)
            states += [FileState(place + name, state, int(n)) for name, state, n in _STATED.findall(names)]
    return states


# -- what a call does to files ---------------------------------------------------------------------

State = Literal["", "read", "edited", "created", "deleted", "moved", "undone", "failed", "worked", "open", "fixed"]
"""What became of a thing: of a file what was done to it last, of a command how it ended, of an error whether the call
that failed has worked since. "" if it was only mentioned. A file is `undone` once git took its changes back."""

_FOLDER_KEYS = ("workdir", "cwd", "dir_path", "directory")
_CREATED = lazy_pattern(r"(?<![a-z])(?:creat|add)")
_WRITTEN = lazy_pattern(r"(?<![a-z])(?:writ|sav|overwrit|touch)")
_DELETED = lazy_pattern(r"(?<![a-z])(?:delet|remov|rm(?![a-z]))")
_MOVED = lazy_pattern(r"(?<![a-z])(?:mov|renam)")
_UNDONE = lazy_pattern(r"(?<![a-z])undone")
# What a program says that was to change files and could not.
_COULD_NOT = lazy_pattern(r"(?:^|\n)[ \t]*(?:\S*/)?(?:sed|perl|rm|mv|cp|tee|touch|git|patch): |: cannot create ")
_COMMITTED = lazy_pattern(r"(?:^|\n)\[\S+ (?:\(root-commit\) )?[0-9a-f]{7,40}\] ")  # by git


class FileWrite(NamedTuple):
    """A change that a call makes to a file. `done`: what makes it; `writes`: it writes the whole file, which may be
    new; `sure`: it is not made if the call fails; `passing`: the same call made the file and took it away again."""

    path: str
    state: State
    done: str
    writes: bool
    sure: bool
    passing: bool = False

    @property
    def gone(self) -> bool:
        """Whether the file must have been there before, and is not any more."""
        return self.state in ("deleted", "moved")


def writes_of(call: ToolCall, changes: Iterable[tuple[str, str]]) -> list[FileWrite]:
    """The changes that a call makes to files, each file once: what it does to it last. `changes`: see `changes_of`."""
    writes: dict[str, FileWrite] = {}
    folder: str | None = None
    for given, done in changes:
        folder = _folder_of(call) if folder is None else folder
        path = f"{folder}/{given.removeprefix('./')}" if folder and given[:1] not in ("/", "~") else given
        if not path.endswith("/"):
            words = words_of(done)
            before, state = writes.pop(path, None), _state(words)
            writes[path] = FileWrite(
                *(path, state, done, _WRITTEN.search(words) is not None, done not in BY_SHELL),
                before is not None and before.writes and state == "deleted",
            )
    return [*writes.values()]


def _folder_of(call: ToolCall) -> str:
    """The folder that a shell command runs in, if the call says so; else ""."""
    match = FOLDER.match(shell_text(call).lstrip())
    named = call.arguments if isinstance(call.arguments, dict) else {}
    folder = match[1] or match[2] or match[3] if match is not None else ""
    folder = folder or next((value for key in _FOLDER_KEYS if isinstance(value := named.get(key), str)), "")
    return folder.rstrip("/") if folder.startswith(("/", "~")) and "$" not in folder else ""


def _state(done: str) -> State:
    if _UNDONE.search(done):
        return "undone"
    if _DELETED.search(done):
        return "deleted"
    if _MOVED.search(done):
        return "moved"
    return "created" if _CREATED.search(done) else "edited"


def may_have_changed(call: ToolCall, write: FileWrite, failure: Failure, text: str) -> bool:
    """Whether a call that failed, with this result, may have made a change all the same: a command did that came before
    the last, and no program says that it could not."""
    if write.sure or failure.outcome in ("canceled", "lost") or _COULD_NOT.search(text) is not None:
        return False
    return any(write.path.endswith(path.removeprefix("./")) for path in changed_before_last(call))


# -- the fold --------------------------------------------------------------------------------------


class Changeable(Protocol):
    """A file as the fold changes it: its last change, the record of that, and how many there were; what became of it
    last, and where; and the record that read it last."""

    change: State
    changed: int
    changes: int
    state: State
    at: int
    read: int


File = TypeVar("File", bound=Changeable)
Snapshot = tuple[State, int, int]


class PendingWrites(NamedTuple, Generic[File]):
    """What a call without a result does to files: the files, each as it was before, and what it does to all of them."""

    call: ToolCall
    record: int
    before: list[tuple[File, FileWrite, Snapshot]]
    trees: list[TreeChange]


class FileChanges(Generic[File]):
    """Follows what calls do to files. It changes the files that it is given, and is given them again by `changed`.

    `committed`: the record of the last call that committed: git takes back nothing from before it.
    """

    def __init__(self, changed: Callable[[], Iterable[File]], committed: int = 0) -> None:
        self._changed = changed
        self.committed = committed
        self._kept: dict[int, tuple[File, Snapshot]] = {}  # files as they were at the last commit, by `id`

    def call(self, n: int, call: ToolCall, files: Iterable[tuple[File, FileWrite]]) -> PendingWrites[File]:
        """Take in a call that changes these files."""
        pending = PendingWrites[File](call, n, [], tree_changes(call))
        for file, write in files:
            pending.before.append((file, write, (file.change, file.changed, file.changes)))
            if write.passing and not (file.changed or file.read):
                continue
            if write.state == "undone":
                self._undo(file, n)
                continue
            new = write.state == "edited" and write.writes and not (file.read or file.changed)
            self._make(file, "created" if new else write.state, n)
        return pending

    def _make(self, file: File, state: State, n: int) -> None:
        if 0 < file.changed <= self.committed:
            self._kept[id(file)] = file, (file.change, file.changed, file.changes)
        file.state = file.change = state
        file.at = file.changed = n
        file.changes += 1

    def _undo(self, file: File, n: int) -> None:
        """Git puts a file back to what was committed."""
        if 0 < file.changed <= self.committed:
            return
        _, kept = self._kept.pop(id(file), (file, None))
        if kept is not None:
            file.change, file.changed, file.changes = kept
        else:
            file.change, file.changed, file.changes = "undone", n, max(1, file.changes)
        file.state, file.at = file.change, file.changed

    def ended(self, pending: PendingWrites[File], n: int, text: str, failure: Failure | None) -> None:
        """Take in how a call ended: its result and the record of that."""
        if failure is not None:
            for file, write, before in reversed(pending.before):
                if file.changed == pending.record and not may_have_changed(pending.call, write, failure, text):
                    file.change, file.changed, file.changes = before
                    file.state, file.at = "failed", n
        for tree in pending.trees:
            if failure is None or (tree == "commit" and _COMMITTED.search(text)):
                self._all(tree, pending.record)

    def _all(self, tree: TreeChange, n: int) -> None:
        """What git does to all files that are not committed. Files that were created it does not know."""
        if tree == "commit":
            self.committed = n
            return
        files = [file for file in self._changed() if self.committed < file.changed]
        if tree != "unstash":  # what the same call changes comes after it
            files = [file for file in files if file.changed < n]
        if tree in ("undo", "stash"):
            for file in files:
                if file.change not in ("created", "undone"):
                    self._undo(file, n)
        elif tree == "clean":
            for file in files:
                if file.change == "created":
                    self._make(file, "deleted", n)
        else:
            last = max((file.changed for file in files if file.change == "undone"), default=0)
            for file in files:
                if file.change == "undone" and file.changed == last:
                    self._make(file, "edited", n)


class TracedFile(Struct, gc=False):
    """A file of a digest that has no memory of the session; see `Changeable`. `done`: what changed it last."""

    path: str
    change: State = ""
    changed: int = 0
    changes: int = 0
    state: State = ""
    at: int = 0
    read: int = 0
    done: str = ""


def _followed(said: Sequence[Said]) -> list[tuple[TracedFile, bool]]:
    """The files that calls changed, the last changed first, each with whether the call that changed it last failed."""
    files: dict[str, TracedFile] = {}
    fold = FileChanges(lambda: [file for file in files.values() if file.changed])
    waiting: dict[int, PendingWrites[TracedFile]] = {}
    done: dict[tuple[str, int], str] = {}  # what changed a file, by its path and the record
    failed: set[tuple[str, int]] = set()
    for index, entry in enumerate(said):
        if isinstance(entry.part, ToolCall):
            writes = writes_of(entry.part, entry.note.changes) if entry.note.changes else []
            told = [(files.setdefault(write.path, TracedFile(write.path)), write) for write in writes]
            pending = fold.call(entry.record, entry.part, told)
            if pending.before or pending.trees:
                waiting[index] = pending
                done.update(((write.path, entry.record), write.done) for write in writes)
        elif entry.call in waiting:
            pending = waiting.pop(entry.call)
            failure = entry.note.failure if entry.error else None
            fold.ended(pending, entry.record, entry.text if failure is not None else "", failure)
            if failure is not None:
                failed |= {(file.path, pending.record) for file, _, _ in pending.before}
    changed = sorted((file for file in reversed(files.values()) if file.changed), key=lambda file: -file.changed)
    for file in changed:
        file.done = done.get((file.path, file.changed), "")
        file.done = f"{file.change} by git" if not file.done or file.change == "undone" else file.done
    return [(file, (file.path, file.changed) in failed) for file in changed]


_FAILED = " by a command that failed"


def file_states(said: Sequence[Said]) -> FileStates:
    """The files that calls changed with their last states, as a memory of the same calls has them."""
    return FileStates(
        [
            FileState(file.path, f"{file.change}{_FAILED if failed else ''}", file.changed)
            for file, failed in _followed(said)
        ]
    )
