"""Leave out the oldest messages first."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from ....log.records import Decision
from ..orders import Orders, detail_of, has_untold, note_room, orders_leaving
from ..situation import Block, CompactionInput, of_results, ranges_of, total

_ROUNDS = 3  # how often the room for the note of orders is estimated anew


def slide(situation: CompactionInput) -> Decision | None:
    """Leave out the oldest blocks that may leave, until the goal is met. Summaries leave last, see `enough_beside`."""
    oldest = [
        b for told in (False, True) for b in situation.blocks if b.is_summary is told and not (b.stays or b.is_note)
    ]
    why = "the oldest messages left out to fit the budget"
    return leave(situation, "slide", oldest, why)


def leave(situation: CompactionInput, action: str, first_to_go: Sequence[Block], why: str) -> Decision | None:
    """The decision that leaves out these blocks, in this order, until the goal is met, and the gap, if there is one.
    The note of the orders in them needs room, so more blocks may have to leave."""
    going: list[Block] = []
    note = 0
    for _ in range(_ROUNDS):
        going, held = [], situation.held + note
        for block in first_to_go:
            if held > enough_beside(situation, block):
                going.append(block)
                held -= block.tokens
        wanted = orders_leaving(situation, going, situation.marks.limit) if going else Orders()
        needed = situation.ports.count(wanted.message) if wanted.text else 0
        if needed <= note:
            break
        note = needed
    if not going and not situation.fits:
        going = [block for block in situation.blocks if block.is_note]  # it may have to be shorter now
    return leaving(situation, action, going, why + of_results(situation, going))


def enough_beside(situation: CompactionInput, block: Block) -> int:
    """The most tokens of a view that may keep this block: the goal. A summary may stay up to the limit, as nothing else
    covers the same messages, and even above it if half of the summary would fit (see `shortened`). A summary that takes
    more than half of the room leaves like any other block: new decisions would be needed again and again."""
    limit = situation.marks.limit
    if not block.is_summary or block.tokens > (limit - situation.system) // 2:
        return situation.marks.goal
    return limit if situation.last else limit + block.tokens // 2


def turns_over(situation: CompactionInput) -> Decision | None:
    """Leave out the oldest turns if there are more than `max_history_turns`: a fifth more than necessary, so that this
    is not repeated at every turn."""
    most = situation.strategy.max_history_turns
    opening = [i for i, block in enumerate(situation.blocks) if block.opens_turn]
    if most is None or len(opening) <= most:
        return None
    start = opening[-max(1, most - most // 5)]
    going = [block for block in situation.blocks[:start] if not block.stays and not block.is_summary]
    return leaving(situation, "slide", going, f"more than {most:,} turns")


def leaving(
    situation: CompactionInput, action: str, going: Sequence[Block], why: str, *, grows: bool = False
) -> Decision | None:
    """The decision that leaves out these blocks, and the gap if there is one, and shows a note of the orders in them.
    An earlier note is merged into it. The view must become smaller, unless it `grows`."""
    gap = situation.gap
    if not going and not gap:
        return None
    notes = [block for block in situation.blocks if block.is_note and block not in frozenset(going)]
    orders = orders_leaving(situation, going, note_room(situation, going, grows))
    if orders.detail and notes:
        going = [*going, *notes]
        orders = orders_leaving(situation, going, note_room(situation, going, grows))
    first = min([block.first for block in going] + ([gap[0]] if gap else []))
    last = max([block.last for block in going] + ([gap[1]] if gap else []))
    gone = frozenset(going)
    staying = [(item, block) for block in situation.blocks if block not in gone for item in block.items]
    staying = [(item, block) for item, block in staying if first <= item.n <= last]
    place = {"replacement": [msgspec.to_builtins(orders.message)], "at": _place(situation, gone)}
    detail = {
        "kept": ranges_of(item.n for item, block in staying if not block.is_summary),
        "standing": sorted({item.shown.records[0] for item, block in staying if block.is_summary}),
        **(place if orders.text else {}),
        **orders.detail,
    }
    return Decision(action, first, last, why, {key: value for key, value in detail.items() if value})


def tell_orders(situation: CompactionInput) -> Decision | None:
    """The decision that shows orders that had no room when their records left; None if there is still no room. The
    oldest blocks leave if necessary."""
    if not has_untold([*situation.ports.decisions.values(), *situation.made.values()]):
        return None
    notes = [block for block in situation.blocks if block.is_note]
    shown = {sentence for block in notes for _, sentence in Orders.of(detail_of(situation, block.items[0])).quoted}
    wanted = orders_leaving(situation, notes, situation.marks.limit)
    if shown.issuperset(sentence for _, sentence in wanted.quoted):
        return None
    going = [*notes]
    needed = situation.ports.count(wanted.message)
    held = situation.held - total(notes) + needed
    most = situation.marks.trigger if situation.held <= situation.marks.trigger else situation.marks.limit
    for block in sorted(situation.blocks, key=lambda block: block.is_summary):
        stays = block.stays or block.is_note or _summarised(situation, block) > needed
        if held > most and not stays:
            going.append(block)
            held -= block.tokens
    why = "room made for what the user required or forbade before"
    decision = leaving(situation, "slide", going, why, grows=True) if going else _telling(situation, wanted, why)
    if decision is None or held > situation.marks.limit:
        return None
    if shown.issuperset(sentence for _, sentence in Orders.of(decision.detail).quoted):
        return None
    return msgspec.structs.replace(decision, detail={**decision.detail, "rule": "orders"})


def _summarised(situation: CompactionInput, block: Block) -> int:
    """The tokens of a summary without the orders at its end; 0 if the block is not a summary."""
    if not block.is_summary:
        return 0
    orders = Orders.of(detail_of(situation, block.items[0]))
    return block.tokens - (situation.ports.count(orders.message) if orders.text else 0)


def _telling(situation: CompactionInput, orders: Orders, why: str) -> Decision:
    """The decision that shows a note of these orders and leaves nothing out."""
    place = _place(situation, ())
    detail = {
        "kept": [[place, place]],
        "replacement": [msgspec.to_builtins(orders.message)],
        "at": place,
        **orders.detail,
    }
    standing = sorted({b.items[0].shown.records[0] for b in situation.blocks if b.is_summary and b.first == place})
    return Decision("slide", place, place, why, {**detail, **({"standing": standing} if standing else {})})


def _place(situation: CompactionInput, going: Collection[Block]) -> int:
    """The record before which the note is put: where the first block after the task left."""
    blocks = situation.blocks
    task = max((i for i, block in enumerate(blocks) if block.stays == "the task"), default=-1)
    behind = blocks[task].last if task >= 0 else 0
    starts = [block.first for block in blocks[task + 1 :] if block in going]
    starts += [situation.gap[0]] if situation.gap and situation.gap[0] > behind else []
    return min(starts, default=behind + 1)
