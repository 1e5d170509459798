"""Which store a command works on."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getpass

from ..config.settings import Settings
from ..errors import CorruptRecord, InputError, SessionNotFound, StoreError
from ..log.store import Store
from ..session.settings import load_settings
from ..stores import ASK, KeySource, Passphrase, default_path, local_path, open_store
from .terminal import is_terminal, say

VARIABLE = "TURNLOG_STORE"
"""Environment variable that names the store where `--store` does not."""

_MEANT = 5
"""Ids that are told where one may be meant."""

KEY_VARIABLE = "TURNLOG_KEY"
"""Environment variable that says where the key is, where `--key` does not."""


def settings_of(arguments: Namespace) -> Settings:
    """The settings in force for a command."""
    return load_settings(store=arguments.store or None, key=arguments.key or None)


def place(arguments: Namespace) -> str:
    """Path or URL of the store: `--store`, else what the settings say (TURNLOG_STORE first), else the user's own."""
    return settings_of(arguments).store or str(default_path())


def key_of(arguments: Namespace) -> KeySource | None:
    """Where the key of an encrypted store is: `--key`, else what the settings say (TURNLOG_KEY first); None for a
    store that is not encrypted."""
    where = settings_of(arguments).key
    return None if where is None else key_at(where)


def key_at(where: KeySource) -> KeySource:
    """A place as `--key` names it. Raises InputError if somebody is to be asked and nobody is there."""
    if where != ASK:
        return where
    if not is_terminal(sys.stdin):
        raise InputError("--key ask: nobody is there to be asked; take passphrase-file:PATH or passphrase-env:NAME")
    return Passphrase(getpass("passphrase: "))


def is_missing(arguments: Namespace) -> bool:
    """Whether the store is a file or a folder that is not there (yet)."""
    path = local_path(place(arguments))
    return path is not None and not path.exists()


def is_writable(arguments: Namespace) -> bool:
    """Whether the store can be opened for writing, as far as can be told from outside."""
    path = local_path(place(arguments))
    return path is None or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


@contextmanager
def opened(arguments: Namespace, *, write: bool = False, make: bool = False) -> Iterator[Store]:
    """The store, for the length of a command. Without `write` nothing is changed, and the beginning of a session's id
    will do for it; only with `make` is a store made that is not there: a mistyped name is none."""
    if write and not make and is_missing(arguments):
        raise StoreError(f"there is no store at {place(arguments)}")
    settings = settings_of(arguments)
    key = None if settings.key is None else key_at(settings.key)
    store = open_store(place(arguments), durability=settings.durability, read_only=not write, key=key)
    try:
        for problem in getattr(store, "torn", ()) if write else ():  # set aside: nobody finds it any more
            say(f"{problem.session}, record {problem.record}: {problem.what}")
        if name := getattr(arguments, "id", None):
            arguments.id = whole_id(store, name, exact=write)
        for name in getattr(arguments, "ids", ()):
            whole_id(store, name, exact=write)
        yield store
    finally:
        store.close()


def whole_id(store: Store, name: str, *, exact: bool = False) -> str:
    """The id of the session that is meant: `name`, or the only one that begins so. What changes something takes an
    `exact` one: `rm s1` twice would take `s10` the second time. Raises SessionNotFound with those that may be meant."""
    try:
        return store.info(name).id
    except CorruptRecord:
        return name  # for the command to tell
    except SessionNotFound:
        meant = [info.id for info in store.sessions() if name and info.id.startswith(name)]
        if len(meant) == 1 and not exact:
            return meant[0]
        if not meant:
            raise
        ids = ", ".join(meant[:_MEANT]) + (", ..." if len(meant) > _MEANT else "")
        raise SessionNotFound(
            f"there is no session {name!r}; of those that begin so, give the whole id: {ids}"
        ) from None
