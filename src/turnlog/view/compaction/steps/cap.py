"""Giant tool outputs are shown as their beginning and end.

As a rule one output may take the strategy's share of the limit, and what was cut once is left as it is. Only where the
open turn would not fit so (`Situation.tight`), its outputs share the room that there is, and those count that were
cut before: small ones stay whole, of the others each has as much as the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....log.messages import Message, Text, ToolResult
from ....log.records import Decision
from ...decisions import cut_text, is_cut
from ..blocks import Item
from ..situation import Situation, shortening

_LEAST = 60
"""Tokens below which no output is called a giant, and to fewer than which none is cut, however small the budget."""

_SPARE = 0.2
"""Share of the limit that outputs which share the room leave free: for a summary of what is older, and for what comes
next, which else would cut them anew."""


def cap(situation: Situation) -> Decision | None:
    """Cut every output that takes more than the strategy's share of the limit, the open turn's too, to that or to
    what room it has; what is pinned stays whole."""
    most = {"": _usual(situation), "the open turn": _of_open_turn(situation)}
    again = {"": False, "the open turn": situation.tight}
    cuts = [
        cut
        for block in situation.blocks
        if block.stays in most
        for item in block.items
        for cut in _cuts(situation, item, most[block.stays], again=again[block.stays])
    ]
    why = "1 giant tool output cut to its" if len(cuts) == 1 else f"{len(cuts):,} giant tool outputs cut to their"
    why = f"{why} beginning and end"
    if situation.tight:
        why = f"{why}; those of the open turn to {most['the open turn']:,} tokens each, which it has room for"
    return shortening("cap", "cuts", cuts, why)


def capped_floor(situation: Situation) -> dict[str, int]:
    """What cannot be left out once giants are cut, in tokens."""
    if "cap" not in situation.strategy.steps:
        return situation.floor
    most = _of_open_turn(situation)
    floor = dict(situation.floor)
    for item in _open_turn(situation):
        for size in _giants(situation, item, most, again=situation.tight).values():
            floor["the open turn"] -= size - most
    return floor


def _usual(situation: Situation) -> int:
    """Tokens that one output may take as a rule."""
    return max(_LEAST, int(situation.strategy.cap * (situation.marks.limit - situation.system)))


def _of_open_turn(situation: Situation) -> int:
    """Tokens that one output of the open turn may take: where these have to share the room, an equal part of what the
    smaller ones leave."""
    usual = _usual(situation)
    if not situation.tight:
        return usual
    items = _open_turn(situation)
    sizes = sorted(size for item in items for size in _giants(situation, item, _LEAST, again=True).values())
    spare = int(_SPARE * (situation.marks.limit - situation.system))
    room = situation.marks.limit - spare - (sum(situation.floor.values()) - sum(sizes))
    share = 0
    for i, size in enumerate(sizes):
        share = room // (len(sizes) - i)
        if size > share:
            break
        room -= size
    return max(_LEAST, min(share, usual))


def _open_turn(situation: Situation) -> Iterator[Item]:
    return (item for block in situation.blocks if block.stays == "the open turn" for item in block.items)


def _giants(situation: Situation, item: Item, most: int, *, again: bool) -> dict[tuple[int, int], int]:
    """The outputs of a message that take more than `most` tokens, by their place in it, and their sizes. What was
    shortened once is none, but what was cut, if that may be done `again`; nor is what is larger than its message as
    that is sent: its call was cleared, and it goes to nobody."""
    if item.size <= most or item.shown.message.role != "user":
        return {}  # a result in an answer is never sent
    return {
        (i, j): size
        for i, (part, raw) in enumerate(zip(item.shown.message.parts, item.raw.message.parts, strict=False))
        if isinstance(part, ToolResult) and isinstance(raw, ToolResult)
        for j, (inner, said) in enumerate(zip(part.parts, raw.parts, strict=False))
        if isinstance(inner, Text) and isinstance(said, Text)
        if inner == said or (again and is_cut(inner.text, said.text, item.n))
        if most < (size := _tokens(situation, item, inner.text)) <= item.size
    }


def _tokens(situation: Situation, item: Item, text: str) -> int:
    """What a text takes as a tool's output, without what frames that: some counters count it apart from speech, and
    otherwise beside others."""
    whole, bare = (Message("user", (ToolResult("call", parts=(Text(one),)),)) for one in (text, ""))
    count = (situation.means.count_at_once if item.at_once else None) or situation.means.count
    return count(whole) - count(bare)


def _cuts(situation: Situation, item: Item, most: int, *, again: bool) -> Iterator[list[Any]]:
    for (i, j), size in _giants(situation, item, most, again=again).items():
        now, raw = (_text(one.message, i, j) for one in (item.shown, item.raw))
        head, tail = _lengths(situation, item, raw, int(len(now) * most / size), most)
        yield [item.n, [i, j], head, tail]


def _text(message: Message, i: int, j: int) -> str:
    result = message.parts[i]
    inner = result.parts[j] if isinstance(result, ToolResult) else None
    assert isinstance(inner, Text)
    return inner.text


def _lengths(situation: Situation, item: Item, text: str, length: int, most: int) -> tuple[int, int]:
    """Characters of head and tail with which the text, marker included, is within `most` tokens: no more than `length`
    together, and than it has."""
    length = min(length, len(text) - 1)
    while length > 0:
        head, tail = length - length // 3, length // 3
        tokens = _tokens(situation, item, cut_text(text, head, tail, item.n))
        if tokens <= most:
            return head, tail
        length = min(length - 1, int(length * most / tokens * 0.98))
    return 0, 0
