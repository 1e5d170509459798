"""Repair whole views piece by piece, and measure them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from operator import attrgetter, is_

from msgspec import Struct
from msgspec.structs import replace

from .._platform.lazy import cached_property
from ..log.messages import Role, Tool, ToolCall, ToolResult, unchanged
from ..log.records import Binding
from ..models.abilities import reads_thinking
from ..providers.protocol import BlobReader
from ..tokens.counters import counter_for
from ..view.bound_reasoning import Bound, Prefixes, beginning, resumed, standing
from ..view.compaction.situation import Item
from ..view.repair.arrange import Fate
from ..view.repair.media_room import MediaTotals, room_for
from ..view.repair.repair import Closed, close, declare_tools, named_tools
from ..view.types import Edit, Shown
from .carried import found_tools
from .pieces import Conversation, Piece, RepairedPiece, repair_piece
from .size import Sizing, answers_at_once
from .translate import RequestPlan

_repaired_of = attrgetter("repaired")


class RepairedView(Struct, frozen=True, dict=True):
    """A whole view, repaired.

    `parts` are its repaired pieces, or a single piece for the whole view; `run` are the pieces between the first and
    the last (None if there is a single one). `closed` is the whole view with legal ends. `tools` are the tools that a
    request declares, `declared` the edits of these tools. `system`: the view has system text.

    `sizes` are the tokens of its messages, `around` the tokens of everything else in the request, and `fixed` the same
    without tools that were declared from calls. They are empty and 0 if sizes are not wanted.
    """

    parts: tuple[RepairedPiece, ...]
    run: RepairedRun | None
    closed: Closed
    tools: tuple[Tool, ...]
    declared: Sequence[Edit]
    sizes: Sequence[int]
    around: int
    fixed: int
    system: bool

    @cached_property
    def tokens(self) -> int:
        """The tokens of a request that shows the view."""
        return self.around + sum(self.sizes)


class RepairedRun:
    """Repaired pieces that another piece follows, and sums over them. Each piece is added once."""

    def __init__(self, plan: RequestPlan) -> None:
        self.plan = plan
        self.repaired: list[RepairedPiece] = []
        self.follows: Role | None = None  # the role of the piece behind the last one
        self.view: list[Shown] = []
        self.sizes: list[int] = []
        self.call_ids: set[str] = set()
        self.called: set[str] = set()
        self.found: set[str] = set()
        self.callers: list[RepairedPiece] = []
        self.media = MediaTotals()
        self.system = False
        self.has_word = False
        self.regular = True
        self.wanting = (0, 0)  # the index of the first piece that needs another, and its `needs`
        self.repeated = False
        self.early: dict[str, int] = {}  # results of this turn that came before their call: the index of their piece
        self.meeting: tuple[int, int] | None = None  # pieces that such a result and its call stand in

    def claimed(self, piece: RepairedPiece) -> int | None:
        """The index of the first piece with a result that a call in the next piece may claim; None if there is none."""
        return min((self.early[call_id] for call_id in piece.waiting if call_id in self.early), default=None)

    def begins(self, pieces: Sequence[Piece]) -> bool:
        """Whether the run is a prefix of `pieces` and its next piece has the same role as before."""
        if len(self.repaired) >= len(pieces) or not all(map(is_, self.repaired, map(_repaired_of, pieces))):
            return False
        return not self.repaired or self.follows == pieces[len(self.repaired)].role

    def add(self, piece: RepairedPiece, follows: Role) -> None:
        """Add the next piece; `follows` is the role of the piece after it."""
        # Not `piece.follows`: that is None for a piece that was repaired as the last one and serves in the middle too.
        self.follows = follows
        index = len(self.repaired)
        if not self.wanting[1]:
            self.wanting = index, piece.needs(first=not index)
        first = self.claimed(piece)
        if self.meeting is None and first is not None:
            self.meeting = first, index + 1
        if piece.opens_turn:
            self.early.clear()
        self.early.update(dict.fromkeys(piece.early, index))
        self.repaired.append(piece)
        self.view += piece.view
        self.sizes += piece.sizes
        self.media += piece.media
        self.system = self.system or _has_system(piece)
        self.has_word = self.has_word or piece.has_word
        self.regular = self.regular and piece.regular
        self.repeated = self.repeated or not self.call_ids.isdisjoint(piece.call_ids) or piece.repeated
        self.call_ids.update(piece.call_ids)
        self.found |= _found(piece, self.plan)
        if not piece.called <= self.called:
            self.called |= piece.called
            self.callers.append(piece)


class Repairs:
    """Repairs the views of a conversation for requests by one plan, and reuses unchanged pieces in the next request.
    With `sizing`, views are measured. `bindings` are the bindings of the answers' reasoning; without them, all
    reasoning is shown."""

    def __init__(
        self,
        plan: RequestPlan,
        blob: BlobReader,
        sizing: Sizing | None = None,
        bindings: Mapping[int, Bound] | None = None,
    ) -> None:
        self.plan = plan
        self.blob = blob
        self.sizing = sizing
        self.bindings = bindings if plan.rules.reasoning_bound else None
        self._prefixes = Prefixes()
        self._unbound: frozenset[int] = frozenset()
        self._run: RepairedRun | None = None
        self._opening: tuple[Sequence[Item], RepairedPiece] | None = None
        self._tools: tuple[Sequence[Shown], tuple[Tool, ...], list[Edit]] | None = None
        self._around: dict[tuple[bool, tuple[tuple[str, str, bool], ...]], int] = {}
        self._last: RepairedView | None = None

    def view(self, conversation: Conversation, fate: Fate) -> RepairedView:
        """The view of a conversation, repaired. Some pieces of the conversation may be joined for this. `fate` tells
        what is known about calls without a result. Reasoning is left out if the content before it is not the content
        that it is bound to."""
        if self.bindings is None:
            return self._view(conversation, fate)
        unbound: frozenset[int] = frozenset()  # digests do not depend on reasoning; if one did, this ends the loop
        while True:
            self._forget_others(conversation.pieces)
            repaired = self._view(conversation, fate)
            thinking = frozenset().union(*(part.thinking for part in repaired.parts))
            unbound |= thinking.difference(self._standing(repaired)[0])
            if unbound == thinking & self._unbound:
                return repaired
            self._unbound = unbound

    def _forget_others(self, pieces: Sequence[Piece]) -> None:
        """Discard the results of pieces that show reasoning that now has to be left out, or leave out reasoning that
        may now be shown."""
        for piece in pieces:
            repaired = piece.repaired
            if repaired is not None and repaired.thinking and repaired.left_out != repaired.thinking & self._unbound:
                piece.forget()

    def _standing(self, made: RepairedView) -> tuple[list[int], bytes]:
        """The records whose reasoning a view may show, oldest first, and the digest of the whole view."""
        thinking = frozenset().union(*(part.thinking for part in made.parts))
        view, bindings = made.closed.view, self.bindings or {}
        digests = self._prefixes.of(beginning(made.tools), view)
        also = resumed(view, digests, bindings)
        return standing(view, digests, bindings, thinking, self._reads, also), digests[-1]

    def _reads(self, model: str) -> bool:
        """Whether the target's model accepts reasoning made by `model` (empty: by the target's model)."""
        target = self.plan.target
        return not model or reads_thinking(target.model, model, target.abilities)

    def binding(self, made: RepairedView) -> Binding | None:
        """The binding of reasoning in an answer to a request of the view; None if the model does not bind reasoning."""
        if not self.plan.rules.reasoning_bound:
            return None
        standing, digest = self._standing(made)
        return Binding(
            digest.hex(), *((standing[-1], standing[0]) if standing else (0, 0)), model=self.plan.target.model
        )

    def _view(self, conversation: Conversation, fate: Fate) -> RepairedView:
        pieces = conversation.pieces
        if pieces:
            opening = self._repaired_head(conversation.head, pieces[0].role, fate)
            run, tail = self._without_strays(pieces, fate)
            if _stand_apart(opening, run, tail, self.plan):
                return self._apart(opening, run, tail)
        whole = repair_piece(
            conversation.items, self.plan, self.blob, fate, self.sizing, leading=True, unbound=self._unbound
        )
        return self._closed((whole,), None, whole.view, whole.sizes)

    def _apart(self, opening: RepairedPiece, run: RepairedRun, tail: RepairedPiece) -> RepairedView:
        last = self._last
        if last is not None and last.run is run and len(last.parts) == len(run.repaired) + 2:
            if last.parts[0] is opening and last.parts[-1] is tail:
                return last
        view = [*opening.view, *run.view, *tail.view]
        sizes = [*opening.sizes, *run.sizes, *tail.sizes]
        self._last = self._closed((opening, *run.repaired, tail), run, view, sizes)
        return self._last

    def _closed(
        self, parts: tuple[RepairedPiece, ...], run: RepairedRun | None, view: Sequence[Shown], sizes: Sequence[int]
    ) -> RepairedView:
        ends = parts if run is None else (parts[0], parts[-1])
        has_word = (run is not None and run.has_word) or any(part.has_word for part in ends)
        closed = close(view, self.plan.rules, has_word=has_word)
        tools, declared = self._declared(parts if run is None else (parts[0], *run.callers, parts[-1]))
        system = (run is not None and run.system) or any(map(_has_system, ends))
        found_names = set[str]().union(() if run is None else run.found, *(_found(part, self.plan) for part in ends))
        around = self._tokens_around(tools, found_names, system=system)
        fixed = around if self.plan.local.tools else self._tokens_around((), found_names, system=system)
        if self.sizing is not None:
            sizes = self._sizes(view, closed, sizes, self.sizing)
        return RepairedView(parts, run, closed, tools, declared, sizes, around, fixed, system)

    def _sizes(self, view: Sequence[Shown], closed: Closed, sizes: Sequence[int], sizing: Sizing) -> Sequence[int]:
        """The sizes of a view with legal ends, from the sizes of the view before its ends were changed."""
        closed_sizes, rules = [*sizes[: closed.kept]], self.plan.rules
        if not closed.kept:  # some messages were joined, the others are the same
            known = {id(shown): size for shown, size in zip(view, sizes, strict=True)}
            return [
                known[id(shown)] if id(shown) in known else sizing.repaired([shown], (), rules)[0]
                for shown in closed.view
            ]
        if closed.opening >= 0:
            closed_sizes[closed.opening : closed.opening] = sizing.repaired([closed.view[closed.opening]], (), rules)
        return [*closed_sizes, *sizing.repaired(closed.view[len(closed_sizes) :], (), rules)]

    def _tokens_around(self, tools: Sequence[Tool], found: Collection[str], *, system: bool) -> int:
        """The tokens of a request outside its messages, counted once for the same tools."""
        key = system, tuple((tool.name, tool.kind, tool.name in found) for tool in tools)
        if key not in self._around and self.sizing is not None:
            self._around[key] = self.sizing.around(self.plan, tools, system=system, found=found)
        return self._around.get(key, 0)

    def tokens(self, view: RepairedView) -> int:
        """The tokens of a request that shows the view; measured now if they were not measured before."""
        if self.sizing is not None:
            return view.tokens
        target = self.plan.target
        sizing = Sizing(counter_for(target.provider, target.model), self.blob)
        found_names = found_tools(shown.message for shown in view.closed.view)
        around = sizing.around(self.plan, view.tools, system=view.system, found=found_names)
        return around + sum(sizing.repaired(view.closed.view, (), self.plan.rules))

    def measured(self, items: Sequence[Item], view: RepairedView) -> list[Item]:
        """The messages of a view, each with the tokens that it adds to a request.

        Content that repair added counts with the message that made it necessary. A tool that was declared from calls
        counts with the newest of these calls, as it is declared while that call is shown. Content that no message made
        necessary counts with the last message.
        """
        place = {item.shown.records[0]: i for i, item in reversed([*enumerate(items)])}
        sizes, at_once = [0] * len(items), set[int]()
        last_call: dict[str, int] = {}
        for shown, tokens, several in zip(view.closed.view, view.sizes, answers_at_once(view.closed.view), strict=True):
            places = [place[n] for n in shown.records if n in place] or [len(items) - 1] * bool(items)
            for i, share in zip(places, self._shares([items[i] for i in places], shown, tokens), strict=True):
                sizes[i] += share
            at_once.update(places if several else ())
            last_call.update((part.name, places[0]) for part in shown.message.parts if isinstance(part, ToolCall))
        for i, tokens in self._declarations(view, last_call).items():
            sizes[i] += tokens
        return [
            replace(item, size=size, at_once=i in at_once)
            for i, (item, size) in enumerate(zip(items, sizes, strict=True))
        ]

    def _shares(self, items: Sequence[Item], shown: Shown, tokens: int) -> list[int]:
        """The share of each item in the tokens of a message that was joined from several items: the item's own size (or
        that of the synthetic results that its calls made necessary), plus an equal part of the rest."""
        if len(items) < 2 or self.sizing is None:
            return [tokens] * len(items)
        message = shown.message
        stand_ins = tuple(part for part in message.parts if isinstance(part, ToolResult) and part.synthetic)
        shares: list[int] = []
        for item in items:
            if item.shown.message.role == message.role:
                shares.append(item.tokens)
            else:
                shares.append(self.sizing.message(replace(message, parts=stand_ins)) if stand_ins else 0)
                stand_ins = ()
        rest, each = divmod(tokens - sum(shares), len(items))[::-1]
        return [share + each + (rest if i == 0 else 0) for i, share in enumerate(shares)]

    def _declarations(self, view: RepairedView, last_call: Mapping[str, int]) -> dict[int, int]:
        """The tokens of tools declared from calls, by the index of the last message that calls each tool."""
        tokens_by_place: dict[int, int] = {}
        if self.plan.local.tools or not view.tools:
            return tokens_by_place
        newer, names, system = view.fixed, set[str](), view.system
        for tool in sorted(view.tools, key=lambda tool: last_call[tool.name], reverse=True):
            names.add(tool.name)
            declared = [other for other in view.tools if other.name in names]
            tokens = self._tokens_around(declared, (), system=system)
            tokens_by_place[last_call[tool.name]] = tokens_by_place.get(last_call[tool.name], 0) + tokens - newer
            newer = tokens
        return tokens_by_place

    def _repaired_head(self, head: Sequence[Item], follows: Role, fate: Fate) -> RepairedPiece:
        """The head, repaired. The result of the last request is reused if the head is unchanged."""
        remembered = self._opening
        if remembered is None or remembered[1].follows != follows or not unchanged(remembered[0], head):
            repaired = repair_piece(head, self.plan, self.blob, fate, self.sizing, leading=True, follows=follows)
            remembered = self._opening = list(head), repaired
        return remembered[1]

    def _repaired(self, piece: Piece, fate: Fate, follows: Role | None) -> RepairedPiece:
        """A piece, repaired before a message of the role `follows`. Its previous result is reused if still right."""
        if piece.repaired is None or not piece.repaired.serves(piece.items, follows, self.plan):
            piece.forget()  # first, as Ctrl-C may come before the next line ends
            piece.repaired = repair_piece(
                piece.items, self.plan, self.blob, fate, self.sizing, follows=follows, unbound=self._unbound
            )
        return piece.repaired

    def _without_strays(self, pieces: list[Piece], fate: Fate) -> tuple[RepairedRun, RepairedPiece]:
        """All pieces but the last, and the last, repaired. A piece that has results without a call is joined with the
        pieces before it, twice as many each time. Only if none of them has the call may a later piece claim the result.
        A piece whose end was left out is joined with the answer after it."""
        reach = 1
        while True:
            run = self._run_of(pieces, fate)
            tail = self._repaired(pieces[-1], fate, None)
            place, needs = run.wanting if run.wanting[1] else (len(pieces) - 1, tail.needs(first=len(pieces) == 1))
            claimed = run.claimed(tail)
            if needs:
                first, end = (place, place + 2) if needs > 0 else (max(0, place - reach), place + 1)
                reach *= 2
            elif run.meeting is not None:
                first, end = run.meeting
            elif claimed is not None:
                first, end = claimed, len(pieces)
            else:
                return run, tail
            pieces[first:end] = [Piece([item for piece in pieces[first:end] for item in piece.items])]

    def _run_of(self, pieces: Sequence[Piece], fate: Fate) -> RepairedRun:
        """All pieces but the last, repaired. The run of the previous request is reused if its pieces are unchanged."""
        run, self._run = self._run, None  # so that none is reused if Ctrl-C interrupts its change
        if run is None or not run.begins(pieces):
            run = RepairedRun(self.plan)
        for i in range(len(run.repaired), len(pieces) - 1):
            follows = pieces[i + 1].role
            run.add(self._repaired(pieces[i], fate, follows), follows)
        self._run = run
        return run

    def _declared(self, parts: Iterable[RepairedPiece]) -> tuple[tuple[Tool, ...], list[Edit]]:
        """The tools of a request, from the messages of each piece that calls a tool for the first time. The tools of
        the last request are reused if these messages are unchanged."""
        seen: set[str] = set()
        callers: list[Shown] = []
        for part in parts:
            if not part.called <= seen:
                seen |= part.called
                callers += part.callers
        remembered = self._tools
        if remembered is None or not unchanged(remembered[0], callers):
            remembered = self._tools = callers, *tools_for(self.plan, callers)
        return remembered[1], remembered[2]


def tools_for(plan: RequestPlan, view: Sequence[Shown]) -> tuple[tuple[Tool, ...], list[Edit]]:
    """The tools of a request that shows a repaired view, and the edits of these tools."""
    if plan.complete or plan.rules.tools_required:
        return declare_tools(view, plan.local.tools, plan.rules)
    return named_tools(plan.local.tools, plan.rules)


def _stand_apart(opening: RepairedPiece, run: RepairedRun, tail: RepairedPiece, plan: RequestPlan) -> bool:
    """Whether the repaired pieces, put together, equal the repaired whole."""
    if not (opening.regular and run.regular and tail.regular):
        return False
    media = opening.media + run.media + tail.media
    if not room_for(media, plan.rules).holds(media):
        return False
    if plan.rules.call_id_unique == "turn":
        return True
    ids = (run.call_ids, opening.call_ids, tail.call_ids)
    apart = all(a.isdisjoint(b) for a, b in combinations(ids, 2))
    return apart and not (run.repeated or opening.repeated or tail.repeated)


def _found(piece: RepairedPiece, plan: RequestPlan) -> set[str]:
    """The deferred tools that searches in a piece found, where that changes what a request is billed."""
    return found_tools(shown.message for shown in piece.view) if plan.provider.deferred == "tool" else set()


def _has_system(piece: RepairedPiece) -> bool:
    return any(shown.message.role == "system" for shown in piece.view)
