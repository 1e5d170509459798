"""Tables of comma- or tab-separated values: the columns, the first and the last rows, and how many there are."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import islice

from .lines import WORK
from .marks import Marks, number

_SEPARATORS = ",\t;|"
_HEAD, _TAIL = 12, 4
"""Rows that are shown, besides the heading."""

_SAMPLE = 20
_VALUES = 6
"""Different values of a column that are named."""

_MOST = 60
"""Columns that are described."""


def separator_of(text: str) -> str:
    """What separates the columns of a table: the same number of them in each row; "" if the text is no table."""
    lines = [line for line in text[:20_000].split("\n")[:_SAMPLE] if line.strip()]
    lines = lines[:-1] if len(text) > 20_000 and len(lines) < _SAMPLE else lines
    if len(lines) < 5:
        return ""
    for separator in _SEPARATORS:
        if separator not in lines[0]:
            continue
        try:
            widths = {len(row) for row in csv.reader(lines, delimiter=separator)}
        except csv.Error:
            continue
        if len(widths) == 1 and max(widths) > (1 if separator == "\t" else 2):
            return separator
    return ""


def table(text: str, marks: Marks) -> str:
    """A table, shortened; the text itself if it is none."""
    separator = separator_of(text)
    lines = text[:WORK].split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not separator or len(lines) <= _HEAD + _TAIL + 1:
        return text
    try:
        rows = list(csv.reader(lines, delimiter=separator))
    except csv.Error:
        return text
    if len(rows) != len(lines):  # a value of several lines: rows are not lines
        return text
    whole = text.count("\n") + (not text.endswith("\n"))
    shown = lines[: _HEAD + 1]
    ending = lines[-_TAIL:] if len(text) <= WORK else text[-4_000:].rstrip("\n").split("\n")[-_TAIL:]
    gone = number(whole - len(shown) - len(ending), "row")
    return "\n".join([*shown, marks.left_out(f"{gone} of {whole - 1:,}"), *ending, *_columns(rows)])


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """A line about each column of which rows are missing: its range, or its different values if they are few."""
    head, body = rows[0], rows[1:]
    lines = []
    for i, name in enumerate(islice(head, _MOST)):
        values = [row[i] for row in body if i < len(row)]
        numbers = [value for value in values if _is_number(value)]
        if numbers and len(numbers) == len(values):
            lines.append(f"column {name}: {min(numbers, key=float)} to {max(numbers, key=float)}")
            continue
        different = [*dict.fromkeys(values)]
        if len(different) <= _VALUES:
            lines.append(f"column {name}: {', '.join(value[:60] for value in different)}")
        else:
            lines.append(f"column {name}: {number(len(different), 'different value')}")
    if len(head) > _MOST:
        lines.append(f"and {number(len(head) - _MOST, 'more column')}")
    return lines


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return value.strip().lower() not in ("nan", "inf", "-inf", "infinity", "-infinity")
