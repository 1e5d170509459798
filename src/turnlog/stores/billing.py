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
    billed_keys: set[tuple[str, str | int]] = set()
    for info in by_id.values():
        records_by_key: dict[tuple[str, str | int], list[Record]] = {}
        for record in records[info.id]:
            origin = made_in(record.n, info, by_id)
            if origin == info.id or origin not in by_id:
                records_by_key.setdefault(_answer_id(record) or (origin, record.n), []).append(record)
        if bills := usage_by_model(
            record for key, records in records_by_key.items() if key not in billed_keys for record in records
        ):
            bills_by_session[info.id] = bills
        billed_keys.update(records_by_key)
    return bills_by_session


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
