"""Replace old turns by one summary: the beginning and the newest messages stay, the middle is summarised."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ....log.messages import Message, Text, text_of
from ....log.records import Decision
from ...decisions import Effects, stand_ins, untold
from ...types import Shown
from ..orders import Orders, detail_of, orders_leaving, without_orders
from ..situation import (
    Block,
    CompactionInput,
    Item,
    PendingSummary,
    SummaryRequest,
    applied,
    has_open_call,
    newest_start,
    of_results,
    ranges_of,
    total,
    turns_start,
)

# -- cut short -------------------------------------------------------------------------------------
#
# Cut a summary short, so that a view with it fits.

_ENDS_HERE = "[The summary ends here: no more of it fits.]"

_SPARE = 0.05
"""Share of the conversation's room that is left free if a summary is cut to fit."""

_LONG_LINE = 200
"""Characters. A longer line may be cut inside."""


def shortened(situation: CompactionInput) -> Decision | None:
    """Cut the newest summary short if nothing else can leave: half a summary says more than none."""
    told = (block for block in reversed(situation.blocks) if block.is_summary and not (block.stays or block.is_note))
    block = next(told, None)
    if block is None or situation.fits:
        return None
    item = block.items[0]
    orders = Orders.of(detail_of(situation, item))
    whole = Message("user", (Text(orders.after("".join(whole_texts(situation, item)))),))
    # Messages at the same place are not part of the summary and stay.
    detail = {
        "kept": [[block.first, block.last]],
        "replacement": [msgspec.to_builtins(whole)],
        "at": block.first,
        **orders.detail,
    }
    decision = Decision("compact", block.first, block.last, "the summary cut short to fit the budget", detail)
    cut = fitting(situation, decision, whole)
    return None if cut is decision else cut


def fitting(situation: CompactionInput, decision: Decision, message: Message) -> Decision:
    """The decision with a slightly shorter summary, if the view with it is slightly too large: messages may take more
    tokens together than counted one by one, and what stays may have to declare tools now. Without a summary, nothing
    would cover these messages."""
    over = applied(situation, decision).size - situation.marks.limit
    if over <= 0:
        return decision
    whole = situation.ports.count(message)
    if over > whole // 2:
        return decision
    # Save a little more than necessary, or the next request would have to be made smaller too.
    most = whole - min(whole // 2, over + int(_SPARE * (situation.marks.limit - situation.system)))
    orders = Orders.of(decision.detail)
    heading, _, summary = without_orders(text_of(message), decision.detail).partition("\n")

    def ended(length: int) -> Message:
        return Message("user", (Text(orders.after(f"{heading}\n{_cut_off(summary, length)}\n{_ENDS_HERE}")),))

    length = bisect_right(range(len(summary)), most, key=lambda length: situation.ports.count(ended(length)))
    shorter = [msgspec.to_builtins(ended(max(0, length - 1)))]
    return msgspec.structs.replace(decision, detail={**decision.detail, "replacement": shorter})


def _cut_off(text: str, length: int) -> str:
    """The beginning of a text, up to the end of a line, or of a word if the line is long or most of the text."""
    begin = text[:length]
    lines = begin.rpartition("\n")[0]
    short = len(begin) - len(lines) < min(_LONG_LINE, len(lines))
    return lines if short else begin.rpartition(" ")[0] or begin


def is_cut_short(summary: Message, detail: dict[str, Any]) -> bool:
    """Whether a summary, made by a decision with this detail, was cut short."""
    return without_orders(text_of(summary), detail).endswith(_ENDS_HERE)


def whole_texts(situation: CompactionInput, item: Item) -> list[str]:
    """The texts of a summary, without the orders at its end and without the note that it was cut short."""
    detail = detail_of(situation, item)
    texts = (part.text for part in item.shown.message.parts if isinstance(part, Text))
    return [without_orders(text, detail).removesuffix(f"\n{_ENDS_HERE}") for text in texts]


_LEAST_SUMMARY = 24
"""Tokens. A shorter summary says nothing."""

_REACHES_BACK = 300
"""Tokens. A summary of at least this size also covers messages that left earlier without a summary; a smaller one has
room only for the messages that leave now."""

_BESIDE_PINS = 0.1
_LARGE = 2  # how many times `summary_tokens` a summary may have at most where its share is large
"""Share of the same room that a summary leaves free if messages are pinned. Unlike the newest messages, pinned ones
never leave, so a view filled to its limit would be made smaller at nearly every request."""

_WORTH_IT = 0.1
"""Share of the same room that a summary made ahead of need has to save. A summary that covers little more than the last
one costs money, and the next one would be needed soon."""

_EXCHANGES = (5, 3)
"""How many of the newest exchanges `grades` keeps of a long conversation, or, if these are too large, the second
number."""


class _Cut(Struct, frozen=True, eq=False):
    """The place of a summary. It covers the middle: the blocks from `start` to before `end`, except `kept`. It may have
    `target` tokens, and comes before the kept blocks, or after them if `at_end`."""

    start: int
    end: int
    kept: tuple[Block, ...]
    target: int
    at_end: bool = False


def summarise(situation: CompactionInput) -> Decision | None:
    """Replace the middle of the conversation by a summary. If a summary that was made ahead of need saves nothing,
    another is made without asking a model."""
    decision = _summarised(situation)
    if situation.ahead is None or (decision is not None and applied(situation, decision).size < situation.size):
        return decision
    return _summarised(msgspec.structs.replace(situation, ahead=None), unpaid=True)


def _summarised(situation: CompactionInput, *, unpaid: bool = False) -> Decision | None:
    plan = _planned(situation)
    if plan is None:
        return None
    summary = situation.ports.summarise(msgspec.structs.replace(plan.wanted, unpaid=unpaid))
    if not summary.text.strip():
        return None
    text = f"{_heading(situation, plan.first, plan.last)}\n{summary.text}"
    message = Message("user", (Text(plan.orders.after(text)),))
    detail = {
        "kept": ranges_of(plan.kept),
        "replacement": [msgspec.to_builtins(message)],
        "at": plan.at,
        "summarizer": summary.by,
        "target": plan.wanted.target,
        **({"failures": list(summary.failures)} if summary.failures else {}),
        **plan.orders.detail,
        **summary.detail,
    }
    why = "older turns summarised to fit the budget" + plan.results
    decision = Decision("compact", plan.first, plan.last, why, detail)
    return fitting(situation, decision, message)


def summary_ahead(situation: CompactionInput) -> tuple[PendingSummary, SummaryRequest] | None:
    """The summary that would be made if one were needed now; None if it would save too little."""
    cut = _cut(situation)
    going = (block for block in situation.blocks[cut.start : cut.end] if not block.stays and block not in cut.kept)
    if total(list(going)) - cut.target < _WORTH_IT * (situation.marks.limit - situation.system):
        return None
    plan = _planned(situation)
    if plan is None or situation.gap is not None:
        return None
    # It is not known yet how many tokens will leave, nor which messages will be added to those that stay.
    amid = [item.raw for block in situation.blocks[cut.start : cut.end] if block.stays for item in block.items]
    beside = sorted([*amid, *plan.wanted.beside], key=lambda shown: shown.records)
    wanted = msgspec.structs.replace(plan.wanted, beside=beside, size=0)
    return PendingSummary(plan.begin, plan.last, tuple(plan.kept), wanted.target), wanted


class _Plan(Struct, frozen=True, eq=False):
    """A summary that could be made. It covers the records `first` to `last` except `kept`, replaces the blocks from
    record `begin` on, and is put before record `at`. `wanted` is the task of the summarizer; `results` is a note about
    tool results that leave, which the decision's reason gives; `orders` are the user's orders in the messages that
    leave."""

    first: int
    last: int
    kept: Sequence[int]
    wanted: SummaryRequest
    begin: int
    at: int
    results: str
    orders: Orders


def _planned(situation: CompactionInput) -> _Plan | None:
    cut = _cut_ahead(situation) or _cut(situation)
    middle = situation.blocks[cut.start : cut.end]
    spared = frozenset(cut.kept)
    going = frozenset(block for block in middle if not block.stays and block not in spared)
    new = any(not block.is_summary for block in going) or situation.gap is not None
    if not new or cut.target < _LEAST_SUMMARY:
        return None
    begin, last = _span(situation, cut.start, cut.end)
    first = _first_covered(situation, cut, begin)
    remaining = [block for block in situation.blocks if block not in going and not block.is_summary]
    kept_records = [item.n for block in remaining for item in block.items if first <= item.n <= last]
    staying = frozenset(kept_records)
    originals = [shown for shown in situation.ports.originals(first, last) if shown.records[0] not in staying][::-1]
    heading = situation.ports.count(Message("user", (Text(_heading(situation, first, last) + "\n"),)))
    # The summary must be smaller than what it replaces. If it is too large for the view, later steps make room.
    gap = situation.ports.gap_tokens() if situation.gap else 0
    room = sum(block.tokens for block in going) + gap - heading - _LEAST_SUMMARY - 1
    orders = orders_leaving(situation, going, room, originals)
    target = cut.target
    if situation.ahead is None:
        noted = situation.ports.count(orders.message) if orders.text else 0
        target = max(_LEAST_SUMMARY if noted else 1, target - heading - noted)
    around = [*situation.blocks[: cut.start], *cut.kept, *situation.blocks[cut.end :]]
    beside = [item.raw for block in around for item in block.items]
    beside += [Shown(orders.message, (situation.number,), "noted")] if orders.text else []
    size = sum(block.tokens for block in going) + situation.size - situation.held
    covered = _covered_before(situation, middle, cut.target)
    news = [shown for shown in originals if not covered(shown.records[0])]
    wanted = SummaryRequest(originals, _earlier(situation, middle), target, news, beside, size)
    # The summary comes after the task, also if messages of an agent that leave come before the task.
    task = max((i for i, block in enumerate(middle) if block.stays == "the task"), default=-1)
    place = cut.end if cut.at_end else cut.start + task + 1
    # An earlier summary has the number of the record after it, which may be in the next block, which stays whole.
    behind = min([last + 1, *(block.first for block in situation.blocks[place : place + 1])])
    stands_before = behind if place > cut.start else begin
    return _Plan(first, last, kept_records, wanted, begin, stands_before, of_results(situation, going), orders)


def _heading(situation: CompactionInput, first: int, last: int) -> str:
    standard = f"[Summary of records {first} to {last} of this conversation, which are left out here.]"
    return situation.strategy.heading or standard


def _cut_ahead(situation: CompactionInput) -> _Cut | None:
    """The cut for which a summary is under way; None if its blocks are gone or must stay now."""
    ahead = situation.ahead
    if ahead is None:
        return None
    inside = [i for i, block in enumerate(situation.blocks) if ahead.first <= block.first and block.last <= ahead.last]
    if not inside:
        return None
    middle = situation.blocks[inside[0] : inside[-1] + 1]
    kept_blocks = tuple(b for b in middle if not b.is_summary and any(item.n in ahead.kept for item in b.items))
    same = (middle[0].first, middle[-1].last) == (ahead.first, ahead.last)
    staying = {b.stays for b in middle if b not in kept_blocks}
    return _Cut(inside[0], inside[-1] + 1, kept_blocks, ahead.target) if same and staying <= {""} else None


def _earlier(situation: CompactionInput, middle: Sequence[Block]) -> str:
    """The text of the summaries that this one replaces."""
    items = (item for block in middle if block.is_summary and not block.is_note for item in block.items)
    return "\n".join(text for item in items for text in whole_texts(situation, item))


def _covered_before(situation: CompactionInput, middle: Sequence[Block], target: int) -> Callable[[int], bool]:
    """A function that tells whether a summary in the middle covers a record and the record was not kept beside it or
    left out since. A summary does not count if it was cut short, if it was made because another failed, or if it had
    less than half of `target`."""
    standing = _standing(middle)
    whole = {
        n: decision
        for n, decision in situation.ports.decisions.items()
        if n in standing and decision.detail.get("target", 0) * 2 >= target and not decision.detail.get("failures")
        if not any(is_cut_short(shown.message, decision.detail) for shown in stand_ins(n, decision)[1])
    }
    hidings = Effects.of(whole).hidings
    return lambda n: any(hiding.covers(n) for hiding in hidings)


def _span(situation: CompactionInput, start: int, end: int) -> tuple[int, int]:
    """The first and last record of the blocks `start` to `end` and of the gap."""
    middle, gap = situation.blocks[start:end], situation.gap
    firsts = [block.first for block in middle] + ([gap[0]] if gap else [])
    lasts = [block.last for block in middle] + ([gap[1]] if gap else [])
    return min(firsts), max(lasts)


def _first_covered(situation: CompactionInput, cut: _Cut, begin: int) -> int:
    """The first record that a summary covers: `begin`, where its blocks begin, or an earlier record if the summaries
    that it replaces begin earlier or if it has room for records just before that were left out without a summary."""
    blocks = situation.blocks
    before = blocks[cut.start - 1].last if cut.start else begin
    left = _uncovered(situation) if cut.target >= _REACHES_BACK else []
    decisions = situation.ports.decisions
    covered = (decisions[n].first for n in _standing(blocks[cut.start : cut.end]) if n in decisions)
    return min([begin, *covered, *(first for first, last in left if before < first and last < begin)])


def _uncovered(situation: CompactionInput) -> list[tuple[int, int]]:
    """Ranges of records that were left out and that no summary in the view covers."""
    return untold(situation.ports.decisions, _standing(situation.blocks), situation.number)


def _standing(blocks: Sequence[Block]) -> set[int]:
    """The numbers of the decisions whose summaries are among these blocks."""
    told = (block for block in blocks if block.is_summary and not block.is_note)
    return {item.shown.records[0] for block in told for item in block.items}


def _cut(situation: CompactionInput) -> _Cut:
    strategy, blocks, system = situation.strategy, situation.blocks, situation.system
    room = max(0, situation.marks.limit - system)
    if len(strategy.grades) == 2:
        return _graded(situation, room)
    start = _head_end(situation, int(strategy.head * room))
    head = situation.fixed + total(blocks[:start])
    kept_tokens = sum(block.tokens for block in blocks[start:] if block.stays)
    most = int(strategy.summary * room)
    if strategy.summary_tokens:
        large = min(int(strategy.summary_large * room), _LARGE * strategy.summary_tokens)
        most = min(most, max(strategy.summary_tokens, large))
    if strategy.tail:
        # What must stay takes room from the newest messages first, then from the summary.
        left = int((strategy.head + strategy.tail) * room) + most - (head - system)
        pins = sum(block.tokens for block in blocks if block.stays == "pinned messages")
        spare = min(pins, int(_BESIDE_PINS * room))
        target = max(0, min(most, room - spare - (head - system) - kept_tokens))
        end = newest_start(blocks, start, max(0, left - target - kept_tokens), beside_kept=True)
        return _Cut(start, _behind_gap(situation, end), (), target)
    left = max(0, situation.marks.goal - head)
    target = min(int(left * 0.6), most)
    if strategy.user_tokens:
        return _users_only(situation, start, target)
    if strategy.keep_turns:
        end = turns_start(blocks, strategy.keep_turns, start, all_else=situation.promised)
    elif strategy.recent:
        end = newest_start(blocks, start, int(strategy.recent * total(blocks)))
    else:
        end = newest_start(blocks, start, left - target - kept_tokens, beside_kept=True)
    end = _behind_gap(situation, end)
    if not (strategy.keep_turns or strategy.keep_results):
        return _Cut(start, end, (), target)
    return _with_kept(situation, start, end, head, target)


def _with_kept(situation: CompactionInput, start: int, end: int, head: int, target: int) -> _Cut:
    """The cut in which the turns and results that the strategy keeps stay. If they do not fit beside half of the
    summary and some spare room, they would have to leave soon, so they are summarised now, oldest results first, until
    the goal is met, unless the caller asked for these turns and the view has room for them."""
    blocks, marks = situation.blocks, situation.marks
    results = [block for block in blocks[start:end] if situation.strategy.keep_results and block.has_results]
    results = [block for block in results if not block.stays]
    staying = sum(block.tokens for block in blocks[start:end] if block.stays)
    held = staying + total(blocks[end:])
    # One made ahead is used only some turns later.
    most = marks.goal - max(0, marks.trigger - situation.size) - head
    if held + total(results) <= most - target // 2:
        target = min(target, most - held - total(results))
        return _Cut(start, end, tuple(results), target)
    if situation.promised:  # the summary gets half of the room left, if that is enough for one
        return _Cut(start, end, tuple(results), min(target, (marks.limit - head - held - total(results)) // 2))
    room = marks.goal - head - target
    if held > room:
        staying += sum(block.tokens for block in blocks[end:] if block.stays)
        end = newest_start(blocks, end, room - staying, beside_kept=True)
        return _Cut(start, end, (), target)
    while total(results) > room - held:
        results.pop(0)
    return _Cut(start, end, tuple(results), target)


def _behind_gap(situation: CompactionInput, index: int) -> int:
    """`index`, or the first index after the gap if that is greater: the gap has to be summarised too."""
    if situation.gap is None:
        return index
    behind = next((i for i, b in enumerate(situation.blocks) if b.first > situation.gap[1]), len(situation.blocks))
    return max(index, behind)


def _head_end(situation: CompactionInput, room: int) -> int:
    """The index after the beginning that stays. The beginning reaches up to the first summary, or to the place where
    records without a summary were left out; if there is neither, up to `room` tokens."""
    blocks, users_only = situation.blocks, situation.strategy.user_tokens > 0
    hole = _first_hole(situation)
    standing = next((i for i, block in enumerate(blocks) if block.is_summary), None)
    if standing is not None and not users_only:
        return min(standing, hole)
    used = 0
    for i, block in enumerate(blocks):
        if i == hole or (situation.gap and block.first > situation.gap[1]):
            return i
        if block.stays == "system text":
            continue
        leading = not used or block.stays == "the task"
        used += block.tokens
        if i == len(blocks) - 1 or (used > room and not (leading and block.stays)):
            return i
    return len(blocks)


def _first_hole(situation: CompactionInput) -> int:
    """The index of the first block after the task before which records without a summary were left out."""
    blocks, holes = situation.blocks, _uncovered(situation)
    task = next((i for i, block in enumerate(blocks) if block.stays != "system text"), len(blocks))
    indices = (
        i
        for i in range(task + 1, len(blocks))
        if any(blocks[i - 1].last < first and last < blocks[i].first for first, last in holes)
    )
    return next(indices, len(blocks))


def _users_only(situation: CompactionInput, start: int, target: int) -> _Cut:
    """The cut in which the newest user messages and the open turn stay, with the summary after them."""
    blocks = situation.blocks
    end = len(blocks)
    while end > start and blocks[end - 1].stays == "the open turn":
        end -= 1
    # The summary must not come between a call and its result that is still to come.
    last_word = max((i for i, block in enumerate(blocks) if block.opens_turn), default=-1)
    waiting = (i for i in range(max(start, last_word + 1), end) if has_open_call(blocks[i].items))
    end = next(waiting, end)
    room = min(situation.strategy.user_tokens, situation.marks.goal - situation.fixed - target)
    room -= sum(block.tokens for block in blocks if block.stays)
    kept_blocks: list[Block] = []
    for block in reversed(blocks[start:end]):
        if block.opens_turn and not block.stays:
            room -= block.tokens
            if room < 0:
                break
            kept_blocks.append(block)
    return _Cut(start, end, tuple(kept_blocks), target, at_end=True)


def _graded(situation: CompactionInput, room: int) -> _Cut:
    """The cut that keeps the first and last exchange of a middle-sized conversation, or the last of a long one."""
    blocks = situation.blocks
    low, high = situation.strategy.grades
    opening = [i for i, block in enumerate(blocks) if block.opens_turn]
    target = int(situation.strategy.summary * min(room, low))
    start = _head_end(situation, 0)
    if total(blocks) <= high and situation.gap is None:
        if len(opening) > 1 and _first_hole(situation) > opening[1] and not any(block.is_summary for block in blocks):
            start = max(start, opening[1])
        return _Cut(start, max(start, opening[-1] if opening else start), (), target)
    end = start
    for exchanges in _EXCHANGES:
        end = max(start, opening[-exchanges] if len(opening) >= exchanges else start)
        if total(blocks[end:]) <= low - target:
            break
    return _Cut(start, _behind_gap(situation, end), (), target)
