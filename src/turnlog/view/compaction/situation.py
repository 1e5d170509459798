"""What a strategy's step sees of a session, and how a decision that it proposes changes that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ...log.budget import Marks, Strategy
from ...log.messages import Message
from ...log.records import Decision
from ..decisions import Effects, Hiding, stand_ins
from ..repair.media_room import Room
from ..types import Shown
from .blocks import Block, Item, blocks_of, total


class CachePrices(Struct, frozen=True):
    """What a token costs that a prompt cache reads or writes, in prices of one that is simply read."""

    read: float
    write: float


class Ahead(Struct, frozen=True):
    """A summary that is being made ahead of need: of the records `first` to `last` but `kept`, in `target` tokens."""

    first: int
    last: int
    kept: tuple[int, ...]
    target: int


class Wanted(Struct, frozen=True, eq=False):
    """A summary that is wanted: of these `messages`, oldest first, in at most `target` tokens.

    `previous` is the summary that it takes the place of, "" if there is none, and `news` are those of the messages that
    this does not tell of. What is `beside` it stays in the view and need not be said again. `size` is how many tokens
    leave the view for it, 0 if that is not known. With `unpaid`, no model is asked: one was just now, in vain.
    """

    messages: Sequence[Shown]
    previous: str
    target: int
    news: Sequence[Shown]
    beside: Sequence[Shown] = ()
    size: int = 0
    unpaid: bool = False


class Summary(Struct, frozen=True):
    """A summary: its text, who wrote it, and what went wrong before."""

    text: str
    by: str
    failures: tuple[str, ...] = ()


class Means(Struct, frozen=True):
    """What steps may use of the world, all of it given by the caller.

    - `count`: tokens of a message. `count_text`: those of a text. `counter`: who counts, with its version.
    - `count_at_once`: tokens of a message with results of calls made at once; None if it is counted as any other.
    - `originals`: reads the messages on record from one number to another, newest first.
    - `summarise`: writes a summary.
    - `images_before`: how many images the log holds before a record. `gap_tokens`: how much stands in the gap.
    - `measured`: gives items with their size as it is where they make up the view.
    - `decisions`: those in force, by record number.
    """

    count: Callable[[Message], int]
    count_text: Callable[[str], int]
    originals: Callable[[int, int], Iterable[Shown]]
    summarise: Callable[[Wanted], Summary]
    images_before: Callable[[int], int]
    gap_tokens: Callable[[], int] = lambda: 0
    counter: str = ""
    measured: Callable[[Sequence[Item]], Sequence[Item]] = lambda items: items
    count_at_once: Callable[[Message], int] | None = None
    decisions: Mapping[int, Decision] = {}


class Situation(Struct, frozen=True):
    """A view that may have to give way.

    - `fixed`: what tools and framing take, in tokens.
    - `marks`: the budget, `marks_beside` makes it anew when so many tokens cannot be left out; `given` is the limit
      before the margin for what may be billed above a count was taken from it.
    - `pinned`: numbers of the records that a user pinned. `number`: the record number that the next decision gets.
    - `gap`: first and last of the records between the blocks that are not at hand, because no view could hold them:
      they have to leave.
    - `ahead`: a summary under way, which is used if what it covers is still there.
    - `prices`: those of the model's prompt cache, None if they are not known.
    - `room`: how many images, documents and the like the provider takes in one request, and how much of them.
    - `tight`: what must stay does not fit even with giant outputs cut to the strategy's share of the limit.
    - `last`: nothing is left to try, so that even a summary goes that could be cut short instead.
    - `promised`: somebody asked for the newest turns to stay, of a view that fits.
    """

    blocks: tuple[Block, ...]
    fixed: int
    marks: Marks
    marks_beside: Callable[[int], Marks]
    strategy: Strategy
    means: Means
    pinned: frozenset[int]
    number: int
    gap: tuple[int, int] | None = None
    ahead: Ahead | None = None
    prices: CachePrices | None = None
    tight: bool = False
    given: int = 0
    room: Room = Room()
    last: bool = False
    promised: bool = False

    @property
    def size(self) -> int:
        """The tokens of a request that shows all blocks, and what stands in the gap."""
        return self.held + (self.means.gap_tokens() if self.gap else 0)

    @property
    def held(self) -> int:
        """The tokens of a request that shows all blocks, and nothing of the gap."""
        return self.fixed + total(self.blocks)

    @property
    def fits(self) -> bool:
        """Whether that is within the limit: `size`, not `held`."""
        return self.size <= self.marks.limit

    @property
    def system(self) -> int:
        """What system text, tools and framing take."""
        return self.fixed + sum(block.tokens for block in self.blocks if block.stays == "system text")

    @property
    def unprotected(self) -> list[Block]:
        """The blocks that may go and are not among the newest, up to the strategy's protected share of the limit; the
        oldest first."""
        found: list[Block] = []
        newest = 0
        for block in reversed(self.blocks):
            newest += block.tokens
            if newest > self.strategy.protect * self.marks.limit and not block.stays:
                found.append(block)
        return found[::-1]

    @property
    def floor(self) -> dict[str, int]:
        """What cannot be left out, in tokens."""
        reasons = ("system text", "the task", "pinned messages", "the open turn")
        sums = {"tools and framing": self.fixed, **dict.fromkeys(reasons, 0)}
        for block in self.blocks:
            if block.stays:
                sums[block.stays] += block.tokens
        return sums


def applied(situation: Situation, decision: Decision) -> Situation:
    """The situation after a decision."""
    n = situation.number
    effects = Effects.of({n: decision})
    hiding = effects.hidings[0] if effects.hidings else None
    items: list[Item] = []
    at, standing = stand_ins(n, decision)
    placed = [_counted(shown, shown, at, situation.means) for shown in standing]
    for item in (item for block in situation.blocks for item in block.items):
        if placed and item.n >= at:
            items += placed
            placed = []
        if hiding is not None and _is_hidden(item, hiding):
            continue
        shown = effects.treat(item.shown, item.raw)
        if shown is item.shown:
            items.append(item)
        else:
            items.append(_counted(shown, item.raw, item.n, situation.means))
    gap = situation.gap
    if gap and hiding is not None and hiding.first <= gap[0] and gap[1] <= hiding.last:
        gap = None
    blocks = tuple(blocks_of(situation.means.measured([*items, *placed]), situation.pinned, gap))
    return msgspec.structs.replace(situation, blocks=blocks, number=n + 1, gap=gap)


def _counted(shown: Shown, raw: Shown, n: int, means: Means) -> Item:
    tokens = means.count(shown.message)
    return Item(shown, tokens, raw, n, tokens)


def _is_hidden(item: Item, hiding: Hiding) -> bool:
    if item.is_summary:
        return hiding.first <= item.n <= hiding.last and item.shown.records[0] not in hiding.standing
    return hiding.covers(item.n) and item.raw.message.role != "system"


def with_figures(situation: Situation, decision: Decision) -> tuple[Decision, Situation]:
    """The decision with its figures in `detail`, and the situation after it: `before` and `after` in tokens, those of
    what stands in for older messages, and `changes_from`, the first record from which the request differs."""
    after = applied(situation, decision)
    figures = {"strategy": situation.strategy.name, "before": situation.size, "after": after.size}
    if "replacement" in decision.detail:
        figures |= {"tokens": _standing(after, situation.number), "counter": situation.means.counter}
    detail = {**decision.detail, **figures, "changes_from": _changes_from(situation, after, decision)}
    finished = Decision(decision.action, decision.first, decision.last, decision.why, detail)
    return finished, after


def _standing(situation: Situation, number: int) -> list[int]:
    """The sizes of what decision `number` put in the place of older messages."""
    items = (item for block in situation.blocks for item in block.items)
    return [item.tokens for item in items if item.shown.records == (number,)]


def _changes_from(before: Situation, after: Situation, decision: Decision) -> int:
    """The first record from which the request differs."""
    left = [item for block in before.blocks for item in block.items]
    right = [item for block in after.blocks for item in block.items]
    differing = ([a.n, b.n] for a, b in zip(left, right, strict=False) if a.shown is not b.shown)
    found = next(differing, [item.n for item in (*left[len(right) :], *right[len(left) :])][:1])
    gap = [before.gap[0]] if before.gap and after.gap is None else []
    return min([*found, *gap], default=decision.first)


def shortening(action: str, key: str, entries: Sequence[list[Any]], reason: str) -> Decision | None:
    """The decision that shortens messages, by the entries of its `detail`, which begin with a record number each; None
    if there are none."""
    records = [entry[0] for entry in entries]
    return Decision(action, min(records), max(records), reason, {key: [*entries]}) if records else None


def of_results(situation: Situation, going: Iterable[Block]) -> str:
    """What the decision by which these blocks leave says of results among them that the strategy keeps."""
    if situation.strategy.keep_results and any(block.has_results for block in going):
        return "; results that the strategy keeps are among them, as nothing else was left"
    return ""


def ranges_of(numbers: Iterable[int]) -> list[list[int]]:
    """Numbers as ranges, `[first, last]` each."""
    ranges: list[list[int]] = []
    for n in sorted(set(numbers)):
        if ranges and n == ranges[-1][1] + 1:
            ranges[-1][1] = n
        else:
            ranges.append([n, n])
    return ranges
