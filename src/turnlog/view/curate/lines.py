"""Clean the lines of a program's output, and pick the ones that matter.

Lines keep their order. Each is shown or counted by the mark in its place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ..._platform.lazy import lazy_pattern
from .json_values import is_json, json_value
from .marks import NO_TEXT, WORK, Marks, lines_of, number

_LINKS = lazy_pattern(r"\x1b\]8;[^;\n\x07\x1b]*;([^\n\x07\x1b]+)(?:\x07|\x1b\\)")  # what a terminal makes a link
_ESCAPES = lazy_pattern(
    r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\n\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[=>78MDEHc])"
)  # control sequences of a terminal: colours, cursor movements, titles, character sets
_BACKSPACES = lazy_pattern(r"[^\n\x08]\x08")

_BARS = lazy_pattern(r"[#=█▉▊▋▌▍▎▏░▒▓━╸╺─⠀-⣿]{3,}>?|\.{4,}|-{4,}>?|[ ]{2,}")
_HASHES = lazy_pattern(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b")
_NUMBERS = lazy_pattern(r"(?<! )[ ]*\d+(?:[.,:]\d+)*(?:(?:[ ]?(?:[kKMGT]i?B|bytes)|[kKMGT]|B)\b(?:/s)?)?")
_SIGNS = lazy_pattern(r"[ #=\-.>|/\\]+")  # of bars and spinners
_WORD = lazy_pattern(r"[^\W\d_]{2,}")

IMPORTANT = lazy_pattern(
    r"(?:error|exception|fatal|panic|traceback|warning|fail(?:ed|ure|ures|ing|s)?\b|denied|not found|no such file"
    r"|cannot |can't |could not |unable to |undefined|unresolved|segmentation|core dumped|killed|aborted|timed? ?out"
    r"|exit(?:ed)?[ _-]?(?:code|status|with)|^not ok |^E   |^>   |^[✗✘×✕] )",
    re.IGNORECASE | re.MULTILINE,
)
"""Matches a line about an error, a warning, a failed test or how a program ended."""
_HARMLESS = lazy_pattern(
    r"(?:\b(?:0|no|without(?: any)?) (?:\w+ )?(?:errors?|warnings?|failures?|failed|failing)\b"
    r"|\b(?:errors?|warnings?|failures?|failed)[ =:]{1,3}0\b(?![.\d]))",
    re.IGNORECASE,
)

_AROUND = 2
"""The number of lines around an important one that are kept with it."""

_TRACEBACK = 60
"""The most lines of a traceback that are kept with its first line."""

_REPEATS = 3
"""How often the same important line is shown."""

_RUN = 4
"""The number of similar or equal lines in a row from which they are folded."""

_LONG = 2_000
"""Characters. The middle of a longer line is left out."""

_TELLING = 1_000
"""The most important lines to look for in the middle of a text that is not read line by line."""


def first_that_fits(
    text: str, room: int, layouts: Callable[[Sequence[str]], Iterable[Iterable[str]]], marks: Marks
) -> str:
    """The first of the `layouts` of a text's lines that takes at most `room` characters, or else the last. Only `WORK`
    characters are laid out; a mark counts the lines after them, or the characters if that cuts a line."""
    end = len(text) if len(text) <= WORK else text.rfind("\n", 0, WORK) + 1 or WORK
    seen, rest = text[:end], text[end:]
    shown = ""
    for lines in layouts(cleaned(seen).removesuffix("\n").split("\n")):
        shown = "\n".join(lines)
        if len(shown) <= room:
            break
    if not rest:
        return shown
    whole_lines = seen.endswith("\n")
    what = number(lines_of(rest), "more line") if whole_lines else number(len(rest), "more character")
    return f"{shown}\n{marks.left_out(what)}"


def without_escapes(text: str) -> str:
    """A text without the control sequences of a terminal."""
    return _ESCAPES.sub("", _LINKS.sub(r"\1 ", text)) if "\x1b" in text else text


def cleaned(text: str) -> str:
    """What a terminal would show of a text: no control sequences, and only the last state of progress that overwrote
    itself in a line. States that say something else stay, on lines of their own."""
    text = without_escapes(text)
    if "\x08" in text:
        text = _BACKSPACES.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join("\n".join(_states(line)) if "\r" in line else line for line in text.split("\n"))
    return text


def _states(line: str) -> list[str]:
    """The states of a line that was overwritten, with only the last state of each progress display."""
    states: list[str] = []
    before: str | None = None
    for state in line.split("\r"):
        if not state.strip():
            continue
        shape = _SIGNS.sub("", _shape(state))
        if states and (state == states[-1] or (shape == before and _is_progress(shape))):
            states[-1] = state
        else:
            states.append(state)
        before = shape
    return states or [""]


def _is_progress(shape: str) -> bool:
    """Whether states of this shape show progress: they have a percentage, or nothing but a bar. Other numbers may be
    values of a table whose lines end with a carriage return, as on old Macs."""
    return "%" in shape or "0" not in shape


def tidied(text: str, marks: Marks) -> str:
    """A text without what says nothing: escapes, overwritten progress, and equal lines in a row, which are counted."""
    lines = cleaned(text).split("\n")
    fates = [""] * len(lines)
    _fold_equal(lines, fates)
    shown = "\n".join(_laid_out(lines, fates, marks, {}, whole=True))
    return shown if shown.strip() or not text.strip() else NO_TEXT


class Picked(Struct, frozen=True):
    """How much of an output is shown: characters at its beginning and at its end."""

    head: int
    tail: int


def picked(
    text: str,
    room: Picked,
    marks: Marks,
    drop: re.Pattern[str] | None = None,
    dropped: str = "",
    open_in: Callable[[Sequence[str]], Collection[int]] = lambda lines: (),
) -> str:
    """The beginning and the end of an output, and between them every line about an error with the lines around it.
    Similar lines in a row are folded. Lines that `drop` matches are left out and called `dropped`. `open_in` returns
    the indices of further lines about an error."""
    if len(text) > WORK and "\n" not in text[WORK // 2 : -WORK // 2]:
        gone = marks.left_out(number(len(text) - room.head - room.tail, "character"))
        return f"{text[: room.head]}\n{gone}\n{text[-room.tail :]}"
    lines, unseen = _within(text)
    important = [False] * len(lines)
    for i, line in enumerate(lines):
        again = i and line == lines[i - 1]
        important[i] = important[i - 1] if again else bool(IMPORTANT.search(line)) and not _is_harmless(line)
    for i in open_in(lines):
        important[i] = True
    fates = ["" if tells else "lines" for tells in important]
    _keep_ends(lines, fates, room, max(unseen, default=0))
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
    _fold_similar(lines, near, fates)
    _fold_equal(lines, fates)
    _fold_repeats(lines, important, fates)
    shown = "\n".join(_laid_out(lines, fates, marks, unseen))
    return shown if shown.strip() or not text.strip() else NO_TEXT


def _is_harmless(line: str) -> bool:
    """Whether a line only says that there were no errors."""
    return _HARMLESS.search(line) is not None and IMPORTANT.search(_HARMLESS.sub("", line)) is None


def _within(text: str) -> tuple[list[str], dict[int, int]]:
    """The lines that are looked at, and the number of lines before each that are not, by its index. In the middle of a
    text that is too long, only important lines are looked for."""
    if len(text) <= WORK:
        return cleaned(text).split("\n"), {}
    start = text.rfind("\n", 0, WORK // 2) + 1 or text.find("\n", WORK // 2) + 1
    end = text.find("\n", len(text) - WORK // 2) + 1 or text.rfind("\n", 0, len(text) - WORK // 2) + 1
    lines, unseen, position = cleaned(text[:start]).removesuffix("\n").split("\n"), {}, start
    for begin, done in _telling(text, start, end):
        if position < begin:
            unseen[len(lines)] = lines_of(text[position:begin])
        lines.append(without_escapes(text[begin:done]).replace("\r", ""))
        position = done + 1
    if position < end:
        unseen[len(lines)] = lines_of(text[position:end])
    return [*lines, *cleaned(text[end:]).split("\n")], unseen


def _telling(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The beginning and end of each important line between two places, each line once. Only the first ones are looked
    for."""
    done, seen = start - 1, set[str]()
    for _ in range(20 * _TELLING):
        match = IMPORTANT.search(text, done + 1, end)
        if match is None or len(seen) >= _TELLING:
            return
        begin = max(text.rfind("\n", done + 1, match.start()) + 1, done + 1)
        done = text.find("\n", match.start(), end)
        line = text[begin:done]
        if line not in seen and not _is_harmless(line[: 2 * _LONG]):
            seen.add(line)
            yield begin, done


def _keep_ends(lines: Sequence[str], fates: list[str], room: Picked, last: int) -> None:
    """Show the beginning and, from the index `last` on, the end."""
    left = room.head
    for i in range(len(lines)):
        left -= min(len(lines[i]), _LONG) + 1
        if left < 0:
            break
        fates[i] = ""
    left = room.tail
    for i in range(len(lines) - 1, last - 1, -1):
        left -= min(len(lines[i]), _LONG) + 1
        if left < 0:
            break
        fates[i] = ""


def _around(lines: Sequence[str], i: int) -> tuple[int, int]:
    """The first line that belongs to an important one, and the line after the last: for a traceback, all of it."""
    begin, end = max(0, i - _AROUND), min(len(lines), i + _AROUND + 1)
    if lines[i].lstrip().startswith("Traceback"):
        end = i + 1
        while end < min(len(lines), i + _TRACEBACK) and lines[end][:1] in (" ", "\t", "|"):
            end += 1
        end = min(len(lines), end + 1)
    return begin, end


def _shape(line: str) -> str:
    """The common form of lines that differ only in numbers, times, hashes, sizes and progress."""
    return _BARS.sub("-", _NUMBERS.sub("0", _HASHES.sub("0", line))).strip()


def _is_said(shape: str) -> bool:
    """Whether lines of this shape say the same: they have several words, one of them without a number. A single word
    with a number may be a value."""
    words = shape.split()
    return len(words) > 1 and any(_WORD.search(word) and "0" not in word for word in words)


def _fold_similar(lines: Sequence[str], near: Sequence[bool], fates: list[str]) -> None:
    """Leave out the middle of each run of similar lines that are not near an important one."""
    start, shape = 0, None
    for i in range(len(lines) + 1):
        current_shape = None
        if i < len(lines) and not near[i] and len(lines[i]) <= _LONG:
            current_shape = shape if shape is not None and lines[i] == lines[i - 1] else _shape(lines[i])
        if current_shape is not None and current_shape == shape:
            continue
        if shape is not None and i - start >= _RUN and _is_said(shape):
            for j in range(start, i):
                if fates[j] == "lines" or (fates[j] == "" and start < j < i - 1):
                    fates[j] = "similar lines"
        start, shape = i, current_shape


def _fold_equal(lines: Sequence[str], fates: list[str]) -> None:
    """Leave out repeated lines in each run of equal lines that is shown."""
    start = 0
    for i in range(1, len(lines) + 1):
        if i < len(lines) and lines[i] == lines[start]:
            continue
        if i - start >= _RUN and not any(fates[start:i]):
            fates[start + 1 : i] = ["equal lines"] * (i - start - 1)
        start = i


def _fold_repeats(lines: Sequence[str], important: Sequence[bool], fates: list[str]) -> None:
    """Show the same important line only a few times."""
    seen: Counter[str] = Counter()
    for i, tells in enumerate(important):
        if tells:
            seen[lines[i]] += 1
            if seen[lines[i]] > _REPEATS:
                fates[i] = "repeated lines"


def _laid_out(
    lines: Sequence[str],
    fates: Sequence[str],
    marks: Marks,
    unseen: Mapping[int, int],
    *,
    whole: bool = False,
) -> Iterator[str]:
    """The lines that are kept, with marks where some are missing; `unseen` are the numbers of lines that were not
    looked at, by the index of the line after them. With `whole`, long lines are not shortened."""
    gone: list[str] = []
    whys: Counter[str] = Counter()
    hidden = False
    for i in range(len(lines) + 1):
        if i in unseen:
            whys["lines"] += unseen[i]
            hidden = True
        if i < len(lines) and fates[i]:
            gone.append(lines[i])
            whys[fates[i]] += 1
            continue
        if whys:
            mark = marks.left_out(_counts(whys))
            yield from [mark] if hidden or sum(map(len, gone)) + len(gone) > len(mark) else gone
            gone, whys, hidden = [], Counter(), False
        if i < len(lines):
            yield from (lines[i],) if whole else shortened_line(lines[i], marks)


def _counts(whys: Counter[str]) -> str:
    """How many lines are missing, by reason: `14 similar lines`, `1 line`."""
    if whys["lines"]:
        alike = sum(count for why, count in whys.items() if why.endswith("lines"))
        whys = Counter({"lines": alike}) + Counter({w: c for w, c in whys.items() if not w.endswith("lines")})
    return " and ".join(number(count, why.removesuffix("s"), why) for why, count in whys.items() if count)


def shortened_line(line: str, marks: Marks) -> Iterable[str]:
    """A line. If it is very long, some of its elements if it is JSON, else its beginning and its end with a mark on a
    line between them."""
    if len(line) <= _LONG:
        return (line,)
    if is_json(line.strip()) and len(value := json_value(line, marks)) < len(line):
        return (value,)
    head, tail = _LONG * 2 // 3, _LONG // 3
    return line[:head], marks.left_out(number(len(line) - head - tail, "character") + " of one line"), line[-tail:]
