"""`pack`, `copy` and `rekey`: how sessions are stored."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from .._platform.texts import without_password
from .._platform.units import AGES, counted, read_age
from ..errors import InputError, StoreNotFound
from ..log.store import Packed
from ..stores import copy_store, open_store, rekey_store
from .arguments import KEY, add_command
from .stores import is_missing, key_at, key_of, opened, place, report
from .terminal import say

_NEW_KEY = "file:PATH, env:NAME, passphrase-file:PATH, passphrase-env:NAME or ask"


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the commands to the parser."""
    pack = add_command(commands, store, "pack")
    pack.add_argument(
        "ids", metavar="ID", nargs="*", help="the ids of the sessions to compress; give ids or --older-than"
    )
    pack.add_argument(
        "--older-than", metavar="AGE", help="compress the sessions not written to for this long, such as 30d"
    )
    pack.set_defaults(run=_pack)
    copy = add_command(commands, store, "copy")
    copy.add_argument("path", metavar="PATH", help="the other store; created if it does not exist")
    text = f"encrypt the copy; where its key is: {_NEW_KEY} (default: not encrypted)"
    copy.add_argument("--new-key", metavar="WHERE", help=text)
    copy.set_defaults(run=_copy)
    rekey = add_command(commands, store, "rekey")
    rekey.add_argument("--new-key", metavar="WHERE", required=True, help=f"where the new key is: {_NEW_KEY}")
    rekey.set_defaults(run=_rekey)


def _pack(arguments: Namespace) -> int:
    if bool(arguments.ids) == bool(arguments.older_than):
        raise InputError("pack: give either session ids or --older-than AGE, and not both")
    before = None if arguments.ids else _before(arguments.older_than)
    with opened(arguments, write=True) as store:
        if before is None:
            wanted = [store.info(session_id).id for session_id in dict.fromkeys(arguments.ids)]
        else:
            wanted = [info.id for info in store.sessions() if info.updated < before]
        done = [store.pack(session_id) for session_id in wanted]
        if any(packed.records for packed in done):
            store.reclaim()
    total = Packed(*(sum(getattr(packed, name) for packed in done) for name in Packed.__struct_fields__))
    if not total.records:
        say("nothing to pack")
    else:
        sessions = counted(sum(bool(packed.records) for packed in done), "session")
        say(f"packed {counted(total.records, 'record')} of {sessions}: {total.before:,} bytes to {total.after:,}")
    return 0


def _before(age: str) -> str:
    """The time `age` ago, in the format of `SessionInfo.updated`."""
    try:
        then = datetime.now(UTC) - read_age(age)
    except ValueError:
        raise InputError(f"--older-than: {age!r} is not {AGES}") from None
    except OverflowError:
        return ""  # nothing is that old
    return then.strftime("%Y-%m-%dT%H:%M:%S")


def _copy(arguments: Namespace) -> int:
    key = key_at(arguments.new_key, new=True) if arguments.new_key else None
    with opened(arguments, past_damage=False) as source:
        target = open_store(arguments.path, durability="full", key=key)
        try:
            copied = copy_store(source, target, tell=partial(report, arguments))
        finally:
            target.close()
    say(f"copied {counted(copied, 'record')} into {without_password(arguments.path)}")
    return 0


def _rekey(arguments: Namespace) -> int:
    key = key_of(arguments)
    if key is None:
        raise InputError(f"rekey: the present key is missing; give its place with --key WHERE or {KEY}")
    if is_missing(arguments):
        raise StoreNotFound(place(arguments))
    rekey_store(place(arguments), key, key_at(arguments.new_key, new=True))
    say(f"the key of {without_password(place(arguments))} was changed; only the new key opens the store now")
    return 0
