"""The sections of a digest and their lines: write them, and read them again from an earlier digest.

Also what came of the work, for two of them: what the last test, build, check and commit of each kind said, and where
the user's requests were answered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from .._platform.lazy import lazy_pattern
from .._platform.texts import clip
from ..log.messages import ToolCall
from ..view.file_edits import commands_in, shell_text
from .reading import Said

EARLIER = "## From an earlier summary"
ASKED = "## Asked"
FILES = "## Files changed"
DECIDED = "## Decided"
STATE = "## State"
REPORTED = "## Reported"
DONE = "## Done and found"
ERRORS = "## Errors"
OPEN = "## Open"
_FAILED = "] failed"  # the end of a line that says that a call failed

HEADING = lazy_pattern(r"\[(\d+)\] ")
_ABOUT = lazy_pattern(r"(?:→ )?\[(\d+)\]")
_NAMED = lazy_pattern(r"\[(\d+)\]")
_NEVER = 1 << 62
_TASK_SHARE, _TASK_MOST, _TASK_LEAST = 0.3, 450, 30  # of the room of a short digest, and characters, for the task


class SectionLine(Struct, frozen=True, gc=False):
    """A line of a section: its `place` there, its text, the record that it is `about` (0 if unknown), and the lines
    `under` which it has to appear to make sense."""

    place: int
    text: str
    about: int = 0
    under: tuple[SectionLine, ...] = ()


def read_lines(previous: str, ours: bool) -> Iterator[tuple[str, SectionLine]]:
    """The lines of an earlier summary, each with its section. If the summary is a digest (`ours`), it has a title,
    sections and headings. A line that only names a result ("→ [n]") is returned by itself only if it says that the call
    failed."""
    lines = previous.split("\n")
    under: tuple[SectionLine, ...] = ()
    section, about = "", 0
    for place, text in enumerate(lines, start=-len(lines)):
        if not text.strip() or (ours and place == -len(lines)):
            continue
        if ours and text.startswith("## "):
            section, under, about = text, (), 0
            continue
        done = section in (REPORTED, DONE, EARLIER)
        about = about_of(text, about if done else 0)
        if done and text.startswith("→ ["):
            under = (*under[:1], SectionLine(place, text, about))
            if len(under) > 1 and text.endswith(_FAILED):
                yield section, SectionLine(place, text, about, under[:1])
        elif done and HEADING.match(text):
            line = SectionLine(place, text, about)
            under = (line,)
            yield section, line
        else:
            yield section, SectionLine(place, text, about, under)


def about_of(line: str, before: int) -> int:
    """The record that a line of a digest is about: the record that the line begins with, else `before`, that of the
    previous line; without these, the lowest record number in the line."""
    match = _ABOUT.match(line)
    if match is not None:
        return int(match[1])
    return before or min(map(int, _NAMED.findall(line)), default=0)


def quoted(text: str) -> str:
    """A quote on one line. It is indented by a space if it would otherwise be read as a heading of the digest when the
    next digest is made."""
    text = " ".join(text.splitlines())
    return f" {text}" if text.startswith("## ") or _ABOUT.match(text) else text


def fitting(lines: Iterable[SectionLine], room: float) -> list[str]:
    """As many of `lines` as fit into `room` characters, in the order of their places."""
    taken: dict[int, str] = {}
    for line in lines:
        needed = [section_line for section_line in (*line.under, line) if section_line.place not in taken]
        size = sum(len(section_line.text) + 1 for section_line in needed)
        if size <= room:
            taken.update((section_line.place, section_line.text) for section_line in needed)
            room -= size
    return [taken[place] for place in sorted(taken)]


def with_the_task(lines: list[SectionLine], room: float, share: float) -> list[str]:
    """The lines of what was asked that fit into their `share` of `room` characters, always with the first, the task. If
    the task alone takes the whole share, it gets more room, is cut if necessary, and the other lines get half of the
    share."""
    if lines and len(lines[0].text) >= share:
        task, most = lines[0], int(min(_TASK_MOST, _TASK_SHARE * room))
        cut = clip(task.text, most) if most >= _TASK_LEAST else ""
        lines = [SectionLine(task.place, cut, task.about, task.under), *lines[1:]] if cut else lines
        share = share / 2 + len(cut) + 1
    return fitting(lines, share)


def in_order(lines: Iterable[SectionLine]) -> list[str]:
    """Lines and the lines above them (`under`), in the order of their places."""
    taken = {section_line.place: section_line.text for line in lines for section_line in (*line.under, line)}
    return [taken[place] for place in sorted(taken)]


SAID_FAILED = ": failed"
"""What stands behind the command of a check that failed."""

_SAID = 240  # characters of what a check said
_WIDTH = 72  # characters of the subject of a commit
_WORDS = 3  # of a command that tell its kind
_SEARCHED = 2_000  # characters at the end of a result
_PIECES = 4  # lines of a result that are told
_SETTING = lazy_pattern(r"(?:\w+=\S*|sudo|time|env|nohup|timeout|\d+s?)$")
# The commands of a kind: a program that tests, builds or checks, or a step of git that changes or shows the state.
_CHECK = lazy_pattern(
    r"(?:[^\s/]*+/)*+(?:"
    r"git\s+(?:commit|push|pull|merge(?!-)|rebase|cherry-pick|checkout|switch|tag|stash|status|reset|worktree|branch)\b"
    r"|gh\s+pr\s+\w+"
    r"|(?!(?:cat|ls|grep|rg|sed|head|tail|find|echo|cd|mkdir|rm|cp|mv|touch|which|wc|nl|git|chmod)\s)"
    r"(?:\S+\s+){0,3}?\S*(?:tests?|specs?|pytest|lint\w*|build|check\w*|tsc|mypy|ruff|eslint|compile|fmt|format"
    r"|clippy|vet|make|ctest|tox|nox|jest|vitest|mocha|phpunit|rspec|gradlew?|mvn|cmake)(?::\S+)?(?=\s|$))"
)
# Programs whose next word is no command of theirs.
_ALONE = lazy_pattern(r"(?:\S*/)?(?:pytest|jest|vitest|mocha|mypy|tsc|eslint|ctest|tox|nox|phpunit|rspec)$")
# Lines in which such programs sum up.
_VERDICT = lazy_pattern(
    r".*(?:\b\d+ (?:passed|failed|errors?|warnings?|issues?|tests?|files? changed|problems?|skipped|suites?)\b"
    r"|\b(?:passed|PASS|FAIL(?:ED)?|succe(?:ss|eded)\w*|failed|up[- ]to[- ]date|clean|Finished|compiled|built in"
    r"|no issues)\b"
    r"|^ok\b|^On branch|^## |^\[\S+.* [0-9a-f]{7,}\]|->|insertions?\(|^Switched|^Your branch|^HEAD is|rejected"
    r"|conflict)"
    r"|^\s?(?:M|A|D|\?\?|MM|AM|R|UU)\s+\S|^\s+(?:modified|new file|deleted|renamed):"
)
# What Codex puts before the output of a command, and how it says that the command goes on; `write_stdin` asks again.
_FRAME = lazy_pattern(r"(?:Chunk ID|Wall time|Original token count|Process exited with code|Output):?(?: |$)")
_RUNNING = lazy_pattern(r"^Process running with session ID (\d+)$", re.MULTILINE)
_SUBJECT = lazy_pattern(r"\s-\w*m\s*(?:\"\$\(cat <<-?\s*\S+\s*\n|[\"'])\s*([^\n\"']+)")  # of a commit
_UNNAMED = "-m ''"  # how `commands_in` gives it
_BRANCHES = ("git branch", "git checkout", "git switch")  # one kind: a later one tells the branch
_ANSWERED, _OPEN = " → answered at [{}]", " → open"
_NEAR = 5  # records; a nearer answer needs no pointer


def last_checks(said: Sequence[Said], staying: Sequence[Said]) -> list[SectionLine]:
    """A line for the last check of each kind, the newest first. A kind whose last result is among the messages that
    stay is left out."""
    lines: dict[str, SectionLine] = {}
    told = {kind for entry in staying for kind, _ in _kinds(entry)}
    for index in range(len(said) - 1, -1, -1):
        entry = said[index]
        for kind, command in _kinds(entry):
            if kind not in told:
                told.add(kind)
                ended = _ended(entry, (*said[index:], *staying))
                text = f"[{ended.record}] {clip(command, 100)}{_verdict(ended)}"
                lines[kind] = SectionLine(index, text, ended.record)
    return list(lines.values())


def _kinds(entry: Said) -> Iterator[tuple[str, str]]:
    """The kind of the last check in a call that a result answers, and its command."""
    if entry.who != "result" or not isinstance(entry.asked, ToolCall):
        return
    for pipe in reversed(commands_in(entry.asked)):
        words = pipe[0].split()
        while words and _SETTING.match(words[0]):
            words = words[1:]
        command = " ".join(words)
        if _CHECK.match(command):
            plain = [word for word in words if not word.startswith("-")]
            alone = next((place for place, word in enumerate(plain[:2]) if _ALONE.match(word)), None)
            kind = plain[: _WORDS if plain[1:2] == ["run"] else 2] if alone is None else plain[: alone + 1]
            kind_named = " ".join(kind)
            subject = _SUBJECT.search(shell_text(entry.asked)) if _UNNAMED in command else None
            if subject is not None:
                command = command.replace(_UNNAMED, f"-m '{clip(subject[1].strip(), _WIDTH)}'", 1)
            yield _BRANCHES[0] if kind_named in _BRANCHES else kind_named, command
            return


def _ended(entry: Said, following: Iterable[Said]) -> Said:
    """The result in which a command that went on in the background ended, or the last that was heard of it."""
    running = _RUNNING.search(entry.text)
    for later in following if running else ():
        call = later.asked if later.who == "result" else None
        arguments = call.arguments if isinstance(call, ToolCall) else None
        if running and isinstance(arguments, dict) and str(arguments.get("session_id")) == running[1]:
            entry, running = later, _RUNNING.search(later.text)
    return entry


def _verdict(entry: Said) -> str:
    """What a check said at last, behind its command, on one line."""
    lines = [line.rstrip() for line in entry.text[-_SEARCHED:].split("\n")]
    lines = [line for line in lines if line.strip() and not line.endswith(":") and not _FRAME.match(line)]
    telling = [line for line in lines if _VERDICT.match(line)][-_PIECES:] or lines[-1:]
    said = "; ".join(" ".join(line.split()) for line in telling) or "ok, no output"
    if entry.error:
        return f"{SAID_FAILED}: {clip(said if entry.error in said else f'{entry.error}; {said}', _SAID)}"
    return f": {clip(said, _SAID)}"


def what_became(said: Sequence[Said], staying: Sequence[Said]) -> dict[int, str]:
    """For each record in which the user said something, what is added to its line: where the answer stands that ended
    the turn, or that it is open. Nothing if the user stopped it, or if the answer is near."""
    entries = [*said, *(entry for entry in staying if not said or entry.record > said[-1].record)]
    asked = [place for place, entry in enumerate(entries) if entry.who == "user" and entry.note.line]
    became: dict[int, str] = {}
    for place, following in zip(asked, [*asked[1:], len(entries)], strict=False):
        last = entries[following - 1]
        if last.who == "assistant":
            if last.record - entries[place].record < _NEAR:
                continue
            became[entries[place].record] = _ANSWERED.format(last.record)
        elif following == len(entries):
            became[entries[place].record] = _OPEN
    return became


def without_open(line: str) -> str:
    """A line of an earlier digest without the words that its request is open: it may have been answered since."""
    return line.removesuffix(_OPEN)
