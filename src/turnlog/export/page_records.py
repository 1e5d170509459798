"""Records as HTML: messages, decisions, settings and notes in full, other records in one line."""

from __future__ import annotations

from collections.abc import Iterator

from ..log.records import Record
from .description import Badge, Description, Standing, describe
from .markup import Markup, end, start, tag, text
from .page_parts import PartWriter, linked

_COLOURED = ("system", "user", "assistant", "decision", "summary")


class RecordWriter:
    """Writes the records of one session. Records that `standing` lists as left out, shortened or taken back are
    marked."""

    def __init__(self, parts: PartWriter, standing: Standing) -> None:
        self._parts = parts
        self._standing = standing

    def record(self, record: Record) -> Iterator[Markup]:
        """A record, in chunks of markup."""
        one = describe(record, self._standing)
        if not one.is_said and not one.blocks:
            yield _line(one)
            return
        yield _head(one)
        yield from self._parts.blocks(one.blocks, one.n)
        if not one.blocks:
            yield tag("p", text("(empty)"), class_="small")
        yield end("article")


def _head(one: Description) -> Markup:
    """The beginning of a record, before its content."""
    head = tag(
        "header",
        tag("a", text(str(one.n)), href=f"#r{one.n}", class_="n"),
        tag("b", text(one.kind.title(), one_line=True)),
        tag("span", *linked(one.headline), class_="more"),
        *_marks(one),
    )
    kind = one.kind if one.kind in _COLOURED else "other"
    return Markup(start("article", id=f"r{one.n}", class_=f"{kind}{' gone' if one.is_hidden else ''}") + head)


def _line(one: Description) -> Markup:
    return tag(
        "p",
        tag("a", text(str(one.n)), href=f"#r{one.n}", class_="n"),
        tag("span", text(one.kind), class_="badge"),
        text(" "),
        *linked(one.headline),
        *_marks(one),
        id=f"r{one.n}",
        class_="event",
    )


def _marks(one: Description) -> Iterator[Markup]:
    """The badges of a record, and its time."""
    yield from map(_badge, one.badges)
    if one.redacted:
        yield tag("span", text(f"secrets replaced: {one.redacted}", one_line=True), class_="badge")
    yield tag("time", text(one.time, one_line=True))


def _badge(badge: Badge) -> Markup:
    words = (badge.words, " ", badge.link) if badge.link else (badge.words,)
    return tag("span", *linked(words), class_="badge warn", title=badge.title or None)
