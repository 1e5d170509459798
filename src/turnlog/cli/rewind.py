"""`rewind`: go back in a conversation, or undo the last rewind."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from .._platform.units import counted
from ..display.request_words import gist, saving
from ..errors import InputError
from ..log.records import Decision, Record
from ..session.history_edits import Rewind
from ..session.targets import chosen_target
from ..view.explain import Explanation
from .arguments import AN_ID, add_command, number
from .drawing import clipped
from .stores import opened_session
from .tables import folded
from .terminal import out_json, out_line, out_lines, say

_GONE = ("left out", "rewound", "summarised")
"""The fates of messages that no request shows."""


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    rewind = add_command(commands, store, "rewind")
    rewind.add_argument("id", metavar="ID", help=AN_ID)
    place = rewind.add_mutually_exclusive_group()
    place.add_argument("--turns", metavar="N", type=number("turns"), help="take back the last N turns (default: 1)")
    place.add_argument("--to", metavar="RECORD", type=number("a record"), help="take back everything after this record")
    place.add_argument("--undo", action="store_true", help="undo the last rewind")
    rewind.add_argument("--dry-run", action="store_true", help="show what would be taken back, and record nothing")
    rewind.add_argument("--json", action="store_true", help="one JSON object")
    rewind.set_defaults(run=_rewind)


def _rewind(arguments: Namespace) -> int:
    if arguments.undo:
        return _undo(arguments)
    turns = 1 if arguments.turns is None and arguments.to is None else arguments.turns
    dry = arguments.dry_run
    with opened_session(arguments, write=not dry) as session:
        target = chosen_target(session)
        before = session.explain(target=target)
        done = session.rewind(turns=turns, to=arguments.to, dry_run=dry)
        after = session.explain({next(session.log.newest()).n + 1: done.decision} if dry else None, target)
        messages = {record.n: record for record in session.history() if record.message is not None}
    if arguments.json:
        out_json({**_row(done), "before": before.shown, "after": after.shown, "recorded": not dry})
        return 0
    out_lines(_lines(arguments.id, done, (before, after), messages))
    if dry:
        say("nothing recorded: a dry run")
    else:
        say(f"`turnlog rewind {arguments.id} --undo` shows it again")
    return 0


def _row(done: Rewind) -> dict[str, Any]:
    return {
        "decision": done.n,
        "to": done.to,
        "turns": [turn.first for turn in done.turns],
        "gone": list(done.gone),
        "back": list(done.back),
        "ended": list(done.ended),
        "hidden": list(done.hidden),
        "again": list(done.again),
        "files": [{"path": change.path, "action": change.action, "old_path": change.old_path} for change in done.files],
    }


def _lines(
    name: str, done: Rewind, sizes: tuple[Explanation, Explanation], messages: Mapping[int, Record]
) -> Iterator[str]:
    taken = f"{counted(len(done.gone), 'message')} of {counted(len(done.turns), 'turn')} taken back"
    yield from folded(f"{name}: back to record {done.to}, {taken}: {saving(*(size.shown for size in sizes))}", 2)
    yield from (_message(messages[n]) for n in done.gone)
    if done.back:
        yield f"{counted(len(done.back), 'message')} shown again:"
        yield from (_message(messages[n]) for n in done.back)
    decisions = {ruling.n: ruling.decision.action for ruling in sizes[0].rulings}
    for n in done.ended:
        yield f"decision {n} ({decisions[n]}) is no longer in force"
    for n in done.again:
        yield f"decision {n} ({decisions[n]}) is in force again"
    if done.hidden:
        yield f"{counted(len(done.hidden), 'message')} left out again"
    if done.files:
        yield from folded(
            f"{counted(len(done.files), 'file')} still changed on disk (turnlog diff {name} --rewound):", 2
        )
        for change in done.files:
            yield f"  {change.action:<8}  {change.path}" + (f" from {change.old_path}" if change.old_path else "")


def _message(record: Record) -> str:
    message = record.message
    return f"{record.n:>6}  {message.role:<9}  {clipped(gist(message), 60)}".rstrip() if message else f"{record.n:>6}"


def _undo(arguments: Namespace) -> int:
    if arguments.dry_run:
        raise InputError(
            "rewind: --undo cannot be combined with --dry-run; `turnlog show ID` shows which records the last rewind "
            "took back"
        )
    with opened_session(arguments, write=True) as session:
        target = chosen_target(session)
        before = session.explain(target=target)
        record = session.undo("rewind")
        after = session.explain(target=target)
        messages = {record.n: record for record in session.history() if record.message is not None}
    taken = record.body.supersedes if isinstance(record.body, Decision) else 0
    gone = [n for n, account in before.accounts.items() if account.fate in _GONE]
    back = [n for n in gone if after.accounts[n].fate not in _GONE]
    if arguments.json:
        sizes = {"before": before.shown, "after": after.shown}
        out_json({"decision": record.n, "supersedes": taken, "back": back, **sizes})
        return 0
    figures = saving(before.shown, after.shown)
    out_line(f"{arguments.id}: took back decision {taken}, {counted(len(back), 'message')} shown again: {figures}")
    out_lines(_message(messages[n]) for n in back)
    return 0
