"""From a view to a request: repair, declare, render, sanitize, for any provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

from ..log.messages import Opaque, Part, Tool, is_finite_json
from ..log.records import Configuration
from ..models.target import Target
from ..providers.protocol import BlobReader, Provider
from ..view.repair.arrange import Fate, with_parts
from ..view.repair.repair import declare_tools, named_tools, repair
from ..view.repair.sniff import sniff
from ..view.types import Edit, Loss, Shown
from .translate import Plan, plan


class CacheUse(Struct, frozen=True):
    """How a request begins, beside the one before it.

    `tokens` is its size, `previous` that of the request before, and `shared` how many of those stand at the
    beginning of both, unchanged: what a provider's cache may still hold. Where `shared` is less than `previous`, `why`
    says what moved, and `moved_by` is the number of the decision that did, if one did.
    """

    tokens: int
    previous: int
    shared: int
    moved_by: int = 0
    why: str = ""


class Request:
    """A request that can be sent as it is, and how it came about.

    What is given as a function is worked out when it is first asked for: most callers send the
    request and look at little else.
    """

    def __init__(
        self,
        *,
        target: Target,
        body: dict[str, Any] | Callable[[], dict[str, Any]],
        edits: tuple[Edit, ...] | Callable[[], tuple[Edit, ...]],
        losses: tuple[Loss, ...] | Callable[[], tuple[Loss, ...]],
        view: tuple[Shown, ...],
        fragments: tuple[bytes, ...] = (),
        thinking_off: bool = False,
    ) -> None:
        self.target = target
        self.thinking_off = thinking_off
        """Whether it goes without the thinking that its settings ask for, until the open tool loop closes."""
        self.view = view
        """What was rendered."""
        self._body = body
        self._edits = edits
        self._losses = losses
        self._fragments = fragments
        self.cache: CacheUse | None = None
        """How it begins, beside the request before it to the same target; None for the first of a session."""

    @cached_property
    def body(self) -> dict[str, Any]:
        """A plain dict for the SDK call. It is the caller's own: what is changed in it is in no other request."""
        copied: dict[str, Any] = _copied(self._made)
        return copied

    @cached_property
    def _made(self) -> dict[str, Any]:
        """The request, of which parts may be those of other requests and of what it was made of."""
        return self._body() if callable(self._body) else self._body

    @cached_property
    def edits(self) -> tuple[Edit, ...]:
        """Changes made so that the provider accepts the request; they name record numbers."""
        return self._edits() if callable(self._edits) else self._edits

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """What the target cannot take; by record numbers."""
        return self._losses() if callable(self._losses) else self._losses

    @property
    def from_pieces(self) -> bool:
        """Whether it was put together from kept pieces."""
        return bool(self._fragments)

    def json(self) -> bytes:
        """The request as JSON, for an HTTP client."""
        return b"".join(self._fragments) or msgspec.json.encode(self._made)

    def after(self, edits: tuple[Edit, ...]) -> Request:
        """The same request, with edits made before it."""
        return Request(
            target=self.target,
            body=lambda: self._made,
            edits=lambda: (*edits, *self.edits),
            losses=lambda: self.losses,
            view=self.view,
            fragments=self._fragments,
            thinking_off=self.thinking_off,
        )

    def changed(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Request:
        """The same, but for the request itself: what `change`, which changes nothing in place, makes of it."""
        return Request(
            target=self.target,
            body=lambda: change(self._made),
            edits=lambda: self.edits,
            losses=lambda: self.losses,
            view=self.view,
            thinking_off=self.thinking_off,
        )

    def __repr__(self) -> str:
        return f"Request(body={self.body!r}, edits={self.edits!r}, losses={self.losses!r})"


def _copied(value: Any) -> Any:
    """JSON with objects and arrays of its own; texts, which nobody can change, are shared."""
    if isinstance(value, dict):
        return {key: _copied(item) if isinstance(item, (dict, list)) else item for key, item in value.items()}
    return [_copied(item) if isinstance(item, (dict, list)) else item for item in value]


def prepare(
    view: Sequence[Shown],
    configuration: Configuration,
    target: Target,
    blob: BlobReader,
    *,
    fate: Fate | None = None,
    complete: bool = True,
) -> Request:
    """The request for `view`; the other arguments as for `plan` and `follow`."""
    return follow(plan(configuration, target, complete=complete), view, blob, fate)


def follow(plan: Plan, view: Sequence[Shown], blob: BlobReader, fate: Fate | None = None) -> Request:
    """The request for `view` by a plan: valid for the plan's target, whatever the view holds. `fate` is what the
    log knows of calls without a result."""
    to, local = plan.provider, plan.local
    lost: list[Loss] = []
    repaired = repair(as_known(view, to, blob, lost), plan.rules, fate, blob)
    if repaired.thinking_off:
        local = msgspec.structs.replace(local, settings=to.without_thinking(local.settings))
    tools, declared = tools_for(plan, repaired.view)
    local = msgspec.structs.replace(local, tools=tools)
    rendered = to.render(repaired.view, local, plan.target, blob)
    sanitized = to.sanitize(rendered.body, plan.target)
    request, without = _as_finite(sanitized.body)
    request, replaced = as_text(request)
    return Request(
        body=request,
        edits=(*repaired.edits, *declared, *rendered.edits, *sanitized.edits, *without, *replaced),
        losses=(*plan.losses, *lost, *repaired.losses, *rendered.losses, *sanitized.losses),
        view=repaired.view,
        target=plan.target,
        thinking_off=repaired.thinking_off,
    )


def tools_for(plan: Plan, view: Sequence[Shown]) -> tuple[tuple[Tool, ...], list[Edit]]:
    """The tools of a request that shows a repaired view, and what was changed about them."""
    if plan.complete or plan.rules.tools_required:
        return declare_tools(view, plan.local.tools, plan.rules)
    return named_tools(plan.local.tools, plan.rules)


def spelled(view: Sequence[Shown], plan: Plan, blob: BlobReader) -> list[Any]:
    """The wire messages of a view by themselves, not repaired."""
    local = msgspec.structs.replace(plan.local, tools=())
    return messages_of(plan.provider.render(view, local, plan.target, blob).body, plan)


def messages_of(request: Mapping[str, Any], plan: Plan) -> list[Any]:
    """The wire messages of a request, also of one that has a text or a single message in the place of their list."""
    said = request.get(plan.provider.conversation) or []
    if isinstance(said, str):
        return [{"role": "user", "content": said}]
    return [said] if isinstance(said, dict) else list(said)


def as_text(value: Any) -> tuple[Any, tuple[Edit, ...]]:
    """JSON that can be sent: what is left of lone surrogates, outside the conversation's own texts (in
    names, settings, schemas), becomes U+FFFD, which is an edit."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return _replaced(value), (Edit("text", "lone surrogates in names or settings sent as U+FFFD"),)
    return value, ()


def _as_finite(value: Any) -> tuple[Any, tuple[Edit, ...]]:
    """What JSON can hold of a request: infinity and NaN, in whatever bodies hold beside the conversation, are left out.
    A null in their place would be no schema."""
    if is_finite_json(value) or (kept := _finite(value)) == value:
        return value, ()
    return kept, (Edit("setting", "Infinity or NaN left out, which JSON does not have"),)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items() if not _is_infinite(item)}
    return [_finite(item) for item in value if not _is_infinite(item)] if isinstance(value, (list, tuple)) else value


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and not isfinite(value)


def _replaced(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_replaced(key): _replaced(item) for key, item in value.items()}
    return [_replaced(item) for item in value] if isinstance(value, list) else value


def as_known(view: Sequence[Shown], to: Provider, blob: BlobReader, losses: list[Loss]) -> list[Shown]:
    """The view with media as they really are, and without what the provider would not know."""
    return without_unknown(sniff(view, blob, losses, text_documents=to.text_documents), to, losses)


def without_unknown(view: Sequence[Shown], to: Provider, losses: list[Loss]) -> list[Shown]:
    """The view without opaque parts of the provider's own that it does not take in requests."""
    out: list[Shown] = []
    for shown in view:
        if not any(isinstance(part, Opaque) for part in shown.message.parts):
            out.append(shown)
            continue
        kept: list[Part] = []
        for part in shown.message.parts:
            if isinstance(part, Opaque) and part.provider == to.name and not to.knows(part):
                losses.append(Loss("opaque", f"{part.kind} left out: {to.name} takes none in a request", shown.records))
            else:
                kept.append(part)
        if kept or not shown.message.parts:
            out.append(with_parts(shown, tuple(kept)))
    return out
