"""`gc` deletes sessions beyond the limits and packs old ones; `keep` protects sessions from it."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from datetime import UTC, datetime
from typing import Any

import msgspec

from .._platform.times import day
from .._platform.units import AGES, SIZES, counted, old_max_size, read_age, read_size, size_text
from .._platform.visible import visible
from ..errors import InputError
from ..log.store import Store
from ..session.collect import collect, limits_of
from ..session.titles import shown_title
from ..stores.ids import families, short_ids
from ..stores.retention import Collected, Limits
from .arguments import add_command, checked, number
from .stores import is_missing, opened, place, settings_of
from .tables import Column, laid_out, terminal_width
from .terminal import agreed, is_terminal, out_json, out_lines, say


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the commands to the parser."""
    gc = add_command(commands, store, "gc")
    gc.add_argument("--dry-run", action="store_true", help="show what would be deleted, and delete nothing")
    text = "delete sessions not written to for this long, such as 30d (default: your configuration's)"
    gc.add_argument("--older-than", metavar="AGE", type=checked(read_age, AGES), help=text)
    text = "delete the oldest until the store is at most this large, such as 500MB (default: your configuration's)"
    disk = gc.add_mutually_exclusive_group()
    disk.add_argument("--max-disk", metavar="SIZE", type=checked(read_size, SIZES), help=text)
    text = "--max-disk as it was called until 0.2"
    disk.add_argument("--max-size", metavar="SIZE", dest="max_disk", type=_old_size, help=text)
    text = "delete the oldest until at most this many are left (default: your configuration's)"
    gc.add_argument("--max-sessions", metavar="N", type=number("sessions", 1), help=text)
    text = "compress sessions not written to for this long, such as 7d (default: your configuration's)"
    gc.add_argument("--compress-after", metavar="AGE", type=checked(read_age, AGES), help=text)
    gc.add_argument("--yes", action="store_true", help="do not ask")
    gc.add_argument("--json", action="store_true", help="one JSON object")
    gc.set_defaults(run=_gc)
    keep = add_command(commands, store, "keep")
    keep.add_argument("ids", metavar="ID", nargs="+", help="the ids of the sessions")
    keep.add_argument("--undo", action="store_true", help="unprotect them")
    keep.set_defaults(run=_keep)


def _gc(arguments: Namespace) -> int:
    limits = _limits(arguments)
    if is_missing(arguments):
        say(f"nothing to delete: there is no store at {place(arguments)}")
        return 0
    current_time = datetime.now(UTC)
    with opened(arguments) as store:
        collected = collect(store, limits, now=current_time, dry_run=True)
        lines = _table(collected, store)
    if not arguments.json:
        out_lines(lines)
    told: list[str] = []
    if not arguments.dry_run:
        unseen = lines if arguments.json or not is_terminal(sys.stdout) else []
        told = _account(collected) if collected.gone and not arguments.yes else []
        question = "\n".join([*unseen, *told, f"delete {counted(len(collected.gone), 'session')} for good?"])
        if collected.gone and not arguments.yes and not agreed(question, "gc", "--yes to delete without asking"):
            say("nothing deleted")
            return 0
        among = None if arguments.yes else {each.session for each in collected.gone}
        with opened(arguments, write=True) as store:
            collected = collect(store, limits, now=current_time, among=among)
    if arguments.json:
        out_json(msgspec.to_builtins(collected))
    for line in _account(collected):
        if line not in told:  # who stays, and why, was said before the question
            say(line)
    return 0


def _old_size(text: str) -> int:
    """The size in `--max-size`, the old name of `--max-disk`."""
    try:
        size: int = checked(read_size, SIZES)(old_max_size(text, "--max-size", "--max-disk"))
    except InputError as error:
        raise ArgumentTypeError(str(error).removeprefix("--max-size: ")) from error
    return size


def _limits(arguments: Namespace) -> Limits:
    """The limits given on the command line, else those of the configuration."""
    usual = limits_of(settings_of(arguments))
    limits = Limits(
        usual.max_age if arguments.older_than is None else arguments.older_than,
        usual.max_disk if arguments.max_disk is None else arguments.max_disk,
        usual.max_sessions if arguments.max_sessions is None else arguments.max_sessions,
        usual.compress_after if arguments.compress_after is None else arguments.compress_after,
    )
    if not limits:
        raise InputError(
            "gc: no limit is set: give --older-than, --max-disk, --max-sessions or --compress-after, or write max_age, "
            "max_disk, max_sessions or compress_after to your configuration (`turnlog config --path`)"
        )
    return limits


def _table(collected: Collected, store: Store) -> list[str]:
    """What goes, subagents and forks folded under their session, and what is compressed; on a terminal with short ids
    and dates."""
    infos = store.sessions()
    sizes = {each.session: each.size for each in collected.gone} | {
        each.session: each.before for each in collected.compressed
    }
    why = {each.session: each.why for each in collected.gone}
    order = {name: i for i, name in enumerate(sizes)}
    rows = sorted(families(info for info in infos if info.id in sizes), key=lambda row: order[row.info.id])
    if not rows:
        return []
    short = short_ids([row.info.id for row in rows], infos) if terminal_width() else {}
    held = [(row.info, *row.folded) for row in rows]
    columns = [
        Column("ID", [short.get(row.info.id, row.info.id) for row in rows]),
        Column("UPDATED", [day(row.info.updated) if short else row.info.updated for row in rows], side=">"),
        Column("SIZE", [size_text(sum(sizes[info.id] for info in each)) for each in held], side=">"),
        Column("WHY", [why.get(row.info.id, "to be compressed") for row in rows]),
    ]
    if any(row.folded for row in rows):
        columns.append(Column("+", [f"+{len(row.folded)}" if row.folded else "" for row in rows], side=">"))
    titles = [shown_title(store, row.info) for row in rows]
    return list(laid_out(columns, "TITLE", [visible(title, one_line=True) for title in titles]))


def _account(collected: Collected) -> list[str]:
    lines = [f"{each.session} stays: {each.why}" for each in collected.spared]
    verb = "would be deleted" if collected.dry_run else "deleted"
    freed, left = size_text(max(collected.before - collected.after, 0)), size_text(collected.after)
    about = "about " if collected.dry_run else ""
    lines.append(f"{counted(len(collected.gone), 'session')} {verb}, {about}{freed} freed, {about}{left} left")
    if collected.compressed:
        size = size_text(sum(each.before for each in collected.compressed))
        to = "" if collected.dry_run else f" to {size_text(sum(each.after for each in collected.compressed))}"
        sessions = counted(len(collected.compressed), "session")
        lines.append(
            f"{sessions} {'would be compressed' if collected.dry_run else 'compressed'}: {size}{to} of records"
        )
    if collected.swept.removed:
        lines.append(f"removed {counted(collected.swept.removed, 'blob')} that no session needs")
    if collected.swept.recent:
        lines.append(
            f"kept {counted(collected.swept.recent, 'blob')} put less than an hour ago, which a later `gc` removes"
        )
    lines += [f"{name} is still exceeded: the remaining sessions may not be deleted" for name in collected.over]
    return lines


def _keep(arguments: Namespace) -> int:
    with opened(arguments, write=True) as store:
        for session_id in arguments.ids:
            store.info(session_id)  # an unknown id raises before any session is marked
        for session_id in dict.fromkeys(arguments.ids):
            store.keep(session_id, kept=not arguments.undo)
            say(f"{session_id} {'is no longer protected from gc' if arguments.undo else 'is protected from gc'}")
    return 0
