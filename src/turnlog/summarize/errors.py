"""The calls that failed, and which later calls show that they work: one fold for the memory of a session and for its
digests; and the lines of a digest that say what went wrong and what solved it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct

from .._platform.lazy import lazy_pattern
from .._platform.texts import clip
from ..log.messages import Outcome, ToolCall
from ..view.file_edits import shell_text, without_folder
from .failures import BESIDE, REFUSED, Failure, Subject, subject_of
from .reading import Said, flat_lines

# -- the fold --------------------------------------------------------------------------------------

_OPEN_ERRORS = 50  # errors that later calls are compared with
_COMMAND = 600  # characters of a command that are kept
_LONGEST = 240  # characters of what a result says
_ARGUMENTS = 6_000  # characters of arguments that are no JSON object
WRITTEN_KEYS = ("content", "new_string", "new_str", "old_string", "old_str", "file_text", "patch", "input", "edits")
"""The arguments of a call that are content, and not what the call is about."""


class FailedCall(Struct, gc=False):
    """A call that failed: its record and that of its result, what its result says (see `said`), the exit status if one
    is reported, and the record at which a later call shows that it is mended (0: none does).

    `outcome`: of the result; `canceled` also for a call that the user refused. `said`: the most telling line, "" if
    none says what went wrong.
    """

    call: ToolCall
    record: int
    result: int
    outcome: Outcome
    said: str = ""
    code: int | None = None
    fixed: int = 0

    @property
    def is_error(self) -> bool:
        """Whether something went wrong; not in a call that the user refused, or that did not run as one beside it
        failed."""
        return self.outcome != "canceled"


class _Open(NamedTuple):
    """A failed call that no later one has mended yet, what it is about, and the name of its error."""

    failed: FailedCall
    subject: Subject
    error: str


class FailedCalls:
    """Follows which calls failed, in the order of their results, and which are open: the last ones of which no later
    call showed that they work."""

    def __init__(self) -> None:
        self.failed: list[FailedCall] = []
        self._open: list[_Open] = []

    def fails(self, call: ToolCall, record: int, n: int, failure: Failure) -> tuple[FailedCall, str]:
        """Take in a call that failed, with its result in record `n`. Returns it, and the name of its error: what the
        result says, or the status and the call."""
        said = f"{failure.said}: {failure.reason}" if failure.reason else failure.said
        failed = FailedCall(call, record, n, failure.outcome, clip(said, _LONGEST), failure.code)
        brief = brief_of(call)
        error = failed.said or f"{failure.status}: {clip(brief, _LONGEST)}"
        self.failed.append(failed)
        self._open = [*self._open, _Open(failed, subject_of(call, brief), error)][-_OPEN_ERRORS:]
        return failed, error

    def works(self, call: ToolCall, n: int, text: Callable[[], str]) -> list[tuple[FailedCall, str]]:
        """Take in a call that worked, with its result `text` in record `n`. Returns the failed calls that are mended by
        it, each with the name of its error if that is an error and no other call that failed with it is open, or ""."""
        if all(one.subject.tool != call.name for one in self._open):
            return []
        subject = subject_of(call, brief_of(call))
        mended = [one for one in self._open if one.subject.is_mended_by(subject, text)]
        if not mended:
            return []
        self._open = [one for one in self._open if one not in mended]
        left = {one.error for one in self._open if one.failed.is_error}
        for one in mended:
            one.failed.fixed = n
        return [(one.failed, one.error if one.failed.is_error and one.error not in left else "") for one in mended]


def brief_of(call: ToolCall) -> str:
    """What a call is about: its command, or its arguments without the content that it writes."""
    command = as_command(shell_text(call))
    if command:
        return command
    if not isinstance(call.arguments, dict):
        return call.raw_arguments[:_ARGUMENTS]
    return "\n".join(flat_lines({key: value for key, value in call.arguments.items() if key not in WRITTEN_KEYS}))


def as_command(text: str) -> str:
    """A shell command in the form in which commands are compared: on one line, without a change of folder before it."""
    return clip(without_folder(text.strip()), _COMMAND) if text.strip() else ""


# -- lines of a digest -----------------------------------------------------------------------------

_CALL = 60  # characters of a call that identify it
_EXPLAINED = 160  # characters of a sentence of the agent that explains an error
_NEAR = 3  # results after a failure within which the agent explains it
_TEXTS = 2  # texts of the agent that are looked at
_ALSO, _OTHERS = 40, 2  # characters of other calls that failed with the same error, and how many are named
_OPEN = "not seen to work since"
_FOLDER = lazy_pattern(r"^(command|cmd)=cd \S+ (?:&&|;) ")
_RECORD = attrgetter("record")


class _Trouble(Struct):
    """The calls that failed with one error: the positions of their results, how certain it is that they work now (see
    `errors`), and where that is seen."""

    failed: list[tuple[int, FailedCall]]
    rank: int = 0
    end: str = ""


def errors(said: Sequence[Said], staying: Sequence[Said] = ()) -> list[tuple[int, str]]:
    """The failed calls as (position of the last result in `said`, line): first those that are not known to work, the
    newest first; then those that the user refused, and those that worked later, in `said` or `staying`. Calls that
    failed with the same error share a line. A call like it (see `Subject`) is said to be no more than that."""
    fold = FailedCalls()
    troubles: dict[tuple[str, bool], _Trouble] = {}
    by_call: dict[int, _Trouble] = {}
    positions = {id(entry): index for index, entry in enumerate(said)}
    worth = {entry.tool for entry in said if entry.error}
    for entry in sorted((*said, *staying), key=_RECORD):
        if entry.who != "result" or not isinstance(call := entry.asked, ToolCall) or entry.tool not in worth:
            continue
        if not entry.error or entry.note.failure is None:
            for failed, _ in fold.works(call, entry.record, lambda entry=entry: entry.text):  # type: ignore[misc]
                if (trouble := by_call.get(id(failed))) is not None:
                    _mended(trouble, failed, call)
            continue
        failed, error = fold.fails(call, entry.record, entry.record, entry.note.failure)
        if failed.said == BESIDE:
            continue
        refused = entry.note.failure.said == REFUSED  # a call is allowed or not, whatever the reason
        one = troubles.setdefault((_called(call) if refused else error, refused), _Trouble([]))
        one.failed.append((positions.get(id(entry), -1), failed))
        one.rank, one.end = (0 if failed.is_error else 1), ""
        by_call[id(failed)] = one
    lines = []
    for trouble in troubles.values():
        index = max(index for index, _ in trouble.failed)
        if index >= 0:
            lines.append((trouble.rank, index, _line(trouble, said, said[index])))
    return [(index, line) for _, index, line in sorted(lines, key=lambda line: (line[0], -line[1]))]


def _mended(trouble: _Trouble, failed: FailedCall, by: ToolCall) -> None:
    """Note that one of the calls works, and that all do if no other is open."""
    if all(other.fixed for _, other in trouble.failed):
        same = _same(failed.call, by)
        trouble.rank, like = (3, "") if same else (2, "a call like it ")
        trouble.end = f"; {like}worked at [{failed.fixed}]"


def _line(trouble: _Trouble, said: Sequence[Said], last: Said) -> str:
    """What is told of the calls that failed with one error; `last` is the last result with it."""
    times = len(trouble.failed)
    text = REFUSED if last.note.failure is not None and last.note.failure.said == REFUSED else last.error
    call, first = last.asked, trouble.failed[0][1]
    also = {_called(failed.call).partition(" ")[2][:_ALSO]: None for _, failed in reversed(trouble.failed[:-1])}
    also.pop(_called(trouble.failed[-1][1].call).partition(" ")[2][:_ALSO], None)
    others = "".join(f", also {brief}" for brief in [*also][:_OTHERS] if brief)
    again = f" ({times} times since [{first.result}]{others})" if times > 1 else ""
    end = trouble.end or (f"; {_OPEN}" if trouble.rank == 0 else "")
    why = ""
    if trouble.rank != 1:
        told = (_explained(said, index, failed.fixed) for index, failed in reversed(trouble.failed) if index >= 0)
        why = next(filter(None, told), "")
    called = _called(call) if isinstance(call, ToolCall) else last.tool
    return f"[{last.record}] {called}: {text}{again}{end}" + (f': "{why}"' if why else "")


def _called(call: ToolCall) -> str:
    """The tool and the beginning of what it was told."""
    name, brief = clip(call.name, 80), " ".join(brief_of(call)[: 4 * _CALL].split())
    if len(brief) > _CALL:
        cut = brief.rfind(" ", _CALL * 2 // 3, _CALL)
        brief = brief[: cut if cut > 0 else _CALL]
    return f"{name} {brief}".rstrip()


def _explained(said: Sequence[Said], index: int, fixed: int) -> str:
    """The agent's first statement after the result at this position, in the same turn and before the call that worked;
    "" if it made none soon."""
    results = texts = 0
    for entry in said[index + 1 :]:
        if entry.who == "user" or (fixed and entry.record > fixed) or results > _NEAR or texts == _TEXTS:
            break
        results += entry.who == "result"
        if entry.who == "assistant":
            texts += 1
            if statement := first_statement(entry.text, _EXPLAINED):
                return statement
    return ""


def _same(call: ToolCall, other: ToolCall) -> bool:
    """Whether two calls say the same."""
    if call.name != other.name:
        return False
    if call.arguments is None or other.arguments is None:
        return call.raw_arguments == other.raw_arguments
    return bool(call.arguments == other.arguments)


def ended(lines: Sequence[tuple[str, int]], said: Iterable[Said]) -> list[str]:
    """The error lines of an earlier digest, updated with how the errors ended since. `lines` has each line and the
    record that it is about."""
    if not any(_OPEN in line for line, _ in lines):
        return [line for line, _ in lines]
    worked: dict[str, list[int]] = {}
    for entry in said:
        if entry.who == "result" and not entry.error and isinstance(entry.asked, ToolCall):
            for called in {_called(entry.asked), _called_before(entry)}:
                worked.setdefault(called, []).append(entry.record)
    return [_ended(line, about, worked) for line, about in lines]


def _called_before(entry: Said) -> str:
    """How digests up to version 11 named a call."""
    brief = _FOLDER.sub(r"\1=", entry.brief) if "=cd " in entry.brief else entry.brief
    return f"{entry.tool} {brief[:_CALL]}"


def _ended(line: str, about: int, worked: dict[str, list[int]]) -> str:
    error, open_, why = line.partition(f"; {_OPEN}")
    call = error.partition("] ")[2]
    calls = (call[: colon.start()] for colon in re.finditer(": ", call)) if open_ else ()  # a call may contain ": "
    since = [record for called in calls for record in worked.get(called, ()) if record > about]
    return f"{error}; a call like it worked at [{min(since)}]{why}" if since else line


_EXAMINED = 4_000  # characters at either end of a text whose sentences are read
CODE_BLOCK = lazy_pattern(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
SENTENCE_END = lazy_pattern(r"\n+|(?<=[.!?])[*_`\")\]]*[ \t]+(?=[A-Z\"'`*(\[«“‘])|(?<=[。！？])")
_MARKS = lazy_pattern(r"^[\s>#*\-•·–—✅❌⚠️✓✗]*(?:\d{1,2}[.)]\s+)?(?:THOUGHT:\s*)?|[\s*_]+$")
_SHORTEST = 20  # characters of a sentence that says something
_SHORTEST_WIDE = 8  # the same in a script without spaces
# How agents announce what they do next, or say that they do it.
_PROCESS = lazy_pattern(
    r"\W*(?:(?:now|next|okay|ok|good|great|perfect|excellent|first|finally|so|then|alright|right|yes|wait|hmm|ah)"
    r"[,.!:;—– -]+)*"
    r"(?:now\b|let me|let[’']s|let us|i[’'](?:ll|m)\b|i (?:will|want to|should|am|can|could|have to)\b"
    r"|i need to (?:see|check|look|find|read|verify|know|understand)\b"
    r"|(?:trying|running|checking|continuing|looking|reading|waiting|working|starting|testing|verifying|updating"
    r"|fixing)\b|try(?:ing)? again|one moment|back to|moving on)",
    re.IGNORECASE,
)
_TALK = lazy_pattern(
    r"\W*(?:perfect|excellent|great|good|done|thanks?|sorry|you[’']re (?:absolutely )?right)\b[^.]{0,20}$",
    re.IGNORECASE,
)
_EXCLAIMED = lazy_pattern(
    r"^\W*(?:perfect|excellent|great|good|nice|ah|aha|hmm|okay|ok|found it|done)[!.,:]+\s+(?=\S)", re.IGNORECASE
)
_CUT = lazy_pattern(r"[:,;(\[{`]$|\.\.\.$|…$")  # what only announces, or stops before its end


def sentences_of(text: str) -> Iterator[str]:
    """The whole sentences of a text, without code and marks of lists and headings; of a long text, of its two ends."""
    if len(text) > 2 * _EXAMINED:
        text = f"{text[:_EXAMINED].rpartition(chr(10))[0]}\n{text[-_EXAMINED:].partition(chr(10))[2]}"
    if "```" in text or "~~~" in text:
        text = CODE_BLOCK.sub("\n", text)
    for piece in SENTENCE_END.split(text):
        sentence = _EXCLAIMED.sub("", " ".join(_MARKS.sub("", piece).replace("**", "").split()), count=1)
        if len(sentence) >= (_SHORTEST if sentence.isascii() else _SHORTEST_WIDE):
            yield sentence


def is_process(sentence: str) -> bool:
    """Whether a sentence only says what the agent is about to do, is polite, or announces what is not in it."""
    return (
        _PROCESS.match(sentence) is not None or _TALK.match(sentence) is not None or _CUT.search(sentence) is not None
    )


def first_statement(text: str, longest: int) -> str:
    """The first whole sentence of a text that says something in at most so many characters; "" if there is none."""
    return next((one for one in sentences_of(text) if len(one) <= longest and not is_process(one)), "")
