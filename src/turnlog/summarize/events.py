"""The events of a conversation, found in its calls: files changed, errors and how they ended, plans left open."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from .._platform.lazy import lazy_pattern
from .._platform.texts import clip
from ..log.messages import ToolCall
from ..view.file_edits import BY_SHELL, words_of
from .failures import Subject, subject_of
from .reading import Said
from .sections import SectionLine

# -- file states -----------------------------------------------------------------------------------
#
# The section of a digest that names the files which a session changed, each with its last state.
#
# Whoever has the whole log gives the states (see `Digest`). Files of one folder share a line, and folders that begin
# alike a line above them, so that many files take little room.

_LEAST_ROOT = 8  # characters of a folder that is worth a line of its own
_LEAST_LINE = len("a edited [1]")  # characters that a file takes at least
_MORE = "{} more, changed before these"


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
    low, high = 0, min(len(files.states), int(max(0, room)) // _LEAST_LINE + 1)
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
    root = _root([folder for folder in folders if folder.startswith("/")])
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


_PLAN = lazy_pattern(r"plan|to_?do|task|check_?list|goal|milestone", re.IGNORECASE)
_UNFINISHED = {"pending", "in_progress", "todo", "to_do", "open", "doing", "blocked", "not_started"}
_FINISHED = frozenset(
    "completed complete done cancelled canceled closed finished resolved skipped success succeeded passed deleted"
    " dropped abandoned obsolete erledigt fertig abgeschlossen abgebrochen terminé fait annulé hecho completado"
    " terminado cancelado 完成 已完成 取消 已取消 完了 済み 済 완료 취소"
    " مكتمل تم منجز ملغى выполнено готово отменено".split()
)
# Names of tools that change something: a booking, a ticket. The first word decides: `get_order` orders nothing.
_ACTS = lazy_pattern(
    r"(?:^|__|[./:])(?:add|approve|assign|book|buy|cancel|change|charge|close|confirm|create|delete|deploy|disable|enable"
    r"|exchange|insert|invite|issue|merge|modify|move|notify|order|pay|place|post|publish|purchase|push|refund|reject"
    r"|remove|rename|reply|reserve|reset|return|schedule|send|set|share|ship|submit|subscribe|transfer|update|upload"
    r"|unsubscribe)(?=_|-|$)"
)
_CALL = 60  # characters of a call's arguments that identify it
_FOLDER = lazy_pattern(r"^(command|cmd)=cd \S+ (?:&&|;) ")
_COMMAND = r"\1="
_OPEN = "not seen to work since"
_RECORD = attrgetter("record")
_TASK_KEYS = ("content", "step", "title", "task", "text", "description")


def errors(said: Sequence[Said], staying: Sequence[Said] = ()) -> list[tuple[int, str]]:
    """The failed results as (position, line): first those whose error is not known to have ended, the newest first.

    An error ended if the same call succeeded later, in `said` or `staying`. If only a similar call succeeded (see
    `Subject`), the line says so without more.
    """
    failures: list[tuple[int, int, str]] = []
    failed = {entry.tool for entry in said if entry.error}
    worked: dict[str, list[Said]] = {}  # by tool, in order
    for entry in sorted((*said, *staying), key=_RECORD):
        if entry.who == "result" and not entry.error and entry.tool in failed:
            worked.setdefault(entry.tool, []).append(entry)
    subjects: dict[int, Subject | None] = {}  # by `id`, as an entry of the log may be in several places
    for index, entry in enumerate(said):
        if entry.who != "result" or not entry.error:
            continue
        later = list(_since(entry, worked.get(entry.tool, [])))
        same = (other for other in later if entry.brief == other.brief and _same(entry, other))
        if (other := next(same, None)) is not None:
            certainty, end = 2, f"worked at [{other.record}]"
        elif (other := next((other for other in later if _is_mended(entry, other, subjects)), None)) is not None:
            certainty, end = 1, f"a call like it worked at [{other.record}]"
        else:
            certainty, end = 0, _OPEN
        failures.append((certainty, index, f"[{entry.record}] {_alike(entry)}: {entry.error}; {end}"))
    return [(index, line) for _, index, line in sorted(failures, key=lambda error: (error[0], -error[1]))]


def _is_mended(entry: Said, other: Said, subjects: dict[int, Subject | None]) -> bool:
    """Whether a later result shows that the call of `entry` works now."""
    for each in (entry, other):
        if id(each) not in subjects:
            brief = each.brief.removeprefix("command=").removeprefix("cmd=")
            subjects[id(each)] = subject_of(each.asked, brief) if isinstance(each.asked, ToolCall) else None
    about, there = subjects[id(entry)], subjects[id(other)]
    if about is None or there is None:
        return _alike(entry) == _alike(other)
    return about.is_mended_by(there, other.text)


def _since(entry: Said, others: list[Said]) -> Iterator[Said]:
    """The results in `others`, which are in order, that came after `entry`."""
    return (others[index] for index in range(bisect_right(others, entry.record, key=_RECORD), len(others)))


def ended(lines: Sequence[tuple[str, int]], said: Iterable[Said]) -> list[str]:
    """The error lines of an earlier digest, updated with how the errors ended since. `lines` has each line and the
    record that it is about."""
    if not any(line.endswith(_OPEN) for line, _ in lines):
        return [line for line, _ in lines]
    worked: dict[str, list[int]] = {}
    for entry in said:
        if entry.who == "result" and not entry.error and entry.brief:
            worked.setdefault(_alike(entry), []).append(entry.record)
    return [_ended(line, about, worked) for line, about in lines]


def _ended(line: str, about: int, worked: dict[str, list[int]]) -> str:
    error, open_, _ = line.partition(f"; {_OPEN}")
    call = error.partition("] ")[2]
    calls = (call[: colon.start()] for colon in re.finditer(": ", call)) if open_ else ()  # a brief may contain ": "
    since = [record for alike in calls for record in worked.get(alike, ()) if record > about]
    return f"{error}; a call like it worked at [{min(since)}]" if since else line


def _alike(entry: Said) -> str:
    """The tool and the beginning of its arguments, without a change of folder before a command: it says where the
    command ran, not which command it was."""
    brief = _FOLDER.sub(_COMMAND, entry.brief) if "=cd " in entry.brief else entry.brief
    return f"{entry.tool} {brief[:_CALL]}"


def _same(entry: Said, other: Said) -> bool:
    """Whether two results are of the same call."""
    if not isinstance(entry.asked, ToolCall) or not isinstance(other.asked, ToolCall):
        return False
    if entry.asked.arguments is None or other.asked.arguments is None:
        return entry.asked.raw_arguments == other.asked.raw_arguments
    return bool(entry.asked.arguments == other.asked.arguments)


def files(said: Sequence[Said]) -> list[str]:
    """The files that calls changed, the newest change first, with the changes and their records. Files of failed calls
    are left out, except those of shell commands, which may have changed them before they failed: these are marked."""
    failed = {entry.call for entry in said if entry.error and entry.call is not None}
    changed: dict[str, dict[str, list[int]]] = {}
    for index, entry in enumerate(said):
        for path, done in entry.note.changes:
            if index in failed and done not in BY_SHELL:
                continue
            done = f"{done} by a command that failed" if index in failed else done
            changes = changed.setdefault(path, {})
            changed[path] = changed.pop(path)
            if entry.record not in changes.setdefault(done, []):
                changes[done].append(entry.record)
    return [f"{path}: {', '.join(_counted(*done) for done in changed[path].items())}" for path in reversed(changed)]


def acts(said: Sequence[Said]) -> list[int]:
    """The positions of the calls that changed something other than files, judged by the names of their tools, the
    newest first. Failed calls are left out, and so are plans, as `open_ends` shows what is left of them."""
    failed = {entry.call for entry in said if entry.error and entry.call is not None}
    return [
        index
        for index, entry in reversed(list(enumerate(said)))
        if entry.who == "call" and index not in failed and not entry.note.changes and entry.note.tasks is None
        if changes_things(entry.tool)
    ]


def changes_things(tool: str) -> bool:
    """Whether a tool changes something, judged by its name."""
    return _ACTS.search(words_of(tool)) is not None


def _counted(done: str, records: list[int]) -> str:
    newest = " ".join(f"[{number}]" for number in records[-3:])
    return f"{done} {newest}" if len(records) <= 3 else f"{done} {len(records)} times, last {newest}"


def open_ends(said: Sequence[Said], staying: Sequence[Said] = ()) -> list[str]:
    """The unfinished tasks of the newest list, unless a newer list is in `staying`, and the assistant's last text."""
    last = next((entry for entry in reversed(said) if entry.who == "assistant"), None)
    listing = next((entry for entry in reversed(said) if entry.note.tasks is not None), None)
    left: list[str] = []
    newer = [
        entry
        for entry in staying
        if entry.note.tasks is not None and listing is not None and entry.record > listing.record
    ]
    if listing is not None and listing.note.tasks and not newer:
        left = [f"[{listing.record}] {line}" for line, finished in listing.note.tasks if not finished]
    return left + ([f"[{last.record}] said last: {last.note.line}"] if last is not None else [])


def tasks_of(call: ToolCall) -> tuple[tuple[str, bool], ...] | None:
    """The tasks in a call of a plan or to-do tool: lines, each with whether it is finished. None if there is no list of
    tasks: other things, such as orders or rows, may have a status too."""
    values = call.arguments.values() if isinstance(call.arguments, dict) else ()
    lists = [value for value in values if isinstance(value, list)]
    plans = _PLAN.search(call.name) is not None
    if lists and plans and not any(lists):
        return ()  # a list that was emptied
    items: list[dict[str, Any]] = [item for value in lists for item in value if isinstance(item, dict)]
    tasks: list[tuple[str, bool]] = []
    for item in (item for item in items if "status" in item):
        status = str(item["status"])
        kind = re.sub(r"[\s-]+", "_", status.strip().casefold())
        text = next((str(item[key]) for key in _TASK_KEYS if key in item), "")
        if text and (plans or kind in _UNFINISHED or kind in _FINISHED):
            tasks.append((clip(f"{status}: {text}", 180), kind in _FINISHED))
    return tuple(tasks) or None
