"""Whether a tool call failed, what its result says went wrong, and which later call shows that it is mended.

One rule for memory, digests and `turnlog errors`: the outcome decides, else a reported exit status, else words at the
ends of the text. A line of source code in the result of a call that worked is no error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from .._platform.lazy import lazy_pattern
from .._platform.texts import clip
from ..log.messages import Outcome, ToolCall
from ..view.curate.lines import without_escapes
from ..view.file_edits import commands_in, last_program, shell_text, words_of

_ENDS = 1500  # characters at either end of a text that are searched for an event
_STATUS = 300  # the same for an exit status
_LINE = 160  # characters of the line that says what went wrong
# A reported exit status; not a call in a program that would exit with one, nor a manual's description of one.
_EXIT = lazy_pattern(
    r"(?:exit(?:ed)?(?: with)?[ _]?(?:code|status)|return ?code)(?!\()\W{1,3}?(-?\d{1,3})(?!\w|\.\d)"
    r"(?![ \t]+(?!(?:in|after)\b)\w)",
    re.IGNORECASE,
)
# The name of an exception, or a word like it, before its message; not in a list of names or before a measured number.
_EXCEPTION = lazy_pattern(r"\s*(?:E\s+)?[\w.]*(?:Error|Exception|SystemExit|Interrupt)(?![\w.=(])(?!\s*[=|])(?!: \d+ )")
_RAISED = lazy_pattern(
    r"\s*(?:E\s+)?(?:[\w.]*(?:Error|Exception|SystemExit|Interrupt)(?![\w.=(])(?!\s*[=|])"
    r"|(?:error|fatal|panic)\b(?!\s*[=|(]))",
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
# How programs that check or build sum up that something failed; a pipe behind them hides their exit status.
_SUMMED = lazy_pattern(
    r"^(?:--- FAIL: |\s*FAIL(?:\s|$)|=+ .*\b[1-9]\d* (?:failed|errors?)\b.* =+$|make(?:\[\d+\])?: \*\*\*"
    r"|npm (?:ERR!|error) |test result: FAILED|FAILED \((?:failures|errors)="
    r"|\s*Tests:?\s+[1-9]\d* failed\b|.*\bERROR task failed\b)",
    re.MULTILINE,
)
# A first line that says no more than that it was not good enough, as of a tool that checks a submission.
_VERDICT = lazy_pattern(
    r"(?:[\w'’-]+ ){0,4}(?:not met|failed|rejected|not accepted|denied|unsuccessful|did not pass)[.:!]?\s*$"
    r"|(?:success|succeeded)=false\b",
    re.IGNORECASE,
)
_NAMED = lazy_pattern(
    r"^(?!.*(?:\bwarning\b|: [CRWI]\d{4}:)).*?(?:error|exception|failed|failure|\bFAIL\b|fatal|denied|not found|no such"
    r"|refused|invalid|cannot|can't|abort|rejected|unable to|timed out|unknown|unsupported|missing|cancell?ed"
    r"|incorrect)",
    re.IGNORECASE,
)
# What a compiler, a linter or a test says of a line of a file; not what it only warns of.
_DIAGNOSTIC = lazy_pattern(
    r"(?!.*(?:\bwarning\b|: [CRWI]\d{4}:))"
    r"\s*[^\s:(]*\.\w+(?::\d+(?::\d+)?:|\(\d+,\d+\):)\s+(?![:#])\S.*[^{;(,]\s*$",
    re.IGNORECASE,
)
_ASSERTED = lazy_pattern(r"E {2,}\S")  # of pytest
# Lines of a program or of a patch that are only quoted.
_SOURCE = lazy_pattern(
    r"\s*(?:(?:if|for|func|def|class|return|import|from|var|let|const|type|assert|raise|throw|case|switch|except|catch"
    r"|elif|print)\b.*[{:;)\]]\s*$|(?!\w*(?:Error|Exception)\b)[\w.$]+\(.*|\d+\s*[|→\t]|//|/\*|\}|[+-]+\s?\S)"
)
_PLACED = lazy_pattern(r"\s*[^\s:()]+[:-]\d+(?::\d+)?[:-]|[dl-][rwxsStT-]{9}[.+@]?\s")  # of a search; of `ls -l`
_HEADED = lazy_pattern(r"\W*error\W*$", re.IGNORECASE)
_LABEL = lazy_pattern(
    r"\W*(?:error|stderr|stdout|output|traceback \(most recent call last\)|empty|no output|none)?\W*$", re.IGNORECASE
)
# What programs say around the output of a command, whatever it is.
_FRAME = lazy_pattern(
    r"(?:Command|Directory|Signal|Background PIDs|PIDs|Process Group PGID|Chunk ID|Wall time|Original token count"
    r"|Total output lines): |</?[a-z_]+>$"
)
_TAGS = lazy_pattern(r"^(?:Output: )?(?:<\w+>)?(.*?)(?:</\w+>)?$")
# What comes after every failure, and says nothing of this one.
_AFTER = lazy_pattern(
    r"\s*(?:\[[\w:-]+\] ERROR task failed|make(?:\[\d+\])?: \*\*\*|FAIL\s*$|FAIL\s.*\[build failed\]|FAIL\t"
    r"|npm (?:error|ERR!)"
    r"|ELIFECYCLE|Try '.* --help'|[Uu]sage:|Fix the errors and try again"
    r"|error: script .* exited with|error Command failed)"
)
_SPELLED = lazy_pattern(r'"(?:msg|message|error|detail)"\s*:\s*"((?:[^"\\]|\\.)+)"')
# Programs whose exit status 1 is not an error: they found nothing, or the files that they compared differ.
_SEEKING = lazy_pattern(
    r"(?:\S*/)?(?:[ef]?grep|rg|ag|ack|pgrep|which|test|\[|diff|cmp|git(?: -C \S+)? (?:grep|diff|config))(?=\s|$)"
)
_COMPARING = lazy_pattern(r"(?:\S*/)?(?:diff|cmp|git(?: -C \S+)? diff)\b")
_SHOWING = lazy_pattern(
    r"(?:\S*/)?(?:cat|head|tail|sed|less|nl|xxd|jq|cd|echo|[ef]?grep|rg|find"
    r"|git(?: -C \S+)? (?:show|log|grep|diff))(?=\s|$)"
)
# Tools that show something and have no exit status of their own.
_LOOKING = lazy_pattern(r"[\w.-]*(?:read|view|grep|glob|search|fetch|find|list|task|agent)", re.IGNORECASE)
# Claude Code's words for a call that it did not run, as one beside it failed.
_BESIDE = lazy_pattern(r"\s*<tool_use_error>(?:Sibling tool call errored|Cancelled: parallel tool call)")
_STOPPED = lazy_pattern(r".*(?:timed out|killed|cancell?ed|interrupt|abort|denied|stopped)", re.IGNORECASE)
_SENTENCE = lazy_pattern(r"\s*\S+ \S")
_ANNOUNCED = lazy_pattern(r"\s*(?:[-*•] )?[\w/~'\"(`]")
_MASKED = lazy_pattern(r"[|;]")  # the status of a command is not that of its call


REFUSED, BESIDE = "refused by the user", "not run, as a call beside it failed"

_REASON = 2_000  # characters at the beginning of a result that are searched for a refusal
# The wordings of Claude Code, cline and its relatives, gemini-cli and turnlog itself.
_REFUSAL = lazy_pattern(
    r"\s*(?:the user (?:doesn't want to (?:proceed with this tool use|take this action)|denied this operation"
    r"|did not allow this call)|user (?:denied execution|rejected tool use|did not allow tool call)\b)",
    re.IGNORECASE,
)
_WORDS = lazy_pattern(
    r"(?:the user said:|following reason for the rejection:|following feedback:\s*<feedback>"
    r"|did not allow this call; it did not run\.)(.+?)(?:</feedback>|\n\nNote:|\Z)",
    re.DOTALL | re.IGNORECASE,
)


class Failure(NamedTuple):
    """How a call failed: the most telling line of its result ("" if none tells), whether that line looks like an error,
    the exit status if one is reported, the outcome, and what the user said who refused the call."""

    said: str
    sign: bool
    code: int | None
    outcome: Outcome
    reason: str = ""

    @property
    def status(self) -> str:
        """The exit status or the outcome, in a word or two."""
        return f"exit {self.code}" if self.code else ("failed" if self.outcome == "ok" else self.outcome)

    @property
    def text(self) -> str:
        """What went wrong, or the status if nothing says it."""
        return self.said or self.status


def refusal_of(text: str) -> str | None:
    """What the user said when refusing a call, from the result `text` of the call: "" if nothing, None if the call was
    not refused."""
    if _REFUSAL.match(text) is None:
        return None
    match = _WORDS.search(text, 0, _REASON)
    return match[1].strip() if match is not None else ""


def failure_of(text: str, outcome: Outcome) -> Failure | None:
    """What went wrong, if a result shows that its call failed, whatever the call; else None."""
    if (reason := refusal_of(text)) is not None:
        return Failure(REFUSED, True, None, "canceled", reason)
    if outcome != "ok" and _BESIDE.match(text):
        return Failure(BESIDE, False, None, "canceled")
    status = _exit_of(text[:_STATUS]) or _exit_of(text[-_STATUS:])
    code = int(status[1]) if status is not None else None
    if outcome == "ok" and not (code if code is not None else _looks_failed(text)):
        return None
    return Failure(*_telling(text, outcome, code), code, outcome)


def is_harmless(call: object, failure: Failure) -> bool:
    """Whether a call that looks failed is not: a search that found nothing, files that differ, or a text that was shown
    and begins or ends like an error."""
    if not isinstance(call, ToolCall):
        return False
    if failure.code == 1 and (last := last_program(call)) and _SEEKING.match(last):
        return _COMPARING.match(last) is not None or not failure.sign
    if failure.outcome != "ok":
        return False
    pipes = commands_in(call)
    if pipes:
        return failure.code is None and all(_SHOWING.match(pipe[0]) for pipe in pipes)
    # A text that was shown may quote the exit status or the summary of another command.
    return _LOOKING.match(call.name) is not None and not _is_error(_RAISED, failure.said)


def _looks_failed(text: str) -> bool:
    head, tail = text[:_STATUS].lstrip(), text[-_STATUS:].rstrip()
    last = tail.rpartition("\n")[2]
    first = head.partition("\n")[0]
    is_error = (
        _is_error(_BEGINS, first)
        or _VERDICT.match(first) is not None
        or (_is_error(_RAISED, last) and not _is_source(last))
    )
    return is_error or _SUMMED.search(tail) is not None


def _is_error(sign: re.Pattern[str], line: str) -> bool:
    return sign.match(line) is not None and _NO_ERROR.match(line) is None


def _exit_of(text: str) -> re.Match[str] | None:
    lower = text.lower()
    return _EXIT.search(text) if "exit" in lower or "return" in lower else None


# -- the telling line ------------------------------------------------------------------------------


def _telling(text: str, outcome: Outcome, code: int | None) -> tuple[str, bool]:
    """The line that says best what went wrong, and whether it looks like an error: the last that names an exception,
    the first that a compiler or test wrote, the first that begins or sounds like an error; else, of a tool's message
    the first, of a command's output the last."""
    cut = text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]}\n{_from_a_line(text[-_ENDS:])}"
    lines = [line for line in (_unframed(line.rstrip()) for line in without_escapes(cut).splitlines()) if line.strip()]
    telling = [line for line in lines if not (_LABEL.match(line) or _is_status(line))]
    if outcome in ("timeout", "canceled", "aborted", "lost"):  # what it said until then may be anything
        stopped = next(filter(_STOPPED.match, telling), "")
        return clip(stopped, _LINE), bool(stopped)
    written = [line for line in telling if not _is_source(line)]
    own = [line for line in written if not _AFTER.match(line)]
    found = next(_candidates(lines, own), None) or next(_candidates(lines, written), None)
    if found is not None:
        return clip(_continued(found, lines, telling), _LINE), True
    sentences = [line for line in own or telling if _SENTENCE.match(line)] if code is None or code >= 0 else []
    said = (_continued(sentences[0], lines, telling) if code is None else sentences[-1]) if sentences else ""
    return clip(said, _LINE), False


def _is_source(line: str) -> bool:
    """Whether a line is of a program, also where a search found it, or of a listing of files."""
    place = _PLACED.match(line)
    if place is not None and place[0].strip()[0] in "dl-" and ":" not in place[0]:
        return True
    return _SOURCE.match(line, place.end() if place is not None else 0) is not None


def _from_a_line(end: str) -> str:
    """The end of a text without the rest of a line at its beginning, unless it is all one line."""
    return end.partition("\n")[2].strip("\n") or end


def _candidates(lines: Sequence[str], telling: Sequence[str]) -> Iterator[str]:
    """The lines that look like an error, the most telling first."""
    yield from [line for line in telling if _is_error(_EXCEPTION, line) or line.lstrip().startswith("panic:")][-1:]
    yield from (line for line in telling if _DIAGNOSTIC.match(line) or _ASSERTED.match(line))
    yield from (line for line in telling if _is_error(_RAISED, line))
    yield from (line for line in telling if _NAMED.match(line) and _NO_ERROR.match(line) is None)
    yield from (line for label, line in pairwise(lines) if _HEADED.match(label) and line in telling)


def _continued(line: str, lines: Sequence[str], telling: Sequence[str]) -> str:
    """A line that ends with a colon, with what it announces."""
    if not line.rstrip().endswith(":"):
        return line
    after = lines[lines.index(line) + 1 :]
    spelled = next(filter(None, map(_SPELLED.search, after)), None)
    following = spelled[1] if spelled is not None else next((other for other in after[:2] if other in telling), "")
    return f"{line.rstrip()} {following.strip()}" if _ANNOUNCED.match(following) else line


def _unframed(line: str) -> str:
    """A line without the marks that programs put around it; "" for one that they add to every result."""
    if _FRAME.match(line) is not None:
        return ""
    match = _TAGS.match(line)
    return match[1] if match is not None else line


def _is_status(line: str) -> bool:
    """Whether a line says no more than the exit status, or that there was no error."""
    return len(line) < 60 and (_exit_of(line) is not None or _NO_ERROR.match(line) is not None)


# -- what a call is about --------------------------------------------------------------------------

_PLAIN = frozenset("cd echo export sleep true false set source mkdir pwd printf unset".split())
# Programs that are told by their quotations what to do, so that their other words say little.
_CARRIERS = frozenset(
    "ssh bash sh zsh fish docker kubectl psql sqlite3 node python python3 ruby perl curl claude".split()
)
_SETTING = lazy_pattern(r"(?:\w+=\S*|sudo|time|env|nohup|timeout)$")
_DEEDS, _SOUGHT = ("command", "action", "operation"), ("pattern", "query", "regex")
_PATHS = lazy_pattern(r"(?:^|_)(?:path|file|filename|filepath|url)$")
_SAME = 60  # characters in which the arguments of two calls are alike


class Subject(NamedTuple):
    """What a call is about: its tool, the beginning of what it was told (for a file, what is done to which), and the
    words of its shell commands, without options."""

    tool: str
    told: str
    commands: tuple[tuple[str, ...], ...] = ()
    masked: bool = False

    def is_mended_by(self, other: Subject, text: Callable[[], str]) -> bool:
        """Whether another call, which worked and had this result, shows that this one works now: it is told the same,
        or its commands cover all of this one's, and hide no failure."""
        if self.tool != other.tool:
            return False
        if self.told == other.told:
            return True
        if not self.commands or (other.masked and _shows_failure(text())):
            return False
        return all(any(_covers(there, here) for there in other.commands) for here in self.commands)


def subject_of(call: ToolCall, brief: str) -> Subject:
    """What a call is about. `brief` are its arguments in short, or its command."""
    shell = shell_text(call)
    named = call.arguments if isinstance(call.arguments, dict) else {}
    if not shell:
        path = next((v for k, v in named.items() if isinstance(v, str) and _PATHS.search(words_of(k))), "")
        deed = next((v for k, v in named.items() if isinstance(v, str) and k in _DEEDS), "")
        sought = any(key in named for key in _SOUGHT)
        return Subject(call.name, f"{deed} {path}" if path and not sought else brief[:_SAME])
    firsts = (_words(pipe[0], brief) for pipe in commands_in(call))
    commands = tuple(dict.fromkeys(words for words in firsts if words and words[0] not in _PLAIN))
    return Subject(call.name, brief[:_SAME], commands, _MASKED.search(shell) is not None)


def _words(command: str, brief: str) -> tuple[str, ...]:
    """The words of a command without options, settings and quotations. If those say what it does, with its text."""
    given = command.split()
    while given and _SETTING.match(given[0]):
        given = given[1:]
    words = tuple(word for word in given if word[0] not in "-'\"$\\<>{}")
    is_told = len(words) > 1 or len(given) == 1
    if words and words[0] in _CARRIERS:
        is_told = is_told and len(words) == len(given)
    return words if is_told else (*words, brief[:_SAME])


def _covers(there: tuple[str, ...], here: tuple[str, ...]) -> bool:
    """Whether a command that worked does all that the other does: it is the same, or restricted to less."""
    return there[:2] == here[:2] and set(there) <= set(here)


def _shows_failure(text: str) -> bool:
    lines = (text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]}\n{text[-_ENDS:]}").splitlines()
    return any(_NAMED.match(line) and _NO_ERROR.match(line) is None and not _SOURCE.match(line) for line in lines)
