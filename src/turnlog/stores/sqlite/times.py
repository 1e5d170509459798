"""The times of the records in the search index, so that a search by date reads no others.

The row ids of the index are divided into *spans* of about 64 records, each from its first id to the first id of the
next span. For each span, the oldest and newest time of its records is stored. Records of several sessions may share a
span.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ..._platform.lazy import lazy_pattern

_RECORDS = 64
_TIME = lazy_pattern("[0-9][0-9TZ:.-]*")
_AT = """select first, last, records, oldest, newest from searched_times
    where first <= ? order by first desc limit 1"""
_WRITE = "insert or replace into searched_times (first, last, records, oldest, newest) values (?, ?, ?, ?, ?)"
_FIND = """select (select min(first) - 1 from searched_times as next where next.first > found.first)
    from searched_times as found where newest >= ? and oldest < ? and last >= ? and first <= ?
    order by first desc limit 1"""


def note_times(db: sqlite3.Connection, times: Sequence[tuple[int, str]]) -> None:
    """Add the times of records that are put into the index. `times` are pairs of id and time, in order and all of one
    session."""
    spans: list[tuple[int, int, int, str, str]] = []
    span = db.execute(_AT, (times[0][0],)).fetchone() if times else None
    for key, time in times:
        early, late = (time, time) if _TIME.fullmatch(time) else ("", "~")  # not a time: matches all times
        first, last, records, oldest, newest = span or (key, key, 0, early, late)
        if records >= _RECORDS:
            spans.append((first, last, records, oldest, newest))
            if last > key:  # the span also has ids of later sessions, which get a separate span
                spans.append(((key >> 32) + 1 << 32, last, records, oldest, newest))
            first, last, records, oldest, newest = key, key, 0, early, late
        span = first, max(last, key), records + 1, min(oldest, early), max(newest, late)
    if span is not None:
        db.executemany(_WRITE, [*spans, span])


def newest_in_time(db: sqlite3.Connection, low: int, high: int, since: str, until: str) -> int | None:
    """The highest id from `low` to `high` whose record may have a time from `since` to `until`; None if there is
    none."""
    row = db.execute(_FIND, (since, f"{until}~", low, high)).fetchone()  # every character in a time is before "~"
    if row is None:
        return None
    return high if row[0] is None else min(high, int(row[0]))
