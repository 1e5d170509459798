"""The page of all sessions: which it lists, in which order, what it says of them, and that names cannot do anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from random import Random
from unittest.mock import Mock
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from listed_sessions import AGENTS, FOLDERS, MODELS, answered, filled, stores
from pages import Page, strange_served
from turnlog._platform.visible import visible
from turnlog.display.frame import Ways
from turnlog.display.listing import Listing
from turnlog.display.sessions_page import sessions_page
from turnlog.errors import CorruptRecord, StoreError
from turnlog.log.bills import total_usage
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft, SessionInfo, Store
from turnlog.models.pricing import total_cost
from turnlog.stores import MemoryStore
from turnlog.stores.ids import families
from turnlog.testing.hostile import HOSTILE

SERVED = Ways("served")


def page_of(store: Store, query: Mapping[str, str], listing: Listing | None = None) -> Page:
    """The page for a query, without anything strange in it."""
    page = Page("".join(sessions_page(store, query, SERVED, listing)))
    assert not strange_served(page)
    return page


def listed(page: Page) -> list[str]:
    """The ids of the sessions in the table, in order; the title of a row is first, and in its tree it has no link."""
    rows = (element.attributes for element in page.elements if element.tag == "a" and element.attributes)
    links = [each.get("href") or "" for each in rows if each.get("class") != "badge bad"]
    return [unquote(link.removeprefix("/s/")) for link in links if link.startswith("/s/")]


def with_label(store: Store, info: SessionInfo, label: str) -> bool:
    """Whether a session has a label, given as pages show it."""
    return label in {visible(f"{key}={value}", one_line=True) for key, value in store.facts()[info.id].labels.items()}


def failed(store: Store, info: SessionInfo) -> bool:
    """Whether a call of this session failed that no older session has."""
    return Listing(store).with_calls(store.sessions())[info.id].failed > 0


FITS: dict[str, tuple[tuple[str, ...], Callable[[Store, SessionInfo, str], bool]]] = {
    "agent": (AGENTS[1:], lambda store, info, asked: store.facts()[info.id].agent == asked),
    "folder": (
        FOLDERS[1:4],
        lambda store, info, asked: f"{store.facts()[info.id].folder}/".startswith(f"{asked}/"),
    ),
    "since": (("2026-02-02", "2026-02-04"), lambda _, info, asked: info.updated >= f"{asked}T00:00:00.000Z"),
    "until": (("2026-02-02", "2026-02-04"), lambda _, info, asked: info.created <= f"{asked}T23:59:59.999Z"),
    "model": (MODELS, lambda store, info, asked: asked in store.usages().get(info.id, {})),
    "label": (
        ("user=ada", visible(f"user={HOSTILE[3]}", one_line=True)),
        lambda store, info, asked: with_label(store, info, asked),
    ),
    "cost": (
        ("0", "1.5", "4"),
        lambda store, info, asked: total_cost(store.usages().get(info.id, {})).at_least >= Decimal(asked),
    ),
    "errors": (("1",), lambda store, info, _: failed(store, info)),
}


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Days are those of UTC, as in these stores."""
    monkeypatch.setenv("TZ", "UTC")
    __import__("time").tzset()


@given(stores(), st.sampled_from(sorted(FITS)), st.randoms(use_true_random=False))
def test_filters_find_what_a_look_at_each_session_finds(store: Store, name: str, random: Random) -> None:
    """A session that fits is not listed, or another one is; with two filters, too."""
    other = random.choice(sorted(FITS))
    query = {each: random.choice(FITS[each][0]) for each in {name, other}}
    fitting = {
        info.id for info in store.sessions() if all(FITS[each][1](store, info, asked) for each, asked in query.items())
    }
    page = page_of(store, query)
    assert set(listed(page)) == fitting
    assert f"{len(fitting):,} session" in page.text or not store.sessions()


@given(stores(), st.sampled_from(["", "day", "project"]))
def test_each_session_is_listed_once_below_the_newest_first(store: Store, group: str) -> None:
    """A fork or a subagent is lost between the rows or told twice, or rows are out of order."""
    found = listed(page_of(store, {"group": group}))
    assert sorted(found) == sorted(info.id for info in store.sessions())
    rows = families(store.sessions())
    if not group:
        shown = [name for name in found if name in {row.info.id for row in rows}]
        updated = {row.info.id: row.updated for row in rows}
        assert [updated[name] for name in shown] == sorted(updated.values(), reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize("query", [{}, {"group": "day"}, {"group": "project", "sort": "cost"}, {"sort": "tokens"}])
def test_pages_of_a_long_list_have_every_session_once(query: dict[str, str]) -> None:
    """A session is on no page or on two."""
    store, found, number = filled(Random(3), 350), list[str](), 1
    listing = Listing(store)
    while True:
        page = page_of(store, {**query, "page": str(number)}, listing)
        found += listed(page)
        number += 1
        if not any(
            "page=" in (element.attributes.get("href") or "") and "Next" in page.text for element in page.elements
        ):
            break
    assert number > 2
    assert sorted(found) == sorted(info.id for info in store.sessions())


@given(stores())
def test_the_list_is_sorted_by_cost_and_by_tokens(store: Store) -> None:
    """A row stands above another one that cost more, or used more tokens."""
    bills = store.usages()
    for sort in ("cost", "tokens"):
        amounts = []
        for name in listed(page_of(store, {"sort": sort, "family": ""})):
            row = next((row for row in families(store.sessions()) if row.info.id == name), None)
            if row is not None:
                held = [bills.get(info.id, {}) for info in (row.info, *row.folded)]
                usages = map(total_usage, held)
                tokens = sum(usage.input + usage.output for usage in usages)
                amounts.append(sum(total_cost(bill).at_least for bill in held) if sort == "cost" else tokens)
        assert amounts == sorted(amounts, reverse=True)


@given(stores())
def test_what_is_known_of_sessions_that_grow_is_what_a_new_look_finds(store: Store) -> None:
    """Figures that are kept go wrong when a session grows, is forked or deleted."""
    listing = Listing(store)
    listing.with_calls(store.sessions())
    for info in store.sessions()[:3]:
        bodies = [*answered(Random(info.id), "new"), *answered(Random(1), "same", "everywhere")]
        store.append(info.id, [Draft(body) for body in bodies])
    if store.sessions():
        store.fork("s0", "new", at=1)
    if len(store.sessions()) > 4:
        store.delete("s1")
    kept, fresh = (each.with_calls(store.sessions()) for each in (listing, Listing(store)))
    assert kept.keys() == fresh.keys()
    assert sum(one.tokens for one in kept.values()) == sum(one.tokens for one in fresh.values())
    assert {name: one.facts for name, one in kept.items()} == {name: one.facts for name, one in fresh.items()}
    assert sum(one.failed for one in kept.values()) == sum(one.failed for one in fresh.values())
    assert {name: one.bills for name, one in fresh.items() if one.bills} == store.usages()


@given(
    st.dictionaries(st.sampled_from([*FITS, "q", "group", "sort", "page", "tool", "family"]), st.sampled_from(HOSTILE))
)
def test_no_query_breaks_the_page(query: dict[str, str]) -> None:
    """A value in the address becomes markup, an address of its own, or an error."""
    page_of(filled(Random(5), 12), query)


def test_a_large_store_is_listed_before_everything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first page waits until ten thousand sessions are read, or says figures that are not known yet."""
    store = filled(Random(4), 230)
    listing = Listing(store)
    monkeypatch.setattr(listing, "_read_all", lambda infos: None)
    page = page_of(store, {}, listing)
    assert "are being read" in page.text
    assert "230 sessions" in page.text
    assert "230 sessions," not in page.text
    listing.known(store.sessions())
    assert "are being read" not in page_of(store, {}, listing).text


def test_a_thread_reads_a_large_store_and_tells_what_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures of a large store never come, or its failure is not told."""
    store = filled(Random(4), 230)
    for fails in (False, True):
        listing = Listing(store)
        if fails:
            monkeypatch.setattr(store, "facts", Mock(side_effect=StoreError("the disk is gone")))
        assert not listing.known(store.sessions(), wait=False)
        assert listing._thread is not None
        listing._thread.join(30)
        if fails:
            with pytest.raises(StoreError, match="the disk is gone"):
                listing.known(store.sessions(), wait=False)
        else:
            known = listing.known(store.sessions(), wait=False)
            assert sum(each.failed for each in known.values())


def failing(store: Store, name: str, *results: tuple[str, str]) -> None:
    """A session with calls of these tools, with these results."""
    store.create(name, title=name)
    for n, (tool, said) in enumerate(results):
        call = ToolCall(f"c{n}", tool, {"command": said})
        result = ToolResult(f"c{n}", tool, (Text(said),))
        store.append(name, [Draft(MessageRecord(Message("assistant", (call,))))])
        store.append(name, [Draft(MessageRecord(Message("user", (result,))))])


def test_a_failed_call_is_one_click_away() -> None:
    """Who looks for what went wrong gets sessions in which another tool failed, a number that `turnlog errors` does not
    say, or no way to the call."""
    store, wrong = MemoryStore(), "Error: no such file"
    failing(store, "one", ("edit", wrong), ("read", "fine"), ("bash", "Exit code: 2"))
    failing(store, "two", ("edit", "fine"), *[("bash", "Exit code: 2")] * 3)
    failing(store, "none", ("bash", "fine"))

    def badges(query: Mapping[str, str]) -> list[str | None]:
        page = page_of(store, query)
        each = (element.attributes for element in page.elements)
        return [attributes.get("href") for attributes in each if attributes.get("class") == "badge bad"]

    assert badges({"sort": "failures"}) == ["/s/two?at=3#r3", "/s/one?at=1#r1"]
    assert listed(page_of(store, {"sort": "failures"})) == ["two", "one", "none"]
    assert badges({"tool": "bash", "errors": "1"}) == ["/s/two?at=3#r3", "/s/one?at=5#r5"]
    assert "1 failed bash call" in page_of(store, {"tool": "bash", "errors": "1"}).text
    assert listed(page_of(store, {"tool": "edit", "errors": "1"})) == ["one"]
    assert listed(page_of(store, {"tool": "read"})) == ["one"]


def test_calls_are_read_without_being_asked_for() -> None:
    """Failed calls of sessions that a list of few shows for the first time stay unknown, or it does not load again."""
    store = filled(Random(4), 20)
    listing = Listing(store)
    first = "".join(sessions_page(store, {}, SERVED, listing))
    assert listing._thread is not None
    listing._thread.join(30)
    second = "".join(sessions_page(store, {}, SERVED, listing))
    assert ("not read yet" in first) == ("data-again" in first)
    assert "not read yet" not in second
    assert "failed call" in second
    assert "data-again" not in second


def test_a_list_that_was_made_before_another_one_changes_nothing() -> None:
    """Two pages at a time, of which one listed the sessions before a new one came, read everything again."""
    store = filled(Random(4), 20)
    listing = Listing(store)
    older = store.sessions()
    store.create("new")
    held = listing.known(store.sessions())["s1"]
    listing.known(older)
    assert listing.known(store.sessions())["s1"] is held


def test_a_large_family_leads_to_a_list_of_its_own() -> None:
    """A session with hundreds of subagents makes a page of hundreds of rows, or hides most of them."""
    store = MemoryStore()
    store.create("head", title="The head")
    for n in range(250):
        store.create(f"agent{n:03}", parent="head" if n < 200 else f"agent{n - 1:03}", title=f"Agent {n}")
    page = page_of(store, {})
    assert len(listed(page)) <= 110
    assert "all 251 sessions" in page.text
    family = {name for number in "123" for name in listed(page_of(store, {"family": "head", "page": number}))}
    assert len(family) == 251


def test_empty_lists_say_what_to_do() -> None:
    """Who has no sessions, or none that fit, is left alone with an empty page."""
    assert "turnlog import --discover" in page_of(MemoryStore(), {}).text
    store = filled(Random(5), 3)
    assert "Show all" in page_of(store, {"agent": "nobody"}).text
    assert "since: 'then' is not a time" in page_of(store, {"since": "then"}).text


def test_a_damaged_session_is_listed_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """One damaged session keeps all others from being listed, or its figures are missing without a word."""
    store = filled(Random(6), 4)
    whole = store.of_kinds

    def broken(session_id: str, *arguments: object, **named: object) -> object:
        if session_id == "s1":
            raise CorruptRecord("record 2 is damaged", record=2)
        return whole(session_id, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "of_kinds", broken)
    page = page_of(store, {})
    assert len(listed(page)) == 4
    assert "1 session damaged" in page.text


def test_a_session_that_nobody_named_has_its_first_words() -> None:
    """Sessions without a title are listed by their ids, though their words would tell them apart."""
    store = MemoryStore()
    store.create("a")
    store.append("a", [Draft(MessageRecord(Message("user", (Text("Please mend the login of the site."),))))])
    assert "Please mend the login of the site." in page_of(store, {}).text


def test_a_family_has_the_title_of_any_of_its_sessions() -> None:
    """A session that begins with a command is listed by its id, though its fork has a title."""
    store = MemoryStore()
    store.create("head")
    store.create("agent", parent="head", title="Mend the login")
    page = page_of(store, {})
    assert page.text.count("Mend the login") == 2
