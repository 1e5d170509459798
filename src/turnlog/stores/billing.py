"""What all sessions of a store were billed, each answer counted once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from msgspec.structs import replace

from ..errors import SessionNotFound
from ..log.bills import Bills, added, usage_by_model
from ..log.records import Record, UsageRecord
from ..log.store import SessionInfo, Store
from .subagents import descendants


def billed_once(sessions: Iterable[SessionInfo], usage_records: Callable[[str], Iterable[Record]]) -> dict[str, Bills]:
    """The bills of each session by session id, which can be added: what several sessions have counts once. A fork has
    its parent's records, and a resumed transcript repeats answers, which count in the older session. Sessions without
    bills of their own are left out."""
    infos = sorted(sessions, key=lambda info: (info.created, info.id))
    records: dict[str, list[Record]] = {}
    for info in infos:
        with suppress(SessionNotFound):  # deleted meanwhile
            records[info.id] = list(usage_records(info.id))
    by_id = {info.id: info for info in infos if info.id in records}
    bills_by_session: dict[str, Bills] = {}
    billed: set[int] = set()
    for info in by_id.values():
        if bills := usage_by_model(own_usage(info, records[info.id], by_id, billed, set())):
            bills_by_session[info.id] = bills
    return bills_by_session


def own_usage(
    info: SessionInfo, records: Iterable[Record], by_id: Mapping[str, SessionInfo], billed: set[int], own: set[int]
) -> list[Record]:
    """Those of a session's usage records that count in it. `billed` holds the hashes of all answers that other sessions
    may have as well and that were counted in a session, `own` of those that were counted in this one; both grow."""
    counted = []
    for record in records:
        origin = made_in(record.n, info, by_id)
        if origin != info.id and origin in by_id:
            continue
        answer = _answer_id(record)
        if answer or origin != info.id:
            key = hash(answer or (origin, record.n))
            if key in billed and key not in own:
                continue
            own.add(key)
        counted.append(record)
    billed.update(own)
    return counted


def with_subagents(store: Store, session_id: str) -> tuple[Bills, int]:
    """The bill of a session with its subagents, each answer once, and how many subagents there are."""
    own, others = store.usage(session_id), descendants(store.sessions(), session_id)
    if not others:
        return own, 0
    bills = billed_once(
        [replace(info, parent="", parent_records=0) for info in (store.info(session_id), *others)],
        lambda name: store.of_kinds(name, ("usage",)),
    )
    return added(bills.values()), len(others)


def made_in(n: int, info: SessionInfo, by_id: Mapping[str, SessionInfo]) -> str:
    """The id of the session in which record `n` was made, or of the first deleted session on the way to it."""
    while info.parent and n <= info.parent_records:
        if info.parent not in by_id:
            return info.parent
        info = by_id[info.parent]
    return info.id


def _answer_id(record: Record) -> tuple[str, str] | None:
    body = record.body
    return (body.provider, body.response_id) if isinstance(body, UsageRecord) and body.response_id else None
