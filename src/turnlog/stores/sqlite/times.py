"""When the records in the search index were made, so that a search by date looks at no others.

The row ids of the index are parted into *spans* of about 64 records, each from its first id to that of the next span.
Of a span it is known from when to when its records are. Records of several sessions may share one.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

_RECORDS = 64
_MOST_RUNS = 64
_FIRST_SPANS = 8
_TIME = re.compile("[0-9][0-9TZ:.-]*")
_AT = """select first, last, records, oldest, newest from searched_times
    where first <= ? order by first desc limit 1"""
_WRITE = "insert or replace into searched_times (first, last, records, oldest, newest) values (?, ?, ?, ?, ?)"
_FIND = """select first, (select min(first) from searched_times as next where next.first > found.first)
    from searched_times as found where newest >= ? and oldest < ? and last >= ? and first <= ? order by first desc"""


def note_times(db: sqlite3.Connection, times: Sequence[tuple[int, str]]) -> None:
    """Take in records that are put into the index: ids in order, all of one session, and times."""
    spans: list[tuple[int, int, int, str, str]] = []
    span = db.execute(_AT, (times[0][0],)).fetchone() if times else None
    for key, time in times:
        early, late = (time, time) if _TIME.fullmatch(time) else ("", "~")  # a text that is no time: of all times
        first, last, records, oldest, newest = span or (key, key, 0, early, late)
        if records >= _RECORDS:
            spans.append((first, last, records, oldest, newest))
            if last > key:  # ids of later sessions are in it, which get a span of their own
                spans.append(((key >> 32) + 1 << 32, last, records, oldest, newest))
            first, last, records, oldest, newest = key, key, 0, early, late
        span = first, max(last, key), records + 1, min(oldest, early), max(newest, late)
    if span is not None:
        db.executemany(_WRITE, [*spans, span])


def in_time(
    db: sqlite3.Connection, ranges: Iterable[tuple[int, int, str]], since: str, until: str
) -> Iterator[tuple[int, int, str]]:
    """What of these ranges of ids may be of the times from `since` to `until`, newest first. Where that is too many
    small ones, the rest is one range, with ids of other times too."""
    made = 0
    for low, high, heir in ranges:
        with closing(db.execute(_FIND, (since, f"{until}~", low, high))) as spans:  # nothing in a time is behind "~"
            for first, end in _runs(spans):
                made += 1
                last = high if end is None else min(high, end - 1)
                yield low if made > _MOST_RUNS else max(low, first), last, heir
                if made > _MOST_RUNS:
                    break


def _runs(spans: Iterable[tuple[int, int | None]]) -> Iterator[tuple[int, int | None]]:
    """Spans next to each other as one: from which id, and up to which that does not belong to it. They come newest
    first. A run is cut where it is long, at first soon: whoever wants no more hits need not have all of it read."""
    run: tuple[int, int | None] | None = None
    length, longest = 0, _FIRST_SPANS
    for first, end in spans:
        if run is not None and end == run[0] and length < longest:
            run, length = (first, run[1]), length + 1
            continue
        if run is not None:
            yield run
            longest *= 2
        run, length = (first, end), 1
    if run is not None:
        yield run
