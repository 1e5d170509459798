"""Keep what a user forbade or required in records that leave a view, in the user's own words.

A decision that leaves out records shows the orders in them: a summary at its end, any other decision as a note after
the task. The decision's `detail` has them too: `orders`, each with its record; `more_orders`, ranges of the records
whose orders are not quoted; and `untold_orders`, ranges of the records whose orders had no room. A later decision takes
them over from there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ...log.actions import SHRINKING
from ...log.messages import Message, Text
from ...log.records import Decision
from ...log.texts import leaf_parts
from ..decisions import Effects
from ..types import Shown
from .situation import Block, CompactionInput, Item

_SHARE = 0.1
"""The share of the budget that all orders together may take."""

_HEADING = "[What the user required or forbade in records left out here, in their words; [n] is record n:]"
_MORE = "[More of this in {}, which can be read back.]"
_ONLY = "[The user's rules: {}.]"  # where there is no room for their words
_READ_AGAIN = 300  # records that are read again for the orders in them that were not quoted
_RANGES = 12  # ranges of records that are named


Ranges = list[tuple[int, int]]


class Orders(Struct, frozen=True):
    """The user's orders in records that leave. `quoted` are quoted, oldest first, each with its record; for all others,
    there are ranges of their records: `more` if the orders exceed their share of the budget, `untold` if the view had
    no room for them. A later decision may have room. `named`: there was room only to name the records of all."""

    quoted: tuple[tuple[int, str], ...] = ()
    more: tuple[tuple[int, int], ...] = ()
    untold: tuple[tuple[int, int], ...] = ()
    named: bool = False

    @classmethod
    def of(cls, detail: dict[str, Any]) -> Orders:
        """The orders in the detail of a decision."""
        more_orders, untold = (
            tuple((a, b) for a, b in detail.get(key, ())) for key in ("more_orders", "untold_orders")
        )
        quoted = tuple((n, sentence) for n, sentence in detail.get("orders", ()))
        return cls(quoted, more_orders, untold, detail.get("named_orders", False))

    def after(self, summary: str) -> str:
        """The summary with the orders at its end."""
        return f"{summary}\n{self.text}" if self.text else summary

    @property
    def text(self) -> str:
        """The note that a view shows; "" if there is nothing to show."""
        if self.named:
            return _ONLY.format(_named(_joined([*self.more, *self.untold])))
        if not self.quoted and not self.more:
            return ""
        lines = [f"[{n}] {sentence}" for n, sentence in self.quoted]
        rest = _joined([*self.more, *self.untold])
        return "\n".join([_HEADING, *lines, *([_MORE.format(_named(rest))] if rest else [])])

    @property
    def message(self) -> Message:
        """The note as a message."""
        return Message("user", (Text(self.text),))

    @property
    def detail(self) -> dict[str, Any]:
        """The entries of a decision that shows these orders."""
        entries = {"orders": self.quoted, "more_orders": self.more, "untold_orders": self.untold}
        listed: dict[str, Any] = {key: [list(entry) for entry in value] for key, value in entries.items() if value}
        return {**listed, "named_orders": True} if self.named else listed


def _named(ranges: Sequence[tuple[int, int]]) -> str:
    named = [str(first) if first == last else f"{first} to {last}" for first, last in ranges[-_RANGES:]]
    left = ["others before"] if len(ranges) > _RANGES else []
    return f"record{'s' if len(named) > 1 or ranges[-1][0] != ranges[-1][1] else ''} {', '.join([*named, *left])}"


def note_room(situation: CompactionInput, going: Collection[Block], grows: bool = False) -> int:
    """The most tokens that a note may have if these blocks leave: with it, the view must fit and, unless it `grows`, be
    smaller than before."""
    left = sum(block.tokens for block in going)
    gap = situation.ports.gap_tokens() if situation.gap else 0
    room = situation.marks.limit - (situation.held - left)
    return room if grows else min(room, left + gap - 1)


def orders_leaving(
    situation: CompactionInput, going: Collection[Block], room: int, also: Iterable[Shown] = ()
) -> Orders:
    """The orders in blocks that leave, in the gap, in the messages `also`, and in records that left before. Their note
    may take `room` tokens.

    An order is not repeated if a message that stays contains it in the same words. All orders are quoted if they fit
    their share of the budget, else the newest.
    """
    leaving = frozenset(going)
    standing = (item for block in situation.blocks if block not in leaving for item in block.items if item.is_summary)
    orders_by_record, unread = _left_before(situation, {item.shown.records[0] for item in standing})
    messages = (item.raw for block in going for item in block.items if not item.is_summary)
    for shown in (*messages, *_in_gap(situation), *also):
        if shown.message.role == "user" and (orders := situation.ports.orders(shown.message)):
            orders_by_record[shown.records[0]] = orders
    if not orders_by_record and not unread:
        return Orders()
    staying = _staying(situation, leaving)
    sentences = [(n, sentence) for n in sorted(orders_by_record) for sentence in orders_by_record[n]]
    newest = {sentence: n for n, sentence in sentences}
    sentences = [(n, sentence) for n, sentence in sentences if newest[sentence] == n and sentence not in staying]
    return _fitting(situation, sentences, unread, room)


def _left_before(situation: CompactionInput, standing: Collection[int]) -> tuple[dict[int, Sequence[str]], Ranges]:
    """The orders that earlier decisions quoted or named, by record, and ranges of records that were not read again for
    them. Without decisions whose replacements are `standing`, and without what the user has cleared since."""
    sentences_by_record: dict[int, list[str]] = {}
    ranges: Ranges = []
    decisions = {**situation.ports.decisions, **situation.made}
    cleared = Effects.of({n: decision for n, decision in decisions.items() if decision.action == "clear"}).hidings
    for n, decision in decisions.items():
        if decision.action not in SHRINKING or any(hiding.n > n for hiding in cleared):
            continue
        orders = Orders.of(decision.detail)
        ranges += orders.untold
        if n not in standing:
            ranges += orders.more
            for record, sentence in orders.quoted:
                sentences_by_record.setdefault(record, []).append(sentence)
    again: dict[int, Sequence[str]] = {
        n: list(dict.fromkeys(sentences)) for n, sentences in sentences_by_record.items()
    }
    unread: Ranges = []
    left = _READ_AGAIN
    for first, last in reversed(_joined(ranges)):
        left -= last - first + 1
        if left < 0:
            unread.append((first, last))
            continue
        for shown in situation.ports.words(first, last):
            if in_message := situation.ports.orders(shown.message):
                again[shown.records[0]] = in_message
    return again, unread


def _in_gap(situation: CompactionInput) -> Iterator[Shown]:
    """The user's messages in the gap, except those that decisions left out."""
    if situation.gap:
        effects = Effects.of(situation.ports.decisions)
        for shown in situation.ports.words(*situation.gap):
            if not effects.hides(shown.records[0], shown.message):
                yield shown


def _fitting(
    situation: CompactionInput, sentences: Sequence[tuple[int, str]], unread: Sequence[tuple[int, int]], room: int
) -> Orders:
    """As many of the newest orders as fit. An order that alone exceeds the share of all is not quoted."""
    left = most = int(_SHARE * max(situation.given, situation.marks.limit))
    quoted: list[tuple[int, str]] = []
    for order in reversed(sentences):
        size = situation.ports.count_text(order[1])
        if size > most:
            continue
        left -= size
        if left < 0:
            break
        quoted.insert(0, order)
    quoted_orders = frozenset(quoted)
    orders = Orders(
        tuple(quoted), _joined([*unread, *((order[0], order[0]) for order in sentences if order not in quoted_orders)])
    )
    untold: Ranges = []
    while orders.text and situation.ports.count(orders.message) > room:
        if not orders.quoted:
            named = Orders(untold=_joined([*untold, *orders.more]), named=True)
            fits = situation.ports.count(named.message) <= room
            return named if fits else msgspec.structs.replace(named, named=False)
        going = 1 + len(orders.quoted) // 8
        untold += [(n, n) for n, _ in orders.quoted[:going]]
        orders = Orders(orders.quoted[going:], orders.more, _joined(untold))
    return orders


def _joined(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges in order, with neighbours joined."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return tuple(joined)


def _staying(situation: CompactionInput, leaving: Collection[Block]) -> set[str]:
    """The orders in messages that stay, and those that standing decisions show. The same words in a paste or a result
    do not count: a model could not tell that they are an order of the user."""
    standing: set[str] = set()
    for item in (item for block in situation.blocks if block not in leaving for item in block.items):
        if item.is_summary:
            standing.update(sentence for _, sentence in Orders.of(detail_of(situation, item)).quoted)
        elif item.shown.message.role == "user" and (orders := situation.ports.orders(item.raw.message)):
            texts = [part.text for part in leaf_parts(item.shown.message.parts) if isinstance(part, Text)]
            standing.update(sentence for sentence in orders if any(sentence in text for text in texts))
    return standing


def has_untold(decisions: Iterable[Decision]) -> bool:
    """Whether some orders had no room when their records left. `decisions` are those in force, in order: the newest one
    that shows orders has read all orders that were untold before."""
    keys = ("orders", "more_orders", "untold_orders")
    newest = None
    for decision in decisions:
        newest = decision if any(key in decision.detail for key in keys) else newest
    return newest is not None and "untold_orders" in newest.detail


def detail_of(situation: CompactionInput, item: Item) -> dict[str, Any]:
    """The detail of the decision that replaced other items by this one."""
    n = item.shown.records[0]
    decision = situation.made.get(n) or situation.ports.decisions.get(n)
    return decision.detail if decision is not None else {}


def without_orders(text: str, detail: dict[str, Any]) -> str:
    """The text of a summary without the orders at its end, given the detail of its decision."""
    return text.removesuffix(f"\n{Orders.of(detail).text}")
