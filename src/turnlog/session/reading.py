"""Opening a session to read it: nothing is written, nobody is kept away, and damaged records are left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..config.settings import Settings
from ..errors import InputError
from ..log.store import Problem, Store
from ..stores import open_store
from ..stores.damaged import ReadingStore
from ..stores.leases import ReadLease
from .session import Session


def opened_to_read(place: Store | str | Path, session_id: str, said: Settings, **given: Any) -> Session:
    """The session of that id. `given` are the arguments of `open` that would be recorded. Raises InputError for any of
    them, SessionNotFound, StoreError."""
    if not session_id:
        raise InputError("read_only: name the session that is to be read")
    for name, value in given.items():
        if value is not None:
            raise InputError(f"read_only: {name} cannot be set in a session that is open for reading only")
    home = open_store(place, key=said.key, read_only=True) if isinstance(place, (str, Path)) else place
    met: list[Problem] = []
    store = ReadingStore(home, met.append)
    try:
        info = store.info(session_id)
        session = Session(store, info, said, owns_store=home is not place, lease=ReadLease(session_id))
    except BaseException:
        if home is not place:
            home.close()
        raise

    def warn(problem: Problem) -> None:
        session._warn(f"record {problem.record} is damaged and left out: {problem.what}")

    store.tell = warn
    with session._events.opening():
        for problem in met:
            warn(problem)
    return session
