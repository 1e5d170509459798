"""Blobs that nothing refers to any more.

What a record refers to is read from its bytes, whatever its kind: a record of a newer version keeps
its blobs too. A blob that was put a short while ago stays, because the record that needs it may be
on its way, perhaps from another process.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from ..log.store import Swept
from .blobs import Put, names_in


def unused(blobs: Mapping[str, Put], records: Iterable[bytes], grace: float) -> tuple[set[str], Swept]:
    """The blobs that `records`, all that there are, do not refer to and that may go; and what to say of it."""
    free = {name.encode() for name in blobs}
    if free:
        for raw in records:
            free.difference_update(names_in(raw))
            if not free:
                break
    until = time.time() - grace
    names = {name for name in map(bytes.decode, free) if blobs[name].at <= until}
    return names, Swept(len(names), sum(blobs[name].size for name in names), len(free) - len(names))
