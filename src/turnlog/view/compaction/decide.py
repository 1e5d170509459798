"""Decide whether a view exceeds its budget, and what to leave out: one step after another until the view is small
enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from ...errors import BudgetError
from ...log.actions import SHRINKING
from ...log.budget import Budget, Strategy, Thresholds
from ...log.records import Decision
from ..repair.media_room import MediaLimits
from .situation import CachePrices, CompactionInput, Item, Ports, blocks_of, with_figures
from .steps import STEPS
from .steps.cap import capped_floor
from .steps.images import images_over
from .steps.slide import tell_orders, turns_over
from .steps.summarise import shortened

_LITTLE = 0.05
"""Share of the limit. A decision that saves less is not worth making, and growth by less is no reason for one."""

_MUCH = 0.25
"""Share of the limit. The error for a request that cannot fit advises to reduce fixed content that takes more."""

_LESS = {"tools and framing": "fewer tools", "system text": "less system text", "pinned messages": "fewer pins"}

_STALLED = "compacting has stopped, as the last two times gained too little: more budget or fewer pins would help"


def situation_of(
    items: Sequence[Item],
    budget: Budget,
    strategy: Strategy,
    ports: Ports,
    *,
    window: int,
    fixed: int,
    number: int,
    pinned: frozenset[int] = frozenset(),
    gap: tuple[int, int] | None = None,
    scale: float = 1.0,
    known: bool = True,
    prices: CachePrices | None = None,
    room: MediaLimits = MediaLimits(),
    cleared: int = 0,
    provided: frozenset[str] = frozenset(),
) -> CompactionInput:
    """The situation of a view with this budget. `window`, `fixed`, `scale` and `known` are as for `Budget.marks`, the
    others as in `CompactionInput`. `cleared` are tokens of the view that the provider itself leaves out, which makes
    room for as many others."""
    applied_budget = strategy.applied_to(budget)
    blocks = tuple(blocks_of(items, pinned, gap))
    system = fixed + sum(block.tokens for block in blocks if block.stays == "system text")
    whole = strategy.whole_goal and budget.goal is None
    marks = partial(applied_budget.marks, window, system, scale=scale, known=known, whole=whole)
    marks_beside = partial(_marks, marks, cleared)
    situation = CompactionInput(
        blocks=blocks,
        fixed=fixed,
        marks=marks_beside(0),
        marks_beside=marks_beside,
        strategy=strategy,
        ports=ports,
        pinned=pinned,
        number=number,
        gap=gap,
        prices=prices,
        given=applied_budget.marks(window, system, 0).limit,
        room=room,
        provided=provided,
    )
    return _with_marks(situation)


def _marks(beside: Callable[[int], Thresholds], cleared: int, floor: int) -> Thresholds:
    return beside(max(0, floor - cleared)).with_room(cleared)


def _with_marks(situation: CompactionInput) -> CompactionInput:
    """The situation with its marks computed again from the tokens that cannot be left out now."""
    marks = situation.marks_beside(sum(capped_floor(situation).values()))
    return msgspec.structs.replace(situation, marks=marks)


def decide(situation: CompactionInput, past: Sequence[Decision] = ()) -> tuple[list[Decision], CompactionInput]:
    """The decisions that bring a view within its budget, in order, and the situation after them.

    Orders of the user that had no room before are shown again if these decisions made room.

    `past` are the decisions in force, and those that took other decisions back, oldest first. Raises BudgetError if
    what cannot be left out exceeds the limit; this is checked before any step is tried.
    """
    try:
        decisions, situation = _decided(situation, past)
    except BudgetError:
        if not any(item.curator == "read" for block in situation.blocks for item in block.items):
            raise
        decisions, situation = _decided_in_full(situation, past)
    return decisions, _take(tell_orders(situation), situation, decisions)


def _decided_in_full(situation: CompactionInput, past: Sequence[Decision]) -> tuple[list[Decision], CompactionInput]:
    """The decisions if files that were read twice are counted in full, and the situation after them.

    A view shows such a file once. If the first read leaves, the second is shown in full, which gains nothing. If both
    reads are counted, whatever is decided certainly fits.
    """
    decisions, _ = _decided(_with_whole_reads(situation), past)
    measured: list[Decision] = []
    for decision in decisions:
        finished, situation = with_figures(situation, decision)
        measured.append(finished)
    return measured, situation


def _with_whole_reads(situation: CompactionInput) -> CompactionInput:
    """The situation in which files that were read again are shown again."""
    items = [item for block in situation.blocks for item in block.items]
    whole = situation.ports.measured(situation.ports.curated(items, situation.outputs, True))
    blocks = tuple(blocks_of(whole, situation.pinned, situation.gap))
    return _with_marks(msgspec.structs.replace(situation, blocks=blocks, whole_reads=True))


def _decided(situation: CompactionInput, past: Sequence[Decision]) -> tuple[list[Decision], CompactionInput]:
    decisions: list[Decision] = []
    for rule, name in ((images_over, "max_history_images"), (turns_over, "max_history_turns")):
        situation = _take(_named(rule(situation), name), situation, decisions)
    if decisions:  # images may have left blocks that must stay, which changes the marks
        situation = _with_marks(situation)
    if situation.size <= situation.marks.trigger:
        return decisions, situation
    situation = _with_floor(situation)
    if situation.fits and _wait(situation, past):
        return decisions, situation
    if (capped := _newest_capped(situation)) is not None:
        return [*decisions, capped[0]], capped[1]
    steps, last_resort = _steps_of(situation), _last_resort(situation)
    start, decisions_before = msgspec.structs.replace(situation, last=True), [*decisions]
    stalled = is_stalled(past, situation.marks.limit - situation.system)
    situation = _climb(situation, last_resort if stalled else steps, decisions)
    if not situation.fits:
        situation = _climb(situation, ("slide",), decisions)
        situation = _take(shortened(situation), situation, decisions)
    situation = msgspec.structs.replace(situation, last=True)
    if not situation.fits:
        situation = _climb(situation, ("slide",), decisions)
    if not situation.fits:
        # What the steps left may now be in one block with a pinned answer and so have to stay. Without them it can go.
        decisions = decisions_before
        situation = _climb(start, last_resort, decisions)
    if not situation.fits:
        # What stays may take more tokens now that the rest has left: it has to declare the tools, or comes first.
        try:
            situation = _with_floor(situation)
            situation = _climb(situation, _last_resort(situation), decisions)
        except BudgetError:
            _with_floor(_without_what_may_go(start))  # the error is about what must stay, not what the steps left
            raise
    if not situation.fits:
        raise _refusal(situation)
    if stalled:
        decisions = [msgspec.structs.replace(d, why=f"{d.why}; {_STALLED}") if _made_room(d) else d for d in decisions]
    return decisions, situation


def _steps_of(situation: CompactionInput) -> tuple[str, ...]:
    """The steps to try, in order: those of the strategy, without those that the provider performs itself while the view
    fits. Whatever the strategy, content that must stay is cut first if it would not fit otherwise."""
    provided = situation.provided if situation.fits else frozenset()
    steps = tuple(step for step in situation.strategy.steps if step not in provided)
    return ("cap", *steps) if situation.tight and "cap" not in steps else steps


def _last_resort(situation: CompactionInput) -> tuple[str, ...]:
    """The steps to try if the strategy's steps are not enough."""
    cuts = (step for step in _steps_of(situation) if step == "cap")  # the floor counts giant outputs as cut
    return (*cuts, "slide")


def _newest_capped(situation: CompactionInput) -> tuple[Decision, CompactionInput] | None:
    """The decision that cuts only giant outputs of the newest messages, and the situation after it, if that is enough;
    else None. Everything sent before then stays unchanged and in the prompt cache, so doing more at the same time gains
    nothing."""
    decision = STEPS["cap"](situation) if "cap" in situation.strategy.steps else None
    if decision is None or decision.first < situation.blocks[-1].first:
        return None
    finished, after = with_figures(situation, decision)
    return (finished, after) if after.size <= after.marks.trigger else None


def compact(situation: CompactionInput) -> tuple[list[Decision], CompactionInput]:
    """The decisions of the strategy's steps and the situation after them, whether or not the view is too large."""
    decisions: list[Decision] = []
    situation = _with_floor(situation)
    situation = _climb(situation, _steps_of(situation), decisions)
    return decisions, _take(tell_orders(situation), situation, decisions) if decisions else situation


def is_stalled(past: Sequence[Decision], limit: int) -> bool:
    """Whether the last two decisions saved too little, so that a third would only repeat them."""
    sized = [decision.detail for decision in past if _made_room(decision) and "before" in decision.detail]
    gains = [int(detail["before"]) - int(detail["after"]) for detail in sized]
    return len(gains) > 1 and max(gains[-2:]) < _LITTLE * limit


def _named(decision: Decision | None, rule: str) -> Decision | None:
    """A decision that enforces a plain cap, with the name of the cap in its `detail`."""
    if decision is None:
        return None
    return msgspec.structs.replace(decision, detail={**decision.detail, "rule": rule})


def _made_room(decision: Decision) -> bool:
    """Whether a decision was made for size. Decisions that enforce a plain cap were not: they may save little each
    time."""
    return decision.action in SHRINKING and "rule" not in decision.detail


def _wait(situation: CompactionInput, past: Sequence[Decision]) -> bool:
    """Whether to leave alone a view that still fits: because nothing can leave, compacting has stalled or does not pay,
    or too little was added since the last decision."""
    room = situation.marks.limit - situation.system
    if sum(capped_floor(situation).values()) > situation.marks.trigger or is_stalled(past, room):
        return True
    if situation.prices is not None and not _pays(situation, situation.prices):
        return True
    sized = [d for d in past if (_made_room(d) or d.action == "undo") and "after" in d.detail]
    return bool(sized) and situation.size - int(sized[-1].detail["after"]) < _LITTLE * room


def _pays(situation: CompactionInput, prices: CachePrices) -> bool:
    """Whether a smaller view saves more in the next requests (their number is the strategy's `horizon`) than it costs
    to write it to the prompt cache again. Of the cache, only the blocks at the beginning that must stay are assumed to
    survive."""
    size, goal = situation.size, situation.marks.goal
    lasting = situation.fixed
    for block in situation.blocks:
        if not block.stays:
            break
        lasting += block.tokens
    saved = situation.strategy.horizon * (size - goal) * prices.read
    return saved > max(0, goal - lasting) * (prices.write - prices.read)


def _with_floor(situation: CompactionInput) -> CompactionInput:
    """The situation, made `tight` if what must stay does not fit otherwise. The goal is then at most halfway between
    what must stay and the limit. Raises BudgetError if what must stay does not fit even so."""
    marks = situation.marks
    if sum(capped_floor(situation).values()) <= marks.limit:
        return situation
    situation = msgspec.structs.replace(situation, tight=True)
    floor = capped_floor(situation)
    if sum(floor.values()) > marks.limit:
        raise _refusal(situation)
    goal = min(marks.goal, (sum(floor.values()) + marks.limit) // 2)
    return msgspec.structs.replace(situation, marks=msgspec.structs.replace(marks, goal=goal))


def _without_what_may_go(situation: CompactionInput) -> CompactionInput:
    """The situation with only the messages that must stay."""
    items = [item for block in situation.blocks if block.stays for item in block.items]
    blocks = tuple(blocks_of(situation.ports.measured(items), situation.pinned))
    return msgspec.structs.replace(situation, blocks=blocks, gap=None)


def _refusal(situation: CompactionInput) -> BudgetError:
    """The error for content that must stay and does not fit, with advice on what would make it fit."""
    limit, floor = situation.marks.limit, capped_floor(situation)
    advice = ["a larger budget (or window)"]
    advice += [word for name, word in _LESS.items() if floor[name] > _MUCH * limit]
    return BudgetError(limit, floor, given=situation.given, advice=advice)


def _climb(situation: CompactionInput, steps: Sequence[str], made: list[Decision]) -> CompactionInput:
    """The situation after these steps, tried in order until the goal is met. Their decisions are added to `made`."""
    for name in steps:
        if situation.size <= situation.marks.goal:
            break
        if name in STEPS:  # a step of a newer version is skipped: `slide` is tried in the end
            situation = _take(STEPS[name](situation), situation, made)
    return situation


def _take(decision: Decision | None, situation: CompactionInput, made: list[Decision]) -> CompactionInput:
    """The situation after a decision, which is added to `made`. A decision that neither makes the view smaller nor
    enforces a plain cap is dropped: the situation is then unchanged."""
    if decision is None:
        return situation
    finished, after = with_figures(situation, decision)
    if after.size >= situation.size and "rule" not in decision.detail:
        return situation
    made.append(finished)
    return after
