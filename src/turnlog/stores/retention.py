"""Limits on a store: old sessions are packed or deleted, the oldest first, until the store is within its limits.

A plan is made from the store's inventory and carried out session by session. Sessions stay if they are in use,
protected or damaged, or if a fork that stays reads their records. Each session is deleted whole or not at all, so a
crash in between loses nothing else.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from .._platform.units import AGES, SIZES, age_text, old_max_size, read_age, read_size, size_text
from ..errors import Conflict, CorruptRecord, InputError, SessionBusy, SessionNotFound
from ..log.store import Inventory, SessionInfo, Store, Swept, file_name
from .subagents import leaders
from .zstd import library

# -- packing ---------------------------------------------------------------------------------------
#
# Packs old sessions: those without new records for some time that nobody uses.


class Compressed(Struct, frozen=True):
    """A session that was packed, or would be: the bytes of its records before and after (0: not packed yet)."""

    session: str
    title: str
    updated: str
    before: int
    after: int = 0


def to_pack(store: Store, age: timedelta, now: datetime) -> list[SessionInfo]:
    """The sessions of at least that age that are not packed, the oldest first."""
    unpacked = store.unpacked()
    return [
        info
        for info in reversed(store.sessions())
        if info.id in unpacked and time_of(info) and is_older(info, age, now)
    ]


def would_pack(infos: Sequence[SessionInfo], inventory: Inventory, gone: Collection[str]) -> list[Compressed]:
    """The sessions that packing would compress, leaving out those in use and those in `gone`."""
    sizes = Counter[str]()
    for piece in inventory.pieces:
        sizes[piece.owner] += piece.size
    used = inventory.in_use or frozenset()
    left = (info for info in infos if file_name(info.id) not in used and info.id not in gone)
    return [Compressed(info.id, info.title, info.updated, sizes[info.id]) for info in left]


def packed_all(
    store: Store, infos: Sequence[SessionInfo], failed: Callable[[str, CorruptRecord], None]
) -> list[Compressed]:
    """Pack each of these sessions that nobody uses. A damaged session is left as it is and passed to `failed`."""
    done = []
    for info in infos:
        hold = store.hold(info.id, alone=True)
        if hold is None:
            continue
        try:
            packed = store.pack(info.id)
        except SessionNotFound:  # deleted just now
            continue
        except CorruptRecord as error:
            failed(info.id, error)
            continue
        finally:
            hold.close()
        if packed.records:
            done.append(Compressed(info.id, info.title, info.updated, packed.before, packed.after))
    return done


def time_of(info: SessionInfo) -> datetime | None:
    """When a session was last appended to; None if its time cannot be read."""
    try:
        time = datetime.fromisoformat(info.updated)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def is_older(info: SessionInfo, age: timedelta, now: datetime) -> bool:
    """Whether nothing was appended to a session for more than `age`, or the time of the last record cannot be read."""
    time = time_of(info)
    return time is None or now - time > age


_LATELY = timedelta(days=1)
"""How new the last record of a session must be to count as in use, where that cannot be known."""

_NEVER = datetime.min.replace(tzinfo=UTC)

_ROUNDS = 8
"""How often to measure whether the store is small enough. Sizes of sessions on disk are estimates, so several rounds
may be needed."""


def _read_number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError
    return value


_READERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "max_age": (read_age, AGES),
    "max_disk": (read_size, SIZES),
    "max_sessions": (_read_number, "a whole number, at least 1"),
    "compress_after": (read_age, AGES),
}
"""For each limit, the function that reads its value, and the allowed values in words."""


class Limits(Struct, frozen=True, repr_omit_defaults=True):
    """How much a store may contain: sessions with a new record within `max_age`, `max_disk` bytes on disk,
    `max_sessions` sessions. None: no limit. Sessions that stay and had no new record within `compress_after` are
    compressed.

    Raises InputError for a value that is not a limit. Ages and sizes may be given as `"30d"` and `"500MB"`.
    """

    max_age: timedelta | None = None
    max_disk: int | None = None
    max_sessions: int | None = None
    compress_after: timedelta | None = None
    max_size: str | None = None
    """The name of `max_disk` until 0.2. It is always None afterwards."""

    def __post_init__(self) -> None:
        if self.max_size is not None:
            if self.max_disk is not None:
                raise InputError("max_size: this is what max_disk was called until 0.2; give one of them")
            force_setattr(self, "max_disk", old_max_size(self.max_size))
            force_setattr(self, "max_size", None)
        for name, (read, allowed) in _READERS.items():
            given = getattr(self, name)
            if given is None:
                continue
            try:
                force_setattr(self, name, read(given))
            except ValueError as error:
                raise InputError(f"{name}: {given!r} is not allowed; allowed: {allowed}") from error

    def __bool__(self) -> bool:
        limits = self.max_age, self.max_disk, self.max_sessions, self.compress_after
        return any(limit is not None for limit in limits)


class Gone(Struct, frozen=True, repr_omit_defaults=True):
    """A session that was deleted or would be: `size` is about how many bytes of disk this frees, blobs included; `why`
    names the limit."""

    session: str
    title: str
    updated: str
    records: int
    size: int
    why: str


class Spared(Struct, frozen=True, repr_omit_defaults=True):
    """A session that exceeds a limit but stays, and why."""

    session: str
    why: str


class Plan(Struct, frozen=True, repr_omit_defaults=True):
    """The sessions to delete, in order, and the sessions that stay although they exceed a limit."""

    gone: tuple[Gone, ...]
    spared: tuple[Spared, ...]


class Collected(Struct, frozen=True, repr_omit_defaults=True):
    """What `collect` deleted, or with `dry_run` would delete. `before` and `after` are the bytes of the store on disk,
    estimated in a dry run; `swept` are the blobs that no record refers to any more. `over`: limits that are still
    exceeded, because the sessions left must not be deleted. `compressed`: the sessions that were compressed. A dry run
    ignores what compressing would save, in `after` and when it chooses sessions by size."""

    dry_run: bool
    gone: tuple[Gone, ...]
    spared: tuple[Spared, ...]
    before: int
    after: int
    swept: Swept
    over: tuple[str, ...] = ()
    compressed: tuple[Compressed, ...] = ()


def is_over(store: Store, limits: Limits, now: datetime) -> bool:
    """Whether a limit is exceeded. Reads no records."""
    infos = store.sessions()
    agents = leaders(infos)
    old = (info for info in infos if limits.max_age is not None and is_older(info, limits.max_age, now))
    return (
        (limits.max_sessions is not None and len(infos) > limits.max_sessions)
        or (limits.max_disk is not None and store.used() > limits.max_disk)
        or any(info.id not in agents for info in old)
        or (limits.compress_after is not None and bool(to_pack(store, limits.compress_after, now)))
    )


def plan(
    infos: Sequence[SessionInfo],
    inventory: Inventory,
    limits: Limits,
    *,
    used: int,
    now: datetime,
    among: Collection[str] | None = None,
) -> Plan:
    """The plan for these sessions, which take `used` bytes on disk. With `among`, all others stay."""
    reasons = _reasons(infos, inventory, now)
    if among is not None:
        reasons = {info.id: "it was not listed before" for info in infos if info.id not in among} | reasons
    planner = _Planner(infos, inventory, used, reasons)

    def take_old() -> None:
        if limits.max_age is not None:
            age = limits.max_age
            planner.take(lambda info: is_older(info, age, now), lambda: True, f"older than {age_text(age)}")

    take_old()
    if limits.max_sessions is not None:
        most = limits.max_sessions
        planner.take(_any, lambda: len(planner.left) > most, f"more than {most:,} sessions")
    if limits.max_disk is not None:
        size = limits.max_disk
        planner.take(_any, lambda: planner.used > size, f"more than {size_text(size)}")
    take_old()  # sessions that had to wait for a younger fork to be deleted
    return Plan(tuple(planner.gone), planner.spared)


def collect_within(
    store: Store,
    limits: Limits,
    now: datetime,
    dry_run: bool,
    grace: float,
    among: Collection[str] | None = None,
) -> Collected:
    """Delete sessions of a store until it is within `limits`; ages are measured at `now`. `grace` is as in
    `Store.sweep`. With `among`, no other session is deleted."""
    before = store.used()
    gone: list[Gone] = []
    packed: list[Compressed] = []
    damaged: list[Spared] = []
    spared: tuple[Spared, ...] = ()
    swept = Swept(0, 0, 0)
    if limits.compress_after is not None and (waiting := to_pack(store, limits.compress_after, now)):
        library()  # before anything is deleted
        inventory = store.inventory()
        if dry_run:
            planned = plan(store.sessions(), inventory, limits, used=before, now=now, among=among)
            packed = would_pack(waiting, inventory, {each.session for each in planned.gone})
        else:  # before the size is measured: compressing may make deleting unnecessary
            lasting = Limits(limits.max_age, None, limits.max_sessions)
            planned = plan(store.sessions(), inventory, lasting, used=before, now=now, among=among)
            gone = _delete_planned(store, planned.gone)
            waiting = to_pack(store, limits.compress_after, now)
            packed = packed_all(
                store, waiting, lambda name, error: damaged.append(Spared(name, f"not packed: {error}"))
            )
    for _ in range(_ROUNDS):
        planned = plan(store.sessions(), store.inventory(), limits, used=store.used(), now=now, among=among)
        spared = (*planned.spared, *damaged)
        if dry_run:
            after = before - sum(each.size for each in planned.gone)
            over = _over(store, limits, planned, after)
            return Collected(True, planned.gone, spared, before, max(after, 0), swept, over, tuple(packed))
        went = _delete_planned(store, planned.gone)
        gone += went
        just_swept = store.sweep(grace=grace)
        swept = Swept(swept.removed + just_swept.removed, swept.size + just_swept.size, just_swept.recent)
        store.reclaim()
        if not planned.gone or (
            len(went) == len(planned.gone) and not _over(store, limits, Plan((), ()), store.used())
        ):
            break
    after = store.used()
    over = _over(store, limits, Plan((), ()), after)
    return Collected(False, tuple(gone), spared, before, after, swept, over, tuple(packed))


def _delete_planned(store: Store, gone: Sequence[Gone]) -> list[Gone]:
    """Delete sessions one by one and return those deleted. Stops at the first that must not be deleted any more,
    because the rest of the plan depends on it."""
    went = []
    for each in gone:
        hold = store.hold(each.session, alone=True)
        if hold is None:
            break
        try:
            store.delete(each.session, expected=each.records)
        except (Conflict, SessionBusy, SessionNotFound):
            break
        finally:
            hold.close()
        went.append(each)
    return went


def _over(store: Store, limits: Limits, planned: Plan, used: int) -> tuple[str, ...]:
    """The limits of number and size that are still exceeded when a plan has been carried out."""
    number = len(store.sessions()) - len(planned.gone)
    return tuple(
        name
        for name, limit, actual in (
            ("max_disk", limits.max_disk, used),
            ("max_sessions", limits.max_sessions, number),
        )
        if limit is not None and actual > limit
    )


class _Planner:
    """Chooses sessions one by one: the oldest that may be deleted and that no remaining session reads from. Subagents
    stay as long as their session, and go with it: it may still wait for what they did."""

    def __init__(self, infos: Sequence[SessionInfo], inventory: Inventory, used: int, reasons: dict[str, str]) -> None:
        self.left = {info.id: info for info in infos}
        self.gone: list[Gone] = []
        self._spared: dict[str, str] = {}
        self._must_stay = reasons
        self._leaders = leaders(infos)
        for agent in [agent for agent in self._leaders if agent in reasons]:
            leader = self._leaders.get(agent, "")
            while leader:
                reasons.setdefault(leader, f"its subagent {agent} stays: {reasons[agent]}")
                leader = self._leaders.get(leader, "")
        self._pieces, self._blobs = inventory.pieces, inventory.blobs
        self._readers = [set(piece.readers) for piece in self._pieces]
        self._read_by: dict[str, list[int]] = {}  # the pieces that each session reads
        self._forks: dict[str, set[str]] = {}  # the other sessions that read what each session owns
        for n, piece in enumerate(self._pieces):
            self._forks.setdefault(piece.owner, set()).update(piece.readers - {piece.owner})
            for reader in piece.readers:
                self._read_by.setdefault(reader, []).append(n)
        self._named = Counter(name for piece in self._pieces for name in piece.blobs)
        # Records take more on disk than their bytes: checksums, an index of words, half-filled pages.
        bare = sum(piece.size for piece in self._pieces) or 1
        self._factor = max(1.0, (used - inventory.base - sum(self._blobs.values())) / bare)
        self.used = used - sum(size for name, size in self._blobs.items() if name not in self._named)

    @property
    def spared(self) -> tuple[Spared, ...]:
        """The sessions that were considered and stay."""
        return tuple(Spared(name, why) for name, why in self._spared.items() if name in self.left)

    def take(self, wanted: Callable[[SessionInfo], bool], is_over: Callable[[], bool], why: str) -> None:
        """Choose the wanted sessions while `is_over` returns True: the oldest first, but a fork before the session it
        reads from."""
        chosen = (info for info in self.left.values() if info.id not in self._leaders and wanted(info))
        waiting = [(time_of(info) or _NEVER, info.id) for info in chosen]
        heapq.heapify(waiting)
        blocked: dict[str, tuple[datetime, str]] = {}
        while waiting and is_over():
            time, name = heapq.heappop(waiting)
            forks = self._forks.get(name, set())
            if name in self._must_stay:
                self._spared.setdefault(name, self._must_stay[name])
            elif forks:
                blocked[name] = time, name
                self._spared[name] = f"its records are read by {_some(forks)}"
            else:
                self._remove(name, why)
                for base in [base for base, others in self._forks.items() if name in others]:
                    self._forks[base].discard(name)
                    if base in blocked and not self._forks[base]:
                        heapq.heappush(waiting, blocked.pop(base))

    def _remove(self, name: str, why: str) -> None:
        freed = 0.0
        for n in self._read_by.get(name, ()):
            self._readers[n].discard(name)
            if not self._readers[n]:
                freed += self._pieces[n].size * self._factor
                for blob in self._pieces[n].blobs:
                    self._named[blob] -= 1
                    freed += 0 if self._named[blob] else self._blobs[blob]
        info = self.left.pop(name)
        self.used -= int(freed)
        self.gone.append(Gone(name, info.title, info.updated, info.records, int(freed), why))
        for agent in [agent for agent in self.left if self._leaders.get(agent) == name and not self._forks.get(agent)]:
            self._remove(agent, why)


def _reasons(infos: Sequence[SessionInfo], inventory: Inventory, now: datetime) -> dict[str, str]:
    """The reasons, by session id, why sessions stay whatever the limits are."""
    reasons = {}
    for info in infos:
        time = time_of(info)
        if inventory.in_use is not None and file_name(info.id) in inventory.in_use:
            reasons[info.id] = "it is in use"
        elif info.id in inventory.kept:
            reasons[info.id] = "it is protected from gc"
        elif time is None:
            reasons[info.id] = "the time of its last record cannot be read; see `turnlog verify`"
        elif inventory.in_use is None and now - time < _LATELY:
            reasons[info.id] = (
                "it may be in use: this system or disk cannot tell, and its last record is less than a day old"
            )
    return reasons


def _some(names: Iterable[str]) -> str:
    first, *others = sorted(names)
    return f"{first} and {len(others):,} more" if others else first


def _any(info: SessionInfo) -> bool:
    return True
