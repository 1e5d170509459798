"""The page of all sessions: a search, filters, and the sessions that fit as a table, with what they cost together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import chain, groupby
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import asdict

from .._platform.times import TIMES, ago, day, since, until
from .._platform.units import counted
from ..errors import SessionNotFound
from ..log.bills import Bills, added, total_usage
from ..log.store import SessionInfo, Store
from ..models.pricing import total_cost
from ..session.titles import first_words
from ..stores.ids import Family, families
from ..stores.labels import OF_TRANSPORT
from .escapes import Markup, end, join, start, tag, text
from .frame import Ways, foot, head, opening
from .listing import Known, KnownSession, Listing, facts_known, is_in_folder, seen
from .pieces import badge, field, folded, line, link, turning, wrong
from .search_hits import hits, when
from .wording import amounts

_ROWS = 100
"""Rows of a page; also the most forks and subagents that are listed below one. Links lead to more."""

_OFFERED = 200
"""At most so many agents, models, labels and folders are offered to choose from."""

_DEEPEST = 6
"""Sessions of a family that are deeper are drawn at this depth."""

_COUNTING = "…"
"""In place of a figure that is not known yet."""

_COLUMNS = ("Title", "Agent", "Model", "Project", "When", "Messages", "Tokens", "Cost")
_FIGURES = ("Messages", "Tokens", "Cost")
_SORTS = {"When": "", "Tokens": "tokens", "Cost": "cost"}
"""The columns by which rows can be sorted, and what that is called in a query."""

_GROUPS = ("day", "project")


def _dollars(written: str) -> Decimal:
    """A number of dollars that a person wrote. Raises ValueError or ArithmeticError."""
    if not (amount := Decimal(written)).is_finite():
        raise ValueError(written)
    return amount


_READ: dict[str, tuple[Callable[[str], object], str]] = {
    "since": (since, TIMES),
    "until": (until, TIMES),
    "cost": (_dollars, "a number of dollars"),
    "group": (_GROUPS.index, "day or project"),
    "sort": ((*_SORTS.values(), "failures").index, "tokens, cost or failures"),
    "page": (int, "the number of a page"),
}
"""What reads a value of a query, and what the value should be."""


class Query(Struct, frozen=True):
    """What sessions are asked for, and how they are shown. `family` is the id of a session: it, its forks and all their
    subagents."""

    q: str = ""
    agent: str = ""
    folder: str = ""
    since: str = ""
    until: str = ""
    model: str = ""
    label: str = ""
    cost: str = ""
    errors: str = ""
    tool: str = ""
    family: str = ""
    group: str = ""
    sort: str = ""
    page: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> tuple[Query, list[str]]:
        """What an address asks for, without values that cannot be read, which the second value tells."""
        given = {name: seen(query.get(name, "").strip()) for name in cls.__struct_fields__}
        mistakes = []
        for name, (read, meant) in _READ.items():
            try:
                if given[name]:
                    read(given[name])
            except (ValueError, ArithmeticError):
                mistakes.append(f"{name}: {given[name]!r:.80} is not {meant}")
                given[name] = ""
        return cls(**given), mistakes

    @property
    def needs_calls(self) -> bool:
        """Whether the calls of every session have to be known."""
        return bool(self.errors or self.tool or self.sort == "failures")

    @property
    def needs_known(self) -> bool:
        """Whether more has to be known of every session than the store lists."""
        asked = (self.agent, self.folder, self.model, self.label, self.cost, self.sort)
        return any(asked) or self.needs_calls or self.group == "project"

    def link(self, ways: Ways, **changes: str) -> str:
        """The address of the list with something changed, from its first page on."""
        return ways.sessions(**{**asdict(self), "page": "", **changes})

    def chosen(self, infos: Sequence[SessionInfo], known: Known) -> list[SessionInfo]:
        """The sessions that fit, in the same order."""
        if self.family:
            members = ((row.info, *row.folded) for row in families(infos))
            infos = next((each for each in members if any(seen(info.id) == self.family for info in each)), ())
        first, last = since(self.since) if self.since else "", until(self.until) if self.until else "~"
        infos = [info for info in infos if info.updated >= first and info.created <= last]
        if not self.needs_known:
            return infos
        folders = {known[info.id].facts.folder for info in infos if info.id in known} if self.folder else ()
        inside = {folder for folder in folders if is_in_folder(seen(folder), self.folder)}
        return [info for info in infos if info.id in known and self._fits(known[info.id], inside)]

    def _fits(self, known: KnownSession, folders: Collection[str]) -> bool:
        facts = known.facts
        name, _, value = self.label.partition("=")
        labels = {seen(key): seen(held) for key, held in facts.labels.items()} if name else {}
        return (
            (not self.agent or seen(facts.agent).startswith(self.agent.lower()))
            and (not self.folder or facts.folder in folders)
            and (not self.model or any(seen(model) == self.model for model in known.bills))
            and (not self.label or (labels.get(name, "") == value if "=" in self.label else name in labels))
            and (not self.cost or known.cost >= _dollars(self.cost))
            and (not self.tool or bool(self.errors) or any(seen(tool) == self.tool for _, tool in known.tools))
            and (not self.errors or any(known.failures(self.tool)))
        )


def sessions_page(
    store: Store, query: Mapping[str, str], ways: Ways, listing: Listing | None = None
) -> Iterator[Markup]:
    """The page of the sessions that fit a query, in chunks of markup. Without a `listing`, all is read for this page;
    with one, figures are left out that it does not know yet, unless the query needs them."""
    asked, mistakes = Query.of(query)
    infos = store.sessions()
    reads_all = listing is None or asked.needs_calls
    listing = listing or Listing(store)
    known = listing.with_calls(infos) if reads_all else listing.known(infos, wait=asked.needs_known)
    chosen = asked.chosen(infos, known)
    yield head("Sessions", ways)
    yield from opening(ways, here="Sessions")
    yield start("main", class_="list")
    yield tag("h1", text("Sessions"))
    words = counted(len(chosen), "session")
    if infos and not known:
        yield being_read(words)
    else:
        held = [known[info.id] for info in chosen if info.id in known]
        yield from totals(words, added(each.bills for each in held), held)
    if ways.is_served:
        yield from _form(asked, known.values(), mistakes, ways)
        among = {info.id for info in chosen} if len(chosen) < len(infos) else None
        found = hits(store, asked.q, ways, among=among)
        yield tag("section", *found, id="hits", aria_live="polite", aria_label="Search results")
    if not infos:
        command = tag("code", text("turnlog import --discover"))
        after = text(" finds the transcripts of agents on this machine.")
        yield line("No sessions yet. ", command, after, kind="empty")
    elif not chosen:
        yield line("No session fits. ", link("Show all", ways.sessions()), kind="empty")
    elif not asked.q:
        yield from _Table(store, asked, known, ways).rows(chosen)
    yield end("main")
    yield foot()


def being_read(words: str) -> Markup:
    """The line of totals while there are none yet; the page loads itself again."""
    note = tag("span", text("tokens, cost and models are being read; load this page again"), class_="small")
    return tag("p", tag("b", text(words)), note, class_="total", data_again="")


def totals(words: str, bill: Bills, held: Collection[KnownSession]) -> Iterator[Markup]:
    """Tokens and cost of sessions in a line after these words, and what is not in them."""
    tokens, cost = amounts(bill)
    cached = cached_share(bill)
    words = f"{words}, {tokens} tokens, {cost}" + (f", {cached} of the input from the cache" if cached else "")
    unpriced = [name or "a model without a name" for name in total_cost(bill).unpriced]
    damaged = sum(each.is_damaged for each in held)
    unread = sum(each.told < each.records for each in held)
    notes = {
        "> a price or output is missing": ">" in words,
        f"no full price for {', '.join(unpriced)}": unpriced,
        f"{counted(damaged, 'session')} damaged, not counted in full: see turnlog verify": damaged,
        f"calls of {counted(unread, 'session')} not read yet": unread,
    }
    again = "" if any(each.told < 0 for each in held) else None  # not where a session just grew, which goes on
    yield tag("p", tag("b", text(words)), class_="total", data_again=again)
    yield from map(line, filter(notes.get, notes))


def cached_share(bill: Bills) -> str:
    """How much of the input came from the cache."""
    usage = total_usage(bill)
    return f"{usage.cached / usage.input:.0%}" if usage.input else ""


# -- the form --------------------------------------------------------------------------------------


def _form(asked: Query, known: Collection[KnownSession], mistakes: Iterable[str], ways: Ways) -> Iterator[Markup]:
    """The search and the filters, and what is set as links that unset it."""
    values = asdict(asked)
    is_set = {name: value for name, value in values.items() if value and name not in ("q", "sort", "page")}
    labels = {label for each in known for label in each.facts.labels.items() if not label[0].startswith(OF_TRANSPORT)}
    offered = {
        "agent": {each.facts.agent for each in known},
        "model": {model for each in known for model in each.bills},
        "label": {f"{name}={value}" for name, value in labels},
        "folder": {each.facts.folder for each in known},
    }
    yield start("form", method="get", action=ways.sessions(), class_="find", role="search")
    searching = {"data_hits": f"{ways.root}/hits", "aria_controls": "hits", "autocomplete": "off", "size": "40"}
    yield field("Search", "q", asked.q, type="search", placeholder="words, “phrases”, begin*", **searching)
    yield start("details", open="" if is_set else None)
    yield tag("summary", text("Filters"))
    yield start("div", class_="filters")
    for name, some in offered.items():
        options = (tag("option", value=each) for each in sorted(some - {""})[:_OFFERED])
        yield field(name.title(), name, values[name], list=f"{name}s", size="16")
        yield tag("datalist", *options, id=f"{name}s")
    yield span_fields(asked)
    yield field("Cost from $", "cost", asked.cost, inputmode="decimal", size="5")
    yield field("Errors", "errors", "1", type="checkbox", **({"checked": ""} if asked.errors else {}))
    yield join([end("div"), end("details"), tag("button", text("Show"), type="submit")])
    for name in ("group", "sort", "tool", "family"):
        if value := values[name]:
            yield start("input", type="hidden", name=name, value=value)
    yield end("form")
    yield from map(wrong, mistakes)
    links = {f"{name if value == '1' else f'{name}: {value}'} ×": {name: ""} for name, value in is_set.items()}
    links.update({f"group by {name}": {"group": name} for name in _GROUPS if not asked.group})
    links.update({"most failed calls first": {"sort": "failures"}} if asked.sort != "failures" else {})
    badges = (link(words, asked.link(ways, **to), class_="badge") for words, to in links.items())
    yield tag("p", *badges, class_="chips")


def span_fields(asked: Query) -> Markup:
    """The fields for the first and the last day."""
    hint = {"placeholder": "30d, 2026-01-31", "size": "12"}
    return join([field("Since", "since", asked.since, **hint), field("Until", "until", asked.until, **hint)])


# -- the table -------------------------------------------------------------------------------------


class _Table:
    """The rows of the sessions that fit."""

    def __init__(self, store: Store, asked: Query, known: Known, ways: Ways) -> None:
        self._store = store
        self._asked = asked
        self._known = known
        self._ways = ways

    def rows(self, chosen: Sequence[SessionInfo]) -> Iterator[Markup]:
        """The table, and links to its other pages. A file has all rows on one page."""
        asked = self._asked
        rows = [Family(info) for info in chosen] if asked.family else families(chosen)
        rows.sort(key=self._amount if asked.sort else attrgetter("updated"), reverse=True)
        groups: dict[str, list[Family]] = {}
        for row in rows:
            groups.setdefault(self._group(row), []).append(row)
        rows = list(chain.from_iterable(groups.values()))
        size = _ROWS if self._ways.is_served else len(rows)
        first = min(max(int(asked.page or 1) - 1, 0), (len(rows) - 1) // size) * size
        yield start("table", class_="sessions")
        yield tag("thead", tag("tr", *self._heads()))
        for group, some in groupby(rows[first : first + size], self._group):
            yield start("tbody")
            if group:
                yield tag("tr", tag("th", text(group, one_line=True), colspan="8", scope="rowgroup"), class_="group")
            yield from map(self._row, some)
            yield end("tbody")
        yield end("table")
        if size < len(rows):
            yield turning(first, size, len(rows), lambda page: asked.link(self._ways, page=str(page)))

    def _held(self, row: Family) -> list[KnownSession]:
        return [known for info in (row.info, *row.folded) if (known := self._known.get(info.id))]

    def _title(self, info: SessionInfo) -> str:
        known = self._known.get(info.id)
        return info.title or (known.title if known else "")

    def _amount(self, row: Family) -> Decimal:
        """What a row is sorted by: cost, tokens or failed calls of all its sessions."""
        if self._asked.sort == "failures":
            return Decimal(sum(tally.failed for each in self._held(row) for tally in each.failures(self._asked.tool)))
        return sum((getattr(each, self._asked.sort) for each in self._held(row)), Decimal(0))

    def _group(self, row: Family) -> str:
        """The heading of the group that a row is in."""
        if self._asked.group == "project":
            known = self._known.get(row.info.id)
            return (known.facts.folder if known else "") or "(folder not known)"
        return day(row.updated) if self._asked.group else ""

    def _heads(self) -> Iterator[Markup]:
        for name in _COLUMNS:
            sort = _SORTS.get(name)
            to = self._asked.link(self._ways, sort=sort) if sort is not None and self._ways.is_served else ""
            order = "descending" if sort == self._asked.sort else None
            yield tag("th", link(name, to), scope="col", aria_sort=order, class_="fig" if name in _FIGURES else None)

    def _row(self, row: Family) -> Markup:
        info, held = row.info, self._held(row)
        known = self._known.get(info.id) or self._glance(info)
        title = next(filter(None, map(self._title, (info, *row.folded))), known.title)
        inside = [link(title or info.id, self._ways.session(info.id))]
        inside += self._failed(info, *row.folded)
        if any(each.is_damaged for each in held):
            inside.append(badge("damaged", "bad"))
        if row.folded:
            tree = tag("ul", *self._tree(row), class_="tree")
            inside.append(folded(f"{len(row.folded):,} more: forks, subagents", tree))
        folder = known.facts.folder
        project = "/".join(folder.replace("\\", "/").rstrip("/").split("/")[-2:])
        tokens, cost = _bill_words(held)
        cells = {
            "Agent": text(known.facts.agent, one_line=True),
            "Model": text(known.model if held else _COUNTING, one_line=True),
            "Project": tag("span", text(project, one_line=True), title=folder) if folder else text(""),
            "When": when(row.updated),
            "Messages": text(f"{info.messages:,}"),
            "Tokens": text(tokens),
            "Cost": text(cost),
        }
        figures = {name: {"class_": "fig", "data_label": name.lower()} for name in _FIGURES}
        columns = (tag("td", cell, **figures.get(name, {})) for name, cell in cells.items())
        return tag("tr", tag("th", *inside, scope="row"), *columns)

    def _glance(self, info: SessionInfo) -> KnownSession:
        """What can be shown at once of a session that is not read yet."""
        with suppress(SessionNotFound):  # deleted just now
            title = info.title or first_words(self._store, info.id)
            return KnownSession(facts=facts_known(self._store, info.id), title=title)
        return KnownSession()

    def _failed(self, *infos: SessionInfo) -> list[Markup]:
        """How many calls failed in these sessions, if any did; it leads to the first in the first of them."""
        tool = self._asked.tool
        known = ((info, self._known.get(info.id)) for info in infos)
        tallies = [(info.id, tally) for info, held in known if held for tally in held.failures(tool)]
        if not tallies:
            return []
        where = tallies[0][0]
        first = min(tally.first for name, tally in tallies if name == where)
        words = counted(sum(tally.failed for _, tally in tallies), f"failed {tool} call" if tool else "failed call")
        return [link(words, self._ways.session(where, at=first), class_="badge bad")]

    def _tree(self, row: Family) -> Iterator[Markup]:
        """The sessions of a family, each below the one that it comes from."""
        placed = _below(row)
        most = _ROWS if self._ways.is_served else len(placed)
        for depth, info in placed[:most]:
            known = self._known.get(info.id)
            kind = f"fork at {info.parent_records:,}" if info.parent_records else "subagent" if info.parent else "first"
            tokens, cost = _bill_words([known] if known else [])
            words = " · ".join(filter(None, (kind, ago(info.updated), tokens and f"{tokens} tokens", cost)))
            here = link(self._title(info) or info.id, "" if info is row.info else self._ways.session(info.id))
            level, failed = f"d{min(depth, _DEEPEST)}", self._failed(info)
            yield tag("li", here, text(" "), tag("span", text(f"{words} "), class_="small"), *failed, class_=level)
        if len(placed) > most:
            yield tag("li", link(f"all {len(placed):,} sessions", self._ways.sessions(family=seen(row.info.id))))


def _bill_words(held: Sequence[KnownSession]) -> tuple[str, str]:
    """Tokens and cost of sessions together."""
    if not held:
        return _COUNTING, _COUNTING
    bill = added(each.bills for each in held)
    return amounts(bill) if bill else ("", "")


def _below(row: Family) -> list[tuple[int, SessionInfo]]:
    """The sessions of a family, each after its parent, with their depth; the oldest first."""
    members = sorted((row.info, *row.folded), key=lambda info: (info.created, info.id), reverse=True)
    names, below = {info.id for info in members}, dict[str, list[SessionInfo]]()
    for info in members:
        below.setdefault(info.parent if info.parent in names else "", []).append(info)
    placed, waiting = list[tuple[int, SessionInfo]](), list[tuple[int, SessionInfo]]()
    while waiting or below:
        if not waiting:  # where the family begins; then, sessions that are each other's parents
            waiting = [(0, info) for info in below.pop("" if "" in below else next(iter(below)))]
        depth, info = waiting.pop()
        placed.append((depth, info))
        waiting += [(depth + 1, each) for each in below.pop(info.id, [])]
    return placed
