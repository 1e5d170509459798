"""The interface of summarizers: the material they are given, and the method they have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from ..view.types import Shown

if TYPE_CHECKING:
    from ..view.compaction.situation import SummaryRequest

TIMEOUT = 5.0
"""Seconds that a request waits for a summarizer."""


class Material(Struct, frozen=True, kw_only=True):
    """The messages to summarise, and how long the summary may be.

    `messages` are the originals, oldest first, with their record numbers. `previous` is the earlier summary that this
    one replaces, "" if there is none. If an earlier summary is renewed, `messages` may hold all that it covered and the
    new ones; `news` are the messages that `previous` does not cover (all of them without `previous`). `kept` are
    messages that stay in requests; the summary need not repeat them, and a model is told so. `target` is the most
    tokens of the summary, counted with `count`. `size` is the number of tokens that the summary replaces, 0 if it is
    not known. `reflective`: the model that goes on from the summary reasons by itself and needs the user's requests
    alone.
    """

    messages: tuple[Shown, ...]
    target: int
    count: Callable[[str], int]
    previous: str = ""
    kept: tuple[Shown, ...] = ()
    size: int = 0
    news: tuple[Shown, ...] = ()
    reflective: bool = False

    @classmethod
    def of(cls, wanted: SummaryRequest, count: Callable[[str], int], *, reflective: bool = False) -> Material:
        """The material for a summary that a compaction wants."""
        return cls(
            messages=tuple(wanted.messages),
            target=wanted.target,
            count=count,
            previous=wanted.previous,
            kept=tuple(wanted.beside),
            size=wanted.size,
            news=tuple(wanted.news),
            reflective=reflective,
        )


def beside(summarizer: Summarizer, request: Callable[[], Any]) -> Summarizer:
    """The summarizer for a summary that is made while `request` is sent. One with a method `for_request` is given the
    request: it may ask the session's own model, which has read all of it."""
    for_request = getattr(summarizer, "for_request", None)
    prepared: Summarizer = summarizer if for_request is None else for_request(request())
    return prepared


class Summarizer(Protocol):
    """Writes a summary of messages. It may raise any exception: the caller has other ways to make room.

    One with an attribute `patience` of 0 is asked ahead of need only: no request waits for it."""

    @property
    def id(self) -> str:
        """Name and version. Stored summaries are found again by it, so change the version whenever the summaries
        change."""
        ...

    def summarize(self, material: Material, /) -> str | Awaitable[str]:
        """The summary, at most `material.target` tokens. May be asynchronous."""
        ...
