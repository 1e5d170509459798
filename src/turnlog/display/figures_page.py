"""The page of figures over all sessions: cost and tokens by day, model, project and agent, and how tools fared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median
from urllib.parse import urlencode

from .._platform.times import since, until
from .._platform.units import counted
from ..log.bills import Bills, added
from ..log.store import Store
from ..models.pricing import total_cost
from .escapes import Markup, end, join, start, tag, text
from .frame import Ways, foot, head, opening
from .listing import KnownSession, Listing, ToolTally, day_of
from .pieces import wrong
from .sessions_page import Query, cached_share, seen, span_fields, totals
from .wording import amounts

_DAYS = 30
"""So many days are drawn unless all are asked for."""

_ROWS = 25
"""Rows of a table; what the others cost is their sum."""


_Sums = dict[str, dict[str, Bills]]


def figures_page(
    store: Store, query: Mapping[str, str], ways: Ways, listing: Listing | None = None
) -> Iterator[Markup]:
    """The figures of the days that a query asks for (`since`, `until`; `all`: draw all days), in chunks of markup."""
    asked, mistakes = Query.of({name: query[name] for name in ("since", "until") if name in query})
    known = (listing or Listing(store)).with_calls(store.sessions())
    first = day_of(since(asked.since)) if asked.since else ""
    last = day_of(until(asked.until)) if asked.until else "~"
    sums, tools = _read(known.values(), first, last)
    yield head("Figures", ways)
    yield from opening(ways, here="Figures")
    yield start("main", class_="figures")
    yield tag("h1", text("Figures"))
    if ways.is_served:
        button = tag("button", text("Show"), type="submit")
        yield tag("form", span_fields(asked), button, method="get", action=ways.figures(), class_="find")
    yield from map(wrong, mistakes)
    calls = counted(sum(tool.calls for tool in tools.values()), "call")
    yield from totals(calls, added(sums["day"].values()), known.values())
    if any(sums["day"]):
        yield from _days(sums["day"], ways, draws_all=bool(query.get("all")), asked=asked)
    for heading, name in (("Models", "model"), ("Projects", "folder"), ("Agents", "agent")):
        yield from _bills(heading, name, sums[name], ways, asked)
    yield from _tools(tools, ways)
    yield end("main")
    yield foot()


def _read(known: Iterable[KnownSession], first: str, last: str) -> tuple[_Sums, dict[str, ToolTally]]:
    """What was billed from one day to another by day, model, folder and agent, and the tools of these days."""
    sums: dict[str, dict[str, list[Bills]]] = {"day": {}, "model": {}, "folder": {}, "agent": {}}
    tools: dict[str, ToolTally] = {}
    for each in known:
        for day, bills in each.days.items():
            if first <= day <= last:
                for name, key in (("day", day), ("folder", each.facts.folder), ("agent", each.facts.agent)):
                    sums[name].setdefault(key, []).append(bills)
                for model, usage in bills.items():
                    sums["model"].setdefault(model, []).append({model: usage})
        for (day, name), tool in each.tools.items():
            if first <= day <= last:
                tools[name] = tools.get(name, ToolTally()) + tool
    return {name: {key: added(some) for key, some in each.items()} for name, each in sums.items()}, tools


def bar(share: float, *, kind: str = "") -> Markup:
    """A bar that fills a share of its width, from 0 to 1."""
    filled = start("rect", width=f"{max(0.0, min(share, 1.0)) * 100:.2f}", height="8", class_=kind or None)
    drawing = {"class_": "bar", "viewBox": "0 0 100 8", "preserveAspectRatio": "none", "aria_hidden": "true"}
    return tag("svg", filled, end("rect"), **drawing)


# -- days ------------------------------------------------------------------------------------------


def _days(days: Mapping[str, Bills], ways: Ways, *, draws_all: bool, asked: Query) -> Iterator[Markup]:
    """Cost and tokens by day as bars, and as a table."""
    dated = sorted(filter(None, days))
    hidden = 0 if draws_all else max(0, len(dated) - _DAYS)
    drawn = dated[hidden:]
    yield start("section", class_="days", aria_label="By day")
    yield tag("h2", text("Days with use"))
    tokens, costs, _ = zip(*(_spent(days[day]) for day in drawn), strict=True)
    yield _chart("Cost", drawn, [float(total_cost(days[day]).at_least) for day in drawn], costs)
    yield _chart("Tokens", drawn, [float(_tokens(days[day])) for day in drawn], tokens)
    if hidden:
        query = {"all": "1", "since": asked.since, "until": asked.until}
        inside = text(f"{counted(hidden, 'earlier day')} with use")
        to = f"{ways.figures()}?{urlencode({name: value for name, value in query.items() if value})}"
        yield tag("p", tag("a", inside, href=to) if ways.is_served else inside, class_="small")
    rows = _rows(
        {day: days[day] for day in reversed(drawn)},
        lambda day: ways.sessions(since=day, until=day) if ways.is_served else "",
    )
    table = _table(("Day", "Tokens", "Cost", "From cache", "Share"), rows)
    yield tag("details", tag("summary", text("The days as a table")), table)
    if "" in days:
        yield tag("p", text(f"{_spent(days[''])[0]} tokens have no date."), class_="small")
    yield end("section")


def _chart(name: str, days: Sequence[str], amounts: Sequence[float], words: Sequence[str]) -> Markup:
    """One bar for each day; the largest fills the height."""
    most = max(amounts) or 1.0
    step = 600 / len(days)
    bars = []
    for i, (day, amount, said) in enumerate(zip(days, amounts, words, strict=True)):
        height = max(amount / most * 100, 0.5 if amount else 0.0)
        place = {"x": f"{i * step:.2f}", "width": f"{step * 0.8:.2f}", "y": f"{100 - height:.2f}"}
        bars.append(tag("rect", tag("title", text(f"{day}: {said}")), height=f"{height:.2f}", **place))
    top = amounts.index(max(amounts))
    told = f"{name} by day: most {words[top]} on {days[top]}"
    drawing = {"viewBox": "0 0 600 100", "preserveAspectRatio": "none", "role": "img", "aria_label": told}
    return tag(
        "figure",
        tag(
            "figcaption", tag("b", text(name)), tag("span", text(f" most {words[top]} on {days[top]}"), class_="small")
        ),
        tag("svg", *bars, class_="chart", **drawing),
        tag("div", tag("span", text(days[0])), tag("span", text(days[-1])), class_="ends small"),
    )


# -- tables ----------------------------------------------------------------------------------------

_Row = tuple[str, str, tuple[str, ...], Markup]
"""A row of a table: its name, where it leads (empty: nowhere), its figures, its bar."""


def _bills(heading: str, name: str, bills: Mapping[str, Bills], ways: Ways, asked: Query) -> Iterator[Markup]:
    """What each model, project or agent cost, the most expensive first."""
    costs = {each: total_cost(some).at_least for each, some in bills.items()}
    order = sorted(bills, key=lambda each: (costs[each], _tokens(bills[each]), each), reverse=True)

    def link(value: str) -> str:
        return asked.link(ways, **{name: seen(value)}) if ways.is_served and value else ""

    rows = [*_rows({each: bills[each] for each in order[:_ROWS]}, link)]
    if rest := order[_ROWS:]:
        rows.append((f"{len(rest):,} others", "", _spent(added(bills[each] for each in rest)), text("")))
    if rows:
        heads = (heading[:-1], "Tokens", "Cost", "From cache", "Share")
        yield tag("section", tag("h2", text(heading)), _table(heads, rows), aria_label=heading)


def _spent(bills: Bills) -> tuple[str, str, str]:
    """Tokens, cost, and how much of the input came from the cache."""
    return *amounts(bills), cached_share(bills)


def _tokens(bills: Bills) -> int:
    return sum(usage.input + usage.output for usage in bills.values())


def _rows(bills: Mapping[str, Bills], link: Callable[[str], str]) -> Iterator[_Row]:
    """Rows with a bar of the cost, or of tokens where no price is known."""
    costs = {name: float(total_cost(some).at_least) for name, some in bills.items()}
    amounts = costs if any(costs.values()) else {name: float(_tokens(some)) for name, some in bills.items()}
    most = max(amounts.values(), default=0.0) or 1.0
    for name, some in bills.items():
        yield name or "(not known)", link(name), _spent(some), bar(amounts[name] / most)


def _table(names: tuple[str, ...], rows: Iterable[_Row]) -> Markup:
    """A table whose first column has names, the last bars, and those between them figures."""
    kinds = (None, *["fig"] * (len(names) - 2), None)
    heads = (tag("th", text(name), scope="col", class_=kind) for name, kind in zip(names, kinds, strict=True))
    body = []
    for name, to, figures, drawn in rows:
        words = text(name, one_line=True)
        cells = (tag("td", text(words), class_="fig") for words in figures)
        first = tag("th", tag("a", words, href=to) if to else words, scope="row")
        body.append(tag("tr", first, *cells, tag("td", drawn, class_="share")))
    return tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *body), class_="sums")


def _tools(tools: Mapping[str, ToolTally], ways: Ways) -> Iterator[Markup]:
    """The tools, those that failed most first."""
    order = sorted(tools, key=lambda name: (-tools[name].failed, -tools[name].calls, name))
    rows: list[_Row] = []
    for name in order[:_ROWS]:
        tool, share = tools[name], tools[name].failed / tools[name].calls
        to = ways.sessions(tool=seen(name), errors="1" if tool.failed else "") if ways.is_served and name else ""
        figures = (f"{tool.calls:,}", f"{tool.failed:,}", f"{median(tool.seconds):.2f} s" if tool.seconds else "")
        rows.append((name or "(no name)", to, figures, join([bar(share, kind="bad"), text(f" {share:.0%}")])))
    if rest := [tools[name] for name in order[_ROWS:]]:
        calls, failed = sum(tool.calls for tool in rest), sum(tool.failed for tool in rest)
        rows.append((f"{len(rest):,} others", "", (f"{calls:,}", f"{failed:,}", ""), text(f"{failed / calls:.0%}")))
    if rows:
        heads = ("Tool", "Calls", "Failed", "Median time", "Share failed")
        yield tag("section", tag("h2", text("Tools")), _table(heads, rows), aria_label="Tools")
