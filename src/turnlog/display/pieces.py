"""Pieces that several pages have: lines, sections with a heading, tables, and the way to other pages of a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from .escapes import Markup, start, tag, text


def line(words: str, *more: Markup, kind: str | None = "small") -> Markup:
    """A paragraph: words, and what follows them."""
    return tag("p", text(words, one_line=True), *more, class_=kind)


def wrong(words: str) -> Markup:
    """A line about something that is missing or cannot be done."""
    return line(words, kind="badge bad")


def badge(words: str, kind: str) -> Markup:
    """A word or two in a frame, whose colour is that of their kind."""
    return tag("span", text(words, one_line=True), class_=f"badge {kind}")


def link(words: str, to: str, **attributes: str) -> Markup:
    """A link, or its words alone if it leads nowhere."""
    inside = text(words, one_line=True)
    return tag("a", inside, href=to, **attributes) if to else inside


def folded(summary: str, *inside: Markup, kind: str | None = None) -> Markup:
    """What stands behind a line."""
    return tag("details", tag("summary", text(summary)), *inside, class_=kind)


def panel(heading: str, *inside: Markup) -> Markup:
    """A section with a heading."""
    return tag("section", tag("h2", text(heading)), *inside, class_="panel")


def field(label: str, name: str, value: str, **attributes: str) -> Markup:
    """A field of a form."""
    return tag("label", text(f"{label} "), start("input", name=name, value=value or None, **attributes))


def table(label: str, heads: Sequence[str], rows: Iterable[Sequence[Markup]], *, words: Collection[int] = ()) -> Markup:
    """A table of figures. The first cell of a row is its heading; columns in `words` have texts, others numbers."""
    classes = ["words" if i in {0, *words} else None for i in range(len(heads))]
    top = [tag("th", text(head), scope="col", class_=class_) for head, class_ in zip(heads, classes, strict=True)]
    body = []
    for first, *others in rows:
        cells = [tag("td", cell, class_=class_) for cell, class_ in zip(others, classes[1:], strict=True)]
        body.append(tag("tr", tag("th", first, scope="row", class_="words"), *cells))
    drawn = tag("table", tag("thead", tag("tr", *top)), tag("tbody", *body), class_="figures")
    return tag("div", drawn, class_="wide", tabindex="0", role="region", aria_label=label)


def turning(first: int, size: int, many: int, page: Callable[[int], str]) -> Markup:
    """Which of many rows stand here, from row `first` (0, 1, ...) on, and links to the pages before and after."""
    here, last = first // size + 1, (many - 1) // size + 1
    links = [link("Back", page(here - 1), rel="prev")] if here > 1 else []
    links += [link("Next", page(here + 1), rel="next")] if here < last else []
    words = text(f"{first + 1:,} to {min(first + size, many):,} of {many:,} rows")
    return tag("nav", tag("span", words), *links, class_="turn", aria_label="Other rows")
