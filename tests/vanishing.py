"""A store in which somebody else deletes a session just when it is looked into."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from turnlog.errors import SessionNotFound
from turnlog.log.records import Record
from turnlog.stores import MemoryStore

__all__ = ["Meanwhile"]


class Meanwhile(MemoryStore):
    """Session `gone` is the one."""

    def read(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record]:
        """Deletes it before."""
        if session_id == "gone":
            with suppress(SessionNotFound):
                self.delete(session_id)
        return super().read(session_id, first=first, last=last, reverse=reverse)
