"""The lines of a program's output: cleaned, and with the ones that matter told apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from .marks import Marks, number

WORK = 1_000_000
"""Characters of an output that are looked at line by line. What is behind them is left out as a whole, except lines
that tell of errors."""

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[=>78MDEHc])"
)  # control sequences of a terminal: colours, cursor movements, titles, character sets
_BACKSPACES = re.compile(r"[^\n\x08]\x08")
_NUMBER = re.compile(r"[ ]*\d+")
_BARS = re.compile(r"[ #=\-.>█▉▊▋▌▍▎▏░▒▓━╸╺─⠀-⣿|/\\]{3,}")

IMPORTANT = re.compile(
    r"(?:error|exception|fatal|panic|traceback|warning|fail(?:ed|ure|ures|ing|s)?\b|denied|not found|no such file"
    r"|cannot |can't |could not |unable to |undefined|unresolved|segmentation|core dumped|killed|aborted|timed? ?out"
    r"|exit(?:ed)?[ _-]?(?:code|status|with)|^not ok |^E   |^>   |^[✗✘×✕] )",
    re.IGNORECASE | re.MULTILINE,
)
"""What a line says that tells of an error, a warning, a failed test or how a program ended."""
_HARMLESS = re.compile(
    r"(?:\b(?:0|no|without(?: any)?) (?:\w+ )?(?:errors?|warnings?|failures?|failed|failing)\b"
    r"|\b(?:errors?|warnings?|failures?|failed)[ =:]{1,3}0\b(?![.\d]))",
    re.IGNORECASE,
)

_AROUND = 2
"""Lines around an important one that are kept with it."""

_TRACEBACK = 60
"""The most lines of a traceback that are kept with its first line."""

_REPEATS = 3
"""How often the same important line is shown."""

_RUN = 4
"""So many similar lines in a row are folded into the first, a mark and the last."""

_LONG = 2_000
"""Characters of a line from which on its middle is left out."""

_ALIKE = 160
"""Characters of a line by which it is compared with the next."""


def first_that_fits(
    text: str, room: int, layouts: Callable[[Sequence[str]], Iterable[Iterable[str]]], marks: Marks
) -> str:
    """The first of the `layouts` of a text's lines that takes at most `room` characters, or else the last. Only `WORK`
    characters are laid out; a mark counts the lines behind them."""
    seen = text if len(text) <= WORK else text[: text.rfind("\n", 0, WORK) + 1 or WORK]
    shown = ""
    for lines in layouts(seen.split("\n")):
        shown = "\n".join(lines)
        if len(shown) <= room:
            break
    unread = max(1, text.count("\n", len(seen)))
    return f"{shown}\n{marks.left_out(number(unread, 'more line'))}" if len(seen) < len(text) else shown


def without_escapes(text: str) -> str:
    """A text without the control sequences of a terminal."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def cleaned(text: str) -> str:
    """What a terminal would show of a text: no control sequences, of a line that was written over only its last
    state."""
    text = without_escapes(text)
    if "\x08" in text:
        text = _BACKSPACES.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return text


class Picked(Struct, frozen=True):
    """How much of an output is shown: characters at its beginning and at its end."""

    head: int
    tail: int


def picked(text: str, room: Picked, marks: Marks, drop: re.Pattern[str] | None = None, dropped: str = "") -> str:
    """The beginning and the end of an output, and between them every line that tells of an error with the lines around
    it. Similar lines in a row are folded. Lines that `drop` matches are left out and called `dropped`."""
    lines, beyond, ending = _within(cleaned(text))
    important = [IMPORTANT.search(line) is not None and not _is_harmless(line) for line in lines]
    fates = ["" if tells else "lines" for tells in important]
    _keep_ends(lines, fates, room, len(lines) if not beyond else ending)
    near = [False] * len(lines)
    for i, tells in enumerate(important):
        if tells:
            first, last = _around(lines, i)
            near[first:last] = [True] * (last - first)
            fates[first:last] = [""] * (last - first)
    if drop is not None:
        for i, line in enumerate(lines):
            if not near[i] and drop.search(line):
                fates[i] = dropped
    _fold(lines, near, fates)
    _fold_repeats(lines, important, fates)
    shown = _laid_out(lines, fates, marks, (ending, beyond))
    return "\n".join(shown)


def _is_harmless(line: str) -> bool:
    """Whether a line only says that there were no errors."""
    return _HARMLESS.search(line) is not None and IMPORTANT.search(_HARMLESS.sub("", line)) is None


def _within(text: str) -> tuple[list[str], int, int]:
    """The lines that are looked at, how many lines between them are not, and the index of the first line behind
    those."""
    if len(text) <= WORK:
        return text.split("\n"), 0, 0
    start, end = text.rfind("\n", 0, WORK // 2) + 1, text.find("\n", len(text) - WORK // 2) + 1
    start, end = start or WORK // 2, end or len(text) - WORK // 2
    head = text[:start].removesuffix("\n").split("\n")
    middle = text[start:end]
    telling = [*dict.fromkeys(_telling(middle))]
    between = max(0, middle.count("\n") + (not middle.endswith("\n")) - len(telling))
    return [*head, *telling, *text[end:].split("\n")], between, len(head) + len(telling)


def _telling(text: str) -> Iterator[str]:
    """The important lines of a text that is too long to be looked at line by line."""
    done = -1
    for found in IMPORTANT.finditer(text):
        if found.start() < done:
            continue
        begin = text.rfind("\n", max(0, found.start() - _LONG), found.start()) + 1 or max(0, found.start() - _LONG)
        done = text.find("\n", found.end())
        done = len(text) if done < 0 else done
        line = text[begin : min(done, begin + 2 * _LONG)]
        if not _is_harmless(line):
            yield line


def _keep_ends(lines: Sequence[str], fates: list[str], room: Picked, last: int) -> None:
    left = room.head
    for i in range(len(lines)):
        left -= min(len(lines[i]), _LONG) + 1
        if left < 0:
            break
        fates[i] = ""
    left = room.tail
    for i in range(len(lines) - 1, -1, -1):
        left -= min(len(lines[i]), _LONG) + 1
        if left < 0:
            break
        fates[i] = ""


def _around(lines: Sequence[str], i: int) -> tuple[int, int]:
    """The first of the lines that belong to an important one, and the one after the last: of a traceback all."""
    begin, end = max(0, i - _AROUND), min(len(lines), i + _AROUND + 1)
    if lines[i].lstrip().startswith("Traceback"):
        end = i + 1
        while end < min(len(lines), i + _TRACEBACK) and lines[end][:1] in (" ", "\t", "|"):
            end += 1
        end = min(len(lines), end + 1)
    return begin, end


def _shape(line: str) -> str:
    """What lines that differ only in numbers and progress have in common."""
    return _BARS.sub("-", _NUMBER.sub("0", line[:_ALIKE])).strip()


def _fold(lines: Sequence[str], near: Sequence[bool], fates: list[str]) -> None:
    """Leave out the middle of each run of similar lines that are not near an important one."""
    start, shape = 0, None
    for i in range(len(lines) + 1):
        now = _shape(lines[i]) if i < len(lines) and not near[i] else None
        if now is not None and now == shape:
            continue
        if shape is not None and i - start >= _RUN:
            for j in range(start, i):
                if fates[j] == "lines" or (fates[j] == "" and start < j < i - 1):
                    fates[j] = "similar lines"
        start, shape = i, now


def _fold_repeats(lines: Sequence[str], important: Sequence[bool], fates: list[str]) -> None:
    """Show the same important line only a few times."""
    seen: Counter[str] = Counter()
    for i, tells in enumerate(important):
        if tells:
            seen[lines[i]] += 1
            if seen[lines[i]] > _REPEATS:
                fates[i] = "similar lines"


def _laid_out(lines: Sequence[str], fates: Sequence[str], marks: Marks, beyond: tuple[int, int]) -> Iterator[str]:
    """The lines that are kept, with marks where some are missing; `beyond` is the place and the number of lines that
    were not looked at."""
    at, unseen = beyond
    gone: list[str] = []
    whys: Counter[str] = Counter()
    for i in range(len(lines) + 1):
        if unseen and i == at:
            whys["lines"] += unseen
        if i < len(lines) and fates[i]:
            gone.append(lines[i])
            whys[fates[i]] += 1
            continue
        if whys:
            mark = marks.left_out(_counts(whys))
            yield from gone if unseen == 0 and sum(map(len, gone)) + len(gone) <= len(mark) else [mark]
            gone, whys = [], Counter()
        if i < len(lines):
            yield from shortened_line(lines[i], marks)


def _counts(whys: Counter[str]) -> str:
    """How many lines are missing for which reason: `14 similar lines`, `1 line`."""
    if whys["lines"]:
        whys = Counter({"lines": whys["lines"] + whys["similar lines"]}) + _without_lines(whys)
    return " and ".join(number(count, why.removesuffix("s"), why) for why, count in whys.items() if count)


def _without_lines(whys: Counter[str]) -> Counter[str]:
    return Counter({why: count for why, count in whys.items() if not why.endswith("lines")})


def shortened_line(line: str, marks: Marks) -> Iterable[str]:
    """A line; of a very long one the beginning and the end, with a mark on a line of its own between them."""
    if len(line) <= _LONG:
        return (line,)
    head, tail = _LONG * 2 // 3, _LONG // 3
    return line[:head], marks.left_out(number(len(line) - head - tail, "character") + " of one line"), line[-tail:]
