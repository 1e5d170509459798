"""Build the request for a view, for any provider: repair, render, sanitize, join.

A view is divided into pieces (see `pieces`), which are built separately. If one piece depends on another (a late
result, an id used twice, cache marks that are counted over the whole request), the view is built as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from .._platform.lazy import cached_property
from ..log.messages import Tool, unchanged
from ..log.records import Binding
from ..providers.protocol import BlobReader
from ..tokens.protocol import Certainty
from ..view.bound_reasoning import Bound
from ..view.compaction.situation import Item
from ..view.repair.arrange import Fate
from ..view.types import Edit, Loss, Shown
from .pieces import (
    Conversation,
    Piece,
    RenderedPiece,
    RepairedPiece,
    encodable,
    is_within,
    moved,
    render_piece,
    without_infinite,
)
from .prompt_cache import MarkPlaces, MarksWanted, marked
from .repaired import RepairedRun, RepairedView, Repairs
from .request import Request
from .size import Sizing
from .translate import RequestPlan

_Change = TypeVar("_Change", Edit, Loss)


def build(
    plan: RequestPlan,
    view: Sequence[Shown],
    blob: BlobReader,
    fate: Fate | None = None,
    bindings: Mapping[int, Bound] | None = None,
    now: str = "",
) -> Request:
    """The request for a view by a plan. It is valid for the plan's target, whatever the view contains. `fate` tells
    what is known about calls without a result; `bindings` as for `Builder`, `now` as for `Builder.request`."""
    return Builder(plan, blob, bindings=bindings).request(conversation_of(view), fate or {}, now)


def conversation_of(view: Sequence[Shown]) -> Conversation:
    """The conversation of a view that is built as a whole."""
    conversation = Conversation()
    conversation.items = [Item(shown, 0, shown, 0) for shown in view]
    return conversation


class Builder:
    """Builds the requests of a conversation by one plan, and reuses unchanged pieces in the next request. With
    `sizing`, requests are measured; `bindings` as for `Repairs`."""

    def __init__(
        self,
        plan: RequestPlan,
        blob: BlobReader,
        sizing: Sizing | None = None,
        bindings: Mapping[int, Bound] | None = None,
    ) -> None:
        self.plan = plan
        self._blob = blob
        self._repairs = Repairs(plan, blob, sizing, bindings)
        self._places = MarkPlaces(plan, blob)
        self._frame: tuple[Sequence[Shown], tuple[tuple[Tool, ...], bool, dict[str, Any]], _Frame] | None = None
        self._handed: dict[str, Any] = {}  # what answers hand on to the request that is being made
        self._run: _RenderedRun | None = None
        self._each: dict[int, tuple[Shown, RenderedPiece]] = {}

    def repaired(self, conversation: Conversation, fate: Fate) -> RepairedView:
        """The repaired view that a request of a conversation shows. Some pieces of the conversation may be joined for
        this. `fate` tells what is known about calls without a result."""
        return self._repairs.view(conversation, fate)

    def measured(self, conversation: Conversation, fate: Fate) -> list[Item]:
        """The messages of a conversation, each with the tokens that it adds to a request."""
        return self._repairs.measured(conversation.items, self.repaired(conversation, fate))

    def request(self, conversation: Conversation, fate: Fate, now: str = "") -> Request:
        """The request that shows a conversation. `now` is the time of the newest record, "" if it is not known."""
        repaired = self.repaired(conversation, fate)
        local = self.plan.local
        self._handed = self.plan.provider.handed_on(repaired.closed.view, local.tools, local.settings, now)
        rendered = self._rendered_apart(repaired, conversation.pieces) or self._rendered_each(repaired)
        return self._joined(repaired, rendered or _Rendered(self._framed(repaired, len(repaired.closed.view))))

    @property
    def certainty(self) -> Certainty:
        """How far to trust the token counts of these requests."""
        sizing = self._repairs.sizing
        return "estimated" if sizing is None else sizing.certainty_for(self.plan)

    def binding(self, repaired: RepairedView) -> Binding | None:
        """The binding of reasoning in an answer to this request; None if the model does not bind reasoning."""
        return self._repairs.binding(repaired)

    def unanswered(self) -> Builder:
        """A builder of the same requests, except that they may end with an answer: they ask for none."""
        rules = msgspec.structs.replace(self.plan.rules, last="any", strip_last=False)
        plan = msgspec.structs.replace(self.plan, rules=rules)
        repairs = self._repairs
        return Builder(plan, self._blob, repairs.sizing, repairs.bindings)

    def marked(self, made: Request, tokens: int, wanted: MarksWanted) -> Request:
        """The request with prompt-cache marks, if its model uses them; `tokens` is its size."""
        return marked(made, self.plan, tokens, self._places, wanted)

    # -- render and sanitize -------------------------------------------------------------------------

    def _rendered_apart(self, repaired: RepairedView, pieces: list[Piece]) -> _Rendered | None:
        """The frame and the pieces, rendered; None if the request can be rendered only as a whole."""
        view, closed, run = repaired.closed.view, repaired.closed, repaired.run
        if run is None or self.plan.local.form is not None or closed.thinking_off:
            return None
        begin = len(repaired.parts[0].view) + (closed.opening >= 0)
        end = begin + len(run.view)
        if closed.kept + (closed.opening >= 0) < end:
            return None
        frame = self._framed(repaired, begin)
        between = self._rendered_run(run, pieces, frame.gives)
        back = self._rendered_tail(pieces[-1], view[end:], between.gives)
        if between.counts or frame.messages.counts(self.plan) or back.counts(self.plan):
            return None
        ahead = between.json if frame.messages.json else between.json[1:]  # each has a comma before it
        comma = b"," if back.json and (frame.messages.json or ahead) else b""
        json = (frame.before, frame.messages.json, *ahead, comma, back.json, frame.behind)
        return _Rendered(frame, (*between.pieces, back), json)

    def _rendered_each(self, repaired: RepairedView) -> _Rendered | None:
        """The frame and each message after the system text, rendered, for views whose messages were joined so that they
        alternate: then the pieces are no longer what they were. None if messages depend on each other. Messages of the
        previous request are reused."""
        view, rules = repaired.closed.view, self.plan.rules
        apart = "results" in rules.alternates or (rules.calls_as_text and "user" in rules.alternates)
        if not apart or self.plan.local.form is not None or repaired.closed.thinking_off:
            return None
        head = next((i for i, shown in enumerate(view) if shown.message.role != "system"), len(view))
        if not head < len(view) or any(len(shown.message.parts) > _FEW_PARTS for shown in view):
            return None
        before, self._each = self._each, {}
        for shown in view[head:]:
            known = before.get(id(shown))
            piece = known[1] if known is not None else render_piece([shown], self.plan, self._blob, frozenset())
            self._each[id(shown)] = shown, piece
        frame = self._framed(repaired, head)
        pieces = [self._each[id(shown)][1] for shown in view[head:]]
        if frame.messages.counts(self.plan) or any(piece.counts(self.plan) for piece in pieces):
            return None
        jsons = [json for json in (frame.messages.json, *(piece.json for piece in pieces)) if json]
        return _Rendered(frame, tuple(pieces), (frame.before, b",".join(jsons), frame.behind))

    def _rendered_run(self, run: RepairedRun, pieces: Sequence[Piece], given: frozenset[str]) -> _RenderedRun:
        """The pieces between the first and the last, rendered. Pieces of the previous request are reused. `given` are
        the words that the frame gives (see `LinkedRenderer`)."""
        rendered_run, self._run = self._run, None  # so that none is reused if Ctrl-C interrupts its change
        if rendered_run is None or rendered_run.run is not run or rendered_run.given != given:
            rendered_run = _RenderedRun(run, given)
        for piece, repaired in zip(
            pieces[len(rendered_run.pieces) :], run.repaired[len(rendered_run.pieces) :], strict=False
        ):
            rendered_run.add(self._rendered(piece, repaired.view, rendered_run.gives), self.plan)
        self._run = rendered_run
        return rendered_run

    def _rendered_tail(self, piece: Piece, view: Sequence[Shown], earlier: Set[str]) -> RenderedPiece:
        """The end of the request, rendered. The previous result is reused if the end is exactly the last piece."""
        if piece.repaired is None or not unchanged(view, piece.repaired.view):
            return render_piece(view, self.plan, self._blob, earlier)
        return self._rendered(piece, view, earlier)

    def _rendered(self, piece: Piece, view: Sequence[Shown], earlier: Set[str]) -> RenderedPiece:
        """A piece, rendered after pieces that give the words `earlier`. Its previous result is reused if still
        right."""
        if piece.rendered is None or not piece.rendered.serves(earlier):
            piece.rendered = render_piece(view, self.plan, self._blob, earlier)
        return piece.rendered

    def _framed(self, repaired: RepairedView, end: int) -> _Frame:
        """A request with only the messages up to `end`. The frame of the previous request is reused if these messages
        and the tools are unchanged."""
        view, key = repaired.closed.view[:end], (repaired.tools, repaired.closed.thinking_off, self._handed)
        remembered = self._frame
        if remembered is None or remembered[1] != key or not unchanged(remembered[0], view):
            plan, settings = self.plan, self.plan.local.settings
            settings = plan.provider.without_thinking(settings) if repaired.closed.thinking_off else settings
            settings = {**settings, **self._handed}
            local = msgspec.structs.replace(plan.local, tools=repaired.tools, settings=settings)
            rendered = plan.provider.render(view, local, plan.target, self._blob)
            sanitized = plan.provider.sanitize(rendered.body, plan.target)
            body, infinite = without_infinite(sanitized.body)
            body, _, replaced = encodable(body)
            edits = (*rendered.edits, *sanitized.edits, *infinite, *replaced)
            losses = (*rendered.losses, *sanitized.losses)
            frame = _Frame(body, plan.provider.conversation, edits, losses, rendered.gives)
            remembered = self._frame = view, key, frame
        return remembered[2]

    # -- join ----------------------------------------------------------------------------------------

    def _joined(self, repaired: RepairedView, rendered: _Rendered) -> Request:
        plan, parts, closed, frame = self.plan, repaired.parts, repaired.closed, rendered.frame
        key = plan.provider.conversation
        pieces = (frame.messages, *rendered.pieces) if rendered.pieces else ()
        return Request(
            target=plan.target,
            body=lambda: (
                {**frame.body, key: [message for piece in pieces for message in piece.messages]}
                if pieces
                else frame.body
            ),
            edits=lambda: _in_order(
                [
                    *(edit for part in parts for edit in part.edits),
                    *closed.edits,
                    *_left_out(parts),
                    *repaired.declared,
                    *frame.edits,
                    *_numbered(pieces, key, frame.edits),
                ]
            ),
            losses=lambda: (
                *plan.losses,
                *_in_order(
                    [
                        *(loss for part in parts for loss in part.losses),
                        *frame.losses,
                        *(loss for piece in pieces for loss in piece.losses),
                    ]
                ),
            ),
            tokens=lambda: self._repairs.tokens(repaired),
            view=closed.view,
            fragments=rendered.json,
            thinking_off=closed.thinking_off,
        )


_FEW_PARTS = 100
"""With more parts, a message may become several, whose results depend on it."""


class _Frame(Struct, frozen=True, dict=True):
    """A request with the first messages, or with all: everything except the pieces after them. `gives` as in
    `LinkedRenderer`."""

    body: dict[str, Any]
    key: str
    edits: tuple[Edit, ...]
    losses: tuple[Loss, ...]
    gives: frozenset[str]

    @cached_property
    def messages(self) -> RenderedPiece:
        """The messages of the frame. Their edits are among the frame's edits."""
        messages = self.body.get(self.key, [])
        return RenderedPiece(messages, msgspec.json.encode(messages)[1:-1])

    @cached_property
    def before(self) -> bytes:
        """The JSON up to the messages."""
        names = list(self.body)
        ahead = names[: names.index(self.key)] if self.key in names else names
        fields = msgspec.json.encode({name: self.body[name] for name in ahead})[1:-1]
        return b"{" + fields + (b"," if fields else b"") + b'"' + self.key.encode() + b'":['

    @cached_property
    def behind(self) -> bytes:
        """The JSON after the messages."""
        names = list(self.body)
        rest = names[names.index(self.key) + 1 :] if self.key in names else []
        fields = msgspec.json.encode({name: self.body[name] for name in rest})[1:-1]
        return b"]" + (b"," if fields else b"") + fields + b"}"


class _Rendered(Struct, frozen=True, gc=False):
    """A frame, the pieces that come after the frame's own messages, and the JSON of the whole request in parts. Without
    pieces, the frame is the request."""

    frame: _Frame
    pieces: tuple[RenderedPiece, ...] = ()
    json: tuple[bytes, ...] = ()


class _RenderedRun:
    """The rendered pieces of a run, and their JSON, with a comma before each piece. `given` are the words that the
    frame before them gives (see `LinkedRenderer`), `gives` these words and those of the pieces."""

    def __init__(self, run: RepairedRun, given: frozenset[str]) -> None:
        self.run = run
        self.given = given
        self.gives = set(given)
        self.pieces: list[RenderedPiece] = []
        self.json: list[bytes] = []
        self.counts = False

    def add(self, piece: RenderedPiece, plan: RequestPlan) -> None:
        """Add the next piece."""
        self.pieces.append(piece)
        self.gives |= piece.gives
        if piece.json:
            self.json += (b",", piece.json)
        self.counts = self.counts or piece.counts(plan)


def _in_order(changes: Iterable[_Change]) -> tuple[_Change, ...]:
    """The changes in order: by the records concerned, then, if they have no records, by their place in the body. This
    order does not depend on which pieces were built separately."""
    return tuple(sorted(changes, key=lambda change: (not change.records, change.records, _place(change.path))))


def _place(path: str) -> list[str | int]:
    """A path for sorting, with its indices as numbers."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", path)]


def _left_out(parts: Sequence[RepairedPiece]) -> list[Edit]:
    records = sorted(n for part in parts for n in part.left_out)
    detail = "reasoning left out: it is bound to its model and the content before it, which have changed since then"
    return [Edit("reasoning", detail, tuple(records))] if records else []


def _numbered(pieces: Sequence[RenderedPiece], key: str, told: Sequence[Edit]) -> list[Edit]:
    """The edits of pieces, with paths that count messages over the whole conversation. An edit without a path concerns
    no piece: it is listed once, unless it is in `told`."""
    edits: list[Edit] = []
    before = 0
    for piece in pieces:
        for edit in piece.edits:
            if is_within(edit, key):
                edits.append(moved(edit, key, before))
            elif edit.path or edit.records or edit not in (*told, *edits):
                edits.append(edit)
        before += len(piece.messages)
    return edits
