"""Finds blobs that no record refers to any more.

References are found in the bytes of a record, whatever its kind: a record of a newer version keeps its blobs too. A
blob that was put recently stays, because the record that needs it may be appended next, perhaps by another process.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from ..log.store import Swept
from .blobs import Put, names_in


def unused(blobs: Mapping[str, Put], records: Iterable[bytes], grace: float) -> tuple[set[str], Swept]:
    """The names of the blobs that may be removed, because they are old enough and none of `records` refers to them; and
    the result to report. `records` must be all records of the store."""
    free = {name.encode() for name in blobs}
    if free:
        for raw in records:
            free.difference_update(names_in(raw))
            if not free:
                break
    until = time.time() - grace
    names = {name for name in map(bytes.decode, free) if blobs[name].at <= until}
    return names, Swept(len(names), sum(blobs[name].size for name in names), len(free) - len(names))
