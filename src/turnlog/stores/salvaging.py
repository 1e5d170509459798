"""Copies of damaged sessions: every record that can be read, and a note in place of each that cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from msgspec import Struct

from ..log.records import Note, Record
from ..log.store import Draft, Problem, Store
from .damaged import WHOLE
from .places import store_given

DAMAGED = "damaged"
"""The topic of a note that takes the place of an unreadable record."""

_BATCH = 500


class Salvaged(Struct, frozen=True, repr_omit_defaults=True):
    """The result of a salvage: the new session, the number of records kept, and the problems. A record with damage only
    to its checksum is kept."""

    session: str
    kept: int
    damaged: tuple[Problem, ...] = ()


def salvage(store: Store, session_id: str, new_id: str) -> Salvaged:
    """Create the session `new_id` with all readable records of a damaged session, also those after the damage.

    Records keep their numbers, times and bytes. A note with the topic `damaged` takes the place of each record that
    cannot be read, so that decisions and summaries name the right records. The damaged session stays as it is. Raises
    SessionNotFound, SessionExists, SessionIdError, and CorruptRecord if the session as a whole cannot be read.
    """
    store_given(store, opened=True)
    info = store.info(session_id)
    damaged: list[Problem] = []
    drafts = drafts_past_damage(store, session_id, 1, info.records, damaged.append)
    first = list(islice(drafts, _BATCH))  # before the new session is made: the damaged one may not be readable at all
    store.create(new_id, title=info.title, created=info.created, parent="" if info.parent_records else info.parent)
    while first:
        store.append(new_id, first)
        first = list(islice(drafts, _BATCH))
    lost = {problem.record for problem in damaged if problem.record and problem.what != WHOLE}
    return Salvaged(new_id, info.records - len(lost), tuple(damaged))


def drafts_past_damage(
    store: Store, session_id: str, first: int, last: int, tell: Callable[[Problem], object]
) -> Iterator[Draft]:
    """The records `first` to `last` as drafts, with a note in place of each that cannot be read. `tell` is called with
    each problem."""
    n, time = first, ""
    for item in store.readable(session_id, first=first, last=last):
        if isinstance(item, Problem):
            tell(item)
            continue
        while n < item.n:
            yield _stand_in(n, time or item.time)
            n += 1
        yield Draft.of(item)
        n, time = item.n + 1, item.time
    for lost in range(n, last + 1):
        yield _stand_in(lost, time)


def is_stand_in(record: Record) -> bool:
    """Whether a record takes the place of one that could not be read."""
    return isinstance(record.body, Note) and record.body.topic == DAMAGED


def _stand_in(n: int, time: str) -> Draft:
    return Draft(Note(DAMAGED, f"record {n} could not be read"), time)
