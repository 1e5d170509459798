"""Messages as they are on record, for a summary of them: from memory as far as it holds them, else from the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from ..log.messages import images_in
from ..log.records import Decision, MessageRecord
from ..log.store import RecordStore
from ..view.compaction.blocks import Item
from ..view.decisions import Effects, Rewinds
from ..view.fold import as_shown
from ..view.types import Shown
from .loader import Sizes


class Originals(Struct, frozen=True):
    """The original messages of a log: `items` are in memory as `decisions` left them, those in the `gap` are read from
    the store."""

    store: RecordStore
    session_id: str
    items: Sequence[Item]
    decisions: Mapping[int, Decision]
    gap: tuple[int, int] | None
    rewinds: Rewinds
    sizes: Sizes

    def newest_first(self, first: int, last: int, room: float) -> Iterator[Shown]:
        """Those of records `first` to `last` but what was taken back, until they have more than `room` tokens."""
        whole = max(first, self._whole_from())
        for shown, tokens in chain(self._at_hand(whole, last), self._stored(first, min(last, whole - 1))):
            room -= tokens
            if room < 0:
                return
            yield shown

    def words(self, first: int, last: int) -> Iterator[Shown]:
        """The user's messages of records `first` to `last`, oldest first, but what was taken back."""
        for record in self.store.read(self.session_id, first=first, last=last):
            message = record.message
            if message is not None and message.role == "user" and not self.rewinds.by(record.n):
                yield from as_shown(record)

    def _whole_from(self) -> int:
        """The record from which on all messages are at hand as they are on record."""
        effects = Effects.of(self.decisions)
        hidden = (one.last for one in effects.hidings)
        return 1 + max([*hidden, *effects.changes, self.gap[1] if self.gap else 0], default=0)

    def _at_hand(self, first: int, last: int) -> Iterator[tuple[Shown, int]]:
        for item in reversed(self.items):
            if not item.is_summary:
                if item.n < first:
                    return
                if item.n <= last:
                    yield item.raw, item.plain_tokens or item.tokens

    def _stored(self, first: int, last: int) -> Iterator[tuple[Shown, int]]:
        for record in self.store.read(self.session_id, first=first, last=last, reverse=True):
            if not self.rewinds.by(record.n):
                yield from ((shown, self.sizes.record(record)) for shown in as_shown(record))


class ImageNumbers:
    """The running numbers of a log's images."""

    def __init__(self, store: RecordStore, session_id: str) -> None:
        self._store = store
        self._id = session_id
        self._known = (1, 0)  # a record number, and how many images are before it

    def before(self, n: int) -> int:
        """How many images the log has before record `n`. A message of a step of a trajectory sets the number, so that
        its image has the number of the step."""
        begin, images = self._known if self._known[0] <= n else (1, 0)
        for record in self._store.read(self._id, first=begin, last=n):
            step = record.body.step if isinstance(record.body, MessageRecord) else 0
            images = step - 1 if step else images
            if record.n < n and record.message is not None:
                images += images_in(record.message)
        self._known = n, images
        return images
