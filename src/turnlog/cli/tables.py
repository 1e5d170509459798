"""Tables: printed whole when piped; on a terminal fitted to its width, so that a row is a line."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Container, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from .._platform.visible import columns_of
from .drawing import clipped
from .terminal import is_terminal

_TEXT = 20
"""If the text has fewer columns than this, other columns get narrower."""

_LEAST = 10
"""If the text has fewer columns than this, columns with `cut` are left out."""


class Column(Struct, frozen=True):
    """A column left of the text: its minimum width, and the side on which cells are aligned. On a narrow terminal, a
    column with `may_go` is left out, and cells are cut to the widths in `cut`, one after the other."""

    name: str
    cells: Sequence[str]
    width: int = 0
    side: str = "<"
    cut: Sequence[int] = ()
    may_go: bool = False

    def cell(self, text: str) -> str:
        """A cell padded to its width."""
        pad = " " * (self.width - columns_of(text))
        return pad + text if self.side == ">" else text + pad


def terminal_width() -> int:
    """The number of columns of the terminal that stdout is; 0 for a pipe or a file, which has no edge."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else 0


def folded(line: str, indent: int) -> Iterator[str]:
    """A line of a screen; on a terminal that is narrower, its lines, wrapped between words, with an indent from the
    second on."""
    room = terminal_width() or len(line)
    yield from textwrap.wrap(line, max(room, indent + _TEXT), subsequent_indent=" " * indent) or [line]


def laid_out(columns: Sequence[Column], name: str, texts: Sequence[str]) -> Iterator[str]:
    """The lines of a table, header first; `name` and `texts` are the last column."""
    room = terminal_width()
    columns = [replace(column, width=max(column.width, _longest(column))) for column in columns]
    if room:
        longest = max(map(columns_of, [name, *texts]))
        columns = _narrowed(columns, room, min(longest, _TEXT), min(longest, _LEAST))
    for i in range(-1, len(texts)):
        ahead = [column.cell(column.name if i < 0 else column.cells[i]) for column in columns]
        line = "  ".join([*ahead, name if i < 0 else texts[i]]).rstrip()
        yield clipped(line[: 4 * room], room).rstrip() if room else line


def _narrowed(columns: Sequence[Column], room: int, text: int, least: int) -> Sequence[Column]:
    """The columns, made narrower until the text fits: first reduced to the width of their cells, then without columns
    that `may_go`, from the right, then with cut cells."""
    if _has_room(columns, room, text):
        return columns
    columns = [replace(column, width=_longest(column)) for column in columns]
    for going in [column for column in reversed(columns) if column.may_go]:
        if not _has_room(columns, room, text):
            columns = [column for column in columns if column is not going]
    for i, column in enumerate(columns):
        for width in column.cut:
            if not _has_room(columns, room, text):
                columns[i] = replace(column, cells=[cell[:width] for cell in column.cells], width=width)
    return columns if _has_room(columns, room, least) else [column for column in columns if not column.cut]


def _has_room(columns: Sequence[Column], room: int, text: int) -> bool:
    return sum(column.width + 2 for column in columns) + text <= room


def _longest(column: Column) -> int:
    return max(map(columns_of, [column.name, *column.cells]))


def table(
    names: Sequence[str], rows: Iterable[Sequence[str]], *, right: Container[str], may_go: Container[str] = ()
) -> Iterator[str]:
    """The lines of a table, header first. Columns are as wide as their cells; columns in `right` are aligned to the
    right. On a narrow terminal, columns in `may_go` are left out, from the right, and the last column is cut."""
    cells = list(zip(*rows, strict=True)) or [()] * len(names)
    columns = [
        Column(name, held, side=">" if name in right else "<", may_go=name in may_go)
        for name, held in zip(names[:-1], cells, strict=False)
    ]
    last = Column(names[-1], cells[-1], side=">" if names[-1] in right else "<")
    last = replace(last, width=_longest(last)) if last.side == ">" else last
    return laid_out(columns, last.cell(last.name), [last.cell(text) for text in last.cells])
