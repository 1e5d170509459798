"""The page of all sessions: a search, filters, and the sessions that fit as a table, with what they cost together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from itertools import groupby

from msgspec import Struct
from msgspec.structs import asdict

from .._platform.times import TIMES, ago, day, since, until
from .._platform.units import counted
from .._platform.visible import visible
from ..errors import SessionNotFound
from ..log.bills import Bills, added
from ..log.store import SessionFacts, SessionInfo, Store
from ..stores.ids import Family, families
from ..stores.labels import OF_TRANSPORT
from .escapes import Markup, end, join, start, tag, text
from .frame import Ways, foot, head, opening
from .listing import KnownSession, Listing, ToolTally, facts_known, is_in_folder, title_among
from .pieces import badge, field, line, link, turning, wrong
from .search_hits import hits
from .wording import amounts

_ROWS = 100
"""Rows of a page."""

_FOLDED = 100
"""At most so many forks and subagents are listed below a session; a link leads to more."""

_OFFERED = 200
"""At most so many folders and labels are offered to choose from."""

_NUMBER = "a number of dollars"

_DEEPEST = 6
"""Sessions of a family that are deeper are drawn at this depth."""

_COUNTING = "…"
"""In place of a figure that is not known yet."""

_GROUPS = {"": "no groups", "day": "by day", "project": "by project"}
_SORTS = {"": "When", "tokens": "Tokens", "cost": "Cost"}


class Filters(Struct, frozen=True):
    """What sessions are asked for. `family` is the id of a session: it, its forks and all their subagents."""

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

    @classmethod
    def of(cls, query: Mapping[str, str]) -> tuple[Filters, list[str]]:
        """The filters in a query, without those that cannot be read, which the second value tells."""
        given = {name: seen(query.get(name, "").strip()) for name in cls.__struct_fields__}
        wrong = []
        for name, read, meant in (("since", since, TIMES), ("until", until, TIMES), ("cost", _dollars, _NUMBER)):
            try:
                if given[name]:
                    read(given[name])
            except ValueError:
                wrong.append(f"{name}: {given[name]!r} is not {meant}")
                given[name] = ""
        return cls(**given), wrong

    @property
    def needs_all(self) -> bool:
        """Whether more has to be known of every session than the store lists."""
        return any((self.agent, self.folder, self.model, self.label, self.cost, self.needs_calls))

    @property
    def needs_calls(self) -> bool:
        """Whether the calls of every session have to be known."""
        return bool(self.errors or self.tool)

    def chosen(self, infos: Sequence[SessionInfo], known: Mapping[str, KnownSession] | None) -> list[SessionInfo]:
        """The sessions that fit, in the same order."""
        if self.family:
            each = ((row.info, *row.folded) for row in families(infos))
            family = {info.id for row in each if any(info.id == self.family for info in row) for info in row}
            infos = [info for info in infos if info.id in family]
        first, last = since(self.since) if self.since else "", until(self.until) if self.until else "~"
        infos = [info for info in infos if info.updated >= first and info.created <= last]
        if known is None or not self.needs_all:
            return list(infos)
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
            and (not self.needs_calls or any(self._has_tool(*tool) for tool in known.tools.items()))
        )

    def _has_tool(self, of: tuple[str, str], tally: ToolTally) -> bool:
        return (not self.tool or seen(of[1]) == self.tool) and (not self.errors or tally.failed > 0)


def _dollars(written: str) -> Decimal:
    """A number of dollars that a person wrote. Raises ValueError."""
    try:
        amount = Decimal(written)
    except InvalidOperation:
        raise ValueError(written) from None
    if not amount.is_finite():
        raise ValueError(written)
    return amount


class _Asked(Struct, frozen=True):
    """A query: its filters, the words to search for, and how the rows are shown."""

    filters: Filters
    q: str = ""
    group: str = ""
    sort: str = ""
    page: int = 1

    def link(self, ways: Ways, **changes: str) -> str:
        """The address of the list with something changed, from its first page on."""
        kept = {**asdict(self.filters), "q": self.q, "group": self.group, "sort": self.sort}
        return ways.sessions(**{**kept, **changes})


def seen(words: str) -> str:
    """A text as pages show it, and as it comes back from them."""
    return visible(words, one_line=True)


def sessions_page(
    store: Store, query: Mapping[str, str], ways: Ways, listing: Listing | None = None
) -> Iterator[Markup]:
    """The page of the sessions that fit a query, in chunks of markup. Without a `listing`, all is read for this page;
    with one, figures are left out that it does not know yet, unless the query needs them."""
    filters, mistakes = Filters.of(query)
    group, sort = query.get("group", ""), query.get("sort", "")
    number = query.get("page", "")
    asked = _Asked(
        filters,
        seen(query.get("q", "").strip()),
        group if group in _GROUPS else "",
        sort if sort in _SORTS else "",
        max(1, int(number)) if number.isascii() and number.isdigit() and len(number) < 9 else 1,
    )
    infos = store.sessions()
    needs_all = listing is None or filters.needs_all or bool(asked.sort) or asked.group == "project"
    listing = listing or Listing(store)
    known = listing.with_calls(infos) if filters.needs_calls else listing.known(infos, wait=needs_all)
    chosen = filters.chosen(infos, known)
    yield head("Sessions", ways)
    yield from opening(ways, here="Sessions")
    yield start("main", class_="list")
    yield tag("h1", text("Sessions"))
    yield from _totals(chosen, known, listing, filters)
    if ways.is_served:
        yield from _form(asked, known, listing, mistakes, ways)
        among = None if filters == Filters() else {info.id for info in chosen}
        found = hits(store, asked.q, ways, among=among) if asked.q else iter(())
        yield tag("section", *found, id="hits", aria_live="polite", aria_label="Search results")
    if not infos:
        command = tag("code", text("turnlog import --discover"))
        about = text(" finds the transcripts of agents on this machine.")
        yield line("No sessions yet. ", command, about, kind="empty")
    elif not chosen:
        yield line("No session fits. ", link("Show all", ways.sessions()), kind="empty")
    elif not asked.q:
        yield from _Table(store, asked, known, ways).rows(chosen)
    yield end("main")
    yield foot()


def _totals(
    chosen: Sequence[SessionInfo], known: Mapping[str, KnownSession] | None, listing: Listing, filters: Filters
) -> Iterator[Markup]:
    """How many sessions fit, and their tokens and cost together."""
    words = counted(len(chosen), "session")
    notes = []
    if known is None:
        notes.append("tokens, cost and models are being read; load this page again")
    else:
        held = [known[info.id] for info in chosen if info.id in known]
        is_kept = not (filters.since or filters.until)  # which mean another time each time
        bill = listing.remembered(
            known if is_kept else None, ("sum", filters), lambda: added(each.bills for each in held)
        )
        tokens, cost = _figures([bill])
        words += f", {tokens} tokens, {cost}" if tokens else ""
        notes += shortfalls(words, held)
        unread = sum(each.told < each.records for each in held)
        notes += [f"errors of {counted(unread, 'session')} not read yet"] if unread else []
    yield tag("p", tag("b", text(words)), *(tag("span", text(note), class_="small") for note in notes), class_="total")


def shortfalls(words: str, known: Iterable[KnownSession]) -> Iterator[str]:
    """What the tokens and the cost of these sessions, which `words` tell, are without."""
    if ">" in words or "?" in words:
        yield "> a price or output is missing"
    if damaged := sum(each.is_damaged for each in known):
        yield f"{counted(damaged, 'session')} damaged, not counted in full: see turnlog verify"


def _figures(bills: Iterable[Bills]) -> tuple[str, str]:
    bill = added(bills)
    return amounts(bill) if bill else ("", "")


# -- the form --------------------------------------------------------------------------------------


def _form(
    asked: _Asked, known: Mapping[str, KnownSession] | None, listing: Listing, mistakes: Iterable[str], ways: Ways
) -> Iterator[Markup]:
    """The search and the filters, and what is set as links that unset it."""
    filters = asked.filters
    offered = listing.remembered(known, "choices", lambda: _choices((known or {}).values()))
    agents, models, labels, folders = offered
    set_filters = [(name, value) for name, value in asdict(filters).items() if value]
    yield start("form", method="get", action=ways.sessions(), class_="find", role="search")
    live = {"data_hits": f"{ways.root}/hits", "aria_controls": "hits", "autocomplete": "off"}
    yield field("Search", "q", asked.q, type="search", placeholder="words, “phrases”, begin*", size="40", **live)
    yield start("details", open="" if set_filters or asked.group else None)
    yield tag("summary", text("Filters"))
    yield start("div", class_="filters")
    yield _choice("Agent", "agent", filters.agent, agents)
    yield _choice("Model", "model", filters.model, models)
    yield _choice("Label", "label", filters.label, labels)
    yield field("Folder", "folder", filters.folder, list="folders", size="16")
    yield tag("datalist", *(tag("option", value=folder) for folder in sorted(folders - {""})[:_OFFERED]), id="folders")
    yield field("Since", "since", filters.since, placeholder="3d, 2026-01-31", size="11")
    yield field("Until", "until", filters.until, placeholder="yesterday", size="11")
    yield field("Cost from $", "cost", filters.cost, inputmode="decimal", size="5")
    checked = "" if filters.errors else None
    yield tag("label", start("input", type="checkbox", name="errors", value="1", checked=checked), text(" has errors"))
    options = _options(_GROUPS.items(), asked.group)
    yield tag("label", text("Groups "), tag("select", *options, name="group"))
    yield join([end("div"), end("details"), tag("button", text("Show"), type="submit")])
    for name, value in (("sort", asked.sort), ("tool", filters.tool), ("family", filters.family)):
        if value:
            yield start("input", type="hidden", name=name, value=value)
    yield end("form")
    yield from map(wrong, mistakes)
    if set_filters or asked.q:
        yield tag("p", *_chips(asked, [("q", asked.q)] * bool(asked.q) + set_filters, ways), class_="chips")


def _choices(known: Iterable[KnownSession]) -> tuple[set[str], set[str], set[str], set[str]]:
    """The agents, models, labels and folders of all sessions."""
    known = list(known)
    labels = {label for each in known for label in each.facts.labels.items() if not label[0].startswith(OF_TRANSPORT)}
    return (
        {seen(agent) for agent in {each.facts.agent for each in known}},
        {seen(model) for model in {model for each in known for model in each.bills}},
        {seen(f"{name}={value}") for name, value in labels},
        {seen(folder) for folder in {each.facts.folder for each in known}},
    )


def _chips(asked: _Asked, values: Sequence[tuple[str, str]], ways: Ways) -> Iterator[Markup]:
    for name, value in values:
        words = "has errors" if name == "errors" else f"{'search' if name == 'q' else name}: {value}"
        to = asked.link(ways, **{name: ""})
        yield tag("a", text(f"{words} ×"), href=to, class_="badge", aria_label=f"remove {words}")
    if len(values) > 1:
        yield tag("a", text("remove all"), href=ways.sessions(), class_="badge")


def _choice(label: str, name: str, value: str, values: Iterable[str]) -> Markup:
    offered = sorted({*values, value} - {""})
    shown = [*offered[:_OFFERED], *([value] if value in offered[_OFFERED:] else [])]
    options = _options([("", "any"), *((each, each) for each in shown)], value)
    if len(offered) > len(shown):
        options.append(tag("option", text(f"({len(offered) - len(shown):,} more)"), disabled=""))
    return tag("label", text(f"{label} "), tag("select", *options, name=name))


def _options(offered: Iterable[tuple[str, str]], chosen: str) -> list[Markup]:
    selected = {chosen: ""}
    return [tag("option", text(words), value=value, selected=selected.get(value)) for value, words in offered]


# -- the table -------------------------------------------------------------------------------------


class _Table:
    """The rows of the sessions that fit."""

    def __init__(self, store: Store, asked: _Asked, known: Mapping[str, KnownSession] | None, ways: Ways) -> None:
        self._store = store
        self._asked = asked
        self._known = known
        self._ways = ways

    def rows(self, chosen: Sequence[SessionInfo]) -> Iterator[Markup]:
        """The table, and links to its other pages. A file has all rows on one page."""
        asked = self._asked
        rows = [Family(info) for info in chosen] if asked.filters.family else families(chosen)
        rows = sorted(rows, key=lambda row: row.updated, reverse=True)
        if asked.sort and self._known is not None:
            rows.sort(key=self._amount, reverse=True)
        if asked.group:
            placed: dict[str, list[Family]] = {}
            for row in rows:
                placed.setdefault(self._group(row), []).append(row)
            rows = [row for some in placed.values() for row in some]
        first = min((asked.page - 1) * _ROWS, (len(rows) - 1) // _ROWS * _ROWS) if self._ways.is_served else 0
        shown = rows[first : first + _ROWS] if self._ways.is_served else rows
        yield start("table", class_="sessions")
        yield tag("thead", tag("tr", *self._heads()))
        for group, some in groupby(shown, self._group):
            yield start("tbody")
            if asked.group:
                yield tag("tr", tag("th", text(group, one_line=True), colspan="8", scope="rowgroup"), class_="group")
            for row in some:
                yield from self._row(row)
            yield end("tbody")
        yield end("table")
        if len(shown) < len(rows):
            yield turning(first, _ROWS, len(rows), lambda page: asked.link(self._ways, page=str(page)))

    def _amount(self, row: Family) -> tuple[Decimal, int]:
        """What a row is sorted by: cost or tokens of all its sessions."""
        held = [known for each in (row.info, *row.folded) if (known := self._of(each))]
        tokens, cost = sum(each.tokens for each in held), sum((each.cost for each in held), Decimal(0))
        return (cost, tokens) if self._asked.sort == "cost" else (Decimal(tokens), 0)

    def _group(self, row: Family) -> str:
        """The heading of the group that a row is in."""
        if self._asked.group == "project":
            known = self._of(row.info)
            return (known.facts.folder if known else "") or "(folder not known)"
        return day(row.updated) if self._asked.group == "day" else ""

    def _of(self, info: SessionInfo) -> KnownSession | None:
        return None if self._known is None else self._known.get(info.id)

    def _heads(self) -> Iterator[Markup]:
        asked = self._asked
        for name in ("Title", "Agent", "Model", "Project"):
            yield tag("th", text(name), scope="col")
        for name, words in _SORTS.items():
            inside = text(words)
            if self._ways.is_served:
                order = "the largest first" if name else "the last changed first"
                inside = tag("a", inside, href=asked.link(self._ways, sort=name), title=order)
            sorting = "descending" if name == asked.sort else None
            yield tag("th", inside, scope="col", aria_sort=sorting, class_="fig" if name else None)
            if not name:
                yield tag("th", text("Messages"), scope="col", class_="fig")

    def _row(self, row: Family) -> Iterator[Markup]:
        info, members = row.info, (row.info, *row.folded)
        known = self._of(info)
        facts = known.facts if known else self._facts(info.id)
        yield start("tr")
        yield start("th", scope="row")
        yield join([self._title(info, self._first_title(members)), *self._marks(members)])
        if row.folded:
            yield tag("details", tag("summary", text(f"{len(row.folded):,} more: forks, subagents")), *self._tree(row))
        yield end("th")
        model = seen(known.model) if known else _COUNTING
        for label, words in (("agent", facts.agent), ("model", model)):
            yield tag("td", text(words, one_line=True), data_label=label)
        tail = "/".join(facts.folder.replace("\\", "/").rstrip("/").split("/")[-2:])
        yield tag("td", text(tail, one_line=True), title=facts.folder or None, data_label="project")
        yield tag("td", _when(row.updated))
        tokens, cost = self._figures(members)
        for label, words in (("messages", f"{info.messages:,}"), ("tokens", tokens), ("cost", cost)):
            yield tag("td", text(words), class_="fig", data_label=label)
        yield end("tr")

    def _title(self, info: SessionInfo, title: str) -> Markup:
        return link(title or info.id, self._ways.session(info.id))

    def _first_title(self, members: Sequence[SessionInfo]) -> str:
        if self._known is None:
            return title_among(self._store, members[:3])
        return next(filter(None, map(self._own_title, members)), "")

    def _own_title(self, info: SessionInfo) -> str:
        known = self._of(info)
        return info.title or (known.title if known else "")

    def _marks(self, members: Sequence[SessionInfo]) -> Iterator[Markup]:
        """Badges: failed calls, damage."""
        held = [known for each in members if (known := self._of(each))]
        if failed := sum(known.failed for known in held):
            yield badge(counted(failed, "failed call"), "bad")
        if any(known.is_damaged for known in held):
            yield badge("damaged", "bad")

    def _facts(self, session_id: str) -> SessionFacts:
        with suppress(SessionNotFound):  # deleted just now
            return facts_known(self._store, session_id)
        return SessionFacts()

    def _figures(self, members: Sequence[SessionInfo]) -> tuple[str, str]:
        if self._known is None:
            return _COUNTING, _COUNTING
        return _figures([known.bills for each in members if (known := self._of(each))])

    def _tree(self, row: Family) -> Iterator[Markup]:
        """The sessions of a family, each below the one that it comes from."""
        yield start("ul", class_="tree")
        placed = list(_below(row))
        most = _FOLDED if self._ways.is_served else len(placed)
        for depth, info in placed[:most]:
            title = self._own_title(info) or info.id
            tokens, cost = self._figures([info])
            kind = f"fork at {info.parent_records:,}" if info.parent_records else "subagent" if info.parent else "first"
            here = text(title, one_line=True) if info is row.info else self._title(info, title)
            told = (f"{tokens} tokens", cost) if tokens else ()
            words = " · ".join((kind, ago(info.updated), *told))
            level = f"d{min(depth, _DEEPEST)}"
            yield tag("li", here, text(" "), tag("span", text(words), class_="small"), class_=level)
        if len(placed) > most:
            to = self._ways.sessions(family=seen(row.info.id))
            yield tag("li", tag("a", text(f"all {len(placed):,} sessions"), href=to))
        yield end("ul")


def _when(time: str) -> Markup:
    return tag("time", text(ago(time)), datetime=seen(time), title=time)


def _below(row: Family) -> Iterator[tuple[int, SessionInfo]]:
    """The sessions of a family, each after its parent, with their depth; the oldest first."""
    members = sorted((row.info, *row.folded), key=lambda info: (info.created, info.id), reverse=True)
    names, below = {info.id for info in members}, dict[str, list[SessionInfo]]()
    for info in members:
        below.setdefault(info.parent if info.parent in names else "", []).append(info)
    waiting = [(0, info) for info in below.pop("", [])]
    while waiting or below:
        if not waiting:  # sessions that are each other's parents
            waiting = [(0, info) for info in below.pop(next(iter(below)))]
        depth, info = waiting.pop()
        yield depth, info
        waiting += [(depth + 1, each) for each in below.pop(info.id, [])]
