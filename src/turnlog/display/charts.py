"""Charts as SVG without a style or a script of their own. Colours are classes of the style sheet (`c-NAME`); texts
stand in HTML beside a drawing, which is stretched to the width of the page."""

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


def bar(parts: Iterable[tuple[str, float]], whole: float, marks: Iterable[float] = (), title: str = "") -> Markup:
    """One bar, divided into colours and their sizes, within a width of `whole`; with a line at each of the `marks`.
    `title` tells who cannot see it what it shows; empty if that stands beside it."""
    scale, x = _WIDTH / (whole or 1), 0.0
    drawn = [_rect(0, 4, _WIDTH, 20, "free")]
    for colour, size in parts:
        width = max(0.0, min(size * scale, _WIDTH - x))
        drawn.append(_rect(x, 4, width, 20, colour))
        x += width
    drawn += [_rect(min(mark * scale, _WIDTH - 2), 0, 2, 28, "mark") for mark in marks]
    return _svg(drawn, 28, title, class_="bar")


def columns(
    title: str,
    series: Sequence[Series],
    names: Sequence[str],
    told: Callable[[float], str],
    *,
    marks: Collection[int] = (),
) -> Markup:
    """Columns over time, stacked: a figure with a caption, a legend and the drawing. `names` are those of the columns,
    `told` writes a value in words, `marks` are the columns at which a line is drawn. Where there are more values than
    columns, a column is the largest of its values."""
    sums = [sum(values) for values in zip(*(each.values for each in series), strict=True)]
    size = -(-len(sums) // _COLUMNS)
    bins = [range(i, min(i + size, len(sums))) for i in range(0, len(sums), size)]
    most = max(range(len(sums)), key=sums.__getitem__)
    scale, step = _HEIGHT / (sums[most] or 1), _WIDTH / len(bins)
    drawn = []
    for k, places in enumerate(bins):
        i, y = max(places, key=sums.__getitem__), float(_HEIGHT)
        column = [tag("title", text(f"{names[i]}: {told(sums[i])}", one_line=True))]
        for each in series:
            height = scale * each.values[i]
            y -= height
            column += [_rect(k * step, y, step * 0.9, height, each.colour)] if height else []
        column += [_rect(k * step, 0, 1.5, _HEIGHT, "mark")] if any(place in marks for place in places) else []
        drawn.append(tag("g", *column))
    keys = [(each.name, each.colour) for each in series if len(series) > 1]
    keys += [("decision", "mark")] if marks else []
    at_most = f"at most {told(sums[most])} ({names[most]})"
    caption = tag("figcaption", tag("b", text(title)), text(f" {at_most} ", one_line=True), *legend(keys))
    ends = tag("div", *(tag("span", text(name, one_line=True)) for name in (names[0], names[-1])), class_="ends small")
    return tag("figure", caption, _svg(drawn, _HEIGHT, f"{title}, {at_most}"), ends, class_="chart")


def legend(keys: Iterable[tuple[str, str]]) -> list[Markup]:
    """What the colours stand for: names and colours."""
    return [tag("span", text(name, one_line=True), class_=f"key {_colour(colour)}") for name, colour in keys]


def _svg(drawn: Iterable[Markup], height: int, title: str, **attributes: str) -> Markup:
    seen = {"role": "img", "aria_label": title} if title else {"aria_hidden": "true"}
    return tag("svg", *drawn, viewBox=f"0 0 {_WIDTH} {height}", preserveAspectRatio="none", **seen, **attributes)


def _rect(x: float, y: float, width: float, height: float, colour: str) -> Markup:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
    return tag("rect", **place, class_=_colour(colour))


def _colour(name: str) -> str:
    return f"c-{name.replace(' ', '-')}"
