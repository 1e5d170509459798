"""Lists of tasks: those that an agent gives to a tool, that a tool returns, and that an agent writes into its text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from .._platform.lazy import lazy_pattern
from .._platform.texts import clip
from ..log.messages import ToolCall
from .reading import Said

_PLAN = lazy_pattern(r"plan|to_?do|task|check_?list|goal|milestone", re.IGNORECASE)
_UNFINISHED = {"pending", "in_progress", "todo", "to_do", "open", "doing", "blocked", "not_started"}
_FINISHED = frozenset(
    "completed complete done cancelled canceled closed finished resolved skipped success succeeded passed deleted"
    " dropped abandoned obsolete erledigt fertig abgeschlossen abgebrochen terminé fait annulé hecho completado"
    " terminado cancelado 完成 已完成 取消 已取消 完了 済み 済 완료 취소"
    " مكتمل تم منجز ملغى выполнено готово отменено".split()
)
_TASK_KEYS = ("content", "step", "title", "task", "text", "description")
_LONGEST = 180  # characters of a task
_EXAMINED = 20_000  # characters of a text in which a list is looked for
# As tools return them: `#4 [pending] Update the handler`; as agents write them: `- [ ] Update the handler`.
_LISTED = lazy_pattern(r"^[ \t]*(?:[-*]\s+)?#?(\d{1,4})[.:)]?\s+\[([a-z_ ]{3,14})\]\s+(\S.*)$", re.MULTILINE)
_BOXED = lazy_pattern(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+\[([ xX~-]?)\][ \t]+(\S.*)$", re.MULTILINE)
_FENCED = lazy_pattern(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_MADE = lazy_pattern(r"Task #(\d{1,4}) created")  # by TaskCreate of Claude Code
_BLOCKED = lazy_pattern(r"\s*\[blocked by [^\]]*\]$")


class _Task(NamedTuple):
    """A task of a list: its status and text, and the record that says so."""

    status: str
    text: str
    record: int

    @property
    def line(self) -> str:
        return f"[{self.record}] {clip(f'{self.status}: {self.text}', _LONGEST)}"

    @property
    def is_finished(self) -> bool:
        return _kind(self.status) in _FINISHED


def unfinished_tasks(said: Sequence[Said], staying: Sequence[Said] = ()) -> list[str]:
    """The lines of the unfinished tasks of the newest list in `said`; none if a newer list is in `staying`. A list in a
    text is one if it says of each task whether it is done. Calls that make or change single tasks add up to a list."""
    lists: list[tuple[int, list[str]]] = []
    single: dict[str, _Task] = {}
    making: dict[int, str] = {}
    for index, entry in enumerate(said):
        if entry.note.tasks is not None:
            lists.append((entry.record, [f"[{entry.record}] {line}" for line, done in entry.note.tasks if not done]))
        elif isinstance(entry.part, ToolCall) and _PLAN.search(entry.tool):
            made = _of_one(entry.part, entry.record, single)
            if made:
                making[index] = made
        elif entry.who == "result" and not entry.error and entry.call is not None and _PLAN.search(entry.tool):
            if entry.call in making and (match := _MADE.search(entry.text)):
                single[match[1]] = _Task("pending", making[entry.call], entry.record)
            elif listed := _listed(entry):
                single = listed
                lists.append((entry.record, _left(single)))
        elif entry.who == "assistant" and (boxed := _boxed(entry)) is not None:
            lists.append((entry.record, boxed))
        if single and entry.who in ("call", "result") and _PLAN.search(entry.tool) and entry.note.tasks is None:
            lists.append((entry.record, _left(single)))
    if not lists:
        return []
    record, left = lists[-1]
    return [] if any(entry.record > record and _has_list(entry) for entry in staying) else left


def _left(tasks: dict[str, _Task]) -> list[str]:
    return [task.line for task in tasks.values() if not task.is_finished]


def _of_one(call: ToolCall, record: int, tasks: dict[str, _Task]) -> str:
    """Take in a call that changes a task. Returns the task that the call makes, "" if it makes none."""
    named = call.arguments if isinstance(call.arguments, dict) else {}
    key, subject, status = str(named.get("taskId", "")), named.get("subject"), named.get("status")
    if key in tasks:
        old = tasks[key]
        tasks[key] = _Task(str(status or old.status), str(subject or old.text), record)
        return ""
    return subject if isinstance(subject, str) and not key else ""


def _listed(entry: Said) -> dict[str, _Task]:
    """The tasks that a tool returned, by their numbers."""
    found = _LISTED.findall(entry.text[:_EXAMINED])
    return {
        number: _Task(status.strip(), _BLOCKED.sub("", text.strip()), entry.record)
        for number, status, text in found
        if _kind(status) in _UNFINISHED | _FINISHED
    }


def _boxed(entry: Said) -> list[str] | None:
    """The lines of the unfinished tasks of a list in a text; None if it has no list of at least two tasks."""
    text = entry.text
    if "[ ]" not in text and "[x]" not in text and "[X]" not in text:
        return None
    boxes = _BOXED.findall(_FENCED.sub("", text[-_EXAMINED:]))
    if len(boxes) < 2:
        return None
    return [_Task("to do", task.strip(), entry.record).line for mark, task in boxes if mark not in ("x", "X")]


def _has_list(entry: Said) -> bool:
    """Whether an entry gives, changes or returns a list of tasks."""
    if entry.who == "assistant":
        return _boxed(entry) is not None
    is_task = entry.who in ("call", "result") and entry.tool.startswith("Task") and _PLAN.search(entry.tool)
    return entry.note.tasks is not None or bool(is_task and entry.who == "result" and _listed(entry))


def _kind(status: str) -> str:
    return re.sub(r"[\s-]+", "_", status.strip().casefold())


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
        kind = _kind(status)
        text = next((str(item[key]) for key in _TASK_KEYS if key in item), "")
        if text and (plans or kind in _UNFINISHED or kind in _FINISHED):
            tasks.append((clip(f"{status}: {text}", _LONGEST), kind in _FINISHED))
    return tuple(tasks) or None
