"""What the pages over all sessions know of each: agent, folder, labels, tokens, cost, and how its tools fared.

It takes seconds to read this of ten thousand sessions, so it is kept while a session has no new records; of one that
grew, only new records are read, except for its calls, which a thread reads again.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path, PurePath
from threading import Lock, Thread

from msgspec import Struct

from .._platform.times import local
from .._platform.visible import visible
from ..errors import CorruptRecord, SessionNotFound, TurnlogError
from ..log.bills import Bills, added, usage_by_model
from ..log.store import SessionFacts, SessionInfo, Store
from ..models.pricing import total_cost
from ..session.reader import own_calls
from ..session.titles import first_words, shown_title
from ..stores.billing import own_usage
from ..stores.labels import facts_of

_FEW = 200
"""So many sessions are read while somebody waits for a page; more are read by a thread."""


class ToolTally(Struct):
    """The calls of a tool: how many, how many of them failed (as `turnlog errors` has it), the seconds of those timed,
    and the record of the first of a session that failed."""

    calls: int = 0
    failed: int = 0
    seconds: array[float] = array("f")
    first: int = 0

    def __add__(self, other: ToolTally) -> ToolTally:
        """The sum of two tallies."""
        return ToolTally(self.calls + other.calls, self.failed + other.failed, self.seconds + other.seconds)


class KnownSession(Struct):
    """What is known of a session. `records` is the number of the last record that was read, `told` that of the last
    whose calls were. `bills` is what it was billed, `days` the same by day (of this machine, `2026-01-31`), `tools` has
    its tools by day and name; all without what an older session has as well. `title` is empty if the session has one of
    its own."""

    records: int = 0
    facts: SessionFacts = SessionFacts()
    title: str = ""
    days: dict[str, Bills] = {}
    bills: Bills = {}
    cost: Decimal = Decimal(0)
    is_damaged: bool = False
    told: int = -1
    tools: dict[tuple[str, str], ToolTally] = {}
    answers: array[int] = array("q")
    calls: array[int] = array("q")

    @property
    def model(self) -> str:
        """The model with most of its tokens; "" if there is none."""
        return max(self.bills, key=lambda name: (self.bills[name].input + self.bills[name].output, name), default="")

    @property
    def tokens(self) -> int:
        """All tokens that were billed."""
        return sum(usage.input + usage.output for usage in self.bills.values())

    @property
    def failed(self) -> int:
        """The number of calls that failed, as far as they were read."""
        return sum(tally.failed for tally in self.failures())

    def failures(self, tool: str = "") -> Iterator[ToolTally]:
        """The tallies with failed calls: of one tool, by its name as pages show it, or of all."""
        return (tally for (_, name), tally in self.tools.items() if tally.failed and tool in ("", seen(name)))


Known = Mapping[str, KnownSession]
"""What is known of sessions, by their ids."""


class Listing:
    """The sessions of a store with what is known of them. A server has one, which its threads share."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._known: dict[str, KnownSession] = {}
        self._billed: set[int] = set()
        self._told: set[int] = set()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._error: Exception | None = None

    def known(self, infos: Sequence[SessionInfo], *, wait: bool = True) -> Known:
        """What is known of all sessions of the store, which `infos` are. Without `wait`, nothing while much has yet to
        be read. A thread reads the calls, and what is not waited for. Raises what reading in a thread raised."""
        behind = sum(map(self._is_behind, infos))
        is_much = not wait and behind > _FEW
        if not is_much:
            self._read_bills(infos)
        if is_much or not self.has_told(infos):
            if error := self._error:
                self._error = None
                raise error
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._read_all, args=(infos,), daemon=True)
                self._thread.start()
        return {} if is_much else self._known.copy()  # to which threads may add

    def has_told(self, infos: Iterable[SessionInfo]) -> bool:
        """Whether the calls of all these sessions were read."""
        return all((known := self._known.get(info.id)) and known.told >= info.records for info in infos)

    def _read_bills(self, infos: Sequence[SessionInfo]) -> None:
        if len(infos) != len(self._known) or any(map(self._is_behind, infos)):
            with self._lock:
                self._read(infos)

    def with_calls(self, infos: Sequence[SessionInfo]) -> Known:
        """The same, with all calls read."""
        self._read_bills(infos)
        by_id = {info.id: info for info in infos}
        for info in sorted(infos, key=_age):
            with self._lock:  # each time, so that a page need not wait for all
                known = self._known.get(info.id)
                if known is not None and known.told < info.records:
                    self._read_calls(info, known, by_id)
        return self._known.copy()

    def _read_all(self, infos: Sequence[SessionInfo]) -> None:
        try:
            self.with_calls(infos)
        except (TurnlogError, OSError) as error:  # which the next page raises
            self._error = error

    def _is_behind(self, info: SessionInfo) -> bool:
        known = self._known.get(info.id)
        return known is None or known.records != info.records

    def _read(self, infos: Sequence[SessionInfo]) -> None:
        if self._are_gone(infos) and self._are_gone(infos := self.store.sessions()):  # not just listed before others
            # What those that are gone shared with others counts in these.
            self._known, self._billed, self._told = {}, set(), set()
        by_id = {info.id: info for info in infos}
        behind = [info for info in infos if self._is_behind(info)]
        facts = self.store.facts() if len(behind) > _FEW else {}
        for info in sorted(behind, key=_age):
            with suppress(SessionNotFound):  # deleted meanwhile
                self._known[info.id] = self._read_one(info, by_id, facts)

    def _are_gone(self, infos: Sequence[SessionInfo]) -> bool:
        """Whether sessions that are known are not among these, or are there with fewer records."""
        records = {info.id: info.records for info in infos}
        return any(records.get(name, -1) < known.records for name, known in self._known.items())

    def _read_one(
        self, info: SessionInfo, by_id: Mapping[str, SessionInfo], facts: Mapping[str, SessionFacts]
    ) -> KnownSession:
        known = self._known.get(info.id) or KnownSession()
        answers = set(known.answers)
        try:
            usage = self.store.of_kinds(info.id, ("usage",), first=known.records + 1)
            usage = (record for record in usage if record.n <= info.records)  # it may have grown
            days = dict(known.days)
            for record in own_usage(info, usage, by_id, self._billed, answers):
                day = day_of(record.time)
                days[day] = added([days.get(day, {}), usage_by_model([record])])
            known.days, known.bills = days, added(days.values())
            known.cost = total_cost(known.bills).at_least
        except CorruptRecord:
            known.is_damaged = True
        known.records, known.answers = info.records, array("q", answers)
        known.facts = facts.get(info.id) or facts_known(self.store, info.id)
        known.title = "" if info.title else known.title or first_words(self.store, info.id)
        return known

    def _read_calls(self, info: SessionInfo, known: KnownSession, by_id: Mapping[str, SessionInfo]) -> None:
        self._told.difference_update(known.calls)
        before = set[int]()
        tools: dict[tuple[str, str], ToolTally] = {}
        try:
            for call, seconds, is_failed in own_calls(self.store, info, by_id, self._told, before):
                tool = tools.setdefault((day_of(call.time), call.call.name), ToolTally(seconds=array("f")))
                tool.calls += 1
                if is_failed:
                    tool.failed += 1
                    tool.first = tool.first or call.record
                if seconds > 0 and (call.finished or call.result):
                    tool.seconds.append(seconds)
        except CorruptRecord:
            known.is_damaged = True
        except SessionNotFound:  # deleted meanwhile
            return
        known.tools, known.told, known.calls = tools, info.records, array("q", before)


def seen(words: str) -> str:
    """A text as pages show it, and as it comes back from them."""
    return visible(words, one_line=True)


def day_of(time: str) -> str:
    """The day of a recorded time in the time zone of this machine, as `2026-01-31`; "" if it is damaged."""
    then = local(time)
    return "" if then is None else then.date().isoformat()


def facts_known(store: Store, session_id: str) -> SessionFacts:
    """The facts of one session; none if they cannot be read. Raises SessionNotFound."""
    try:
        return facts_of(store, session_id)
    except CorruptRecord:
        return SessionFacts()


def is_in_folder(folder: str, asked: str) -> bool:
    """Whether a folder is the one that was asked for, or below it, or in one whose name begins so."""
    held, wanted = PurePath(folder), Path(asked).expanduser().absolute()
    return bool(folder) and (wanted == held or wanted in held.parents or _has_parts(held, asked))


def _has_parts(folder: PurePath, name: str) -> bool:
    """Whether folders of a path are called so one after the other; of the last, the beginning will do."""
    *names, last = PurePath(name.removesuffix("…")).parts or (name,)
    parts, size = folder.parts, len(names)
    runs = ((parts[i : i + size], parts[i + size]) for i in range(len(parts) - size))
    return any(list(run) == names and after.startswith(last) for run, after in runs)


def title_among(store: Store, infos: Iterable[SessionInfo]) -> str:
    """The first title, or first words, that one of these sessions has; "" if there is none."""
    with suppress(SessionNotFound):  # it is deleted just now
        return next(filter(None, (shown_title(store, info) for info in infos)), "")
    return ""


def _age(info: SessionInfo) -> tuple[str, str]:
    """The order in which sessions are read: what several have counts in the oldest."""
    return info.created, info.id
