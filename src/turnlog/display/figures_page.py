"""The page of figures over all sessions: cost and tokens by day, model, project and agent, and how tools fared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from statistics import median
from urllib.parse import urlencode

from msgspec import Struct

from .._platform.times import since, until
from .._platform.units import counted
from ..log.bills import Bills, added, total_usage
from ..log.store import Store
from ..models.pricing import total_cost
from .charts import Series, bar, columns
from .escapes import Markup, end, join, start, tag, text
from .frame import Ways, framed
from .listing import KnownSession, Listing, ToolTally, day_of
from .pieces import field, folded, line, link, table, wrong
from .sessions_page import Filters, seen, shortfalls
from .wording import amounts

_DAYS = 30
"""So many days are drawn unless all are asked for."""

_ROWS = 25
"""Rows of a table; what the others cost is their sum."""


class _Figures(Struct, frozen=True):
    """The bills by day, model, project and agent, and the tools by name."""

    days: dict[str, Bills]
    models: dict[str, Bills]
    projects: dict[str, Bills]
    agents: dict[str, Bills]
    tools: dict[str, ToolTally]


def figures_page(
    store: Store, query: Mapping[str, str], ways: Ways, listing: Listing | None = None
) -> Iterator[Markup]:
    """The figures of the days that a query asks for (`since`, `until`; `all`: draw all days), in chunks of markup."""
    filters, mistakes = Filters.of({name: query[name] for name in ("since", "until") if name in query})
    infos = store.sessions()
    listing = listing or Listing(store)
    known = listing.with_calls(infos)
    first = day_of(since(filters.since)) if filters.since else ""
    last = day_of(until(filters.until)) if filters.until else "~"
    figures = listing.remembered(known, ("figures", first, last), lambda: _read(known.values(), first, last))
    asked = {"since": filters.since, "until": filters.until}
    inside = _figures(figures, known.values(), mistakes, ways, asked, draws_all=bool(query.get("all")))
    return framed("Figures", ways, inside, kind="figures", here="Figures")


def _figures(
    figures: _Figures,
    known: Collection[KnownSession],
    mistakes: Iterable[str],
    ways: Ways,
    asked: dict[str, str],
    *,
    draws_all: bool,
) -> Iterator[Markup]:
    yield tag("h1", text("Figures"))
    if ways.is_served:
        yield start("form", method="get", action=ways.figures(), class_="find")
        for name, value in asked.items():
            yield field(name.capitalize(), name, value, placeholder="30d, 2026-01-31", size="12")
        yield tag("button", text("Show"), type="submit")
        yield end("form")
        yield from map(wrong, mistakes)
    yield from _total(figures, known)
    if any(figures.days):
        yield from _days(figures.days, ways, asked, draws_all=draws_all)
    tables = (
        ("Model", "model", figures.models),
        ("Project", "folder", figures.projects),
        ("Agent", "agent", figures.agents),
    )
    for heading, name, bills in tables:
        order = sorted(bills, key=lambda each: (*_weight(bills[each]), each), reverse=True)
        yield from _section(f"{heading}s", (heading, *_HEADS), _rows(bills, order, (name,), ways, asked))
    yield from _tools(figures.tools, ways)


def _read(known: Iterable[KnownSession], first: str, last: str) -> _Figures:
    sums: tuple[dict[str, list[Bills]], ...] = ({}, {}, {}, {})
    tools: dict[str, ToolTally] = {}
    for each in known:
        for day, bills in each.days.items():
            if first <= day <= last:
                sums[0].setdefault(day, []).append(bills)
                sums[2].setdefault(each.facts.folder, []).append(bills)
                sums[3].setdefault(each.facts.agent, []).append(bills)
                for model, usage in bills.items():
                    sums[1].setdefault(model, []).append({model: usage})
        for (day, name), tool in each.tools.items():
            if first <= day <= last:
                tools[name] = tools.get(name, ToolTally()) + tool
    days, models, projects, agents = ({name: added(some) for name, some in each.items()} for each in sums)
    return _Figures(days, models, projects, agents, tools)


def _total(figures: _Figures, known: Collection[KnownSession]) -> Iterator[Markup]:
    """All tokens and dollars in a line, and what is not in them."""
    bill = added(figures.days.values())
    tokens, cost = amounts(bill)
    cached, calls = _cached(bill), sum(tool.calls for tool in figures.tools.values())
    words = f"{tokens} tokens, {cost}" + (f", {cached} of the input from the cache" if cached else "")
    yield tag("p", tag("b", text(f"{words}, {counted(calls, 'call')}")), class_="total")
    unpriced = ", ".join(name or "a model without a name" for name in total_cost(bill).unpriced)
    notes = [*shortfalls(cost + tokens, known), *([f"no full price for {unpriced}"] if unpriced else [])]
    yield from map(line, notes)


def _cached(bills: Bills) -> str:
    """How much of the input came from the cache."""
    usage = total_usage(bills)
    return f"{usage.cached / usage.input:.0%}" if usage.input else ""


def _weight(bills: Bills) -> tuple[float, int]:
    """Dollars and tokens, to compare bills."""
    return float(total_cost(bills).at_least), sum(usage.input + usage.output for usage in bills.values())


def _days(days: Mapping[str, Bills], ways: Ways, asked: dict[str, str], *, draws_all: bool) -> Iterator[Markup]:
    """Cost and tokens by day as columns, and as a table."""
    dated = sorted(filter(None, days))
    hidden = 0 if draws_all else max(0, len(dated) - _DAYS)
    drawn = dated[hidden:]
    yield start("section", class_="days", aria_label="By day")
    yield tag("h2", text("Days with use"))
    costs, tokens = zip(*(_weight(days[day]) for day in drawn), strict=True)
    yield columns("Cost", [Series("cost", "user", costs)], drawn, lambda dollars: f"${dollars:,.2f}")
    yield columns("Tokens", [Series("tokens", "user", tokens)], drawn, lambda number: f"{number:,.0f} tokens")
    if hidden:
        query = urlencode({name: value for name, value in {"all": "1", **asked}.items() if value})
        words = f"{counted(hidden, 'earlier day')} with use"
        yield line("", link(words, f"{ways.figures()}?{query}" if ways.is_served else ""))
    rows = _rows(days, drawn[::-1], ("since", "until"), ways, asked, most=len(drawn))
    yield folded("The days as a table", table("Days", ("Day", *_HEADS), rows, words={4}))
    if "" in days:
        yield line(f"{amounts(days[''])[0]} tokens have no date.")
    yield end("section")


# -- tables ----------------------------------------------------------------------------------------

_HEADS = ("Tokens", "Cost", "From cache", "Share")


def _section(heading: str, heads: Sequence[str], rows: Sequence[Sequence[Markup]]) -> Iterator[Markup]:
    """A table below a heading, if it has rows; bars stand in its last column."""
    if rows:
        inside = table(heading, heads, rows, words={len(heads) - 1})
        yield tag("section", tag("h2", text(heading)), inside, aria_label=heading)


def _rows(
    bills: Mapping[str, Bills],
    order: Sequence[str],
    filters: Iterable[str],
    ways: Ways,
    asked: dict[str, str],
    *,
    most: int = _ROWS,
) -> list[list[Markup]]:
    """What each name was billed, with a bar of the cost, or of tokens where no price is known; the last of many as
    one sum. A name leads to the sessions for which these `filters` are that name."""
    weights = {name: _weight(bills[name]) for name in order[:most]}
    by = 0 if any(cost for cost, _ in weights.values()) else 1
    largest = max((weight[by] for weight in weights.values()), default=0)
    rows = []
    for name, weight in weights.items():
        to = ways.sessions(**{**asked, **dict.fromkeys(filters, seen(name))}) if ways.is_served and name else ""
        rows.append([link(name or "(not known)", to), *_billed(bills[name]), bar([("user", weight[by])], largest)])
    if rest := order[most:]:
        rows.append([text(f"{len(rest):,} others"), *_billed(added(bills[name] for name in rest)), text("")])
    return rows


def _billed(bills: Bills) -> Iterator[Markup]:
    yield from map(text, (*amounts(bills), _cached(bills)))


def _tools(tools: Mapping[str, ToolTally], ways: Ways) -> Iterator[Markup]:
    """The tools, those that failed most first."""
    order = sorted(tools, key=lambda name: (-tools[name].failed, -tools[name].calls, name))
    shown = [(name, tools[name]) for name in order[:_ROWS]]
    rest = ToolTally()
    for name in order[_ROWS:]:
        rest += tools[name]
    rows = []
    for name, tool in [*shown, *([(f"{len(order) - _ROWS:,} others", rest)] if rest.calls else [])]:
        linked = ways.is_served and name and tool is not rest
        to = ways.sessions(tool=seen(name), errors="1" if tool.failed else "") if linked else ""
        time = f"{median(tool.seconds):.2f} s" if tool.seconds else ""
        figures = map(text, (f"{tool.calls:,}", f"{tool.failed:,}", time))
        share = [bar([("bad", tool.failed)], tool.calls), text(f" {tool.failed / tool.calls:.0%}")]
        rows.append([link(name or "(no name)", to), *figures, join(share)])
    yield from _section("Tools", ("Tool", "Calls", "Failed", "Median time", "Share failed"), rows)
