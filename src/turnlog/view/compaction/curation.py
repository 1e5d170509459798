"""Curates the items of views, with their sizes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from ...log.messages import Message
from ..curate.conversation import CurationRules, Curator, Rule
from .blocks import Item


class Counting(Protocol):
    """Counts tokens."""

    def message(self, message: Message) -> int:
        """Tokens of a message."""


class Curation:
    """The curator of the views of one conversation. Findings about texts, and sizes, are kept from view to view."""

    def __init__(self, rules: CurationRules | Rule, *, named: bool = True) -> None:
        self._curator = Curator(rules, named=named)
        self._sizes: dict[tuple[int, bool], tuple[Message, Counting, int]] = {}

    def begin(self, pinned: Collection[int] = (), also: Collection[int] = ()) -> None:
        """Begin a view anew. Messages of `pinned` records stay as they are; the outputs of the records `also` are
        curated even if the rule left them alone."""
        self._curator = self._curator.again(pinned, also)

    def item(self, item: Item, counting: Counting) -> Item:
        """The next message of the view, curated."""
        return self._curated(item, self._curator, counting)

    def items(
        self, items: Sequence[Item], counting: Counting, also: Collection[int] = (), *, whole_reads: bool = False
    ) -> list[Item]:
        """The messages of another view, as they are curated there, with the outputs of the records `also`. With
        `whole_reads`, the content of files is not left out where it is shown already."""
        curator = self._curator.again(also=also, whole_reads=whole_reads)
        return [self._curated(item, curator, counting) for item in items]

    def _curated(self, item: Item, curator: Curator, counting: Counting) -> Item:
        shown = curator.see(item.decided, item.raw)
        if shown is item.shown or (item.plain is not None and shown.message == item.shown.message):
            return item
        n, plain = item.n, item.plain_tokens if item.plain is not None else item.tokens
        if shown is item.decided:
            return Item(shown, plain, item.raw, n, plain)
        key = n, curator.shortens(n)
        cached = self._sizes.get(key)
        if cached is None or cached[1] is not counting or cached[0] != shown.message:
            cached = self._sizes[key] = shown.message, counting, counting.message(shown.message)
        tokens, kind = cached[2], curator.kinds[n]
        return Item(shown, tokens, item.raw, n, tokens, plain=item.decided, plain_tokens=plain, curator=kind)
