"""What a summarizer is given, and what it owes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from ..view.compaction.situation import Wanted
from ..view.types import Shown


class Material(Struct, frozen=True, kw_only=True):
    """What is to be summarised, and how long the text may be.

    `messages` are the originals, oldest first, with their record numbers; where a summary is renewed, they may
    be all that the one before covered and what is new. `previous` is the summary that this one takes the place
    of, "" if there was none. `kept` stays in the view besides and need not be said again. `target` is the most
    tokens that the text may have, as `count` counts a text. `size` is how many tokens leave the view for it, 0 if that
    is not known. `news` are those of the messages that `previous` does not tell of: all of them if there is none.
    """

    messages: tuple[Shown, ...]
    target: int
    count: Callable[[str], int]
    previous: str = ""
    kept: tuple[Shown, ...] = ()
    size: int = 0
    news: tuple[Shown, ...] = ()

    @classmethod
    def of(cls, wanted: Wanted, count: Callable[[str], int]) -> Material:
        """The material of a summary that a view wants."""
        return cls(
            messages=tuple(wanted.messages),
            target=wanted.target,
            count=count,
            previous=wanted.previous,
            kept=tuple(wanted.beside),
            size=wanted.size,
            news=tuple(wanted.news),
        )


class Summarizer(Protocol):
    """Makes a text of messages. It may raise whatever it raises: the caller has other ways to make room."""

    @property
    def id(self) -> str:
        """Name and version; results are kept by it, so a change of what it says changes the version."""
        ...

    def summarize(self, material: Material, /) -> str:
        """The summary, at most `material.target` tokens."""
        ...
