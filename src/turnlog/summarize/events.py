"""What happened in a conversation, told by its calls: files changed, errors and how they ended, plans left open."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..content import Outcome, ToolCall
from .reading import Said, clip

__all__ = ["changes_of", "error_of", "errors", "files", "open_ends", "tasks_of"]

_ENDS = 1500  # characters at either end of a text in which an event is looked for
_STATUS = 300  # the same for a status
_PATH_KEY = re.compile(r"(?:^|_)(?:path|file|filename|filepath)$", re.IGNORECASE)
_CHANGING = re.compile(r"edit|write|patch|replace|create|delete|insert|move|rename", re.IGNORECASE)
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (\S+)", re.MULTILINE)
_WRITTEN = re.compile(r"(?<![<>&\d=-])>{1,2}\s*([\w./~-]*\w)|\btee\s+(?:-a\s+)?([\w./~-]*\w)")
_SED = re.compile(r"\bsed\s+-i\S*\s[^\n|;&]*?\s([\w./~-]*[./][\w./~-]*\w)\s*(?:$|[\n|;&])", re.MULTILINE)
_EXIT = re.compile(r"(?:exit(?:ed)?(?: with)?[ _]?(?:code|status)|return ?code)\W{1,3}(\d{1,3})\b", re.IGNORECASE)
_RAISED = re.compile(
    r"\s*(?:E\s+)?(?:[\w.]*(?:Error|Exception|SystemExit|Interrupt)\b|(?:error|fatal|panic)\b)", re.IGNORECASE
)
_NAMED = re.compile(r"error|exception|failed|failure|fatal|denied|not found|no such|refused|invalid", re.IGNORECASE)
_FINISHED = {"completed", "complete", "done", "cancelled", "canceled"}
_TASK_KEYS = ("content", "step", "title", "task", "text", "description")


def error_of(text: str, outcome: Outcome) -> str:
    """What went wrong, if a result says that its call failed: by its outcome, else by an exit status, else by beginning
    with an error or ending in an exception. Empty if it does not."""
    return _message(text, outcome) if _failed(text, outcome) else ""


def _failed(text: str, outcome: Outcome) -> bool:
    if outcome != "ok":
        return True
    head, tail = text[:_STATUS], text[-_STATUS:]
    status = _exit_of(head) or _exit_of(tail)
    if status is not None:
        return int(status[1]) != 0
    first = head[:80].lstrip().lower()
    return first.startswith(("error", "traceback", "fatal")) or bool(_RAISED.match(tail.rstrip().rpartition("\n")[2]))


def _exit_of(text: str) -> re.Match[str] | None:
    lower = text.lower()
    return _EXIT.search(text) if "exit" in lower or "return" in lower else None


def _message(text: str, outcome: Outcome) -> str:
    """The last line that names an exception, else the first that sounds like an error."""
    lines = (text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]}\n{text[-_ENDS:]}").splitlines()
    lines = [line for line in lines if line.strip()]
    raised = [line for line in lines if _RAISED.match(line)][-1:]
    said = raised or [line for line in lines if _NAMED.search(line)][:1] or lines[-1:] or [outcome]
    return clip(said[0], 160)


def errors(said: Sequence[Said]) -> list[tuple[int, str]]:
    """The failed results as (position, line), those first that are not known to have ended, the newest first.

    An error ended where the same call, by tool and first words of its arguments, did not fail later on.
    """
    found: list[tuple[bool, int, str]] = []
    worked: dict[str, int] = {}
    for at in range(len(said) - 1, -1, -1):
        one = said[at]
        if one.who != "result":
            continue
        call = f"{one.tool} {one.brief[:60]}"
        if one.note.error:
            end = f"worked at [{worked[call]}]" if call in worked else "not seen to work since"
            found.append((call in worked, at, f"[{one.record}] {call}: {one.note.error}; {end}"))
        else:
            worked[call] = one.record
    return [(at, line) for _, at, line in sorted(found, key=lambda error: (error[0], -error[1]))]


def files(said: Sequence[Said]) -> list[str]:
    """The files that calls changed, the newest change first, with what was done to them and in which records."""
    changed: dict[str, dict[str, list[int]]] = {}
    for one in said:
        for path, done in one.note.changes:
            changes = changed.setdefault(path, {})
            changed[path] = changed.pop(path)
            if one.record not in changes.setdefault(done, []):
                changes[done].append(one.record)
    return [f"{path}: {', '.join(_counted(*done) for done in changed[path].items())}" for path in reversed(changed)]


def _counted(done: str, records: list[int]) -> str:
    newest = " ".join(f"[{number}]" for number in records[-3:])
    return f"{done} {newest}" if len(records) <= 3 else f"{done} {len(records)} times, last {newest}"


def changes_of(call: ToolCall, text: str) -> Iterator[tuple[str, str]]:
    """Paths that a call, which says `text`, changes, with the name of the tool or a word for what a shell command
    does."""
    if isinstance(call.arguments, dict) and _CHANGING.search(call.name):
        for key, value in call.arguments.items():
            if _PATH_KEY.search(key) and isinstance(value, str) and 0 < len(value) <= 200 and "\n" not in value:
                yield value, call.name
    head = text[:_ENDS]
    if "*** " in text:
        for verb, path in _PATCHED.findall(text):
            yield path, f"{verb} by patch"
    if ">" in head or "tee " in head:
        for match in _WRITTEN.finditer(head):
            path = match[1] or match[2]
            if "." in path and not path.startswith("/dev/"):
                yield path, "written"
    if "sed -i" in head:
        for path in _SED.findall(head):
            yield path, "edited by sed"


def open_ends(said: Sequence[Said]) -> list[str]:
    """What the newest list of tasks leaves undone, and what the assistant said last."""
    last = next((one for one in reversed(said) if one.who == "assistant"), None)
    listing = next((one for one in reversed(said) if one.note.tasks), None)
    tasks = listing.note.tasks if listing is not None else ()
    left = [f"[{listing.record}] {line}" for line, status in tasks if listing and status not in _FINISHED]
    return left + ([f"[{last.record}] said last: {last.note.line}"] if last is not None else [])


def tasks_of(call: ToolCall) -> list[tuple[str, str]]:
    """A list of tasks with a status each, as plan and to-do tools take it: lines and statuses."""
    values = call.arguments.values() if isinstance(call.arguments, dict) else ()
    items: list[dict[str, Any]] = [
        item for value in values if isinstance(value, list) for item in value if isinstance(item, dict)
    ]
    return [
        (
            f"{item['status']}: {clip(next((str(item[k]) for k in _TASK_KEYS if k in item), ''), 160)}",
            str(item["status"]),
        )
        for item in items
        if "status" in item
    ]
