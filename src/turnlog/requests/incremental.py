"""Requests put together from pieces that are kept.

A conversation is cut into pieces: a user's word, or a run of assistant messages with their results. What most become
in a request depends on nothing outside them; they are repaired, rendered and encoded once. `assemble` gives the same
request as `request.follow` does on the whole view, and falls back to that if in doubt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, repeat
from operator import attrgetter, is_
from typing import Any

import msgspec
from msgspec import Struct

from ..log.messages import Role, Tool, ToolCall, unchanged
from ..log.records import Configuration
from ..providers.protocol import BlobReader
from ..view.repair.arrange import Fate
from ..view.repair.media_room import Held, held, longest_side, media_of, room_for
from ..view.repair.repair import close, declare_tools, mend
from ..view.types import Edit, Loss, Shown
from .build import Request, as_known, as_text, follow
from .fragments import around, encoded, is_within, joined, moved
from .translate import Plan

_plan_of = attrgetter("plan")


class _Mended(Struct, frozen=True, gc=False):
    """A stretch of conversation, repaired by itself. `regular` says that this was safe, `needs` that it was not
    without what stands ahead of it (-1), if anything does, or behind it (1)."""

    view: tuple[Shown, ...]
    edits: tuple[Edit, ...]
    losses: tuple[Loss, ...]
    media: Held
    call_ids: frozenset[str]
    repeated: bool
    callers: tuple[Shown, ...]
    called: frozenset[str]
    regular: bool
    needs: int


class _Wire(Struct, frozen=True, gc=False):
    """The wire messages of a stretch, their JSON without brackets, and what had to change in them."""

    messages: list[Any]
    encoded: bytes
    edits: tuple[Edit, ...]
    losses: tuple[Loss, ...]


class _Front(Struct, frozen=True):
    """The request without the conversation behind its head; `before` and `behind` are its JSON around the messages."""

    body: dict[str, Any]
    before: bytes
    behind: bytes
    wire: _Wire
    edits: tuple[Edit, ...]
    losses: tuple[Loss, ...]


class _Last(Struct, frozen=True, eq=False):
    """What a piece was made into when nothing followed it yet, and of how many items."""

    plan: Plan
    length: int
    mended: _Mended
    wire: _Wire

    def serves(self, items: Sequence[Shown], follows: Role, plan: Plan) -> bool:
        """Whether it is the same now that something follows. Only system text and a provider's own calls are mended
        with regard to that, and answers between which nothing would be left."""
        if len(items) != self.length or plan.rules.own_calls or any(s.message.role == "system" for s in items):
            return False
        return _ends_alike(items, self.mended.view, follows)


class Piece(Struct):
    """A stretch of conversation, and what it was last made into.

    `start` is the number of its first record. `plan`, `mended` and `wire` are kept from the last request
    in which something followed it.
    """

    items: list[Shown]
    start: int
    plan: Plan | None = None
    mended: _Mended | None = None
    wire: _Wire | None = None
    last: _Last | None = None


def settled(pieces: Sequence[Piece], kept: Mapping[int, tuple[Piece, Piece]]) -> Iterator[Piece]:
    """The pieces, with the kept one in the place of each that is the same, and new ones in a row joined: they are made
    at once, which is faster as one piece. The last stays by itself, as it may grow."""
    new: Piece | None = None
    for i, piece in enumerate(pieces):
        before = kept.get(piece.start)
        last = i == len(pieces) - 1
        if before and not last and before[0].items == piece.items and _begin_alike(before[1], pieces[i + 1]):
            new = None
            yield before[0]
        elif new is None or last:
            new = piece
            yield piece
        else:
            new.items += piece.items


def _begin_alike(left: Piece, right: Piece) -> bool:
    """Whether the same role speaks first: what stands before a piece is repaired with regard to that."""
    return left.items[0].message.role == right.items[0].message.role


def assemble(head: Sequence[Shown], pieces: list[Piece], plan: Plan, blob: BlobReader, fate: Fate) -> Request:
    """The request that shows `head` (what always stays) and then `pieces`, of which it may join some."""
    made = _assembled(head, pieces, plan, blob, fate)
    if made is None:
        return follow(plan, [*head, *(shown for piece in pieces for shown in piece.items)], blob, fate)
    return made


def _assembled(head: Sequence[Shown], pieces: list[Piece], plan: Plan, blob: BlobReader, fate: Fate) -> Request | None:
    if not pieces or plan.local.form is not None:
        return None
    opening = _opening(head, pieces[0].items[0].message.role, plan, blob, fate)
    run, tail = _without_strays(pieces, plan, blob, fate)
    if not _are_regular(opening, run, tail, plan):
        return None
    whole = [*opening.view, *run.view, *tail.view]
    closed = close(whole, plan.rules)
    if closed.thinking_off or len(closed.view) < len(whole):
        return None
    begin = len(opening.view)
    begin += closed.view[begin] is not whole[begin]  # a user's word was put ahead of the first answer
    end = begin + len(run.view)
    if run.view and closed.view[end - 1] is not run.view[-1]:
        return None
    tools, declared = _declared((opening, *run.callers, tail), plan)
    front = _front(closed.view[:begin], tools, plan, blob)
    back = _spell(closed.view[end:], plan, blob)
    if unchanged(closed.view[end:], tail.view):
        pieces[-1].last = _Last(plan, len(pieces[-1].items), tail, back)
    if run.counts or _counts(plan, (front.wire, back)):
        return None
    key = plan.provider.conversation
    parts = (opening, *run.mended, tail)
    wires = (front.wire, *run.wires, back)
    return Request(
        target=plan.target,
        body=lambda: {**front.body, key: [message for wire in wires for message in wire.messages]},
        edits=lambda: (
            *(edit for part in parts for edit in part.edits),
            *closed.edits,
            *declared,
            *front.edits,
            *_numbered(wires, key),
        ),
        losses=lambda: (
            *plan.losses,
            *(loss for part in parts for loss in part.losses),
            *front.losses,
            *(loss for wire in wires for loss in wire.losses),
        ),
        view=closed.view,
        fragments=(front.before, *joined(front.wire.encoded, run.encoded, back.encoded), front.behind),
    )


def _without_strays(pieces: list[Piece], plan: Plan, blob: BlobReader, fate: Fate) -> tuple[_Run, _Mended]:
    """All pieces but the last, and the last. One with results of no call in it is joined with what stands ahead of it,
    twice as much each time; one of whose end nothing is left with the answer behind it."""
    reach = 1
    while True:
        run = _run(pieces, plan, blob, fate)
        tail = _mend(pieces[-1].items, plan, blob, fate, leading=False, follows=None)
        at, needs = run.wanting if run.wanting[1] else (len(pieces) - 1, tail.needs)
        if not needs or (at == 0 and needs < 0):  # nothing stands ahead of the first
            return run, tail
        first, end = (at, at + 2) if needs > 0 else (max(0, at - reach), at + 1)
        pieces[first:end] = [Piece([one for piece in pieces[first:end] for one in piece.items], pieces[first].start)]
        reach *= 2


class _Run:
    """Pieces that something follows, and what they come to together: each is added once."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.mended: list[_Mended] = []
        self.wires: list[_Wire] = []
        self.encoded: list[bytes] = []
        self.view: list[Shown] = []
        self.call_ids: set[str] = set()
        self.called: set[str] = set()
        self.callers: list[_Mended] = []
        self.media = Held()
        self.regular = True
        self.wanting = (0, 0)  # the first piece that needs another, and which
        self.repeated = False
        self.counts = False

    def add(self, piece: Piece, mended: _Mended, wire: _Wire, plan: Plan) -> None:
        """One more."""
        if not self.wanting[1] and (mended.needs > 0 or self.pieces):
            self.wanting = len(self.pieces), mended.needs
        self.pieces.append(piece)
        self.mended.append(mended)
        self.wires.append(wire)
        if wire.encoded:
            self.encoded += (b",", wire.encoded)
        self.view += mended.view
        self.media += mended.media
        self.regular = self.regular and mended.regular
        self.repeated = self.repeated or not self.call_ids.isdisjoint(mended.call_ids) or mended.repeated
        self.call_ids.update(mended.call_ids)
        self.counts = self.counts or _counts(plan, (wire,))
        if not mended.called <= self.called:
            self.called |= mended.called
            self.callers.append(mended)


def _run(pieces: Sequence[Piece], plan: Plan, blob: BlobReader, fate: Fate) -> _Run:
    """All pieces but the last; what was made of them for the request before is kept."""
    run: _Run | None = plan.kept.pop("run", None)  # none is kept of which Ctrl-C lets a part be added
    if run is None or not _continues(run, pieces, plan):
        run = _Run()
    for i in range(len(run.pieces), len(pieces) - 1):
        mended, wire = _kept(pieces[i], pieces[i + 1], plan, blob, fate)
        run.add(pieces[i], mended, wire, plan)
    plan.kept["run"] = run
    return run


def _continues(run: _Run, pieces: Sequence[Piece], plan: Plan) -> bool:
    if len(run.pieces) >= len(pieces) or not all(map(is_, run.pieces, pieces)):
        return False
    return all(map(is_, map(_plan_of, run.pieces), repeat(plan)))


def _opening(head: Sequence[Shown], follows: Role, plan: Plan, blob: BlobReader, fate: Fate) -> _Mended:
    """The head, mended; the same as for the last request as long as it is the same head."""
    kept: tuple[Sequence[Shown], Role, _Mended] | None = plan.kept.get("opening")
    if kept is None or kept[1] != follows or not unchanged(kept[0], head):
        kept = (list(head), follows, _mend(head, plan, blob, fate, leading=True, follows=follows))
        plan.kept["opening"] = kept
    return kept[2]


def _front(view: Sequence[Shown], tools: tuple[Tool, ...], plan: Plan, blob: BlobReader) -> _Front:
    """Everything of a request but the conversation behind its head; kept while that stays the same."""
    kept: tuple[Sequence[Shown], tuple[Tool, ...], _Front] | None = plan.kept.get("front")
    if kept is None or kept[1] != tools or not unchanged(kept[0], view):
        local = msgspec.structs.replace(plan.local, tools=tools)
        rendered = plan.provider.render(view, local, plan.target, blob)
        top = plan.provider.sanitize(rendered.body, plan.target)
        request, replaced = as_text(top.body)
        messages = request.get(plan.provider.conversation, [])
        before, behind = around(request, plan.provider.conversation)
        front = _Front(
            body=request,
            before=before,
            behind=behind,
            wire=_Wire(messages=messages, encoded=encoded(messages), edits=(), losses=()),
            edits=(*rendered.edits, *top.edits, *replaced),
            losses=(*rendered.losses, *top.losses),
        )
        kept = plan.kept["front"] = (list(view), tools, front)
    return kept[2]


def _declared(parts: Iterable[_Mended], plan: Plan) -> tuple[tuple[Tool, ...], list[Edit]]:
    """The tools of a request, from the messages that call one which none before them called; the same as for the last
    request as long as those are the same."""
    seen: set[str] = set()
    callers: list[Shown] = []
    for part in parts:
        if not part.called <= seen:
            seen |= part.called
            callers += part.callers
    kept: tuple[list[Shown], tuple[Tool, ...], list[Edit]] | None = plan.kept.get("declared")
    if kept is None or not unchanged(kept[0], callers):
        kept = plan.kept["declared"] = (callers, *declare_tools(callers, plan.local.tools, plan.rules))
    return kept[1], kept[2]


def _kept(piece: Piece, behind: Piece, plan: Plan, blob: BlobReader, fate: Fate) -> tuple[_Mended, _Wire]:
    """A piece that something follows: made once by each plan, if it can be when it was still the last."""
    if piece.mended is None or piece.wire is None or piece.plan is not plan:
        role = behind.items[0].message.role
        last, piece.last = piece.last, None
        if last is not None and last.plan is plan and last.serves(piece.items, role, plan):
            piece.mended, piece.wire, piece.plan = last.mended, last.wire, plan
            return last.mended, last.wire
        piece.mended = _mend(piece.items, plan, blob, fate, leading=False, follows=role)
        piece.wire = _spell(piece.mended.view, plan, blob)
        piece.plan = plan
    return piece.mended, piece.wire


def _mend(
    items: Sequence[Shown], plan: Plan, blob: BlobReader, fate: Fate, *, leading: bool, follows: Role | None
) -> _Mended:
    lost: list[Loss] = []
    known = as_known(items, plan.provider, blob, lost)
    mended = mend(known, plan.rules, fate, leading=leading, follows=follows)
    same_start = leading or _begins_alike(known, mended.view, has_strays=mended.strays)
    # Answers that nothing parts any more, as what stood between them was left out, are repaired together.
    same_end = _ends_alike(items, mended.view, follows)
    callers = tuple(s for s in mended.view if any(isinstance(part, ToolCall) for part in s.message.parts))
    calls = [part for s in callers for part in s.message.parts if isinstance(part, ToolCall)]
    return _Mended(
        view=mended.view,
        edits=mended.edits,
        losses=(*lost, *mended.losses),
        media=held(media_of(mended.view), plan.rules, lambda media: longest_side(media, blob)),
        call_ids=frozenset(call.id for call in calls),
        repeated=len({call.id for call in calls}) < len(calls),
        callers=callers,
        called=frozenset(call.name for call in calls),
        regular=same_start and same_end,
        needs=-mended.strays if same_end else 1,
    )


def _begins_alike(items: Sequence[Shown], view: Sequence[Shown], *, has_strays: bool) -> bool:
    """Whether what stands ahead could rely on the role that the items begin with. The first may be gone if it was a
    stray, and then system text that stood behind it leads the request."""
    alike = bool(items and view) and items[0].message.role == view[0].message.role
    return alike and (not has_strays or set(items[0].records) <= set(view[0].records))


def _ends_alike(items: Sequence[Shown], view: Sequence[Shown], follows: Role | None) -> bool:
    """Whether what stands before an answer is still there, so that the answer is not joined to one before."""
    if follows != "assistant" or not items:
        return True
    return bool(view) and set(items[-1].records) <= set(view[-1].records)


def _are_regular(opening: _Mended, run: _Run, tail: _Mended, plan: Plan) -> bool:
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


def _spell(view: Sequence[Shown], plan: Plan, blob: BlobReader) -> _Wire:
    """The wire messages of a view; what concerns the request as a whole is the front's to report."""
    key = plan.provider.conversation
    bare: Configuration | None = plan.kept.get("bare")
    if bare is None:
        bare = plan.kept["bare"] = msgspec.structs.replace(plan.local, tools=())
    rendered = plan.provider.render(view, bare, plan.target, blob)
    sanitized = plan.provider.sanitize(rendered.body, plan.target)
    messages = sanitized.body.get(key, [])
    replaced: tuple[Edit, ...] = ()
    try:
        json = encoded(messages)
    except UnicodeEncodeError:
        messages, replaced = as_text(messages)
        json = encoded(messages)
    return _Wire(
        messages=messages,
        encoded=json,
        edits=(*(edit for edit in (*rendered.edits, *sanitized.edits) if is_within(edit, key)), *replaced),
        losses=tuple(loss for loss in (*rendered.losses, *sanitized.losses) if loss.records),
    )


def _counts(plan: Plan, wires: Iterable[_Wire]) -> bool:
    """Whether there is something that only the whole request can be checked for."""
    key = plan.provider.counted_key.encode()
    return bool(key) and any(key in wire.encoded for wire in wires)


def _numbered(wires: Sequence[_Wire], key: str) -> list[Edit]:
    """The edits of wire messages, their paths counted over the whole conversation."""
    edits: list[Edit] = []
    before = 0
    for wire in wires:
        for edit in wire.edits:
            edits.append(moved(edit, key, before) if is_within(edit, key) else edit)
        before += len(wire.messages)
    return edits
