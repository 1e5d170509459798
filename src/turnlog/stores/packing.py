"""Packs old sessions: those without new records for some time that nobody uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from ..errors import CorruptRecord, SessionNotFound
from ..log.store import Inventory, SessionInfo, Store, file_name


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
    """The sessions that packing would compress: without sessions in use, and without those in `gone`."""
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
