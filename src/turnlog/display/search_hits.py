"""What a search finds, for the page of sessions and for the palette: sessions by title or id, then records by words."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import groupby

from .._platform.times import ago
from .._platform.units import counted
from ..errors import CorruptRecord, InputError, SessionNotFound
from ..log.store import Hit, SessionInfo, Store
from ..stores.words import Finder, parse_query
from ..view.decisions import Rewinds
from .escapes import Markup, tag, text
from .frame import Ways
from .listing import title_among
from .pieces import line, link

_NAMED = 5
"""At most so many sessions are shown because of their title or id."""

_MOST = 500
"""So many hits are looked at to find some in the sessions that were asked for."""


def hits(
    store: Store, q: str, ways: Ways, limit: int = 20, *, among: Collection[str] | None = None
) -> Iterator[Markup]:
    """What a search for `q` finds, in chunks of markup: links to records, below their sessions. With `among`, only in
    sessions with these ids."""
    if not (q := q.strip()):
        return
    by_id = {info.id: info for info in store.sessions()}
    asked = (info for info in by_id.values() if among is None or info.id in among)
    named = [info for info in asked if q.lower() in info.title.lower() or info.id.startswith(q)]
    if named:
        lines = (tag("li", _link(store, info, ways), text(" "), when(info.updated)) for info in named[:_NAMED])
        yield tag("ul", *lines, class_="named")
    if len(named) > _NAMED:
        yield line(f"{len(named) - _NAMED:,} more sessions are called so.")
    try:
        terms = parse_query(q)
    except InputError:
        yield line("Type a word to search for: letters or digits.")
        return
    found = store.search(q, limit=limit + 1 if among is None else _MOST)
    kept = [hit for hit in found if hit.session in by_id and (among is None or hit.session in among)]
    shown = kept[:limit]
    if shown:
        more = " or more" if len(kept) > limit else ""
        yield line(f"{counted(len(shown), 'hit')}{more} in {counted(len({hit.session for hit in shown}), 'session')}")
    else:
        yield _nothing(q, many=len(terms), is_cut=len(found) == _MOST, is_filtered=among is not None)
    finder = Finder(terms)
    for name, some in groupby(shown, key=lambda hit: hit.session):
        rewinds = Rewinds()
        with suppress(SessionNotFound, CorruptRecord):  # deleted meanwhile, or damaged
            rewinds = Rewinds.of(store.of_kinds(name, ("decision",)))
        title = tag("h2", _link(store, by_id[name], ways), when(by_id[name].updated))
        lines = (_hit(hit, finder, rewinds.by(hit.record), ways) for hit in some)
        yield tag("div", title, tag("ul", *lines), class_="found")


def _link(store: Store, info: SessionInfo, ways: Ways) -> Markup:
    return link(title_among(store, [info]) or info.id, ways.session(info.id))


def when(time: str) -> Markup:
    """A recorded time in a word or two."""
    return tag("time", text(ago(time)), datetime=time, title=time)


def _hit(hit: Hit, finder: Finder, taken_back: int, ways: Ways) -> Markup:
    """A record with the words that were found in it."""
    to = ways.session(hit.session, at=hit.record)
    role = tag("span", text(hit.role, one_line=True), class_="small")
    inside = [tag("span", text(str(hit.record)), class_="n"), role, text(" "), *_marked(hit, finder)]
    if taken_back:
        inside.append(tag("span", text(f" taken back by decision {taken_back}"), class_="small"))
    return tag("li", tag("a", *inside, href=to))


def _marked(hit: Hit, finder: Finder) -> Iterator[Markup]:
    snippet, position = hit.snippet, 0
    for first, last in finder.everywhere(snippet) or [(hit.start, hit.end)]:
        yield text(snippet[position:first], one_line=True)
        if last > first:
            yield tag("mark", text(snippet[first:last], one_line=True))
        position = last
    yield text(snippet[position:], one_line=True)


def _nothing(q: str, *, many: int, is_cut: bool, is_filtered: bool) -> Markup:
    """What to try if nothing was found."""
    tries = ["fewer words, as a record has to contain all of them"] if many > 1 else []
    tries += ["without quotes"] if '"' in q else []
    tries += [f"the beginning of a word: {q.split()[-1][:4]}*"] if "*" not in q else []
    tries += ["without filters"] if is_filtered else []
    first = f"Nothing in the first {_MOST} hits is in these sessions." if is_cut else "Nothing found."
    return line(f"{first} Try {'; '.join(tries)}." if tries else first)
