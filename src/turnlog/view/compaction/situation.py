"""The situation of a session as a strategy's steps see it, and how a proposed decision changes it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from ...log.budget import Strategy, Thresholds
from ...log.messages import Message, ToolResult
from ...log.records import Decision
from ..curate.conversation import CurationRules, Curator, Rule, outputs_of
from ..decisions import Effects, Hiding, stand_ins
from ..program_prefaces import is_preface
from ..repair.media_room import MediaLimits
from ..repair.pairing import pair
from ..types import Shown, starts_turn

# -- blocks ----------------------------------------------------------------------------------------
#
# Blocks: the parts of a conversation that strategies keep or leave out as a whole.
#
# A block is a user message, or an assistant's answer with the results of its calls. A call and its result are always
# in the same block, so a view may be cut at every border between blocks.


class Item(Struct, frozen=True, eq=False, gc=False):
    """A message as a view would show it.

    - `tokens`: its size by itself.
    - `raw`: the message as recorded.
    - `n`: the number of its record; for a summary, the number of the record that follows it.
    - `size`: the tokens that it adds to a request, as measured in the request built from the view.
    - `plain`: the message as decisions show it, if it was curated, and `plain_tokens` its tokens; `curator`: what its
      outputs are.
    - `at_once`: it has results of parallel calls, which some providers bill differently; `counted_at_once`: `tokens`
      counts them in this way.
    """

    shown: Shown
    tokens: int
    raw: Shown
    n: int
    size: int = 0
    at_once: bool = False
    counted_at_once: bool = False
    plain: Shown | None = None
    plain_tokens: int = 0
    curator: str = ""

    @property
    def decided(self) -> Shown:
        """The message as decisions show it, not curated."""
        return self.plain or self.shown

    @property
    def is_summary(self) -> bool:
        """Whether the item replaces older messages."""
        return self.shown.stands_in


class Block(Struct, frozen=True, eq=False, gc=False):
    """Items that stay or leave together. `tokens` is the size of the block. `stays` is the reason why it must stay, ""
    if it may leave."""

    items: tuple[Item, ...]
    tokens: int
    stays: str = ""

    @property
    def first(self) -> int:
        """The smallest record number in the block."""
        return min(item.n for item in self.items)

    @property
    def last(self) -> int:
        """The greatest record number in the block."""
        return max(item.n for item in self.items)

    @property
    def is_summary(self) -> bool:
        """Whether the block replaces older messages."""
        return self.items[0].is_summary

    @property
    def is_note(self) -> bool:
        """Whether the block replaces older messages and shows only the orders in them."""
        return self.items[0].shown.treatment == "noted"

    @property
    def opens_turn(self) -> bool:
        """Whether the block begins with a message of the user."""
        return starts_turn(self.items[0].raw) and not self.is_summary

    @property
    def has_results(self) -> bool:
        """Whether the block contains tool results."""
        return any(isinstance(part, ToolResult) for item in self.items for part in item.raw.message.parts)


def total(blocks: Sequence[Block]) -> int:
    """The tokens of all these blocks."""
    return sum(block.tokens for block in blocks)


def starts_block(shown: Shown, before: Shown | None) -> bool:
    """Whether a message begins a new block."""
    if before is None or starts_turn(shown):
        return True
    return shown.message.role == "assistant" and before.message.role != "assistant"


def blocks_of(items: Sequence[Item], pinned: frozenset[int], gap: tuple[int, int] | None = None) -> list[Block]:
    """The blocks of a view. System text, the first user message and pinned messages must stay; if an agent wrote the
    first user message, also the first that the user wrote; and of the open turn, the user message, calls without a
    result and the newest block. `gap`: the first and the last of the records that were not read. Messages before and
    after the gap never share a block, except a call and its result."""
    groups = _groups(items, gap)
    words = [(i, word.raw.message) for i, group in enumerate(groups) if (word := user_word(group)) is not None]
    word_groups = [i for i, _ in words]
    task = {*word_groups[:1], *islice((i for i, message in words if not is_preface(message)), 1)}
    blocks: list[Block] = []
    for i, group in enumerate(groups):
        stays = ""
        if any(item.raw.message.role == "system" for item in group):
            stays = "system text"
        elif i in task:
            stays = "the task"
        elif not group[0].is_summary and any(item.n in pinned for item in group):
            stays = "pinned messages"
        elif i == len(groups) - 1 or (word_groups and i == word_groups[-1]):
            stays = "the open turn"
        elif word_groups and i > word_groups[-1] and has_open_call(group):
            stays = "the open turn"
        blocks.append(Block(tuple(group), sum(item.size for item in group), stays))
    return blocks


def user_word(group: Sequence[Item]) -> Item | None:
    """The first user message in a group, at its beginning or between a call and its result; None if there is none."""
    return next((item for item in group if starts_turn(item.raw) and not item.is_summary), None)


def _groups(items: Sequence[Item], gap: tuple[int, int] | None) -> list[list[Item]]:
    groups: list[list[Item]] = []
    before: Item | None = None
    for item in items:
        if gap and before is not None and (before.n < gap[0] <= item.n or before.n <= gap[1] < item.n):
            before = None  # records of the gap are between them, even if one is a pinned message inside it
        alone = before is not None and (before.raw.message.role == "system" or starts_turn(before.raw))
        alone = alone or item.raw.message.role == "system"
        borders_summary = before is not None and item.is_summary != before.is_summary
        if alone or borders_summary or starts_block(item.raw, before.raw if before else None):
            groups.append([item])
        else:
            groups[-1].append(item)
        before = item
    return _tied(groups)


def _tied(groups: list[list[Item]]) -> list[list[Item]]:
    """The groups, joined where a call and its result are in two groups, together with all groups between them."""
    owner = [i for i, group in enumerate(groups) for _ in group]
    pairs = pair([item.raw for group in groups for item in group])
    reach = list(range(len(groups)))
    for call, result in pairs.answers.items():
        first, last = sorted((owner[call[0]], owner[result[0]]))
        reach[first] = max(reach[first], last)
    joined: list[list[Item]] = []
    until = -1
    for i, group in enumerate(groups):
        if i <= until:
            joined[-1].extend(group)
        else:
            joined.append(list(group))
        until = max(until, reach[i])
    return joined


def has_open_call(group: Sequence[Item]) -> bool:
    """Whether a group of items contains a call, but not its result."""
    return bool(pair([item.raw for item in group]).waiting)


def newest_start(blocks: Sequence[Block], start: int, room: int, *, beside_kept: bool = False) -> int:
    """The index of the first of the newest blocks that fit into `room` tokens; the last block is always included. With
    `beside_kept`, blocks that must stay take no room."""
    end = len(blocks)
    for i in range(len(blocks) - 1, start - 1, -1):
        block = blocks[i]
        room -= 0 if beside_kept and block.stays else block.tokens
        if room < 0 and i < len(blocks) - 1:
            break
        end = i
    return end


def turns_start(blocks: Sequence[Block], turns: int, start: int, *, all_else: bool = False) -> int:
    """The index at which the newest `turns` turns begin; `start` if there are no more turns. With `all_else`, blocks
    before these turns have to leave even if there are no other turns: they are the answer to the task."""
    opening = [i for i in range(start, len(blocks)) if blocks[i].opens_turn]
    return opening[-turns] if len(opening) >= turns + (not all_else) else start


# -- curation --------------------------------------------------------------------------------------
#
# Curates the items of views, with their sizes.


class Counting(Protocol):
    """Counts tokens."""

    def message(self, message: Message) -> int:
        """Tokens of a message."""


class Curation:
    """The curator of the views of one conversation. It keeps sizes and what it knows about texts from view to view."""

    def __init__(self, rules: CurationRules | Rule, *, named: bool = True) -> None:
        self._curator = Curator(rules, named=named)
        self._sizes: dict[tuple[int, bool], tuple[Message, Counting, int]] = {}

    def begin(self, pinned: Collection[int] = (), also: Collection[int] = ()) -> None:
        """Begin a new view. Messages of `pinned` records stay unchanged; the outputs of the records `also` are curated
        even if the rule left them alone."""
        self._curator = self._curator.again(pinned, also)

    def item(self, item: Item, counting: Counting) -> Item:
        """The next message of the view, curated."""
        return self._curated(item, self._curator, counting)

    def see_ahead(self, messages: Iterable[Shown]) -> None:
        """Shorten the outputs of messages in the view before a decision needs it: what is known of them is kept."""
        for raw in messages:
            self._curator.see_ahead(raw)

    def items(
        self, items: Sequence[Item], counting: Counting, also: Collection[int] = (), *, whole_reads: bool = False
    ) -> list[Item]:
        """The messages of another view, as they are curated in it, with the outputs of the records `also`. With
        `whole_reads`, the content of files is shown even if the view shows it already."""
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


class CachePrices(Struct, frozen=True):
    """The prices of a token that a prompt cache reads or writes, relative to the price of an uncached input token.
    `write_long`: the price of a token that is written for longer; None if that is not offered."""

    read: float
    write: float
    write_long: float | None = None


class PendingSummary(Struct, frozen=True):
    """A summary that is being written ahead of need, in `target` tokens. It covers the records `first` to `last` except
    `kept`."""

    first: int
    last: int
    kept: tuple[int, ...]
    target: int


class SummaryRequest(Struct, frozen=True, eq=False):
    """A request for a summary of `messages`, oldest first, in at most `target` tokens.

    `previous` is the summary that it replaces, "" if there is none; `news` are the messages that `previous` does not
    cover. The messages in `beside` stay in the view and need not be summarised. `size` is the number of tokens that
    leave the view, 0 if unknown. With `unpaid`, no model is asked, because one just failed.
    """

    messages: Sequence[Shown]
    previous: str
    target: int
    news: Sequence[Shown]
    beside: Sequence[Shown] = ()
    size: int = 0
    unpaid: bool = False


class Summary(Struct, frozen=True):
    """A summary: its text, the summarizer that wrote it (`by`), the errors of those that failed before, and entries
    that the decision's `detail` is to keep."""

    text: str
    by: str
    failures: tuple[str, ...] = ()
    detail: Mapping[str, Any] = {}


class Ports(Struct, frozen=True):
    """Functions and data from outside that steps may use, all of it given by the caller.

    - `count`: tokens of a message. `count_text`: tokens of a text. `counter`: name and version of the counter.
    - `count_at_once`: tokens of a message with results of parallel calls; None if it is counted as any other.
    - `originals`: reads the recorded messages in a range of record numbers, newest first.
    - `summarise`: writes a summary.
    - `images_before`: how many images the log has before a record. `gap_tokens`: the tokens of the gap.
    - `measured`: returns items with the sizes that they have if they make up the whole view.
    - `decisions`: the decisions in force, by record number.
    - `curated`: returns items as they are curated if they make up the whole view. The outputs of the records in the
      second argument are curated even if the rule left them alone; with True as the third, files that were read again
      are shown again.
    - `orders`: the sentences of a user's message that forbid or require something.
    - `words`: the user's messages in a range of record numbers, as recorded.
    """

    count: Callable[[Message], int]
    count_text: Callable[[str], int]
    originals: Callable[[int, int], Iterable[Shown]]
    summarise: Callable[[SummaryRequest], Summary]
    images_before: Callable[[int], int]
    gap_tokens: Callable[[], int] = lambda: 0
    counter: str = ""
    measured: Callable[[Sequence[Item]], Sequence[Item]] = lambda items: items
    count_at_once: Callable[[Message], int] | None = None
    decisions: Mapping[int, Decision] = {}
    curated: Callable[[Sequence[Item], frozenset[int], bool], Sequence[Item]] = lambda items, also, whole: items
    orders: Callable[[Message], Sequence[str]] = lambda message: ()
    words: Callable[[int, int], Iterable[Shown]] = lambda first, last: ()


class CompactionInput(Struct, frozen=True):
    """A view that may have to be made smaller.

    - `fixed`: the tokens of tools and framing.
    - `marks`: the limit, trigger and goal of the budget; `marks_beside` computes them for a number of tokens that
      cannot be left out; `given` is the limit before the margin for bills above the count was subtracted.
    - `pinned`: numbers of the records that a user pinned. `number`: the record number that the next decision gets.
    - `gap`: first and last of the records between the blocks that were not read because no view could contain them:
      they have to leave.
    - `ahead`: a summary under way, which is used if the messages that it covers are still there.
    - `prices`: the prices of the model's prompt cache, None if they are not known.
    - `room`: the provider's limits on the number and size of media in one request.
    - `provided`: steps that the provider takes by itself; none of them is taken here while the view fits.
    - `tight`: what must stay does not fit even with giant outputs cut to the strategy's share of the limit.
    - `last`: nothing else is left to try, so a summary may leave that would otherwise be cut short.
    - `whole_reads`: files that were read again are counted in full.
    - `made`: the decisions that led to this situation, by the record numbers that they will get.
    - `promised`: the caller asked for the newest turns to stay, and the view fits.
    - `tried`: the last decision that was applied, to what, and the situation after it: most are looked at twice.
    """

    blocks: tuple[Block, ...]
    fixed: int
    marks: Thresholds
    marks_beside: Callable[[int], Thresholds]
    strategy: Strategy
    ports: Ports
    pinned: frozenset[int]
    number: int
    gap: tuple[int, int] | None = None
    ahead: PendingSummary | None = None
    prices: CachePrices | None = None
    tight: bool = False
    given: int = 0
    room: MediaLimits = MediaLimits()
    last: bool = False
    promised: bool = False
    whole_reads: bool = False
    provided: frozenset[str] = frozenset()
    made: Mapping[int, Decision] = {}
    tried: list[tuple[CompactionInput, Decision, CompactionInput]] = []

    @property
    def size(self) -> int:
        """The tokens of a request that shows all blocks and the messages of the gap."""
        return self.held + (self.ports.gap_tokens() if self.gap else 0)

    @property
    def held(self) -> int:
        """The tokens of a request that shows all blocks, without the messages of the gap."""
        return self.fixed + total(self.blocks)

    @property
    def outputs(self) -> frozenset[int]:
        """The records whose outputs decisions curate."""
        return outputs_of((*self.ports.decisions.values(), *self.made.values()))

    @property
    def fits(self) -> bool:
        """Whether `size` is within the limit."""
        return self.size <= self.marks.limit

    @property
    def system(self) -> int:
        """The tokens of system text, tools and framing."""
        return self.fixed + sum(block.tokens for block in self.blocks if block.stays == "system text")

    @property
    def unprotected(self) -> list[Block]:
        """The blocks that may leave, oldest first. The newest blocks, up to the strategy's protected share of the
        limit, are not among them."""
        removable: list[Block] = []
        newest = 0
        for block in reversed(self.blocks):
            newest += block.tokens
            if newest > self.strategy.protect * self.marks.limit and not block.stays:
                removable.append(block)
        return removable[::-1]

    @property
    def floor(self) -> dict[str, int]:
        """The tokens that cannot be left out, by reason."""
        reasons = ("system text", "the task", "pinned messages", "the open turn")
        sums = {"tools and framing": self.fixed, **dict.fromkeys(reasons, 0)}
        for block in self.blocks:
            if block.stays:
                sums[block.stays] += block.tokens
        return sums


def applied(situation: CompactionInput, decision: Decision) -> CompactionInput:
    """The situation after a decision."""
    if not (situation.tried and situation.tried[0][0] is situation and situation.tried[0][1] is decision):
        situation.tried[:] = [(situation, decision, _applied(situation, decision))]
    return situation.tried[0][2]


def _applied(situation: CompactionInput, decision: Decision) -> CompactionInput:
    n = situation.number
    effects = Effects.of({n: decision})
    hiding = effects.hidings[0] if effects.hidings else None
    items: list[Item] = []
    place, standing = stand_ins(n, decision)
    placed = [_counted(shown, shown, place, situation.ports) for shown in standing]
    for item in (item for block in situation.blocks for item in block.items):
        if placed and item.n >= place and not (item.is_summary and item.n == place):  # an earlier one at the same place
            items += placed
            placed = []
        if hiding is not None and _is_hidden(item, hiding):
            continue
        shown = effects.treat(item.decided, item.raw)
        if shown is item.decided:
            items.append(item)
        else:
            items.append(_counted(shown, item.raw, item.n, situation.ports))
    gap = situation.gap
    if gap and hiding is not None and hiding.first <= gap[0] and gap[1] <= hiding.last:
        gap = None
    after = msgspec.structs.replace(situation, number=n + 1, gap=gap, made={**situation.made, n: decision})
    curated = situation.ports.curated([*items, *placed], after.outputs, situation.whole_reads)
    blocks = tuple(blocks_of(situation.ports.measured(curated), situation.pinned, gap))
    return msgspec.structs.replace(after, blocks=blocks)


def _counted(shown: Shown, raw: Shown, n: int, ports: Ports) -> Item:
    tokens = ports.count(shown.message)
    return Item(shown, tokens, raw, n, tokens)


def _is_hidden(item: Item, hiding: Hiding) -> bool:
    if item.is_summary:
        return hiding.first <= item.n <= hiding.last and item.shown.records[0] not in hiding.standing
    return hiding.covers(item.n) and item.raw.message.role != "system"


def with_figures(situation: CompactionInput, decision: Decision) -> tuple[Decision, CompactionInput]:
    """The decision with its figures in `detail`, and the situation after it. The figures are the tokens `before` and
    `after`, the `tokens` of the replacement messages, and `changes_from`, the record from which on the request
    differs."""
    after = applied(situation, decision)
    figures = {"strategy": situation.strategy.name, "before": situation.size, "after": after.size}
    if "replacement" in decision.detail:
        figures |= {"tokens": _standing(after, situation.number), "counter": situation.ports.counter}
    detail = {**decision.detail, **figures, "changes_from": _changes_from(situation, after, decision)}
    finished = Decision(decision.action, decision.first, decision.last, decision.why, detail)
    return finished, after


def _standing(situation: CompactionInput, number: int) -> list[int]:
    """The tokens of each message by which decision `number` replaced older messages."""
    items = (item for block in situation.blocks for item in block.items)
    return [item.tokens for item in items if item.shown.records == (number,)]


def _changes_from(before: CompactionInput, after: CompactionInput, decision: Decision) -> int:
    """The record from which on the request differs."""
    left = [item for block in before.blocks for item in block.items]
    right = [item for block in after.blocks for item in block.items]
    differing = ([a.n, b.n] for a, b in zip(left, right, strict=False) if a.shown is not b.shown)
    differing_records = next(differing, [item.n for item in (*left[len(right) :], *right[len(left) :])][:1])
    gap = [before.gap[0]] if before.gap and after.gap is None else []
    return min([*differing_records, *gap], default=decision.first)


def shortening(action: str, key: str, entries: Sequence[list[Any]], reason: str) -> Decision | None:
    """The decision that shortens messages; None without `entries`. The entries, each of which begins with a record
    number, go into its `detail` under `key`."""
    records = [entry[0] for entry in entries]
    return Decision(action, min(records), max(records), reason, {key: [*entries]}) if records else None


def of_results(situation: CompactionInput, going: Iterable[Block]) -> str:
    """The note that the blocks that leave contain results which the strategy keeps; "" if they contain none."""
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
