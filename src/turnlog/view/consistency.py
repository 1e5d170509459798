"""Contradictions between the records of a log. They do not stop a request, which repairs what it must. They show
mistakes of the program that wrote the log, or traces of a crash."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec
from msgspec import Struct

from ..log.messages import Message, ToolResult, Unknown
from ..log.records import (
    Approval,
    Decision,
    MessageRecord,
    Record,
    ToolFinished,
    ToolStarted,
    TurnClosed,
    TurnOpened,
    TurnResumed,
    UnknownRecord,
)
from .decisions import Rewinds
from .fold import as_shown
from .tool_calls import CallInfo, calls_of, pairs_of
from .turns import LEFT_OPEN


class Inconsistency(Struct, frozen=True, repr_omit_defaults=True):
    """A contradiction between records: a short stable `kind`, a sentence, the records concerned."""

    kind: str
    detail: str
    records: tuple[int, ...] = ()


def inconsistencies(records: Iterable[Record], *, strict: bool = False) -> list[Inconsistency]:
    """The contradictions in a log, by record.

    Kinds: `orphan` (a result without a call), `duplicate` (a second real result), `unanswered` (the conversation
    continued after a call without a result), `ledger` (a tool run or an approval of a call that does not exist), `turn`
    (opened twice or while another is open, closed twice or without having been opened), `decision` (names records that
    it cannot be about), `unknown` (written by a newer turnlog). With `strict` also findings that may be temporary or
    harmless: calls and turns that are open at the end, `outcome` (the result and the record of the tool's end differ),
    `approval` (a call ran although it was not allowed to), `time` (the clock went back). Transcripts of other programs
    seldom say how turns and calls ended, and often begin in the midst: their turns and calls that are open although the
    conversation went on, and their results and runs of calls that are not on record, are named only with `strict`.
    """
    records = list(records)
    calls = calls_of(records)
    findings = [
        *_pairing(records, strict=strict),
        *_unanswered(records, calls, strict=strict),
        *_ledger(records, calls, strict=strict),
        *_turns(records, strict=strict),
        *_decisions(records),
        *_unknown(records),
    ]
    if strict:
        findings += [*_disagreements(records, calls), *_clock(records)]
    return sorted(findings, key=lambda finding: (finding.records, finding.kind))


def from_transcripts(records: Sequence[Record]) -> set[int]:
    """The records that were imported from transcripts of other programs: messages that name their source, and the
    records that belong to them; a turn belongs to the message after it."""
    imported: set[int] = set()
    for ordered in (records, records[::-1]):
        is_imported = False
        for record in ordered:
            if isinstance(record.body, MessageRecord):
                is_imported = bool(record.body.source)
            if is_imported and not (ordered is records and isinstance(record.body, TurnOpened)):
                imported.add(record.n)
    return imported


def _pairing(records: Sequence[Record], *, strict: bool) -> Iterator[Inconsistency]:
    imported = set() if strict else from_transcripts(records)
    view = [shown for record in records for shown in as_shown(record)]
    pairs = pairs_of(view, Rewinds.of(records))
    for kind, places in (("orphan", pairs.orphans), ("duplicate", pairs.duplicates)):
        for i, j in sorted(places):
            part = view[i].message.parts[j]
            if not isinstance(part, ToolResult) or (kind == "duplicate" and part.synthetic):
                continue
            if kind == "orphan" and imported.issuperset(view[i].records):
                continue
            what = "no call before it has that id and name" if kind == "orphan" else "the call has a result already"
            yield Inconsistency(kind, f"result of {part.call_id!r}: {what}", view[i].records)


def _unanswered(records: Sequence[Record], calls: Sequence[CallInfo], *, strict: bool) -> Iterator[Inconsistency]:
    rewinds = Rewinds.of(records)
    messages = [r for r in records if r.message is not None and not rewinds.by(r.n)]
    talk = [r.n for r in messages if r.message and not all(isinstance(part, ToolResult) for part in r.message.parts)]
    newest = talk[-1] if talk else 0
    imported = set() if strict else from_transcripts(records)
    for info in calls:
        if (info.awaits or info.superseded) and (strict or info.record < newest) and info.record not in imported:
            detail = f"call {info.call.id!r} of {info.call.name!r} has no result: {info.standing}"
            yield Inconsistency("unanswered", detail, (info.record,))


def _ledger(records: Sequence[Record], calls: Sequence[CallInfo], *, strict: bool) -> Iterator[Inconsistency]:
    imported = set() if strict else from_transcripts(records)
    call_keys = {(info.record, info.call.id) for info in calls}
    ids = {info.call.id for info in calls}
    for record in records:
        body = record.body
        if not isinstance(body, (ToolStarted, ToolFinished, Approval)) or record.n in imported:
            continue
        unplaced = isinstance(body, Approval) and not body.call_record and body.call_id in ids
        if (body.call_record, body.call_id) not in call_keys and not unplaced:
            where = f"record {body.call_record} has no call {body.call_id!r}"
            yield Inconsistency("ledger", f"{type(body).__name__}: {where}", (record.n,))


def _turns(records: Sequence[Record], *, strict: bool) -> Iterator[Inconsistency]:
    opened: dict[str, int] = {}
    closed: dict[str, int] = {}
    running: dict[str, int] = {}
    imported = set() if strict else from_transcripts(records)
    for record in records:
        if isinstance(body := record.body, TurnOpened):
            if body.turn_id in opened:
                both = (opened[body.turn_id], record.n)
                yield Inconsistency("turn", f"turn {body.turn_id!r} was opened twice", both)
            for other, n in running.items():
                if n in imported:
                    continue
                detail = f"turn {body.turn_id!r} was opened while turn {other!r} was open"
                yield Inconsistency("turn", detail, (n, record.n))
            opened[body.turn_id] = record.n
            running = {body.turn_id: record.n}
        elif isinstance(body, TurnClosed):
            if body.turn_id not in opened and record.n in imported:
                pass
            elif body.turn_id not in opened:
                yield Inconsistency("turn", f"turn {body.turn_id!r} was closed and never opened", (record.n,))
            elif body.turn_id in closed and record.n not in imported:
                both = (closed[body.turn_id], record.n)
                yield Inconsistency("turn", f"turn {body.turn_id!r} was closed twice; the last holds", both)
            if not body.reason.startswith(LEFT_OPEN):  # otherwise it may go on: the closing process did not see its end
                closed[body.turn_id] = record.n
            running.pop(body.turn_id, None)
        elif isinstance(body, TurnResumed):
            if body.turn_id not in opened:
                yield Inconsistency("turn", f"turn {body.turn_id!r} was resumed and never opened", (record.n,))
            closed.pop(body.turn_id, None)
            running = {body.turn_id: record.n}
    if strict:
        for turn_id, n in running.items():
            yield Inconsistency("turn", f"turn {turn_id!r} is open", (n,))


def _decisions(records: Sequence[Record]) -> Iterator[Inconsistency]:
    decisions = {record.n for record in records if isinstance(record.body, Decision)}
    for record in records:
        if isinstance(body := record.body, Decision):
            for what in _wrong_with(body, record.n, decisions):
                yield Inconsistency("decision", f"{body.action!r} {what}", (record.n,))


def _wrong_with(body: Decision, n: int, made: set[int]) -> Iterator[str]:
    if body.last >= n:
        yield f"covers records to {body.last}, which came after it"
    if body.first < 0 or body.first > body.last:
        yield f"covers records {body.first} to {body.last}, which is not a range"
    if body.supersedes and (body.supersedes not in made or body.supersedes >= n):
        yield f"takes back record {body.supersedes}, which is not an earlier decision"
    for key in ("texts", "cuts"):
        for entry in body.detail.get(key, ()):
            if not (isinstance(entry, list) and entry and isinstance(entry[0], int) and 0 < entry[0] < n):
                yield f"shortens a record that is not before it: {entry!r:.60}"
    try:
        msgspec.convert(body.detail.get("replacement") or [], list[Message])
    except msgspec.ValidationError as error:
        yield f"has a replacement that is not a message: {error}"


def _unknown(records: Sequence[Record]) -> Iterator[Inconsistency]:
    for record in records:
        if isinstance(body := record.body, UnknownRecord):
            yield Inconsistency(
                "unknown", f"a record of a kind that this version does not know: {body.name!r}", (record.n,)
            )
        for part in record.message.parts if record.message else ():
            if isinstance(part, Unknown):
                detail = f"a part of a kind that this version does not know: {part.kind!r}"
                yield Inconsistency("unknown", detail, (record.n,))


def _disagreements(records: Sequence[Record], calls: Sequence[CallInfo]) -> Iterator[Inconsistency]:
    by_number = {record.n: record for record in records}
    for info in calls:
        name = f"call {info.call.id!r} of {info.call.name!r}"
        ended = by_number[info.finished].body if info.finished else None
        if isinstance(ended, ToolFinished) and info.result and not info.synthetic and ended.outcome != info.outcome:
            detail = f"{name} ended as {ended.outcome!r}, its result says {info.outcome!r}"
            yield Inconsistency("outcome", detail, (info.finished, info.result))
        if info.finished and not info.started:
            yield Inconsistency("ledger", f"{name} ended and never started", (info.finished,))
        if info.approval_record < info.started and info.approval in ("asked", "denied"):
            detail = f"{name} started though it was {'denied' if info.approval == 'denied' else 'not approved yet'}"
            yield Inconsistency("approval", detail, (info.started,))


def _clock(records: Sequence[Record]) -> Iterator[Inconsistency]:
    for before, record in pairwise(records):
        if record.time < before.time:
            yield Inconsistency("time", f"{record.time} comes after {before.time}", (before.n, record.n))
