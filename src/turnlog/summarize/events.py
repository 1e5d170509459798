"""What happened in a conversation, as its digests say it: files changed, errors and how they ended, other things that
calls changed, and what is left open."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .._platform.lazy import lazy_pattern
from .._platform.texts import clip
from ..log.messages import ToolCall
from ..view.file_edits import words_of
from .errors import is_process, sentences_of
from .reading import Said

# Names of tools that change something: a booking, a ticket. The first word decides: `get_order` orders nothing.
_ACTS = lazy_pattern(
    r"(?:^|__|[./:])(?:add|approve|assign|book|buy|cancel|change|charge|close|confirm|create|delete|deploy|disable|enable"
    r"|exchange|insert|invite|issue|merge|modify|move|notify|order|pay|place|post|publish|purchase|push|refund|reject"
    r"|remove|rename|reply|reserve|reset|return|schedule|send|set|share|ship|submit|subscribe|transfer|update|upload"
    r"|unsubscribe)(?=_|-|$)"
)


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


# -- lists of tasks -----------------------------------------------------------------------------------
#
# Those that an agent gives to a tool, that a tool returns, and that an agent writes into its text.

_PLAN = lazy_pattern(r"plan|to_?do|task|check_?list|goal|milestone", re.IGNORECASE)
_UNFINISHED = {"pending", "in_progress", "todo", "to_do", "open", "doing", "blocked", "not_started"}
_FINISHED = frozenset(
    "completed complete done cancelled canceled closed finished resolved skipped success succeeded passed deleted"
    " dropped abandoned obsolete erledigt fertig abgeschlossen abgebrochen terminé fait annulé hecho completado"
    " terminado cancelado 完成 已完成 取消 已取消 完了 済み 済 완료 취소"
    " مكتمل تم منجز ملغى выполнено готово отменено".split()
)
_TASK_KEYS = ("content", "step", "title", "task", "text", "description")
_TASK_LENGTH = 180  # characters of a task
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
        return f"[{self.record}] {clip(f'{self.status}: {self.text}', _TASK_LENGTH)}"

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
            tasks.append((clip(f"{status}: {text}", _TASK_LENGTH), kind in _FINISHED))
    return tuple(tasks) or None


# -- what is open ----------------------------------------------------------------------------------
#
# Unfinished tasks, and what the agent itself named as left, next, or offered without an answer.

_TURNS = 3  # turns of the user whose last answers are looked at
_MOST = 8  # sentences
_SENTENCE = 240  # characters of a sentence
_OFFER = lazy_pattern(
    r"(?:^|.*[,;:—–.-] ?)(?:(?:do you )?want me to|would you like(?: me)?|do you want to|should i|shall i"
    r"|(?:if you want|if you[’']d like|say the word)[^.?]*\bi (?:can|could|[’']ll))\b",
    re.IGNORECASE,
)
_LEFT = lazy_pattern(
    r"(?:remaining|next(?: up| steps?)?|to ?do|still (?:to do|open|missing|needed|pending)|left(?: to do)?|open"
    r"|follow-?ups?|outstanding|pending|not (?:yet )?done|deferred)\b[^.:]{0,30}:\s*\S"
    r"|.*\b(?:still (?:needs?|fails?|missing|pending|open|to be)\b"
    r"|(?:is|are|was|were|have|has)(?: not|n[’']t) (?:yet |been )|not yet\b|remains? (?:to|open|un)|left to (?:do|be)"
    r"|to be done|yet to be\b|as a follow-?up|in a follow-?up|out of scope"
    r"|pre-existing (?:bug|issue|problem|failure|error))",
    re.IGNORECASE,
)
_HEADING = lazy_pattern(
    r"(?:remaining|next steps?|next up|to ?do|still (?:to do|open|pending)|left to do|what[’']s (?:left|next|missing)"
    r"|follow-?ups?|outstanding|open (?:points|questions|items|issues)|not (?:yet )?done)\b[^.!?]{0,40}$",
    re.IGNORECASE,
)
_ITEM = lazy_pattern(r"[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]+(\S.*)$")
_POINTING = lazy_pattern(r"\b(?:this|that|these|those|it|them|next)\b", re.IGNORECASE)
_ANSWER = lazy_pattern(
    r"\W*(?:y|yes|yeah|yep|yup|sure|ok|okay|please|go|do|let[’']?s|no|nope|don[’']?t|not|never ?mind|leave|skip|sounds"
    r"|good|great|perfect|thanks?|lgtm|continue|proceed|just|ja|nein|oui|non|sí|si|\d+)\b",
    re.IGNORECASE,
)
_GOING_ON = lazy_pattern(r"\b(?:start|begin|proceed|continue|go ahead|implement|execut\w+)\b", re.IGNORECASE)
_SHORT = 60  # characters of a text that can only be an answer
_WORD = lazy_pattern(r"[^\W\d_]{5,}")


def open_ends(said: Sequence[Said], staying: Sequence[Said] = ()) -> list[str]:
    """The unfinished tasks of the newest list, and sentences of the agent's last answers that say what is left or next,
    or offer something that the user has not answered; the newest first. Nothing that `staying` shows."""
    shown = "\n".join(" ".join(entry.text.split()) for entry in staying if entry.who == "assistant")
    lines = unfinished_tasks(said, staying)
    seen: set[str] = set()
    for entry, sentence in _named(said, staying):
        if len(seen) == _MOST:
            break
        if sentence not in seen and sentence not in shown:
            seen.add(sentence)
            lines.append(f"[{entry.record}] {sentence}")
    return lines


def _named(said: Sequence[Said], staying: Sequence[Said]) -> Iterator[tuple[Said, str]]:
    """What the agent named as open in its last answers: the last text of each of the last turns."""
    everything = [*said, *staying]
    turns = 0
    for index in range(len(said) - 1, -1, -1):
        entry = said[index]
        following = everything[index + 1] if index + 1 < len(everything) else None
        if entry.who != "assistant" or (following is not None and following.who != "user"):
            continue
        turns += 1
        if turns > _TURNS:
            return
        later = [other.text for other in everything[index + 1 :] if other.who == "user"]
        for sentence in _open_in(entry.text, later, last=turns == 1):
            yield entry, sentence


def _open_in(text: str, later: Sequence[str], *, last: bool) -> Iterator[str]:
    """What a text names as open; its next steps only if it is the last one. `later`: what the user said after it."""
    before = ""
    sentences = [*sentences_of(text)]
    for sentence in sentences:
        if _OFFER.match(sentence):
            offered = f"{before} {sentence}" if before and _POINTING.search(sentence) else sentence
            if len(offered) <= 2 * _SENTENCE and not _is_answered(offered, later):
                yield offered
        elif _LEFT.match(sentence) and len(sentence) <= _SENTENCE and not sentence.endswith("?"):
            if (last or not sentence.casefold().startswith("next")) and not is_process(sentence):
                yield sentence
        before = "" if sentence.endswith((":", "?")) else sentence
    if last:
        yield from _steps(text)


def _steps(text: str) -> Iterator[str]:
    """The items of a list under a heading such as "Next steps"."""
    under = ""
    for line in text.splitlines():
        plain = line.strip().strip("#*_: ")
        item = _ITEM.match(line)
        if item is not None and under:
            yield clip(f"{under}: {item[1]}", _SENTENCE)
        elif _HEADING.match(plain):
            under = plain
        elif plain:
            under = ""


def _is_answered(offered: str, later: Sequence[str]) -> bool:
    """Whether the user answered an offer: shortly, or with words of it; an offer to go on with anything."""
    if not later:
        return False
    answer = later[0][:2_000]
    if len(answer) <= _SHORT or _ANSWER.match(answer) or _GOING_ON.search(offered):
        return True
    words = {word.casefold() for word in _WORD.findall(offered)}
    return any(word.casefold() in words for word in _WORD.findall(answer[:600]))
