"""Charts as SVG without a style or a script of their own, each with its figures in a table behind it.

Colours are classes of the style sheet (`c-NAME`). Texts stand in HTML beside the drawing, which is stretched to the
width of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec import Struct

from .escapes import Markup, tag, text

_WIDTH, _HEIGHT = 1_000, 140
_COLUMNS = 200
"""At most this many columns: a column is then wide enough to be seen, and stands for several values if need be."""


class Series(Struct, frozen=True):
    """One colour of a chart: what it stands for, and a value for each column."""

    name: str
    colour: str
    values: Sequence[float]


def bar(title: str, parts: Iterable[tuple[str, int]], whole: int, marks: Iterable[tuple[str, int]] = ()) -> Markup:
    """One bar, divided by colour, within a width of `whole`; with a line at each of the `marks`. `title` tells readers
    who cannot see it what it shows."""
    scale, x = _WIDTH / max(1, whole), 0.0
    drawn = [tag("title", text(title, one_line=True))]
    drawn.append(_rect(0, 4, _WIDTH, 20, "c-free"))
    for colour, tokens in parts:
        drawn.append(_rect(x, 4, tokens * scale, 20, f"c-{colour}"))
        x += tokens * scale
    for colour, tokens in marks:
        drawn.append(_rect(min(tokens * scale, _WIDTH - 2), 0, 2, 28, f"c-{colour}"))
    return tag("svg", *drawn, role="img", class_="bar", viewBox=f"0 0 {_WIDTH} 28", preserveAspectRatio="none")


def columns(
    title: str,
    series: Sequence[Series],
    told: Callable[[float], str],
    *,
    marks: Sequence[int] = (),
    limit: float = 0,
    sums: bool = False,
) -> Markup:
    """Columns over time, stacked: a figure with a caption, a legend and the drawing. `told` writes a value in words,
    `marks` are the columns at which a line is drawn, `limit` is a value that gets a line across. Where there are more
    values than columns, a column is the largest of its values, or with `sums` their sum."""
    number = max((len(each.values) for each in series), default=0)
    size = max(1, -(-number // _COLUMNS))
    bins = [range(i, min(i + size, number)) for i in range(0, number, size)]
    shown = [_binned(series, each, sums=sums) for each in bins]
    top = max([sum(values) for values in shown] or [0])
    limit = limit if limit <= 3 * top else 0
    scale, step = _HEIGHT / max(top, limit, 1e-9), _WIDTH / max(1, len(bins))
    drawn = [tag("title", text(f"{title}, at most {told(top)}", one_line=True))]
    for i, each in enumerate(series):
        path = "".join(
            f"M{k * step:.1f} {_HEIGHT - scale * sum(values[:i]):.1f}h{step * 0.9:.1f}v{-scale * values[i]:.1f}"
            f"h{-step * 0.9:.1f}z"
            for k, values in enumerate(shown)
            if values[i]
        )
        drawn.append(tag("path", d=path or "M0 0", class_=f"c-{each.colour}"))
    places = sorted({mark // size for mark in marks})
    if places:
        drawn.append(
            tag("path", d="".join(f"M{k * step:.1f} 0v{_HEIGHT}h1.5v-{_HEIGHT}z" for k in places), class_="c-mark")
        )
    if limit:
        drawn.append(_rect(0, _HEIGHT - limit * scale, _WIDTH, 1.5, "c-limit"))
    svg = tag("svg", *drawn, role="img", viewBox=f"0 0 {_WIDTH} {_HEIGHT}", preserveAspectRatio="none")
    keys = [(each.name, each.colour) for each in series] if len(series) > 1 else []
    keys += [("decision", "mark")] if places else []
    keys += [(f"limit {told(limit)}", "limit")] if limit else []
    caption = tag("figcaption", tag("b", text(title)), text(f" at most {told(top)} "), *legend(keys))
    return tag("figure", caption, svg, class_="chart")


def legend(keys: Iterable[tuple[str, str]]) -> list[Markup]:
    """What the colours stand for: names and colours."""
    return [tag("span", text(name, one_line=True), class_=f"key c-{colour}") for name, colour in keys]


def table(
    caption: str, heads: Sequence[str], rows: Iterable[Sequence[Markup]], *, words: Collection[int] = ()
) -> Markup:
    """A table of figures. The first cell of a row is its heading; columns in `words` have texts, others numbers."""
    classes = ["words" if i in words else None for i in range(len(heads))]
    top = [tag("th", text(head), scope="col", class_=class_) for head, class_ in zip(heads, classes, strict=True)]
    body = []
    for first, *others in rows:
        cells = [tag("td", cell, class_=class_) for cell, class_ in zip(others, classes[1:], strict=True)]
        body.append(tag("tr", tag("th", first, scope="row", class_=classes[0]), *cells))
    inside = (tag("caption", text(caption)), tag("thead", tag("tr", *top)), tag("tbody", *body))
    drawn = tag("table", *inside, class_="figures")
    return tag("div", drawn, class_="wide", tabindex="0", role="region", aria_label=caption)


def _binned(series: Sequence[Series], places: range, *, sums: bool) -> list[float]:
    """The values of one column: those of its largest place, or their sums."""
    if sums:
        return [sum(each.values[i] for i in places) for each in series]
    largest = max(places, key=lambda i: sum(each.values[i] for each in series))
    return [each.values[largest] for each in series]


def _rect(x: float, y: float, width: float, height: float, class_: str) -> Markup:
    return tag("rect", x=f"{x:.1f}", y=f"{y:.1f}", width=f"{width:.1f}", height=f"{height:.1f}", class_=class_)
