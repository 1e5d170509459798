"""`scan` and `scrub`: find and replace secrets in existing sessions."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from typing import Any

from .._platform.units import counted
from ..log.store import Store
from ..redaction import Redactor
from ..redaction.redactor import counts_text
from ..redaction.scrub import Leak, scan, scrub
from .arguments import AN_ID, add_command
from .sessions import told_apart
from .stores import is_missing, opened, place, settings_of
from .terminal import agreed, out_each, say


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the commands to the parser."""
    look = add_command(commands, store, "scan")
    look.add_argument("id", metavar="ID", nargs="?", help="the session's id or its beginning (default: all sessions)")
    look.add_argument("--json", action="store_true", help="one JSON object a line")
    look.set_defaults(run=_scan)
    clean = add_command(commands, store, "scrub")
    clean.add_argument("id", metavar="ID", help=AN_ID)
    clean.add_argument("--yes", action="store_true", help="do not ask")
    clean.set_defaults(run=_scrub)


def _scan(arguments: Namespace) -> int:
    if is_missing(arguments):
        say(f"nothing to scan: there is no store at {place(arguments)}")
        return 0
    with opened(arguments) as store:
        number = sum(
            leak.number for leak in out_each(scan(store, arguments.id, _redactor(arguments)), _line, arguments)
        )
    say(
        f"{counted(number, 'secret')}; `turnlog scrub ID` replaces the secrets of a session"
        if number
        else "no secrets found"
    )
    return 1 if number else 0


def _line(leak: Leak) -> str:
    where = f"record {leak.record}" if leak.record else "title"
    return f"{leak.session}, {where}: {leak.number} {leak.kind}"


def _scrub(arguments: Namespace) -> int:
    redactor = _redactor(arguments)
    with opened(arguments, write=True) as store:
        if not arguments.yes and not _agreed(store, list(scan(store, arguments.id, redactor))):
            say("nothing changed")
            return 0
        done = scrub(store, arguments.id, redactor)
    if not done.redacted:
        say("no secrets found")
        return 0
    say(f"scrubbed {counted(len(done.records), 'record')} of {done.session}: {counts_text(done.redacted)}")
    for name in done.kept_blobs:
        say(f"file {name[:12]} contains secrets and was kept, because other sessions use it: scrub those sessions too")
    return 1 if done.kept_blobs else 0


def _redactor(arguments: Namespace) -> Redactor:
    """A redactor for secrets of known shapes and names, and for the configured patterns."""
    return settings_of(arguments).finding()


def _agreed(store: Store, leaks: list[Leak]) -> bool:
    if not leaks:
        return True
    kinds = Counter[str]()
    for leak in leaks:
        kinds[leak.kind] += leak.number
    records = counted(len({leak.record for leak in leaks}), "record")
    (told,) = told_apart(store, [store.info(leaks[0].session)])
    question = f"{told}\n{counts_text(kinds)} in {records}\nrewrite these records for good?"
    return agreed(question, "scrub", "--yes to rewrite records without asking")
