"""The pieces from which requests are built, each repaired and rendered by itself.

A piece is a user message, or a run of assistant messages with their results. Its form in a request rarely depends on
anything outside it, so it is built once and reused. A whole view can also be built as a single piece.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

from ..log.messages import Opaque, Part, Role, Text, ToolCall, ToolResult, is_finite_json, unchanged
from ..providers import PROVIDERS
from ..providers.protocol import BlobReader, Provider
from ..view.bound_reasoning import has_reasoning, without_reasoning
from ..view.compaction.situation import Item, starts_block
from ..view.repair.arrange import Fate, with_parts
from ..view.repair.clean import contains_word
from ..view.repair.media_room import MediaTotals, held, longest_side, media_of
from ..view.repair.repair import is_declared_by_name, repair
from ..view.repair.sniff import sniff
from ..view.types import Edit, Loss, Shown, starts_turn
from .carried import found_as_text
from .size import Sizing
from .translate import RequestPlan

# -- conversation ----------------------------------------------------------------------------------
#
# A conversation as its next request shows it: its messages with their sizes, divided into pieces.

_WINDOW = 64
"""New pieces are joined in windows of this many records. Joined pieces are built faster, but more is built again if a
decision changes one of them. The ends of windows depend on record numbers only, so they stay the same after a cut."""


class Conversation:
    """Messages in order. The leading system text is the head, the rest is divided into pieces."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.head: list[Item] = []
        self.pieces: list[Piece] = []

    @classmethod
    def of(cls, items: Iterable[Item], before: Sequence[Piece] = ()) -> Conversation:
        """A conversation of these messages. Pieces in `before` that contain the same messages are reused."""
        conversation = cls()
        for item in items:
            conversation.add(item)
        conversation.keep(before)
        return conversation

    def keep(self, before: Sequence[Piece]) -> None:
        """Reuse the pieces in `before` that contain the same messages."""
        self.pieces = _joined(self.pieces, {piece.start: piece for piece in before})

    def add(self, item: Item) -> None:
        """Add a message at the end."""
        before = self.items[-1].shown if self.items else None
        self.items.append(item)
        if item.shown.message.role == "system" and not self.pieces:
            self.head.append(item)
        elif not self.pieces or starts_block(item.shown, before):
            self.pieces.append(Piece([item]))
        else:
            self.pieces[-1].forget()  # after a rewind, it may have been built with pieces after it
            self.pieces[-1].items.append(item)


def _joined(pieces: Sequence[Piece], before: Mapping[int, Piece]) -> list[Piece]:
    """The pieces, joined. Pieces of `before` replace those with the same messages. The last piece stays separate, as it
    may grow."""
    joined: list[Piece] = []
    open_window = 0  # the window of the last joined piece, if that is new and may grow
    i = 0
    while i < len(pieces):
        piece = pieces[i]
        reused = before.get(piece.start)
        same = _same(reused, pieces, i) if reused is not None else 0
        if reused is not None and same:
            reused.items = [item for covered in pieces[i : i + same] for item in covered.items]
            joined.append(reused)
            i, open_window = i + same, 0
            continue
        window = piece.start // _WINDOW + 1
        if window == open_window and i < len(pieces) - 1:
            joined[-1].items += piece.items
        else:
            joined.append(piece)
        i, open_window = i + 1, window
    return joined


def _same(known: Piece, pieces: Sequence[Piece], at: int) -> int:
    """The number of pieces, from index `at` on, whose messages are exactly those of the known piece; 0 if there are
    none."""
    length, end = 0, at
    while end < len(pieces) and length < len(known.items):
        length += len(pieces[end].items)
        end += 1
    if length != len(known.items) or end == len(pieces) > at + 1:
        return 0
    messages = (item.shown for piece in pieces[at:end] for item in piece.items)
    return end - at if all(a.shown == b for a, b in zip(known.items, messages, strict=True)) else 0


class RepairedPiece(Struct, frozen=True, gc=False):
    """The result of repairing the first `length` messages of a piece for requests by `plan`, before a message of the
    role `follows` (None: before nothing).

    `view` are the repaired messages, and `sizes` their tokens if sizes are wanted. `callers` are the messages in `view`
    that call tools, `call_ids` the ids of these calls (`repeated`: some ids occur twice), `called` the names of the
    tools that are declared by name. `regular`: the piece begins and ends as it did before repair, which is all that its
    neighbours depend on. `strays` is that of `Repaired`; `open_end`: the piece cannot be repaired without the piece
    after it. `thinking` are the records with reasoning that the provider binds to the content before it; `left_out` are
    the records among them that are shown without their reasoning. `early` and `waiting` are those of `Repaired`;
    `opens_turn`: a user speaks in it. `has_word`: see `contains_word`.
    """

    plan: RequestPlan
    length: int
    follows: Role | None
    view: tuple[Shown, ...]
    sizes: tuple[int, ...]
    edits: tuple[Edit, ...]
    losses: tuple[Loss, ...]
    media: MediaTotals
    callers: tuple[Shown, ...]
    call_ids: frozenset[str]
    repeated: bool
    called: frozenset[str]
    regular: bool
    strays: bool
    open_end: bool
    thinking: frozenset[int] = frozenset()
    left_out: frozenset[int] = frozenset()
    early: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()
    opens_turn: bool = False
    has_word: bool = False

    def serves(self, items: Sequence[Item], follows: Role | None, plan: RequestPlan) -> bool:
        """Whether repairing these messages before a message of the role `follows` gives this same result. If nothing
        followed them until now, the result may differ only for system text, for the provider's own calls, and for
        answers that nothing separates any more."""
        if plan is not self.plan or len(items) != self.length:
            return False
        if self.follows == follows:
            return True
        if self.follows is not None or plan.rules.own_calls:
            return False
        view = [item.shown for item in items]
        return not any(shown.message.role == "system" for shown in view) and _ends_alike(view, self.view, follows)

    def needs(self, *, first: bool) -> int:
        """What the piece has to be joined with: the piece before it (-1), unless it is the first, the piece after it
        (1), or nothing (0)."""
        return -1 if self.strays and not first else int(self.open_end)


class RenderedPiece(Struct, frozen=True, gc=False):
    """The wire messages of a repaired piece, their JSON without brackets, and the changes made in them. `gives` and
    `asks` as in `LinkedRenderer`; `met` are the words in `asks` that earlier pieces gave."""

    messages: list[Any]
    json: bytes
    edits: tuple[Edit, ...] = ()
    losses: tuple[Loss, ...] = ()
    gives: frozenset[str] = frozenset()
    asks: frozenset[str] = frozenset()
    met: frozenset[str] = frozenset()

    def serves(self, earlier: Set[str]) -> bool:
        """Whether rendering the piece behind pieces that gave the words `earlier` gives this same result."""
        return self.asks & earlier == self.met

    def counts(self, plan: RequestPlan) -> bool:
        """Whether the piece may contain something that is counted over a whole request."""
        key = plan.provider.counted_key.encode()
        return bool(key) and key in self.json


class Piece(Struct):
    """A part of a conversation, and the last results of repairing and rendering it."""

    items: list[Item]
    repaired: RepairedPiece | None = None
    rendered: RenderedPiece | None = None

    @property
    def start(self) -> int:
        """The number of the first record."""
        return self.items[0].shown.records[0]

    @property
    def role(self) -> Role:
        """The role of the first message. The repair of the piece before this one depends on it."""
        return self.items[0].shown.message.role

    def forget(self) -> None:
        """Drop the results, so that the piece is built again."""
        self.repaired = self.rendered = None


def repair_piece(
    items: Sequence[Item],
    plan: RequestPlan,
    blob: BlobReader,
    fate: Fate,
    sizing: Sizing | None,
    *,
    leading: bool = False,
    follows: Role | None = None,
    unbound: Collection[int] = (),
) -> RepairedPiece:
    """Repair a piece by itself. `leading`: no message comes before it. `follows`: the role of the message after it,
    None if there is none. Records in `unbound` are shown without their reasoning. With `sizing`, the result is
    measured."""
    edited: list[Edit] = []
    lost: list[Loss] = []
    given = [item.shown for item in items]
    thinking = _thinking(given, plan)
    left_out = thinking.intersection(unbound)
    if left_out:
        provider_name = plan.rules.provider
        given = [
            without_reasoning(shown, provider_name) if left_out.issuperset(shown.records) else shown for shown in given
        ]
    accepted = as_known(found_as_text(given, plan.provider, lost), plan.provider, blob, edited, lost)
    repaired = repair(accepted, plan.rules, fate, blob, leading=leading, follows=follows)
    same_start = leading or _begins_alike(accepted, repaired.view, has_strays=repaired.strays)
    # Answers are repaired together if the messages between them were left out.
    same_end = _ends_alike(given, repaired.view, follows)
    callers = tuple(s for s in repaired.view if any(isinstance(part, ToolCall) for part in s.message.parts))
    calls = [part for s in callers for part in s.message.parts if isinstance(part, ToolCall)]
    ids = frozenset(call.id for call in calls)
    return RepairedPiece(
        plan=plan,
        length=len(items),
        follows=follows,
        view=repaired.view,
        sizes=() if sizing is None else sizing.repaired(repaired.view, items, plan.rules),
        edits=(*edited, *repaired.edits),
        losses=(*lost, *repaired.losses),
        media=held(media_of(repaired.view), plan.rules, lambda media: longest_side(media, blob)),
        callers=callers,
        call_ids=ids,
        repeated=len(ids) < len(calls),
        called=frozenset(call.name for call in calls if is_declared_by_name(call, plan.rules)),
        regular=same_start and same_end,
        strays=repaired.strays,
        open_end=not same_end or repaired.unplaced,
        thinking=thinking,
        left_out=left_out,
        early=repaired.early,
        waiting=repaired.waiting,
        opens_turn=any(map(starts_turn, given)),
        has_word=contains_word(repaired.view, plan.rules),
    )


def _thinking(view: Sequence[Shown], plan: RequestPlan) -> frozenset[int]:
    """The records of answers whose reasoning is bound to the content before it."""
    if not plan.rules.reasoning_bound:
        return frozenset()
    provider_name = plan.rules.provider
    return frozenset(shown.records[0] for shown in view if has_reasoning(shown.message, provider_name))


def _begins_alike(items: Sequence[Shown], view: Sequence[Shown], *, has_strays: bool) -> bool:
    """Whether the repaired view begins with the same role as the items: the repair of the piece before relies on that.
    A first message that was a stray result may be gone, so that system text after it begins the request."""
    alike = bool(items and view) and items[0].message.role == view[0].message.role
    return alike and (not has_strays or set(items[0].records) <= set(view[0].records))


def _ends_alike(items: Sequence[Shown], view: Sequence[Shown], follows: Role | None) -> bool:
    """Whether the last message before an answer is still there, so that the answer is not joined to an earlier one."""
    if follows != "assistant" or not items:
        return True
    return bool(view) and set(items[-1].records) <= set(view[-1].records)


def render_piece(view: Sequence[Shown], plan: RequestPlan, blob: BlobReader, earlier: Set[str]) -> RenderedPiece:
    """A repaired piece as wire messages, without the changes that concern the request as a whole. `earlier` are the
    words that the pieces before it gave (see `LinkedRenderer`)."""
    bare, linked = msgspec.structs.replace(plan.local, tools=()), plan.provider.render_linked
    if linked is None:
        rendered = plan.provider.render(view, bare, plan.target, blob)
    else:
        rendered = linked(view, bare, plan.target, blob, earlier)
    sanitized = plan.provider.sanitize(rendered.body, plan.target)
    key = plan.provider.conversation
    messages, json, edits = encodable(sanitized.body.get(key, []))
    return RenderedPiece(
        messages=messages,
        json=json[1:-1],
        edits=(*(edit for edit in (*rendered.edits, *sanitized.edits) if is_within(edit, key)), *edits),
        losses=tuple(loss for loss in (*rendered.losses, *sanitized.losses) if loss.records),
        gives=rendered.gives,
        asks=rendered.asks,
        met=rendered.asks & earlier,
    )


def wire_messages(view: Sequence[Shown], plan: RequestPlan, blob: BlobReader) -> list[Any]:
    """The wire messages of a view by themselves, not repaired."""
    bare = msgspec.structs.replace(plan.local, tools=())
    return messages_of(plan.provider.render(view, bare, plan.target, blob).body, plan)


def messages_of(request: Mapping[str, Any], plan: RequestPlan) -> list[Any]:
    """The wire messages of a request as a list, also if the request has a text or a single message instead of one."""
    conversation = request.get(plan.provider.conversation) or []
    if isinstance(conversation, str):
        return [{"role": "user", "content": conversation}]
    return [conversation] if isinstance(conversation, dict) else list(conversation)


def is_within(edit: Edit, key: str) -> bool:
    """Whether an edit concerns a message in the list at `key` of a request."""
    return edit.path.startswith(f"{key}[")


def moved(edit: Edit, key: str, by: int) -> Edit:
    """The same edit for the message `by` places further on in the list at `key`."""
    index, _, rest = edit.path.removeprefix(f"{key}[").partition("]")
    return msgspec.structs.replace(edit, path=f"{key}[{int(index) + by}]{rest}")


def as_known(
    view: Sequence[Shown], to: Provider, blob: BlobReader, edits: list[Edit], losses: list[Loss]
) -> list[Shown]:
    """The view with media under their true type, without damaged media, with a text in place of media that could not be
    read, and without the provider's own opaque parts that it does not accept in requests."""
    out: list[Shown] = []
    for shown in sniff(view, blob, edits, losses, text_documents=to.text_documents):
        if not any(isinstance(part, (Opaque, ToolResult)) for part in shown.message.parts):
            out.append(shown)
            continue
        accepted: list[Part] = []
        for part in _with_media_named(shown, to, edits, losses):
            if isinstance(part, Opaque) and part.provider == to.name and not to.knows(part):
                losses.append(Loss("opaque", f"{part.kind} left out: {to.name} does not accept it", shown.records))
            else:
                accepted.append(part)
        if accepted or not shown.message.parts:
            out.append(with_parts(shown, tuple(accepted)))
    return out


def _with_media_named(shown: Shown, to: Provider, edits: list[Edit], losses: list[Loss]) -> Sequence[Part]:
    """The parts of a message, with a text such as `[Image]` in place of media that could not be read into a `Media` and
    that the provider does not accept; also inside results."""
    parts: list[Part] = []
    for part in shown.message.parts:
        if isinstance(part, Opaque):
            part = _media_named(part, to, shown.records, edits, losses)
        elif isinstance(part, ToolResult):
            inner = tuple(
                _media_named(nested, to, shown.records, edits, losses) if isinstance(nested, Opaque) else nested
                for nested in part.parts
            )
            part = part if unchanged(inner, part.parts) else msgspec.structs.replace(part, parts=inner)
        parts.append(part)
    return parts


def _media_named(
    part: Opaque, to: Provider, records: tuple[int, ...], edits: list[Edit], losses: list[Loss]
) -> Opaque | Text:
    if part.provider not in PROVIDERS:
        return part
    source = PROVIDERS[part.provider]
    kind, sendable = source.unread_media(part), source.knows(part)
    if not kind or (sendable and source is to):
        return part
    label = f"[{kind.capitalize()}]"
    if sendable:
        losses.append(Loss("opaque", f"{part.kind} of {part.provider} shown as {label}", records))
    else:
        detail = f"{part.kind} that cannot be read shown as {label}"
        edits.append(Edit("media", detail, records, rule=f"Could not process {kind}"))
    return Text(label)


def without_infinite(value: Any) -> tuple[Any, tuple[Edit, ...]]:
    """JSON without infinity and NaN, for everything in a body besides the conversation. They are left out, as a null in
    their place would make a schema invalid."""
    if is_finite_json(value) or (finite := _finite(value)) == value:
        return value, ()
    return finite, (Edit("setting", "Infinity or NaN left out, which JSON does not have"),)


def encodable(value: Any) -> tuple[Any, bytes, tuple[Edit, ...]]:
    """JSON that can be sent, its bytes, and the changes: remaining lone surrogates, which are in names, settings or
    schemas, become U+FFFD."""
    try:
        return value, msgspec.json.encode(value), ()
    except UnicodeEncodeError:
        value = _without_surrogates(value)
        edit = Edit("text", "lone surrogates in names or settings sent as U+FFFD")
        return value, msgspec.json.encode(value), (edit,)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items() if not _is_infinite(item)}
    return [_finite(item) for item in value if not _is_infinite(item)] if isinstance(value, (list, tuple)) else value


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and not isfinite(value)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return [_without_surrogates(item) for item in value] if isinstance(value, list) else value
