"""Leave out the oldest messages first."""

from __future__ import annotations

from ....log.records import Decision
from ..blocks import Block
from ..situation import Situation, of_results, ranges_of


def slide(situation: Situation) -> Decision | None:
    """Leave out the oldest blocks that may leave, until the goal is met. Summaries leave last, see `enough_beside`."""
    going: list[Block] = []
    held = situation.held
    for summaries in (False, True):
        for block in situation.blocks:
            if held <= enough_beside(situation, block) or block.stays or block.is_summary is not summaries:
                continue
            going.append(block)
            held -= block.tokens
    why = "the oldest messages left out to fit the budget"
    return leave(situation, "slide", going, why + of_results(situation, going))


def enough_beside(situation: Situation, block: Block) -> int:
    """The size of a view in which a block may stay: the goal. A summary may stay up to the limit, as nothing else
    covers the same messages, and even above the limit if half of the summary would fit (see `shortened`). A summary
    that takes more than half of the room leaves like any other block: with it, new decisions would be needed again and
    again."""
    limit = situation.marks.limit
    if not block.is_summary or block.tokens > (limit - situation.system) // 2:
        return situation.marks.goal
    return limit if situation.last else limit + block.tokens // 2


def turns_over(situation: Situation) -> Decision | None:
    """Leave out the oldest turns if there are more than `max_history_turns`: a fifth more than necessary, so that this
    is not repeated at every turn."""
    most = situation.strategy.max_history_turns
    opening = [i for i, block in enumerate(situation.blocks) if block.opens_turn]
    if most is None or len(opening) <= most:
        return None
    start = opening[-max(1, most - most // 5)]
    going = [block for block in situation.blocks[:start] if not block.stays and not block.is_summary]
    return leave(situation, "slide", going, f"more than {most:,} turns")


def leave(situation: Situation, action: str, going: list[Block], why: str) -> Decision | None:
    """The decision that leaves out these blocks, and the gap if there is one."""
    gap = situation.gap
    if not going and not gap:
        return None
    first = min([block.first for block in going] + ([gap[0]] if gap else []))
    last = max([block.last for block in going] + ([gap[1]] if gap else []))
    leaving = frozenset(going)
    staying = [(item, block) for block in situation.blocks if block not in leaving for item in block.items]
    staying = [(item, block) for item, block in staying if first <= item.n <= last]
    detail = {
        "kept": ranges_of(item.n for item, block in staying if not block.is_summary),
        "standing": sorted({item.shown.records[0] for item, block in staying if block.is_summary}),
    }
    return Decision(action, first, last, why, {key: value for key, value in detail.items() if value})
