"""Searches by reading every record, for stores without an index, and makes hits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress

from .._platform.given import text_given
from .._platform.lazy import lazy_pattern
from ..errors import CorruptRecord, InputError, SessionNotFound
from ..log.records import Record
from ..log.store import Hit, Problem
from .labels import where_given
from .words import Finder, ToolNames, entry_of, matches, may_match, parse_query

_TIME = lazy_pattern(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d+)?)?)?Z?)?)?)?")


class Search:
    """A search: the checked arguments of `Store.search`. With `among`, only the sessions with these ids are searched,
    whatever their labels. `damaged` collects problems. Raises InputError."""

    def __init__(
        self,
        query: str,
        session: str | None = None,
        role: str | None = None,
        tool: str | None = None,
        since: str | None = None,
        until: str | None = None,
        limit: int | None = None,
        where: Mapping[str, str] | None = None,
        among: Collection[str] | None = None,
    ) -> None:
        for name, time in (("since", since), ("until", until)):
            if time is not None and not (isinstance(time, str) and _TIME.fullmatch(time)):
                raise InputError(f"{name}: {time!r} is not a date; write 2026-01-31, or 2026-01-31T12:00 in UTC")
        for name, word in (("role", role), ("tool", tool)):
            if word is not None:
                text_given(name, word)
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
            raise InputError(f"limit must be a number of hits, or None, not {limit!r:.100}")
        self.terms = parse_query(query)
        self.session = session
        self.role = role
        self.tool = tool
        self.since = (since or "").removesuffix("Z")
        self.until = (until or "").removesuffix("Z")
        self.limit = limit
        self.where = where_given(where)
        self.among = among
        self.damaged: list[Problem] = []
        self._finder = Finder(self.terms)

    def fits_time(self, time: str) -> bool:
        """Whether a time lies between `since` and `until`."""
        return time >= self.since and time[: len(self.until)] <= self.until

    def find(self, session: str, record: Record, names: ToolNames) -> Hit | None:
        """The hit for a record; None if it does not match. `names` is as in `entry_of`."""
        if not self.fits_time(record.time) or not may_match(self.terms, record.raw or b""):
            names.learn(record)
            return None
        entry = entry_of(record, names)
        if self.role not in (None, entry.role) or (self.tool is not None and self.tool not in entry.tools):
            return None
        return self.hit(session, record, entry.role, entry.text) if matches(self.terms, entry.text) else None

    def hit(self, session: str, record: Record, role: str, text: str) -> Hit | None:
        """The hit for a record that matches, with a snippet of its text. A subclass may leave records out (None)."""
        snippet, (start, end) = self._finder.snippet(text)
        return Hit(session, record.n, role, record.time, snippet, start, end)


def scan(
    search: Search, begins: Iterable[tuple[str, int]], readable: Callable[..., Iterator[Record | Problem]]
) -> list[Hit]:
    """The hits in these sessions, in the given order, in each session the newest first. `begins` gives each session and
    the first record to search in it; `readable` is that method of the store."""
    hits: list[Hit] = []
    for session, begin in begins:
        names = ToolNames()
        # A result may belong to a call in a record before `begin`, so read these records too.
        records = _whole(search, readable(session, first=begin if search.tool is None else 1))
        session_hits = [search.find(session, record, names) for record in records]
        hits += [hit for hit in reversed(session_hits) if hit is not None and hit.record >= begin]
        if search.limit is not None and len(hits) >= search.limit:
            return hits[: max(search.limit, 0)]
    return hits


def _whole(search: Search, items: Iterator[Record | Problem]) -> Iterator[Record]:
    """The intact records of `items`. Stops if the session is deleted meanwhile, or cannot be read as a whole, which
    `verify` reports."""
    with suppress(SessionNotFound, CorruptRecord):
        for item in items:
            if isinstance(item, Problem):
                search.damaged.append(item)
            else:
                yield item
