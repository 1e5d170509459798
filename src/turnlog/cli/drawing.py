"""Bars for a terminal, in its width and in characters that it can show."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence

from .._platform.lazy import lazy_pattern
from .._platform.visible import columns_of, visible
from .terminal import is_terminal

_PLACE = lazy_pattern(r"\S*/(?=[^/\s]+\.\w+[:(]\d)")
_EIGHTHS = "▏▎▍▌▋▊▉█"
_WORD = lazy_pattern(r"\s*\S+|\s+$")


def room() -> int:
    """The number of columns to draw in: the width of the terminal, at least 28 and at most 110."""
    return max(28, min(110, shutil.get_terminal_size((80, 24)).columns))


def colours() -> bool:
    """Whether to use colours: stdout is a terminal and NO_COLOR is not set (no-color.org)."""
    return is_terminal(sys.stdout) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def fitted(shares: Sequence[float], width: int) -> list[int]:
    """Whole numbers of columns for shares of `width`, rounded so that their sum is the rounded sum of the shares; each
    share above zero gets at least one column if possible."""
    sizes: list[int] = []
    done = 0.0
    for share in shares:
        done += max(0.0, share)
        sizes.append(max(0, min(width, round(done * width)) - sum(sizes)))
    for i, share in enumerate(shares):
        widest = max(range(len(sizes)), key=sizes.__getitem__)
        if share > 0 and not sizes[i] and sizes[widest] > 1:
            sizes[i], sizes[widest] = 1, sizes[widest] - 1
    return sizes


def bar(share: float, width: int) -> str:
    """A bar of `share` of `width` columns, precise to an eighth of a column if the terminal has characters for
    eighths."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    if share > 0:
        eighths = max(1, eighths)
    if not _has(_EIGHTHS):
        return "#" * max(round(eighths / 8), int(share > 0))
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8 - 1] if eighths % 8 else "")


def stacked(sizes: Sequence[int], free: int) -> list[str]:
    """The segments of one bar: one for each size, then the free rest."""
    full, empty = ("█", "░") if _has("█░") else ("#", ".")
    return [*(full * size for size in sizes), empty * free]


def marker_line(marks: Sequence[tuple[str, float]], width: int) -> list[str]:
    """Lines that point at positions on a bar of `width` columns. Names that would overlap get separate lines."""
    lines: list[str] = []
    for name, share in sorted(marks, key=lambda mark: -mark[1]):
        place = max(0, min(width - 1, round(share * width) - 1))
        text = f"^ {name}" if place + len(name) + 2 <= width else f"{name} ^"
        start = place if text[0] == "^" else max(0, place - len(text) + 1)
        line = " " * start + text
        if lines and len(line) + 2 <= len(lines[-1]) - len(lines[-1].lstrip()):
            line = line + lines.pop()[len(line) :]
        lines.append(line)
    return lines


def clipped(text: str, width: int) -> str:
    """`text` on one line, escaped, padded or cut to `width` columns."""
    text = visible(text, one_line=True)
    if columns_of(text) > width:
        dots = "…" if _has("…") else "..."
        text = text[: _fitting(text[: 4 * width], width - len(dots))] + dots
    return text + " " * (width - columns_of(text))


def path_tail(path: str, width: int) -> str:
    """The end of a path in at most `width` columns, so that the name of the file or folder is seen."""
    sign = "/" if "/" in path else "\\"
    parts = path.rstrip(sign).split(sign)
    tail = parts[-1]
    for part in reversed(parts[:-1]):
        if not part or columns_of(part + sign + tail) > width:
            break
        tail = part + sign + tail
    return clipped(tail, width).rstrip()


def shortened_path(path: str, width: int) -> str:
    """A path of at most `width` columns: folders in its middle leave first, as its name and its beginning say most."""
    dots = "…" if _has("…") else "..."
    if columns_of(path) <= width:
        return path
    first, *folders, name = path.replace("\\", "/").split("/") if "/" in path or "\\" in path else ("", path)
    if not folders and not first:
        return clipped(path, width).rstrip()
    while folders and columns_of("/".join((first, dots, *folders, name))) > width:
        folders = folders[1:]
    for short in ("/".join((first, dots, *folders, name)), f"{dots}/{name}"):
        if columns_of(short) <= width:
            return short
    return dots + name[-max(1, width - len(dots)) :]


def shortened_line(line: str, width: int) -> str:
    """A line about a place in a file (`src/a.py:3: ...`) in `width` columns: the folders of the file leave first."""
    if columns_of(line) > width and (match := _PLACE.match(line)) is not None:
        line = line[match.end() :]
    return clipped(line, width).rstrip()


def wrapped(text: str, width: int) -> list[str]:
    """A line of text as lines of at most `width` columns, cut between words where that is possible."""
    lines, width = [""], max(1, width)
    for word in _WORD.findall(text):
        if columns_of(lines[-1]) + columns_of(word) <= width:
            lines[-1] += word
            continue
        rest = word.lstrip() if lines[-1].strip() else word
        lines[len(lines) if lines[-1].strip() else -1 :] = [""]
        while columns_of(rest) > width:
            end = max(1, _fitting(rest[: 2 * width], width))
            lines[-1:], rest = [rest[:end], ""], rest[end:]
        lines[-1] = rest
    return lines


def _fitting(text: str, width: int) -> int:
    """How many of the first characters of a text fit into `width` columns."""
    if text.isascii() and text.isprintable():
        return min(len(text), width)
    used = 0
    for i, char in enumerate(text):
        used += columns_of(char)
        if used > width:
            return i
    return len(text)


def _has(characters: str) -> bool:
    """Whether standard output can encode these characters."""
    try:
        characters.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
