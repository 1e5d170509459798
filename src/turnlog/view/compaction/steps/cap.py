"""Show only the beginning and the end of giant tool outputs.

Normally, one output may take the strategy's share of the limit, and an output that was cut once is not cut again. If
the open turn would not fit this way (`CompactionInput.tight`), its outputs share the room available, including those
that were cut before: small outputs stay whole, and the others get equal shares. Every strategy does this, as the
request would otherwise be refused; without the step `cap`, nothing else is cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....log.messages import Message, Part, Text, ToolResult
from ....log.records import Decision
from ...decisions import cut_text, is_cut
from ..situation import CompactionInput, Item, shortening

_LEAST = 60
"""Tokens. An output with fewer tokens is never cut, and no output is cut to fewer, however small the budget."""

_SPARE = 0.2
"""Share of the limit that is left free when outputs share the room: for a summary of older messages, and for the next
messages, which would otherwise cause new cuts."""


def cap(situation: CompactionInput) -> Decision | None:
    """Cut every output to the strategy's share of the limit, and outputs of the open turn to the room available, if
    that is less. Pinned outputs stay whole."""
    most = {"the open turn": _of_open_turn(situation)}
    if _is_a_step(situation):
        most[""] = _usual(situation)
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


def capped_floor(situation: CompactionInput) -> dict[str, int]:
    """The tokens that cannot be left out once giant outputs are cut, by reason."""
    if not (_is_a_step(situation) or situation.tight):
        return situation.floor
    most = _of_open_turn(situation)
    floor = dict(situation.floor)
    for item in _open_turn(situation):
        for size in _giants(situation, item, most, again=situation.tight).values():
            floor["the open turn"] -= size - most
    return floor


def _is_a_step(situation: CompactionInput) -> bool:
    return "cap" in situation.strategy.steps


def _usual(situation: CompactionInput) -> int:
    """The tokens that one output may normally take."""
    share = situation.strategy.cap if _is_a_step(situation) else 1.0
    return max(_LEAST, int(share * (situation.marks.limit - situation.system)))


def _of_open_turn(situation: CompactionInput) -> int:
    """The tokens that one output of the open turn may take. If these outputs have to share the room, each gets an equal
    part of what the smaller ones leave."""
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


def _open_turn(situation: CompactionInput) -> Iterator[Item]:
    return (item for block in situation.blocks if block.stays == "the open turn" for item in block.items)


def _giants(situation: CompactionInput, item: Item, most: int, *, again: bool) -> dict[tuple[int, int], int]:
    """The outputs of a message that take more than `most` tokens: the place of each in the message, and its size.

    Outputs that a decision shortened before are not included, except, with `again`, those that were cut. An output that
    is larger than its message as sent is not included either: it is not sent, because its call was cleared."""
    if item.size <= most or item.shown.message.role != "user":
        return {}  # a result in an answer is never sent
    return {
        (i, j): size
        for i, (part, decided, raw) in enumerate(_parts(item))
        if isinstance(part, ToolResult) and isinstance(decided, ToolResult) and isinstance(raw, ToolResult)
        for j, (inner, plain, recorded) in enumerate(zip(part.parts, decided.parts, raw.parts, strict=False))
        if isinstance(inner, Text) and isinstance(plain, Text) and isinstance(recorded, Text)
        if plain == recorded or (again and is_cut(plain.text, recorded.text, item.n))
        if most < (size := _tokens(situation, item, inner.text)) <= item.size
    }


def _parts(item: Item) -> Iterator[tuple[Part, Part, Part]]:
    """Each part of a message in three forms: as shown, as decisions show it, and as recorded."""
    return zip(item.shown.message.parts, item.decided.message.parts, item.raw.message.parts, strict=False)


def _tokens(situation: CompactionInput, item: Item, text: str) -> int:
    """The tokens of a text as a tool's output, without framing. Some counters count tool output differently from other
    text, and results of parallel calls differently again."""
    whole, bare = (Message("user", (ToolResult("call", parts=(Text(content),)),)) for content in (text, ""))
    count = (situation.ports.count_at_once if item.at_once else None) or situation.ports.count
    return count(whole) - count(bare)


def _cuts(situation: CompactionInput, item: Item, most: int, *, again: bool) -> Iterator[list[Any]]:
    for (i, j), size in _giants(situation, item, most, again=again).items():
        current, raw = (_text(version.message, i, j) for version in (item.shown, item.raw))
        head, tail = _lengths(situation, item, raw, int(len(current) * most / size), most)
        yield [item.n, [i, j], head, tail]


def _text(message: Message, i: int, j: int) -> str:
    result = message.parts[i]
    inner = result.parts[j] if isinstance(result, ToolResult) else None
    assert isinstance(inner, Text)
    return inner.text


def _lengths(situation: CompactionInput, item: Item, text: str, length: int, most: int) -> tuple[int, int]:
    """The characters of head and tail with which the text, including the marker, takes at most `most` tokens. Together
    they are at most `length`, and fewer than the text has."""
    length = min(length, len(text) - 1)
    while length > 0:
        head, tail = length - length // 3, length // 3
        tokens = _tokens(situation, item, cut_text(text, head, tail, item.n))
        if tokens <= most:
            return head, tail
        length = min(length - 1, int(length * most / tokens * 0.98))
    return 0, 0
