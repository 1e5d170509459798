"""Bars for a terminal, in its width and in characters that it can show."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Sequence

from ..export.escapes import visible
from .terminal import is_terminal

_EIGHTHS = "▏▎▍▌▋▊▉█"


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
    if _columns(text) > width:
        dots = "…" if _has("…") else "..."
        while text and _columns(text) + len(dots) > width:
            text = text[:-1]
        text += dots
    return text + " " * (width - _columns(text))


def _columns(text: str) -> int:
    """The number of columns that a text takes: two for a wide East Asian character, zero for a combining character."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _has(characters: str) -> bool:
    """Whether standard output can encode these characters."""
    try:
        characters.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
