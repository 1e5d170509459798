"""Opening sessions by id, in a store by path."""

from __future__ import annotations

import re
from pathlib import Path

from .errors import SessionNotFound
from .log import Store, utc_now
from .models import Target
from .session import Session
from .stores import default_path, open_store

__all__ = ["open"]


def open(
    session_id: str = "",
    *,
    title: str = "",
    target: Target | None = None,
    store: Store | str | Path | None = None,
) -> Session:
    """Open a session, or create it if there is none of that id.

    Without an id, one is made from `title` and the time. `store` is a store, a path to one, or None
    for the user's own (see `turnlog.stores.default_path`). `target` is what requests are made for;
    a session opened again keeps the target it had unless another is given.
    """
    opened = store if store is not None and not isinstance(store, (str, Path)) else None
    owns = opened is None
    home = opened if opened is not None else open_store(store if isinstance(store, (str, Path)) else default_path())
    session_id = session_id or _new_id(title)
    try:
        info = home.info(session_id)
    except SessionNotFound:
        info = home.create(session_id, title=title)
    session = Session(home, info, owns_store=owns)
    if target is not None and target != session.target:
        session.switch(target, why="resumed with another target" if session.target else "opened")
    return session


def _new_id(title: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-") or "session"
    stamp = re.sub(r"[^0-9]", "", utc_now())
    return f"{words}-{stamp}"
