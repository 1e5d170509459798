"""What the requests of a session were expected to read from prompt caches, and what they read."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ..log.caching import CacheRead
from ..log.records import Record, UsageRecord
from ..log.store import Store


class CacheOutcome(Struct, frozen=True, repr_omit_defaults=True):
    """One request: `expected` is what it was expected to read from the cache (None: not on record), `read` and
    `written` what the provider billed, `input` its size, all in billed tokens.

    `n` is the number of the usage record. `changed`, `why` and `reason` are those of the record's `cache`: what turnlog
    knows to have changed since the request before, and what the provider says.
    """

    n: int
    provider: str
    model: str
    input: int
    read: int
    written: int
    expected: int | None = None
    changed: str = ""
    why: str = ""
    reason: str | None = None


class CacheReport:
    """The requests of a session that were billed, oldest first: `Session.cache`."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self._id = session_id

    def __repr__(self) -> str:
        return f"CacheReport({self._id!r})"

    def __iter__(self) -> Iterator[CacheOutcome]:
        return map(_outcome, self._store.of_kinds(self._id, ("usage",)))

    @property
    def last(self) -> CacheOutcome | None:
        """The request that was billed last; None if none was."""
        return next(map(_outcome, self._store.of_kinds(self._id, ("usage",), reverse=True)), None)


def _outcome(record: Record) -> CacheOutcome:
    bill = record.body
    assert isinstance(bill, UsageRecord)
    size, known = bill.usage.window or bill.usage.input, bill.cache or CacheRead()
    return CacheOutcome(
        n=record.n,
        provider=bill.provider,
        model=bill.model,
        input=size,
        read=bill.usage.cached,
        written=bill.usage.cache_write,
        expected=None if bill.cache is None else known.expected,
        changed=known.changed,
        why=known.why,
        reason=known.reason,
    )
