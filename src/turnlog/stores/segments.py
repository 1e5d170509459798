"""Which logs contain the records of a session: its own, and those of the sessions that it was forked from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..errors import CorruptRecord

Key = TypeVar("Key", int, str)


class Segment(NamedTuple):
    """Records `first` to `last` of a session, which are in the log `key`."""

    key: Any
    first: int
    last: int


def segments_of_log(
    key: Key, shared: int, base: Key | None, end: int, find: Callable[[Key], tuple[int, Key | None] | None]
) -> list[Segment]:
    """The segments with the records 1 to `end` of a session, none of them empty.

    The session's own log is `key`; its first `shared` records are in the log `base` and the logs below it. `find`
    returns `shared` and `base` of another log, None if there is no such log. Raises CorruptRecord.
    """
    segments = []
    while True:
        if shared < end:
            segments.append(Segment(key, shared + 1, end))
        if not base:
            return segments[::-1]
        end = min(end, shared)
        found = find(base)
        if found is None:
            raise CorruptRecord(
                f"record {shared} is missing: the session that this one was forked from is no longer in the store "
                f"(internal log {base})",
                record=shared,
            )
        # Each log must begin after the one below it; otherwise this loop might never end.
        if found[0] >= shared:
            raise CorruptRecord(
                f"record {shared} is missing: the session that this one was forked from does not have it (internal log "
                f"{base})",
                record=shared,
            )
        key, (shared, base) = base, found


def unshared(sessions: Iterable[tuple[str, Sequence[Segment]]]) -> dict[str, int]:
    """The sessions to read, and the first record to read in each, so that a record shared by several is read once.

    `sessions` must be in order, oldest first, each with its segments.
    """
    seen: dict[Any, int] = {}
    begins = {}
    for session, segments in sessions:
        begin, end = 1, 0
        for segment in segments:
            key, end = segment.key, segment.last
            begin = max(begin, min(seen.get(key, 0), end) + 1)
            seen[key] = max(seen.get(key, 0), end)
        if begin <= end:
            begins[session] = begin
    return begins
