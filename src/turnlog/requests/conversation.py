"""A conversation as its next request shows it: its messages with their sizes, divided into pieces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..view.compaction.blocks import Item, starts_block
from .pieces import Piece

_WINDOW = 64
"""New pieces are joined in windows of so many records. Joined pieces are built faster, but more is built again if a
decision changes one of them. The ends of windows depend on record numbers only, so they stay the same after a cut."""


class Conversation:
    """Messages in order. The leading system text is the head, the rest is divided into pieces."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.head: list[Item] = []
        self.pieces: list[Piece] = []

    @classmethod
    def of(cls, items: Iterable[Item], before: Sequence[Piece] = ()) -> Conversation:
        """A conversation of these messages. Pieces in `before` that contain the same messages are reused."""
        made = cls()
        for item in items:
            made.add(item)
        made.keep(before)
        return made

    def keep(self, before: Sequence[Piece]) -> None:
        """Reuse the pieces in `before` that contain the same messages."""
        self.pieces = _joined(self.pieces, {piece.start: piece for piece in before})

    def add(self, item: Item) -> None:
        """Add a message at the end."""
        before = self.items[-1].shown if self.items else None
        self.items.append(item)
        if item.shown.message.role == "system" and not self.pieces:
            self.head.append(item)
        elif not self.pieces or starts_block(item.shown, before):
            self.pieces.append(Piece([item]))
        else:
            self.pieces[-1].forget()  # after a rewind, it may have been built with pieces after it
            self.pieces[-1].items.append(item)


def _joined(pieces: Sequence[Piece], before: Mapping[int, Piece]) -> list[Piece]:
    """The pieces, in which pieces of `before` replace those with the same messages and the others are joined. The last
    piece stays separate, as it may grow."""
    joined: list[Piece] = []
    open_window = 0  # the window of the last joined piece, if that is new and may grow
    i = 0
    while i < len(pieces):
        piece = pieces[i]
        known = before.get(piece.start)
        same = _same(known, pieces, i) if known is not None else 0
        if known is not None and same:
            known.items = [item for one in pieces[i : i + same] for item in one.items]
            joined.append(known)
            i, open_window = i + same, 0
            continue
        window = piece.start // _WINDOW + 1
        if window == open_window and i < len(pieces) - 1:
            joined[-1].items += piece.items
        else:
            joined.append(piece)
        i, open_window = i + 1, window
    return joined


def _same(known: Piece, pieces: Sequence[Piece], at: int) -> int:
    """How many of the pieces from index `at` on the known piece contains; 0 if its messages are not exactly theirs."""
    length, end = 0, at
    while end < len(pieces) and length < len(known.items):
        length += len(pieces[end].items)
        end += 1
    if length != len(known.items) or end == len(pieces) > at + 1:
        return 0
    now = (item.shown for piece in pieces[at:end] for item in piece.items)
    return end - at if all(a.shown == b for a, b in zip(known.items, now, strict=True)) else 0
