"""The sections of a digest and their lines: write them, and read them again from an earlier digest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from .._platform.lazy import lazy_pattern
from .._platform.texts import clip

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


def newest_first(files: list[SectionLine]) -> list[SectionLine]:
    """Files from an earlier digest, by their newest change, with places after the files of the new digest."""
    ordered = sorted(files, key=lambda line: max(map(int, _NAMED.findall(line.text)), default=0), reverse=True)
    return [SectionLine(_NEVER + place, line.text, line.about, line.under) for place, line in enumerate(ordered)]


def path_of(line: SectionLine) -> str:
    """The file that a line of files changed is about."""
    return line.text.partition(": ")[0]


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
