"""`doctor`: list what a session left unfinished, and contradictions in its log."""

from __future__ import annotations

import logging
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import msgspec

from .._platform.lazy import lazy_pattern
from .._platform.units import counted
from ..log.records import Configuration, Note, PartialAnswer, TurnClosed
from ..session.checkpoint import KILLED, unfinished_stream
from ..session.configure import changes_between, changes_since, environment_of
from ..session.operations import answer_unfinished
from ..session.reader import SessionLog
from ..session.recovery import TOUCHED
from ..session.session import Session
from ..view.consistency import Inconsistency, from_transcripts
from ..view.tool_calls import CallInfo
from ..view.turns import LEFT_OPEN
from .arguments import AN_ID, add_command
from .stores import opened, opened_session
from .terminal import out_json, out_lines, say

_MANY = 4
"""So many findings beside the first one that differ only in names and numbers become one line."""

_DIFFERENT = lazy_pattern(r"'[^']*'|\d+")
_UNPLACED = lazy_pattern(r"^(Approval|ToolStarted|ToolFinished): record \d+ has no call (.*)$")
_RUNS = {"Approval": "an approval", "ToolStarted": "the beginning of a run", "ToolFinished": "the end of a run"}
_WORDS = {"ledger": "tool run: ", "orphan": ""}


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    doctor = add_command(commands, store, "doctor")
    doctor.add_argument("id", metavar="ID", help=f"{AN_ID}, except with --fix")
    doctor.add_argument("--strict", action="store_true", help="include harmless findings")
    text = "close open turns, and record a stand-in result for every open call (not while the session is in use)"
    doctor.add_argument("--fix", action="store_true", help=text)
    doctor.add_argument("--json", action="store_true", help="one JSON object a line")
    doctor.set_defaults(run=_doctor)


def _doctor(arguments: Namespace) -> int:
    if arguments.fix:
        with opened_session(arguments, write=True) as session:
            _fix(session)
    with opened(arguments) as store:
        log = SessionLog(store, arguments.id)
        findings = _findings(log, strict=arguments.strict)
        history = _history(log)
    if arguments.json:
        for finding in (*findings, *history):
            out_json(msgspec.to_builtins(finding))
    else:
        out_lines([*_lines(findings), *_lines(history)])
    say(counted(len(findings), "finding") if findings else "nothing unfinished")
    return 1 if findings else 0


def _lines(findings: Iterable[Inconsistency]) -> Iterator[str]:
    """A line for each finding. Of many that differ only in names and numbers, the first is told, with the records of
    the others."""
    alike: dict[str, list[Inconsistency]] = {}
    for finding in findings:
        alike.setdefault(_DIFFERENT.sub("", f"{finding.kind} {finding.detail}"), []).append(finding)
    for first, *others in sorted(alike.values(), key=lambda each: each[0].records):
        if len(others) < _MANY:
            yield from map(_line, (first, *others))
            continue
        numbers = [str(finding.records[0]) for finding in others if finding.records]
        where = ", ".join(numbers[:_MANY]) + (", ..." if len(numbers) > _MANY else "")
        yield f"{_line(first)}; {len(others):,} more like it, in records {where}"


def _line(finding: Inconsistency) -> str:
    where = ", ".join(map(str, finding.records))
    detail = _UNPLACED.sub(_unplaced, finding.detail)
    kind = _WORDS.get(finding.kind, f"{finding.kind}: ")
    return f"{'records' if len(finding.records) > 1 else 'record'} {where}: {kind}{detail}"


def _unplaced(match: re.Match[str]) -> str:
    return f"{_RUNS[match[1]]} of call {match[2]}, which is not on record"


def _findings(log: SessionLog, *, strict: bool) -> list[Inconsistency]:
    """Open calls, open turns and contradictions, in the order of records."""
    findings = [
        Inconsistency("unfinished", f"{info.call.name} ({info.call.id}) {info.standing}", (info.record,))
        for info in _unfinished(log)
    ]
    newest = log.turns()[-1:]
    findings += [
        Inconsistency("turn", f"turn {turn.id} is open: {turn.standing}", (turn.first,))
        for turn in newest
        if turn.id and turn.is_open
    ]
    stream = unfinished_stream(log.newest())
    if stream is not None:
        findings.append(Inconsistency("stream", "an answer was being streamed; this is what had arrived", (stream.n,)))
    open_turns = {finding.records for finding in findings if finding.kind == "turn"}
    rest = (finding for finding in log.validate(strict=strict) if finding.kind != "unanswered")
    findings += [finding for finding in rest if not (finding.kind == "turn" and finding.records in open_turns)]
    return sorted(findings, key=lambda finding: finding.records)


def _unfinished(log: SessionLog) -> list[CallInfo]:
    """The calls without a result, except those of transcripts in which the conversation went on."""
    calls = log.unfinished()
    if not calls:
        return []
    records = list(log.records(calls[0].record))
    imported = from_transcripts(records)
    answers = [record.n for record in records if record.message is not None and record.message.role == "assistant"]
    return [info for info in calls if info.record not in imported or info.record >= answers[-1]]


def _history(log: SessionLog) -> list[Inconsistency]:
    """Recoveries after crashes, and changes made by the newest configuration and since. They are not errors, so they do
    not count as findings. Settings before the first message are not changes."""
    history = [
        Inconsistency("recovered", f"turn {record.body.turn_id}: {record.body.reason}", (record.n,))
        for record in log.of_kinds("turn_closed")
        if isinstance(record.body, TurnClosed) and record.body.reason.startswith(LEFT_OPEN)
    ]
    history += [
        Inconsistency("recovered", f"an interrupted answer was kept: {record.body.reason}", (record.n,))
        for record in log.of_kinds("partial")
        if isinstance(record.body, PartialAnswer) and record.body.reason == KILLED
    ]
    history += [
        Inconsistency("recovered", f"files: {record.body.text}", (record.n,))
        for record in log.of_kinds("note")
        if isinstance(record.body, Note) and record.body.topic == TOUCHED
    ]
    configurations = [(r.n, r.body) for r in log.of_kinds("configuration") if isinstance(r.body, Configuration)]
    for (_, before), (n, after) in list(pairwise(configurations))[-1:]:
        if n < _first_message(log):
            break
        changes = [*changes_between(before, after), *changes_since(before.environment, after.environment)]
        history += [Inconsistency("changed", str(change), (n,)) for change in changes]
    if configurations:
        n, newest = configurations[-1]
        changes = changes_since(newest.environment, environment_of(newest.provider, newest.model))
        history += [Inconsistency("changed", f"since then: {change}", (n,)) for change in changes]
    return sorted(history, key=lambda finding: finding.records)


def _first_message(log: SessionLog) -> int:
    """The number of the first message that is not a system text; without such a message, a number larger than any
    record's."""
    numbers = (r.n for r in log.records() if r.message is not None and r.message.role != "system")
    return next(numbers, sys.maxsize)


def _fix(session: Session) -> None:
    quiet = logging.NullHandler()  # recovery is reported below
    logging.getLogger("turnlog").addHandler(quiet)
    session._begin()
    logging.getLogger("turnlog").removeHandler(quiet)
    if session.resumed is not None and session.resumed.recovered.turn is not None:
        say("the turn that was left open is closed as failed")
    if session.resumed is not None and session.resumed.recovered.answer:
        say("the streamed part of an answer was kept as an interrupted answer")
    answered = answer_unfinished(session)
    if answered:
        say(f"{counted(len(answered), 'call')} answered with what is known")
