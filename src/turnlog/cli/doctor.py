"""`doctor`: what of a session was left half-done, and what in its log does not go together."""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from typing import Any

import msgspec

from ..consistency import Inconsistency
from ..log import Store
from ..session import Session
from ..session_log import SessionLog
from .stores import opened
from .terminal import counted, out_json, out_line, say

__all__ = ["add_to"]


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    doctor = commands.add_parser("doctor", parents=[store], help="what was left half-done, what does not go together")
    doctor.add_argument("id", metavar="ID")
    doctor.add_argument("--strict", action="store_true", help="also what does no harm")
    text = "put on record what is known of calls and turns that were left open (not while the session is in use)"
    doctor.add_argument("--fix", action="store_true", help=text)
    doctor.add_argument("--json", action="store_true", help="one JSON object a line")
    doctor.set_defaults(run=_doctor)


def _doctor(arguments: Namespace) -> int:
    with opened(arguments, write=arguments.fix) as store:
        if arguments.fix:
            _fix(store, arguments.id)
        found = _findings(SessionLog(store, arguments.id), strict=arguments.strict)
    for one in found:
        if arguments.json:
            out_json(msgspec.to_builtins(one))
        else:
            where = ", ".join(map(str, one.records))
            out_line(f"{'records' if len(one.records) > 1 else 'record'} {where}: {one.kind}: {one.detail}")
    say(counted(len(found), "finding") if found else "nothing was left half-done")
    return 1 if found else 0


def _findings(log: SessionLog, *, strict: bool) -> list[Inconsistency]:
    """What is wrong, by record: open calls in the words of the ledger, open turns, and the rest."""
    found = [
        Inconsistency("unfinished", f"{info.call.name} ({info.call.id}) {info.standing}", (info.record,))
        for info in log.unfinished()
    ]
    newest = log.turns()[-1:]
    found += [
        Inconsistency("turn", f"turn {turn.id} is open: {turn.standing}", (turn.first,))
        for turn in newest
        if turn.id and turn.is_open
    ]
    told = {one.records for one in found if one.kind == "turn"}
    rest = (one for one in log.validate(strict=strict) if one.kind != "unanswered")
    found += [one for one in rest if not (one.kind == "turn" and one.records in told)]
    return sorted(found, key=lambda one: one.records)


def _fix(store: Store, session_id: str) -> None:
    session = Session(store, store.info(session_id))
    before = store.info(session_id).records
    quiet = logging.NullHandler()  # what happens is said below, in our own words
    logging.getLogger("turnlog").addHandler(quiet)
    session.begin(created=False)
    logging.getLogger("turnlog").removeHandler(quiet)
    if store.info(session_id).records > before:
        say("the turn that was left open is closed as failed")
    answered = session.answer_unfinished()
    if answered:
        say(f"{counted(len(answered), 'call')} answered with what is known")
