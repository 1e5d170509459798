"""The events of a conversation, found in its calls: files changed, errors and how they ended, plans left open."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from operator import attrgetter
from typing import Any, NamedTuple

from .._platform.lazy import lazy_pattern
from .._platform.texts import clip
from ..log.messages import Outcome, ToolCall
from ..view.file_edits import BY_SHELL, last_program, words_of
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


_ENDS = 1500  # characters at either end of a text that are searched for an event
_STATUS = 300  # the same for an exit status
# A reported exit status; not a call in a program that would exit with one, nor a manual's description of one.
_EXIT = lazy_pattern(
    r"(?:exit(?:ed)?(?: with)?[ _]?(?:code|status)|return ?code)(?!\()\W{1,3}(\d{1,3})(?!\w|\.\d)"
    r"(?![ \t]+(?!(?:in|after)\b)\w)",
    re.IGNORECASE,
)
_REPORT = 6  # lines of a report with such a status, only some of which say anything
_STATUS_ALONE = lazy_pattern(r"[\w ]{1,40}: (?:\(\w+\)|-?\d+)$")  # the last line of a command's output in gemini-cli
# The name of an exception, or a word like it, before its message; not in a list of names or before a measured number.
_RAISED = lazy_pattern(
    r"\s*(?:E\s+)?(?:[\w.]*(?:Error|Exception|SystemExit|Interrupt)(?![\w.=])(?!\s*[=|])"
    r"|(?:error|fatal|panic)\b(?!\s*[=|]))",
    re.IGNORECASE,
)
_BEGINS = lazy_pattern(r"\s*(?:error|traceback|fatal|fehler\s*:|erreur\s*:|错误|錯誤|エラー|오류|خطأ)", re.IGNORECASE)
# Texts that begin in the same way although nothing failed: `errors: 0`, `error=null`, `Error rate: 0.2 %`, `error.log`.
_NO_ERROR = lazy_pattern(
    r"\s*error(?:\S*\.\w{1,5}\s*$|s?\s*[:=]\s*(?:(?:0|none|\(none\)|null|no|false|nil|n/a|\[\]|\{\})\s*(?:$|[,;.)])|-?\d*\.\d)"
    r"|s?=\s*(?:$|,)"
    r"|s?[\s_-]+(?:rates?|handling|handlers?|margins?|bars?|budgets?|counts?|codes|reports?|tracking|logging|analysis"
    r"|correction|boundar(?:y|ies)|pages?|terms?)\b)",
    re.IGNORECASE,
)
_NAMED = lazy_pattern(
    r"^(?!.*\bwarning\b).*?(?:error|exception|failed|failure|fatal|denied|not found|no such|refused|invalid|cannot"
    r"|abort|rejected|unable to|timed out)",
    re.IGNORECASE,
)
_LABEL = lazy_pattern(r"\W*(?:error|stderr|stdout|output)?\W*$", re.IGNORECASE)  # a line that says nothing by itself
_HEADED = lazy_pattern(r"\W*error\W*$", re.IGNORECASE)
# Programs whose exit status 1 is not an error: they found nothing, or the files that they compared differ.
_SEEKING = lazy_pattern(
    r"(?:\S*/)?(?:[ef]?grep|rg|ag|ack|pgrep|which|test|\[|diff|cmp|git(?: -C \S+)? (?:grep|diff))(?=\s|$)"
)
_COMPARING = lazy_pattern(r"(?:\S*/)?(?:diff|cmp|git(?: -C \S+)? diff)\b")
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


def error_of(text: str, outcome: Outcome) -> str:
    """What went wrong, if a result shows that its call failed; else "". The outcome decides, else an exit status, else
    whether the text begins with an error or ends with an exception."""
    return _message(text, outcome) if _failed(text, outcome) else ""


def _failed(text: str, outcome: Outcome) -> bool:
    if outcome != "ok":
        return True
    head, tail = text[:_STATUS], text[-_STATUS:]
    status = _exit_of(head) or _exit_of(tail)
    if status is not None:
        return int(status[1]) != 0
    return _is_error(_BEGINS, head.lstrip().partition("\n")[0]) or _is_error(_RAISED, tail.rstrip().rpartition("\n")[2])


def _is_error(sign: re.Pattern[str], line: str) -> bool:
    return sign.match(line) is not None and _NO_ERROR.match(line) is None


def _exit_of(text: str) -> re.Match[str] | None:
    lower = text.lower()
    return _EXIT.search(text) if "exit" in lower or "return" in lower else None


def _message(text: str, outcome: Outcome) -> str:
    """The last line that names an exception, else the first that looks like an error, else another line that may say
    what went wrong."""
    lines = (text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]}\n{text[-_ENDS:]}").splitlines()
    lines = [line for line in lines if line.strip()]
    telling = [line for line in lines if not _LABEL.match(line)]
    raised = [line for line in telling if _is_error(_RAISED, line)][-1:]
    named = (line for line in telling if _NAMED.match(line) and _NO_ERROR.match(line) is None)
    under = [line for label, line in pairwise(lines) if _HEADED.match(label)][:1]
    bare = bool(lines) and _LABEL.match(lines[-1]) is not None
    ends = lines[-_REPORT:] if bare or (lines and _STATUS_ALONE.match(lines[-1])) else []
    candidates = (
        raised
        or list(islice(named, 1))
        or under
        or list(filter(_exit_of, ends))
        or telling[-1:]
        or lines[-1:]
        or [outcome]
    )
    return clip(candidates[0], 160)


def errors(said: Sequence[Said], staying: Sequence[Said] = ()) -> list[tuple[int, str]]:
    """The failed results as (position, line): first those whose error is not known to have ended, the newest first.

    An error ended if the same call succeeded later, in `said` or `staying`. If only a similar call succeeded (the same
    tool, and arguments that begin alike), the line says so without more.
    """
    failures: list[tuple[int, int, str]] = []
    failed = {entry.tool for entry in said if entry.note.error}
    worked: dict[str, list[Said]] = {}  # by the beginning of a call, and by its whole `brief`
    good = [
        entry for entry in (*said, *staying) if entry.who == "result" and not entry.note.error and entry.tool in failed
    ]
    for entry in sorted(good, key=_RECORD):
        worked.setdefault(_alike(entry), []).append(entry)
        worked.setdefault(f"\n{entry.tool}\n{entry.brief}", []).append(entry)
    for index, entry in enumerate(said):
        if entry.who != "result" or not entry.note.error or _found_nothing(entry):
            continue
        same = (
            other for other in _since(entry, worked.get(f"\n{entry.tool}\n{entry.brief}", [])) if _same(entry, other)
        )
        if (other := next(same, None)) is not None:
            certainty, end = 2, f"worked at [{other.record}]"
        elif (other := next(_since(entry, worked.get(_alike(entry), [])), None)) is not None:
            certainty, end = 1, f"a call like it worked at [{other.record}]"
        else:
            certainty, end = 0, _OPEN
        failures.append((certainty, index, f"[{entry.record}] {_alike(entry)}: {entry.note.error}; {end}"))
    return [(index, line) for _, index, line in sorted(failures, key=lambda error: (error[0], -error[1]))]


def _found_nothing(entry: Said) -> bool:
    """Whether a call failed only by its exit status, and that means no more than that a search found nothing or that
    two files differ."""
    if not isinstance(entry.asked, ToolCall) or (last := last_program(entry.asked)) == "" or not _SEEKING.match(last):
        return False
    text = entry.text
    status = _exit_of(text[:_STATUS]) or _exit_of(text[-_STATUS:])
    return status is not None and int(status[1]) == 1 and bool(_COMPARING.match(last) or _exit_of(entry.note.error))


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
        if entry.who == "result" and not entry.note.error and entry.brief:
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
    failed = {entry.call for entry in said if entry.note.error and entry.call is not None}
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
    failed = {entry.call for entry in said if entry.note.error and entry.call is not None}
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
