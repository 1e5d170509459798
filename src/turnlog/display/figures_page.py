"""The page of figures over all sessions: cost and tokens by day, model, project and agent, and how tools fared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from urllib.parse import urlencode

from .._platform.times import since, until
from .._platform.units import counted
from ..log.bills import Bills, added
from ..log.store import Store
from ..models.pricing import total_cost
from .charts import Series, bar, columns
from .escapes import Markup, end, join, start, tag, text
from .frame import Ways, foot, head, opening
from .listing import KnownSession, Listing, ToolTally, day_of, seen
from .pieces import folded, line, link, table, wrong
from .sessions_page import Query, being_read, cached_share, span_fields, totals
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
    infos = store.sessions()
    known = listing.known(infos, wait=False) if listing else Listing(store).with_calls(infos)
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
    if infos and not known:
        yield being_read("Figures")
    else:
        calls = counted(sum(tool.calls for tool in tools.values()), "call")
        yield from totals(calls, added(sums["day"].values()), known.values())
    span = {"since": asked.since, "until": asked.until}
    if any(sums["day"]):
        yield from _days(sums["day"], ways, span, draws_all=bool(query.get("all")))
    for heading, name in (("Model", "model"), ("Project", "folder"), ("Agent", "agent")):
        bills = sums[name]
        order = sorted(bills, key=lambda each: (*_weight(bills[each]), each), reverse=True)
        yield from _section(f"{heading}s", (heading, *_HEADS), _rows(bills, order, (name,), ways, span))
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
    yield from map(text, (*amounts(bills), cached_share(bills)))


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
