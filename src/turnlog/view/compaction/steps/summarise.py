"""Old turns become one summary: the beginning stays as it is, the newest stays as it is, the middle is told."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from ....log.messages import Message, Text, text_of
from ....log.records import Decision
from ...decisions import Effects, stand_ins, untold
from ..blocks import Block, has_open_call, newest_start, total, turns_start
from ..situation import Ahead, Situation, Wanted, applied, of_results, ranges_of

_LEAST_SUMMARY = 24
"""Tokens below which a summary says nothing."""

_REACHES_BACK = 300
"""Tokens from which on a summary tells of what had left without one: a smaller one has no room but for what leaves."""

_ENDS_HERE = "[The summary ends here: no more of it fits.]"

_SPARE = 0.05
"""Share of the conversation's room that is left free where a summary is cut to fit."""

_BESIDE_PINS = 0.1
"""Share of the same room that a summary leaves free beside what is pinned: that does not leave, as the newest messages
do when others come, and a view full to its limit would be made smaller at nearly every request."""

_WORTH_IT = 0.1
"""Share of the same room that a summary made ahead of need has to gain: one that covers little more than the summary
before would be paid for, and the next one needed soon."""

_LONG_LINE = 200
"""Characters: a line that is longer is cut inside."""

_EXCHANGES = (5, 3)
"""Newest exchanges that `grades` keep of a long conversation: so many, or the second number if those are too large."""


class _Cut(Struct, frozen=True, eq=False):
    """Where a summary goes: blocks `start` to `end`, but not `end` itself, are the middle that it tells of; `kept` of
    it stay all the same. It may have `target` tokens, and stands ahead of what was kept, or behind it if `at_end`."""

    start: int
    end: int
    kept: tuple[Block, ...]
    target: int
    at_end: bool = False


def summarise(situation: Situation) -> Decision | None:
    """Put a summary in the place of the middle of the conversation; where one that was made ahead gains nothing, one
    that nobody is paid for."""
    decision = _summarised(situation)
    if situation.ahead is None or (decision is not None and applied(situation, decision).size < situation.size):
        return decision
    return _summarised(msgspec.structs.replace(situation, ahead=None), unpaid=True)


def _summarised(situation: Situation, *, unpaid: bool = False) -> Decision | None:
    plan = _planned(situation)
    if plan is None:
        return None
    summary = situation.means.summarise(msgspec.structs.replace(plan.wanted, unpaid=unpaid))
    if not summary.text.strip():
        return None
    message = Message("user", (Text(f"{_heading(situation, plan.first, plan.last)}\n{summary.text}"),))
    detail = {
        "kept": ranges_of(plan.kept),
        "replacement": [msgspec.to_builtins(message)],
        "at": plan.at,
        "summarizer": summary.by,
        "target": plan.wanted.target,
        **({"failures": list(summary.failures)} if summary.failures else {}),
    }
    why = "older turns summarised to fit the budget" + plan.results
    decision = Decision("compact", plan.first, plan.last, why, detail)
    return _fitting(situation, decision, message)


def shortened(situation: Situation) -> Decision | None:
    """Cut the newest summary, where nothing else is left that could go: half of it tells more than none."""
    block = next((block for block in reversed(situation.blocks) if block.is_summary and not block.stays), None)
    if block is None or situation.fits:
        return None
    standing = block.items[0].shown.message
    whole = Message("user", (Text(text_of(standing).removesuffix(f"\n{_ENDS_HERE}")),))
    # What stands at the same place is no part of the summary.
    detail = {"kept": [[block.first, block.last]], "replacement": [msgspec.to_builtins(whole)], "at": block.first}
    decision = Decision("compact", block.first, block.last, "the summary cut short to fit the budget", detail)
    cut = _fitting(situation, decision, whole)
    return None if cut is decision else cut


def _fitting(situation: Situation, decision: Decision, message: Message) -> Decision:
    """The decision with its summary a little shorter, if the view is a little too large beside it: what was counted
    apart takes more together, and what stays has to declare tools now. Without a summary nothing would tell of all
    that it covers."""
    over = applied(situation, decision).size - situation.marks.limit
    if over <= 0:
        return decision
    whole = situation.means.count(message)
    if over > whole // 2:
        return decision
    # A little more than that, or the next request would have to be made smaller too.
    most = whole - min(whole // 2, over + int(_SPARE * (situation.marks.limit - situation.system)))
    heading, _, told = text_of(message).partition("\n")

    def ended(length: int) -> Message:
        return Message("user", (Text(f"{heading}\n{_cut_off(told, length)}\n{_ENDS_HERE}"),))

    length = bisect_right(range(len(told)), most, key=lambda length: situation.means.count(ended(length)))
    shorter = [msgspec.to_builtins(ended(max(0, length - 1)))]
    return msgspec.structs.replace(decision, detail={**decision.detail, "replacement": shorter})


def _cut_off(text: str, length: int) -> str:
    """The beginning of a text, up to the end of a line, or of a word where the line is long or most of it."""
    begin = text[:length]
    lines = begin.rpartition("\n")[0]
    short = len(begin) - len(lines) < min(_LONG_LINE, len(lines))
    return lines if short else begin.rpartition(" ")[0] or begin


def summary_ahead(situation: Situation) -> tuple[Ahead, Wanted] | None:
    """What a summary would have to cover if it were needed now."""
    cut = _cut(situation)
    going = (block for block in situation.blocks[cut.start : cut.end] if not block.stays and block not in cut.kept)
    if total(list(going)) - cut.target < _WORTH_IT * (situation.marks.limit - situation.system):
        return None
    plan = _planned(situation)
    if plan is None or situation.gap is not None:
        return None
    # What stays beside it, and how much leaves for it, is not known yet.
    wanted = msgspec.structs.replace(plan.wanted, beside=(), size=0)
    return Ahead(plan.begin, plan.last, tuple(plan.kept), wanted.target), wanted


class _Plan(Struct, frozen=True, eq=False):
    """A summary that could be made. It covers the records `first` to `last` but those `kept`, takes the place of blocks
    from record `begin` on, and stands before record `at`. `wanted` is what a summarizer is asked for, `results` what
    the decision says of tool results that leave."""

    first: int
    last: int
    kept: Sequence[int]
    wanted: Wanted
    begin: int
    at: int
    results: str


def _planned(situation: Situation) -> _Plan | None:
    cut = _cut_ahead(situation) or _cut(situation)
    middle = situation.blocks[cut.start : cut.end]
    spared = frozenset(cut.kept)
    going = frozenset(block for block in middle if not block.stays and block not in spared)
    new = any(not block.is_summary for block in going) or situation.gap is not None
    if not new or cut.target < _LEAST_SUMMARY:
        return None
    begin, last = _span(situation, cut.start, cut.end)
    first = _told_from(situation, cut, begin)
    told = [block for block in situation.blocks if block not in going and not block.is_summary]
    kept = [item.n for block in told for item in block.items if first <= item.n <= last]
    target = cut.target
    if situation.ahead is None:
        heading = Message("user", (Text(_heading(situation, first, last) + "\n"),))
        target = max(1, target - situation.means.count(heading))
    staying = frozenset(kept)
    originals = [shown for shown in situation.means.originals(first, last) if shown.records[0] not in staying][::-1]
    around = [*situation.blocks[: cut.start], *cut.kept, *situation.blocks[cut.end :]]
    beside = [item.raw for block in around for item in block.items]
    size = sum(block.tokens for block in going) + situation.size - situation.held
    tells = _tells(situation, middle, cut.target)
    news = [shown for shown in originals if not tells(shown.records[0])]
    wanted = Wanted(originals, _earlier(middle), target, news, beside, size)
    # The task stands ahead of what came of it, also where an agent's words, which leave, stand ahead of the task.
    task = max((i for i, block in enumerate(middle) if block.stays == "the task"), default=-1)
    place = cut.end if cut.at_end else cut.start + task + 1
    # An earlier summary has the number of what it stood before: that may be of the block behind, which stays whole.
    behind = min([last + 1, *(block.first for block in situation.blocks[place : place + 1])])
    at = behind if place > cut.start else begin
    return _Plan(first, last, kept, wanted, begin, at, of_results(situation, going))


def _heading(situation: Situation, first: int, last: int) -> str:
    standard = f"[Summary of records {first} to {last} of this conversation, which are left out here.]"
    return situation.strategy.heading or standard


def _cut_ahead(situation: Situation) -> _Cut | None:
    """The cut for which a summary is under way, if its blocks are still there and what stays of them still stays."""
    ahead = situation.ahead
    if ahead is None:
        return None
    inside = [i for i, block in enumerate(situation.blocks) if ahead.first <= block.first and block.last <= ahead.last]
    if not inside:
        return None
    middle = situation.blocks[inside[0] : inside[-1] + 1]
    kept = tuple(b for b in middle if not b.is_summary and any(item.n in ahead.kept for item in b.items))
    same = (middle[0].first, middle[-1].last) == (ahead.first, ahead.last)
    staying = {b.stays for b in middle if b not in kept}
    return _Cut(inside[0], inside[-1] + 1, kept, ahead.target) if same and staying <= {""} else None


def _earlier(middle: Sequence[Block]) -> str:
    """The summary that this one takes the place of."""
    items = (item for block in middle if block.is_summary for item in block.items)
    parts = (part for item in items for part in item.shown.message.parts)
    return "\n".join(part.text.removesuffix(f"\n{_ENDS_HERE}") for part in parts if isinstance(part, Text))


def _tells(situation: Situation, middle: Sequence[Block], target: int) -> Callable[[int], bool]:
    """Says of a record whether a summary in the middle tells of it: not if it was kept beside it, or left out since. A
    summary that was cut short, made because another failed, or made in less than half the room does not count."""
    standing = _standing(middle)
    whole = {
        n: decision
        for n, decision in situation.means.decisions.items()
        if n in standing and decision.detail.get("target", 0) * 2 >= target and not decision.detail.get("failures")
        if not any(text_of(shown.message).endswith(_ENDS_HERE) for shown in stand_ins(n, decision)[1])
    }
    hidings = Effects.of(whole).hidings
    return lambda n: any(hiding.covers(n) for hiding in hidings)


def _span(situation: Situation, start: int, end: int) -> tuple[int, int]:
    """The first and last record of blocks `start` to `end`, and of what is not at hand."""
    middle, gap = situation.blocks[start:end], situation.gap
    firsts = [block.first for block in middle] + ([gap[0]] if gap else [])
    lasts = [block.last for block in middle] + ([gap[1]] if gap else [])
    return min(firsts), max(lasts)


def _told_from(situation: Situation, cut: _Cut, begin: int) -> int:
    """The first record that a summary covers. That is `begin`, where its blocks do, or an earlier one: what the
    summaries that it takes the place of began with, or what was left out untold just ahead, if there is room for it."""
    blocks = situation.blocks
    before = blocks[cut.start - 1].last if cut.start else begin
    left = _untold(situation) if cut.target >= _REACHES_BACK else []
    decisions = situation.means.decisions
    covered = (decisions[n].first for n in _standing(blocks[cut.start : cut.end]) if n in decisions)
    return min([begin, *covered, *(one for one, last in left if before < one and last < begin)])


def _untold(situation: Situation) -> list[tuple[int, int]]:
    """Ranges of records that have left and that nothing shown tells of."""
    return untold(situation.means.decisions, _standing(situation.blocks), situation.number)


def _standing(blocks: Sequence[Block]) -> set[int]:
    """The numbers of the decisions whose summaries stand among these blocks."""
    return {item.shown.records[0] for block in blocks if block.is_summary for item in block.items}


def _cut(situation: Situation) -> _Cut:
    strategy, blocks, system = situation.strategy, situation.blocks, situation.system
    room = max(0, situation.marks.limit - system)
    if len(strategy.grades) == 2:
        return _graded(situation, room)
    start = _head_end(situation, int(strategy.head * room))
    head = situation.fixed + total(blocks[:start])
    kept = sum(block.tokens for block in blocks[start:] if block.stays)
    most = int(strategy.summary * room)
    most = min(most, strategy.summary_tokens) if strategy.summary_tokens else most
    if strategy.tail:
        # What must stay is paid by the newest messages first, then by the summary.
        left = int((strategy.head + strategy.tail) * room) + most - (head - system)
        pins = sum(block.tokens for block in blocks if block.stays == "pinned messages")
        spare = min(pins, int(_BESIDE_PINS * room))
        target = max(0, min(most, room - spare - (head - system) - kept))
        end = newest_start(blocks, start, max(0, left - target - kept), beside_kept=True)
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
        end = newest_start(blocks, start, left - target - kept, beside_kept=True)
    end = _behind_gap(situation, end)
    if not (strategy.keep_turns or strategy.keep_results):
        return _Cut(start, end, (), target)
    return _with_kept(situation, start, end, head, target)


def _with_kept(situation: Situation, start: int, end: int, head: int, target: int) -> _Cut:
    """The cut in which the strategy's turns and results stay. Where they do not fit beside half of the summary and some
    room, they would have to leave soon: then they are told instead, the oldest results first, until the goal is met.
    Not so where somebody asked for these turns, of a view that has room for them."""
    blocks, marks = situation.blocks, situation.marks
    results = [block for block in blocks[start:end] if situation.strategy.keep_results and block.has_results]
    results = [block for block in results if not block.stays]
    staying = sum(block.tokens for block in blocks[start:end] if block.stays)
    held = staying + total(blocks[end:])
    # Nearer to the limit, the next turn would have this done again; a summary made ahead waits for some turns more.
    most = (marks.goal + marks.limit) // 2 - max(0, marks.trigger - situation.size) - head
    if held + total(results) <= most - target // 2:
        target = min(target, most - held - total(results))
        return _Cut(start, end, tuple(results), target)
    if situation.promised:  # half of what leaves is told, if that is enough to be told at all
        return _Cut(start, end, tuple(results), min(target, (marks.limit - head - held - total(results)) // 2))
    room = marks.goal - head - target
    if held > room:
        staying += sum(block.tokens for block in blocks[end:] if block.stays)
        end = newest_start(blocks, end, room - staying, beside_kept=True)
        return _Cut(start, end, (), target)
    while total(results) > room - held:
        results.pop(0)
    return _Cut(start, end, tuple(results), target)


def _behind_gap(situation: Situation, index: int) -> int:
    """Not before what is not at hand: that has to be told."""
    if situation.gap is None:
        return index
    behind = next((i for i, b in enumerate(situation.blocks) if b.first > situation.gap[1]), len(situation.blocks))
    return max(index, behind)


def _head_end(situation: Situation, room: int) -> int:
    """Behind the beginning that stays: up to the summary that stands there already, or to where something was left
    out that no summary tells of, else so much as `room` holds."""
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


def _first_hole(situation: Situation) -> int:
    """The first block, behind the task, before which something was left out that nothing tells of."""
    blocks, holes = situation.blocks, _untold(situation)
    task = next((i for i, block in enumerate(blocks) if block.stays != "system text"), len(blocks))
    found = (
        i
        for i in range(task + 1, len(blocks))
        if any(blocks[i - 1].last < first and last < blocks[i].first for first, last in holes)
    )
    return next(found, len(blocks))


def _users_only(situation: Situation, start: int, target: int) -> _Cut:
    """The newest user messages stay, and the open turn; the summary stands behind them."""
    blocks = situation.blocks
    end = len(blocks)
    while end > start and blocks[end - 1].stays == "the open turn":
        end -= 1
    # Nor may it come between a call and a result that is still to come.
    said = max((i for i, block in enumerate(blocks) if block.opens_turn), default=-1)
    waiting = (i for i in range(max(start, said + 1), end) if has_open_call(blocks[i].items))
    end = next(waiting, end)
    room = min(situation.strategy.user_tokens, situation.marks.goal - situation.fixed - target)
    room -= sum(block.tokens for block in blocks if block.stays)
    kept: list[Block] = []
    for block in reversed(blocks[start:end]):
        if block.opens_turn and not block.stays:
            room -= block.tokens
            if room < 0:
                break
            kept.append(block)
    return _Cut(start, end, tuple(kept), target, at_end=True)


def _graded(situation: Situation, room: int) -> _Cut:
    """First and last exchange of a conversation of middle size, the last few of a long one."""
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
