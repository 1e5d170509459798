"""From a view to a request, for any provider: repair, render, sanitize, join.

A view comes in pieces (see `pieces`). Where what one of them becomes depends on another (a late result, an id that
comes twice, cache marks that are counted over the whole), all of them are built as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import combinations
from operator import attrgetter, is_
from typing import Any

import msgspec
from msgspec import Struct

from ..log.messages import Role, Tool, unchanged
from ..providers.protocol import BlobReader
from ..view.repair.arrange import Fate
from ..view.repair.media_room import Held, room_for
from ..view.repair.repair import Repaired, close, declare_tools, named_tools
from ..view.types import Edit, Loss, Shown
from .pieces import (
    Piece,
    RenderedPiece,
    RepairedPiece,
    encodable,
    is_within,
    moved,
    render_piece,
    repair_piece,
    without_infinite,
)
from .prompt_cache import MarkPlaces, marked
from .request import Request
from .translate import Plan

_repaired_of = attrgetter("repaired")


def build(plan: Plan, view: Sequence[Shown], blob: BlobReader, fate: Fate | None = None) -> Request:
    """The request for a view by a plan: valid for the plan's target, whatever the view holds. `fate` is what the log
    knows of calls without a result."""
    return Builder(plan, blob).request(view, [], fate or {})


class Builder:
    """Builds the requests of a conversation by one plan, and keeps of each what the next one can use."""

    def __init__(self, plan: Plan, blob: BlobReader) -> None:
        self.plan = plan
        self.blob = blob
        self._places = MarkPlaces(plan, blob)
        self._run: _Run | None = None
        self._opening: tuple[Sequence[Shown], RepairedPiece] | None = None
        self._frame: tuple[Sequence[Shown], tuple[tuple[Tool, ...], bool], _Frame] | None = None
        self._tools: tuple[Sequence[Shown], tuple[Tool, ...], list[Edit]] | None = None

    def request(self, head: Sequence[Shown], pieces: list[Piece], fate: Fate) -> Request:
        """The request that shows `head` (what always stays) and then `pieces`, of which it may join some."""
        repaired = self._repaired(head, pieces, fate)
        tools, declared = self._declared(repaired)
        rendered = self._rendered_apart(repaired, pieces, tools) or _Rendered(self._framed(repaired.closed, tools))
        return self._joined(repaired, declared, rendered)

    def marked(self, made: Request, tokens: int) -> Request:
        """The request of so many tokens with prompt-cache marks, where its provider wants them."""
        return marked(made, self.plan, tokens, self._places)

    # -- repair --------------------------------------------------------------------------------------

    def _repaired(self, head: Sequence[Shown], pieces: list[Piece], fate: Fate) -> _RepairedView:
        if pieces:
            opening = self._repaired_head(head, pieces[0].items[0].message.role, fate)
            run, tail = self._without_strays(pieces, fate)
            if _stand_apart(opening, run, tail, self.plan):
                closed = close([*opening.view, *run.view, *tail.view], self.plan.rules)
                return _RepairedView((opening, *run.repaired, tail), closed, run)
        items = [*head, *(shown for piece in pieces for shown in piece.items)]
        whole = repair_piece(items, self.plan, self.blob, fate, leading=True, follows=None)
        return _RepairedView((whole,), close(whole.view, self.plan.rules))

    def _repaired_head(self, head: Sequence[Shown], follows: Role, fate: Fate) -> RepairedPiece:
        """The head repaired: as it was for the last request, as long as it is the same head."""
        now = self._opening
        if now is None or now[1].follows != follows or not unchanged(now[0], head):
            made = repair_piece(head, self.plan, self.blob, fate, leading=True, follows=follows)
            now = self._opening = list(head), made
        return now[1]

    def _without_strays(self, pieces: list[Piece], fate: Fate) -> tuple[_Run, RepairedPiece]:
        """All pieces but the last, and the last, repaired. One with results of no call in it is joined with what stands
        ahead of it, twice as much each time; one of whose end nothing is left with the answer behind it."""
        reach = 1
        while True:
            run = self._run_of(pieces, fate)
            tail = pieces[-1].repair(self.plan, self.blob, fate, None)
            at, needs = run.wanting if run.wanting[1] else (len(pieces) - 1, tail.needs)
            if not needs or (at == 0 and needs < 0):  # nothing stands ahead of the first
                return run, tail
            first, end = (at, at + 2) if needs > 0 else (max(0, at - reach), at + 1)
            pieces[first:end] = [
                Piece([one for piece in pieces[first:end] for one in piece.items], pieces[first].start)
            ]
            reach *= 2

    def _run_of(self, pieces: Sequence[Piece], fate: Fate) -> _Run:
        """All pieces but the last; what was made of them for the request before is kept."""
        run, self._run = self._run, None  # none is kept of which Ctrl-C lets a part be added
        if run is None or not run.begins(pieces):
            run = _Run(self.plan)
        for i in range(len(run.repaired), len(pieces) - 1):
            run.add(pieces[i].repair(self.plan, self.blob, fate, pieces[i + 1].items[0].message.role))
        self._run = run
        return run

    def _declared(self, repaired: _RepairedView) -> tuple[tuple[Tool, ...], list[Edit]]:
        """The tools of a request, from the messages that call one which none before them called; the same as for the
        last request as long as those are the same."""
        parts, run = repaired.parts, repaired.run
        seen: set[str] = set()
        callers: list[Shown] = []
        for part in parts if run is None else (parts[0], *run.callers, parts[-1]):
            if not part.called <= seen:
                seen |= part.called
                callers += part.callers
        now = self._tools
        if now is None or not unchanged(now[0], callers):
            now = self._tools = callers, *tools_for(self.plan, callers)
        return now[1], now[2]

    # -- render and sanitize -------------------------------------------------------------------------

    def _rendered_apart(
        self, repaired: _RepairedView, pieces: list[Piece], tools: tuple[Tool, ...]
    ) -> _Rendered | None:
        """The frame and the pieces; None where the request can be rendered only as a whole."""
        plan, closed, run = self.plan, repaired.closed.view, repaired.run
        if run is None or plan.local.form is not None or repaired.closed.thinking_off:
            return None
        opening, tail = repaired.parts[0].view, repaired.parts[-1].view
        begin = len(opening)
        begin += closed[begin] is not (run.view or tail)[0]  # a user's word was put ahead of the first answer
        end = begin + len(run.view)
        if len(closed) < end + len(tail) or (run.view and closed[end - 1] is not run.view[-1]):
            return None
        self._run = None  # none is kept of which Ctrl-C lets a part be rendered
        run.render(pieces, self.blob)
        self._run = run
        frame = self._framed(Repaired(closed[:begin], (), ()), tools)
        back = self._rendered_tail(pieces[-1], closed[end:])
        if run.counts or _counts(plan, (frame.messages, back)):
            return None
        between = run.json if frame.messages.json else run.json[1:]  # a comma stands ahead of each
        comma = b"," if back.json and (frame.messages.json or between) else b""
        json = (frame.before, frame.messages.json, *between, comma, back.json, frame.behind)
        return _Rendered(frame, (*run.rendered, back), json)

    def _rendered_tail(self, piece: Piece, view: Sequence[Shown]) -> RenderedPiece:
        """The end of the request, rendered; kept if it is the last piece, the whole of it and no more."""
        made = render_piece(view, self.plan, self.blob)
        if piece.repaired is not None and unchanged(view, piece.repaired.view):
            piece.rendered = made
        return made

    def _framed(self, closed: Repaired, tools: tuple[Tool, ...]) -> _Frame:
        """A request of these messages alone; the same as for the last request as long as these and the tools are."""
        now = self._frame
        if now is None or now[1] != (tools, closed.thinking_off) or not unchanged(now[0], closed.view):
            plan, settings = self.plan, self.plan.local.settings
            settings = plan.provider.without_thinking(settings) if closed.thinking_off else settings
            local = msgspec.structs.replace(plan.local, tools=tools, settings=settings)
            rendered = plan.provider.render(closed.view, local, plan.target, self.blob)
            sanitized = plan.provider.sanitize(rendered.body, plan.target)
            body, infinite = without_infinite(sanitized.body)
            body, _, replaced = encodable(body)
            edits = (*rendered.edits, *sanitized.edits, *infinite, *replaced)
            made = _Frame(body, plan.provider.conversation, edits, (*rendered.losses, *sanitized.losses))
            now = self._frame = closed.view, (tools, closed.thinking_off), made
        return now[2]

    # -- join ----------------------------------------------------------------------------------------

    def _joined(self, repaired: _RepairedView, declared: list[Edit], rendered: _Rendered) -> Request:
        plan, parts, closed, frame = self.plan, repaired.parts, repaired.closed, rendered.frame
        key = plan.provider.conversation
        pieces = (frame.messages, *rendered.pieces) if rendered.pieces else ()
        return Request(
            target=plan.target,
            body=lambda: (
                {**frame.body, key: [one for piece in pieces for one in piece.messages]} if pieces else frame.body
            ),
            edits=lambda: (
                *(edit for part in parts for edit in part.edits),
                *closed.edits,
                *declared,
                *frame.edits,
                *_numbered(pieces, key),
            ),
            losses=lambda: (
                *plan.losses,
                *(loss for part in parts for loss in part.losses),
                *frame.losses,
                *(loss for piece in pieces for loss in piece.losses),
            ),
            view=closed.view,
            fragments=rendered.json,
            thinking_off=closed.thinking_off,
        )


class _RepairedView(Struct, frozen=True, gc=False):
    """A whole view, repaired: the pieces that it came in, or one in the place of all of them, and what became of them
    with legal ends. `run` are the pieces between the first and the last, None if it is one."""

    parts: tuple[RepairedPiece, ...]
    closed: Repaired
    run: _Run | None = None


class _Frame(Struct, frozen=True, dict=True):
    """A request of the first messages, or of all: everything but the pieces behind them."""

    body: dict[str, Any]
    key: str
    edits: tuple[Edit, ...]
    losses: tuple[Loss, ...]

    @cached_property
    def messages(self) -> RenderedPiece:
        """Its messages; what changed in them is told by the frame."""
        messages = self.body.get(self.key, [])
        return RenderedPiece(messages, msgspec.json.encode(messages)[1:-1])

    @cached_property
    def before(self) -> bytes:
        """The JSON up to the messages."""
        names = list(self.body)
        ahead = names[: names.index(self.key)] if self.key in names else names
        said = msgspec.json.encode({name: self.body[name] for name in ahead})[1:-1]
        return b"{" + said + (b"," if said else b"") + b'"' + self.key.encode() + b'":['

    @cached_property
    def behind(self) -> bytes:
        """The JSON behind the messages."""
        names = list(self.body)
        rest = names[names.index(self.key) + 1 :] if self.key in names else []
        said = msgspec.json.encode({name: self.body[name] for name in rest})[1:-1]
        return b"]" + (b"," if said else b"") + said + b"}"


class _Rendered(Struct, frozen=True, gc=False):
    """A frame, the pieces that stand in it behind its own messages, and the JSON of all that in parts; without pieces,
    the frame is the request."""

    frame: _Frame
    pieces: tuple[RenderedPiece, ...] = ()
    json: tuple[bytes, ...] = ()


class _Run:
    """Repaired pieces that something follows, and what they come to together: each is added once."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.repaired: list[RepairedPiece] = []
        self.view: list[Shown] = []
        self.call_ids: set[str] = set()
        self.called: set[str] = set()
        self.callers: list[RepairedPiece] = []
        self.media = Held()
        self.regular = True
        self.wanting = (0, 0)  # the first piece that needs another, and which
        self.repeated = False
        self.rendered: list[RenderedPiece] = []
        self.json: list[bytes] = []
        self.counts = False

    def begins(self, pieces: Sequence[Piece]) -> bool:
        """Whether it is these pieces as far as it goes."""
        return len(self.repaired) < len(pieces) and all(map(is_, self.repaired, map(_repaired_of, pieces)))

    def add(self, piece: RepairedPiece) -> None:
        """One more."""
        if not self.wanting[1] and (piece.needs > 0 or self.repaired):
            self.wanting = len(self.repaired), piece.needs
        self.repaired.append(piece)
        self.view += piece.view
        self.media += piece.media
        self.regular = self.regular and piece.regular
        self.repeated = self.repeated or not self.call_ids.isdisjoint(piece.call_ids) or piece.repeated
        self.call_ids.update(piece.call_ids)
        if not piece.called <= self.called:
            self.called |= piece.called
            self.callers.append(piece)

    def render(self, pieces: Sequence[Piece], blob: BlobReader) -> None:
        """Render those that were added since."""
        for piece, repaired in zip(pieces[len(self.rendered) :], self.repaired[len(self.rendered) :], strict=False):
            if piece.rendered is None:
                piece.rendered = render_piece(repaired.view, self.plan, blob)
            self.rendered.append(piece.rendered)
            if piece.rendered.json:
                self.json += (b",", piece.rendered.json)
            self.counts = self.counts or _counts(self.plan, (piece.rendered,))


def tools_for(plan: Plan, view: Sequence[Shown]) -> tuple[tuple[Tool, ...], list[Edit]]:
    """The tools of a request that shows a repaired view, and what was changed about them."""
    if plan.complete or plan.rules.tools_required:
        return declare_tools(view, plan.local.tools, plan.rules)
    return named_tools(plan.local.tools, plan.rules)


def _stand_apart(opening: RepairedPiece, run: _Run, tail: RepairedPiece, plan: Plan) -> bool:
    """Whether repaired pieces side by side are what the whole would be, repaired."""
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


def _counts(plan: Plan, pieces: Iterable[RenderedPiece]) -> bool:
    """Whether there is something that only the whole request can be checked for."""
    key = plan.provider.counted_key.encode()
    return bool(key) and any(key in piece.json for piece in pieces)


def _numbered(pieces: Sequence[RenderedPiece], key: str) -> list[Edit]:
    """The edits of pieces, their paths counted over the whole conversation."""
    edits: list[Edit] = []
    before = 0
    for piece in pieces:
        edits += (moved(edit, key, before) if is_within(edit, key) else edit for edit in piece.edits)
        before += len(piece.messages)
    return edits
