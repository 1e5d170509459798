"""The store that a command works on."""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from glob import escape
from pathlib import Path

from .. import session as sessions  # a session loads when it is used: commands that only read need none
from .._platform.texts import without_password
from .._platform.units import size_text
from ..config.settings import Settings
from ..errors import StoreNotFound
from ..log.store import Problem, Store
from ..session.settings import load_settings
from ..stores import Passphrase, PastDamage, default_path, open_store
from ..stores.encrypted.keys import ASK, KeySource
from ..stores.ids import session_named
from ..stores.leases import WAIT, ReadLease
from ..stores.places import local_path, make_parents
from ..stores.presence import left_alone
from .terminal import asked_secret, say


def settings_of(arguments: Namespace) -> Settings:
    """The settings that apply to a command."""
    return load_settings(store=arguments.store or None, key=arguments.key or None)


def place(arguments: Namespace) -> str:
    """Path or URL of the store: `--store`, else the settings (TURNLOG_STORE first), else the user's default."""
    return settings_of(arguments).store or str(default_path())


def key_of(arguments: Namespace) -> KeySource | None:
    """The place of the key of an encrypted store: `--key`, else the settings (TURNLOG_KEY first); None for a store
    without encryption."""
    where = settings_of(arguments).key
    return None if where is None else key_at(where)


def key_at(where: KeySource, *, new: bool = False) -> KeySource:
    """The key at the place that `--key` names. For `ask`, the user types a passphrase, twice if it is `new`; raises
    InputError if standard input is not a terminal."""
    if where != ASK:
        return where
    otherwise = "passphrase-file:PATH or passphrase-env:NAME"
    option, prompt = ("--new-key ask", "new passphrase") if new else ("--key ask", "passphrase")
    return Passphrase(asked_secret(prompt, option, otherwise, twice=new))


def told_place(arguments: Namespace) -> str:
    """The store as people read it, `~/x.db (17 MB)`: the home folder as `~`, without a password, with its size if it is
    on this machine."""
    shown, path = without_password(place(arguments)), local_path(place(arguments))
    if path is None or not path.exists():
        return in_home(shown)
    files = [*path.rglob("*")] if path.is_dir() else [path, *path.parent.glob(f"{escape(path.name)}-*/**/*")]
    size = sum(each.stat().st_size for each in files if each.is_file())
    return f"{in_home(shown)} ({size_text(size)})"


def in_home(path: str) -> str:
    """A path with `~` for the home folder."""
    with suppress(RuntimeError):  # there is none
        home = str(Path.home())
        return f"~{path[len(home) :]}" if path.startswith(home + os.sep) else path
    return path


def is_missing(arguments: Namespace) -> bool:
    """Whether the store is a file or a folder that does not exist (yet). Raises StoreGone if only the file with a
    store's newest records is left."""
    path = local_path(place(arguments))
    if path is None or path.exists():
        return False
    if (error := left_alone(path)) is not None:
        raise error
    return True


def is_writable(arguments: Namespace) -> bool:
    """Whether the store can be written to, according to file permissions."""
    path = local_path(place(arguments))
    return path is None or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


@contextmanager
def opened(
    arguments: Namespace, *, write: bool = False, make: bool = False, past_damage: bool | None = None
) -> Iterator[Store]:
    """The store, open while a command runs.

    Without `write` the store is read-only. A missing store is created only with `make`, so that a mistyped name does
    not create one. `id` and `ids` of the arguments become whole ids; with `--yes`, they have to be: otherwise a second
    `rm s1 --yes` would delete `s10`.

    With `past_damage`, by default if the command does not write, damaged records are reported and reading continues.
    """
    if not make and is_missing(arguments):
        raise StoreNotFound(place(arguments))
    settings = settings_of(arguments)
    key = None if settings.key is None else key_at(settings.key, new=make and is_missing(arguments))
    if make and not arguments.store:
        make_parents(place(arguments))
    store = open_store(place(arguments), durability=settings.durability, read_only=not write, key=key)
    try:
        for problem in getattr(store, "torn", ()) if write else ():  # damaged records that opening the store set aside
            say(f"{problem.session}, record {problem.record}: {problem.what}")
        exact = write and getattr(arguments, "yes", False)  # nobody is asked whether that session is meant
        if name := getattr(arguments, "id", None):
            arguments.id = session_named(store, name, exact=exact)
        if names := getattr(arguments, "ids", ()):
            arguments.ids = [session_named(store, name, exact=exact) for name in names]
        arguments.damaged = []
        reads_past = not write if past_damage is None else past_damage
        yield PastDamage(store, partial(report, arguments)) if reads_past else store
        lost = (problem.session for problem in arguments.damaged if problem.session and not problem.blobs)
        for session in dict.fromkeys(lost):
            advice = f"`turnlog salvage {shlex.quote(session)} NEW` makes a session of what can be read"
            say(f"{session} is damaged: {advice}")
    finally:
        store.close()


@contextmanager
def opened_session(arguments: Namespace, *, write: bool) -> Iterator[sessions.Session]:
    """The session that a command names, open while it runs. Raises SessionBusy if it writes and the session is in
    use."""
    with opened(arguments, write=write) as store:
        info = store.info(arguments.id)
        lease = store.lease(info.id, wait=WAIT) if write else ReadLease(info.id)
        with sessions.Session(store, info, lease=lease) as session:
            yield session


def report(arguments: Namespace, problem: Problem) -> None:
    """Report damage in a session that is being read. The command then ends with exit code 5."""
    arguments.damaged.append(problem)
    say(damage_line(problem))


def damage_line(problem: Problem) -> str:
    """A problem as one line."""
    record = f", record {problem.record}" if problem.record else ""
    return f"{problem.session or 'store'}{record}: {problem.what}"
