"""Opening sessions by id, in a store by path."""

from __future__ import annotations

import re
from pathlib import Path
from types import NoneType

import msgspec

from .errors import InputError, SessionExists, SessionNotFound
from .log import SessionInfo, Store, utc_now
from .models import Target
from .policy import Budget, Strategy, read_budget, read_strategy
from .redaction import RedactingStore, Redactor
from .session import Session
from .session_log import SOURCES
from .stores import default_path, open_store
from .summarize import TIMEOUT, Complete, Summarizer

__all__ = ["open"]


def open(
    session_id: str = "",
    *,
    title: str = "",
    target: Target | None = None,
    store: Store | str | Path | None = None,
    budget: Budget | int | None = None,
    strategy: Strategy | str | None = None,
    summarizer: Summarizer | Complete | None = None,
    summary_timeout: float = TIMEOUT,
    redact: bool | Redactor = True,
    source: str = "",
) -> Session:
    """Open a session, or create it if there is none of that id.

    Without an id, one is made from `title` and the time. `store` is a store, a path to one, or None
    for the user's own (see `turnlog.stores.default_path`). `target` is what requests are made for;
    a session opened again keeps the target it had unless another is given. So it is with `budget` (tokens
    of a whole request, or a Budget) and `strategy` (what gives way first: a Strategy or the name of a preset).
    `summarizer` writes the summaries of what has to leave: a Summarizer, or a function that asks a model, from a
    prompt to the text of its answer, within `summary_timeout` seconds. Where it fails, as where none is given, the
    summary is made without a model. `redact` puts marks in place of secrets before anything is stored: True for
    those of known shapes and names, a `Redactor` for your own choice, False to record everything as it is said.
    `source` is put on record: from where the session is opened, `interactive`, `non-interactive` or `embedded-server`.
    """
    for what, value in (("session id", session_id), ("title", title)):
        if not isinstance(value, str):
            raise InputError(f"a {what} is a string, not {type(value).__name__}")
    if not isinstance(redact, (bool, Redactor)):
        raise InputError(f"redact is True, False or a turnlog.Redactor, not {type(redact).__name__}")
    if source and source not in SOURCES:
        raise InputError(f"source is one of {', '.join(map(repr, SOURCES))}, not {source!r}")
    owns = store is None or isinstance(store, (str, Path))
    home = open_store(default_path() if store is None else store) if isinstance(store, (str, Path, NoneType)) else store
    redactor = Redactor() if redact is True else redact
    if redactor:
        home = RedactingStore(home, redactor)
    info, created = _found_or_made(home, session_id or _new_id(title), title)
    session = Session(home, info, owns_store=owns, summarizer=summarizer, summary_timeout=summary_timeout)
    if source:
        session.come_from(source, created=created)
    if target is not None and not _holds(session, target):
        session.switch(target, why="resumed with another target" if session.target else "opened")
    now = session.configuration
    wanted = (
        now.budget if budget is None else read_budget(budget),
        now.strategy if strategy is None else read_strategy(strategy),
    )
    if wanted != (now.budget, now.strategy):
        session.configure(budget=wanted[0], strategy=wanted[1])
    session.begin(created=created)
    return session


def _found_or_made(store: Store, session_id: str, title: str) -> tuple[SessionInfo, bool]:
    """The session of that id, and whether it was made."""
    try:
        return store.info(session_id), False
    except SessionNotFound:
        pass
    try:
        return store.create(session_id, title=title), True
    except SessionExists:  # another process was quicker, or an id that differs by case alone
        return store.info(session_id), False


def _holds(session: Session, target: Target) -> bool:
    """Whether a session already makes requests for this target, with these settings."""
    now = session.configuration
    same = session.target is not None and session.target == msgspec.structs.replace(target, settings={})
    return same and target.settings.items() <= now.settings.items()


def _new_id(title: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-") or "session"
    stamp = re.sub(r"[^0-9]", "", utc_now())
    return f"{words}-{stamp}"
