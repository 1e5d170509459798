"""A session of which requests show only the newest images, while nothing of that is put on record.

The strategy's own rule would leave the same images out, but only after all of them were read and measured. Here the
decision is made first, from the records alone, and added to a copy of the log in memory. Requests are made from that
copy: the images that left are never read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..log.messages import Media, ToolResult
from ..log.records import Decision, Record
from ..log.store import Draft
from ..session.originals import ImageNumbers
from ..session.reader import SessionLog
from ..session.session import Session
from ..stores.memory import MemoryStore
from ..view.compaction.situation import shortening
from ..view.compaction.steps.images import placeholder
from ..view.decisions import active_decisions
from ..view.fold import select
from ..view.types import Shown, starts_turn


class _Copy(MemoryStore):
    """The records of a session in memory; media are read from the session's own store."""

    def __init__(self, log: SessionLog) -> None:
        super().__init__()
        self._log = log

    def get_blob(self, sha256: str) -> bytes:
        return self._log.blob(sha256)


def with_newest(session: Session, most: int) -> Session:
    """A copy of a session in which only the thumbnail and the newest `most` images are shown."""
    records = list(session.log.records())
    copy = _Copy(session.log)
    copy.create(session.id)
    copy.append(session.id, [Draft(record.body, record.time) for record in records])
    decision = _left_out(records, most, ImageNumbers(copy, session.id))
    if decision is not None:
        copy.append(session.id, [Draft(decision)])
    return Session(copy, copy.info(session.id))


def _left_out(records: Sequence[Record], most: int, numbers: ImageNumbers) -> Decision | None:
    """The decision that replaces all images but the newest, the thumbnail and pinned ones; the same that
    `view.compaction.steps.images` makes for the cap of a strategy."""
    view = [shown for shown in select(records)[0] if not shown.stands_in]
    found = [(shown.records[0], path) for shown in view for path in _images(shown)]
    stays = _pinned(records)
    first = next((shown for shown in view if starts_turn(shown)), None)
    thumbnail = next(((first.records[0], path) for path in _images(first)), None) if first is not None else None
    going = [one for one in found[: max(0, len(found) - most)] if one != thumbnail and one[0] not in stays]
    texts = [[n, list(path), placeholder(_number(n, path, records, numbers))] for n, path in going]
    return shortening("images", "texts", texts, f"more than {most} images")


def _images(shown: Shown) -> Iterator[tuple[int, ...]]:
    for i, part in enumerate(shown.message.parts):
        if isinstance(part, Media) and part.kind == "image":
            yield (i,)
        elif isinstance(part, ToolResult):
            yield from ((i, j) for j, one in enumerate(part.parts) if isinstance(one, Media) and one.kind == "image")


def _pinned(records: Sequence[Record]) -> set[int]:
    return {one.first for one in active_decisions(records).values() if one.action == "pin"}


def _number(n: int, path: tuple[int, ...], records: Sequence[Record], numbers: ImageNumbers) -> int:
    """The running number of an image: of its step, if it belongs to one."""
    message = records[n - 1].message
    raw = [] if message is None else list(_images(Shown(message, (n,))))
    return numbers.before(n) + 1 + (raw.index(path) if path in raw else 0)
