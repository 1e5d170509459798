"""Loading ahead of time what the first use would load."""

from __future__ import annotations

import gc

from ..config.settings import Settings
from ..models.target import Target
from ..stores import MemoryStore, SqliteStore
from .open import open


def warm(target: Target | None = None) -> None:
    """Load what the first session, and with a `target` the first request, would load: modules, the table of models, the
    vocabulary that counts tokens. Call it when a service starts, so that the first user does not wait. Nothing is read
    from or written to a store."""
    _ = SqliteStore
    with open("warm", store=MemoryStore(), target=target, settings=Settings()) as session:
        with session.turn("Are you there?"):
            session.assistant("Yes.")
        if target is not None:
            session.request().json()
    gc.collect()
