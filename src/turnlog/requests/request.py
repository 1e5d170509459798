"""A finished request: its body, the changes made, and how much of the previous request it repeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from .._platform.lazy import cached_property
from .._platform.units import counted
from ..models.target import Target
from ..view.types import Edit, Loss, Shown


class CacheUse(Struct, frozen=True, repr_omit_defaults=True):
    """How much of the previous request this one repeats at its beginning.

    `tokens` is the size of this request, `previous` that of the previous one, and `shared` the tokens at the beginning
    that both have in common: a provider's prompt cache may still have these. If `shared` is less than `previous`, `why`
    tells what changed, in one word `changed` (`tools`, `settings`, `system` or `messages`), and `moved_by` is the
    number of the decision that caused it, 0 if no decision did.
    """

    tokens: int
    previous: int
    shared: int
    moved_by: int = 0
    why: str = ""
    changed: str = ""


class Request:
    """A request that can be sent as it is, and how it was made.

    Edits, losses and the token count are computed when first read.
    """

    def __init__(
        self,
        *,
        target: Target,
        body: Callable[[], dict[str, Any]],
        edits: Callable[[], tuple[Edit, ...]],
        losses: Callable[[], tuple[Loss, ...]],
        tokens: Callable[[], int],
        view: tuple[Shown, ...],
        fragments: tuple[bytes, ...] = (),
        thinking_off: bool = False,
    ) -> None:
        self.target = target
        self.thinking_off = thinking_off
        """Whether thinking is switched off against the settings, until the open tool loop closes."""
        self.view = view
        """The messages that the request shows."""
        self._body = body
        self._edits = edits
        self._losses = losses
        self._tokens = tokens
        self._fragments = fragments
        self.cache: CacheUse | None = None
        """How much of the previous request to the same target this one repeats; None for the first of a session."""
        self.compaction: Request | None = None
        """A request that asks the provider to compact this conversation, to be sent beside this one; its answer is for
        `Session.receive`. None unless the session's summarizer is "provider" and the request is nearly too large."""
        self.compacts = 0
        """The last record of the conversation that the request asks the provider to compact; 0 if it does not."""
        self.expected_cache_read = 0
        """The billed tokens that the provider is expected to read from its prompt cache."""

    @cached_property
    def body(self) -> dict[str, Any]:
        """A plain dict for the SDK call. It belongs to the caller: changing it does not affect other requests."""
        copied: dict[str, Any] = _copied(self._made)
        return copied

    @cached_property
    def _made(self) -> dict[str, Any]:
        """The body before it is copied. It may share parts with other requests and with their sources."""
        return self._body()

    @cached_property
    def edits(self) -> tuple[Edit, ...]:
        """The changes made so that the provider accepts the request, with the numbers of the records concerned."""
        return self._edits()

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """The content that the target does not accept, with the numbers of the records concerned."""
        return self._losses()

    @cached_property
    def tokens(self) -> int:
        """The tokens of the request, as `turnlog.count` counts them."""
        return self._tokens()

    def json(self) -> bytes:
        """The request as JSON, for an HTTP client."""
        return b"".join(self._fragments) or msgspec.json.encode(self._made)

    def after(self, edits: tuple[Edit, ...]) -> Request:
        """The same request, with earlier edits listed before its own."""
        return self._with(lambda: self._made, lambda: (*edits, *self.edits), self._fragments)

    def changed(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Request:
        """A copy with the body that `change` returns for this request's body; `change` must not modify its argument."""
        return self._with(lambda: change(self._made), lambda: self.edits)

    def _with(
        self,
        body: Callable[[], dict[str, Any]],
        edits: Callable[[], tuple[Edit, ...]],
        fragments: tuple[bytes, ...] = (),
    ) -> Request:
        return Request(
            target=self.target,
            body=body,
            edits=edits,
            losses=lambda: self.losses,
            tokens=lambda: self.tokens,
            view=self.view,
            fragments=fragments,
            thinking_off=self.thinking_off,
        )

    def __repr__(self) -> str:
        sizes = [counted(len(self.view), "message"), counted(self.tokens, "token")]
        changes = [counted(len(self.edits), "edit"), counted(len(self.losses), "loss")]
        return f"Request({', '.join([str(self.target), *sizes, *changes])})"


def _copied(value: Any) -> Any:
    """A copy of JSON with new dicts and lists; texts are shared, as they cannot be changed."""
    if isinstance(value, dict):
        return {key: _copied(item) if isinstance(item, (dict, list)) else item for key, item in value.items()}
    return [_copied(item) if isinstance(item, (dict, list)) else item for item in value]
