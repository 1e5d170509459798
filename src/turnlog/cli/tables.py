"""Tables whose last column is text: printed whole when piped, cut instead of wrapped on a terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Container, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

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
        return f"{text:{self.side}{self.width}}"


def laid_out(columns: Sequence[Column], name: str, texts: Sequence[str]) -> Iterator[str]:
    """The lines of a table, header first; `name` and `texts` are the last column."""
    room = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else 0
    if room:
        columns = _narrowed(columns, room)
    for i in range(-1, len(texts)):
        ahead = [column.cell(column.name if i < 0 else column.cells[i]) for column in columns]
        line = "  ".join([*ahead, name if i < 0 else texts[i]]).rstrip()
        yield clipped(line[: 4 * room], room).rstrip() if room else line


def _narrowed(columns: Sequence[Column], room: int) -> Sequence[Column]:
    """The columns, made narrower until the text fits: first reduced to the width of their cells, then without columns
    that `may_go`, from the right, then with cut cells."""
    if _has_room(columns, room):
        return columns
    columns = [replace(column, width=_longest(column)) for column in columns]
    for going in [column for column in reversed(columns) if column.may_go]:
        if not _has_room(columns, room):
            columns = [column for column in columns if column is not going]
    for i, column in enumerate(columns):
        for width in column.cut:
            if not _has_room(columns, room):
                columns[i] = replace(column, cells=[cell[:width] for cell in column.cells], width=width)
    return columns if _has_room(columns, room, _LEAST) else [column for column in columns if not column.cut]


def _has_room(columns: Sequence[Column], room: int, text: int = _TEXT) -> bool:
    return sum(column.width + 2 for column in columns) + text <= room


def _longest(column: Column) -> int:
    return max(map(len, [column.name, *column.cells]))


def table(names: Sequence[str], rows: Iterable[Sequence[str]], *, right: Container[str]) -> Iterator[str]:
    """The lines of a table, header first. Columns are as wide as their cells; columns in `right` are aligned to the
    right."""
    rows = [names, *rows]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    sides = [">" if name in right else "<" for name in names]
    for row in rows:
        yield "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)).rstrip()
