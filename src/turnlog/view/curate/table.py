"""Shorten tables of comma- or tab-separated values: the columns, the first and last rows, and the number of rows."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import islice

from .marks import WORK, Marks, lines_of, number

_SEPARATORS = ",\t;|"
_HEAD, _TAIL = 12, 4
"""The number of first and of last rows to show besides the heading."""

_SAMPLE = 200
_LEAST_SHARE = 0.98
"""The least share of rows that must have as many columns as the first."""

_VALUES = 6
"""The number of different values of a column to name."""

_MOST = 60
"""The number of columns to describe."""


def separator_of(text: str) -> str:
    """The character that separates the columns of a table, as often in nearly every row; "" if the text is not a
    table."""
    lines = [line for line in text[:20_000].split("\n")[:_SAMPLE] if line.strip()]
    lines = lines[:-1] if len(text) > 20_000 and len(lines) < _SAMPLE else lines
    if len(lines) < 5:
        return ""
    for separator in _SEPARATORS:
        if separator not in lines[0]:
            continue
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=separator)]
        except csv.Error:
            continue
        if widths[0] > (1 if separator == "\t" else 2) and widths.count(widths[0]) >= _LEAST_SHARE * len(lines):
            return separator
    return ""


def table(text: str, marks: Marks) -> str:
    """A table, shortened; the text itself if it is not a table."""
    separator = separator_of(text)
    text = text.rstrip("\n")
    lines = text[:WORK].split("\n")
    if len(text) > WORK:
        lines.pop()
    if not separator or len(lines) <= _HEAD + _TAIL + 1:
        return text
    try:
        rows = list(csv.reader(lines, delimiter=separator))
    except csv.Error:
        return text
    if len(rows) != len(lines):  # a value of several lines, or an empty line: rows are not lines
        return text
    whole = lines_of(text)
    shown = lines[: _HEAD + 1]
    ending = text.rsplit("\n", _TAIL)[1:]
    gone = number(whole - len(shown) - len(ending), "row")
    which = f" of the first {len(rows):,} rows" if len(rows) < whole else ""
    return "\n".join([*shown, marks.left_out(f"{gone} of {whole - 1:,}"), *ending, *_columns(rows, which)])


def _columns(rows: Sequence[Sequence[str]], which: str) -> list[str]:
    """A line about each column of the omitted rows: its range, or its different values if they are few."""
    head, body = rows[0], rows[1:]
    lines = []
    for i, name in enumerate(islice(head, _MOST)):
        values = [row[i] for row in body if i < len(row)]
        numbers = [value for value in values if _is_number(value)]
        different = [*dict.fromkeys(values)]
        if numbers and len(numbers) == len(values):
            description = f"{min(numbers, key=float)} to {max(numbers, key=float)}"
        elif len(different) <= _VALUES:
            description = ", ".join(value[:60] for value in different)
        else:
            description = number(len(different), "different value")
        lines.append(f"[column {name}{which}: {description}]")
    if len(head) > _MOST:
        lines.append(f"[and {number(len(head) - _MOST, 'more column')}]")
    return lines


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return value.strip().lower() not in ("nan", "inf", "-inf", "infinity", "-infinity")
