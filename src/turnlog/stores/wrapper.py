"""Stores in front of another store: `StoreWrapper` passes calls on, and its subclasses here read past damage."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

from ..errors import CorruptRecord, StoreError
from ..log.bills import Bills, usage_by_model
from ..log.records import Record
from ..log.store import Hit, Problem, Store
from .billing import billed_once
from .records import of_any
from .search import Search

if TYPE_CHECKING:
    from .base import BaseStore
else:
    BaseStore = object  # so that every method that a wrapper does not define is looked up in the inner store


class StoreWrapper(BaseStore):
    """Passes every call and every other attribute, such as a path, on to `store`."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __getattr__(self, name: str) -> Any:
        if name == "store":  # not set yet: the wrapper is being copied or unpickled
            raise AttributeError(name)
        return getattr(self.store, name)


class PastDamage(StoreWrapper):
    """A store whose reading methods leave damaged records out. `tell` is called once for each problem."""

    store: Any  # of which the wrapper also uses what only stores use of each other

    def __init__(self, store: Store, tell: Callable[[Problem], object]) -> None:
        super().__init__(store)
        self.tell = tell
        self._told: set[Problem] = set()

    def read(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record]:
        """As `Store.read`, without damaged records."""
        try:
            for item in self.store.readable(session_id, first=first, last=last, reverse=reverse):
                if isinstance(item, Problem):
                    self._met(item)
                else:
                    yield item
        except CorruptRecord as error:  # of the session as a whole, such as a lost parent
            self._met(Problem(session_id, error.record or 0, str(error)))

    def of_kinds(
        self, session_id: str, kinds: Collection[str], *, first: int = 1, reverse: bool = False
    ) -> Iterator[Record]:
        """As `Store.of_kinds`, without damaged records."""
        last = None
        try:
            for record in self.store.of_kinds(session_id, kinds, first=first, reverse=reverse):
                first, last = (first, record.n - 1) if reverse else (record.n + 1, last)
                yield record
        except CorruptRecord:
            yield from filter(of_any(kinds), self.read(session_id, first=first, last=last, reverse=reverse))

    def search(self, query: str, *, limit: int | None = 50, **terms: Any) -> list[Hit]:
        """As `Store.search`, without damaged records."""
        search = Search(query, limit=limit, **terms)
        hits: list[Hit] = self.store._search(search)
        for problem in search.damaged:
            self._met(problem)
        return hits

    def usage(self, session_id: str) -> Bills:
        """As `Store.usage`, without damaged records."""
        try:
            return dict(self.store.usage(session_id))
        except CorruptRecord:
            return usage_by_model(self.of_kinds(session_id, ("usage",)))

    def usages(self) -> dict[str, Bills]:
        """As `Store.usages`, without damaged records."""
        try:
            return dict(self.store.usages())
        except CorruptRecord:
            return billed_once(self.store.sessions(), lambda session_id: self.of_kinds(session_id, ("usage",)))

    def _met(self, problem: Problem) -> None:
        if problem not in self._told:
            self._told.add(problem)
            self.tell(problem)


class ReadingStore(PastDamage):
    """As `PastDamage`, but every method with which a session writes raises StoreError."""

    def _refuse(self, *given: Any, **named: Any) -> Any:
        raise StoreError("the session is open for reading only; open it without read_only=True to write to it")

    append = create = delete = fork = keep = lease = pack = put_blob = rename = rewrite = sweep = _refuse
