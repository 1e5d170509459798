"""What came of the work: what the last test, build, check and commit of each kind said, and where each request of the
user was answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._platform.lazy import lazy_pattern
from .._platform.texts import clip
from ..log.messages import ToolCall
from ..view.file_edits import commands_in
from .reading import Said
from .sections import SectionLine

_SAID = 240  # characters of what a check said
_WORDS = 3  # of a command that tell its kind
_SEARCHED = 2_000  # characters at the end of a result
_PIECES = 4  # lines of a result that are told
_SETTING = lazy_pattern(r"(?:\w+=\S*|sudo|time|env|nohup|timeout|\d+s?)$")
# The commands of a kind: a program that tests, builds or checks, or a step of git that changes or shows the state.
_CHECK = lazy_pattern(
    r"(?:\S*/)?(?:"
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
                text = f"[{entry.record}] {clip(command, 100)}: {_verdict(entry)}"
                lines[kind] = SectionLine(index, text, entry.record)
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
            yield " ".join(kind), command
            return


def _verdict(entry: Said) -> str:
    """What a check said at last, on one line."""
    lines = [line.rstrip() for line in entry.text[-_SEARCHED:].split("\n")]
    lines = [line for line in lines if line.strip() and not line.endswith(":")]
    telling = [line for line in lines if _VERDICT.match(line)][-_PIECES:] or lines[-1:]
    said = "; ".join(" ".join(line.split()) for line in telling) or "ok, no output"
    if entry.error:
        said = f"failed: {said}" if entry.error in said else f"failed: {entry.error}; {said}"
    return clip(said, _SAID)


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
