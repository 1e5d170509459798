"""What a search shows: every hit once, below its session, with the words marked; and no query that breaks it."""

from __future__ import annotations

from random import Random
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from listed_sessions import filled, stores
from pages import Page, strange_served
from turnlog.display.frame import Ways
from turnlog.display.search_hits import hits
from turnlog.log.messages import Message, Text
from turnlog.log.records import Decision, MessageRecord
from turnlog.log.store import Draft, Store
from turnlog.stores import MemoryStore
from turnlog.testing.hostile import HOSTILE, NEEDLE

SERVED = Ways("served")


def found(store: Store, q: str, limit: int = 20, among: set[str] | None = None) -> Page:
    """The fragment for a query, without anything strange in it."""
    page = Page("".join(hits(store, q, SERVED, limit, among=among)))
    assert not strange_served(page)
    return page


def records(page: Page) -> list[tuple[str, int]]:
    """The session and the number of each record that the fragment links to, in order."""
    links = [element.attributes.get("href") or "" for element in page.elements if element.tag == "a"]
    parted = [link.removeprefix("/s/").partition("?at=") for link in links if "?at=" in link]
    return [(unquote(name), int(number.partition("#")[0])) for name, _, number in parted]


@given(stores(), st.sampled_from([NEEDLE, "login", "mend the", '"the login"', "needl*", "ordinary words"]))
def test_the_hits_are_those_of_the_store(store: Store, q: str) -> None:
    """A hit is lost, is another session's, or is out of order."""
    assert records(found(store, q, 10)) == [(hit.session, hit.record) for hit in store.search(q, limit=10)]


@given(stores(), st.randoms(use_true_random=False))
def test_filtered_hits_are_of_those_sessions(store: Store, random: Random) -> None:
    """A search among some sessions shows hits of others, or loses one."""
    among = {info.id for info in store.sessions() if random.random() < 0.5}
    wanted = [(hit.session, hit.record) for hit in store.search(NEEDLE, limit=None) if hit.session in among]
    assert records(found(store, NEEDLE, 500, among)) == wanted


@given(
    st.sampled_from([*HOSTILE, "", " ", '"', '""', "*", "a" * 10_000, "OR AND NOT", "a:b^2", "-1", "%_'"]) | st.text()
)
def test_no_query_breaks_the_hits(q: str) -> None:
    """A query ends in an error, or becomes markup."""
    found(filled(Random(5), 8), q)


def test_words_are_marked_and_records_taken_back_are_told() -> None:
    """The place of a hit has to be looked for, or what was taken back looks as if it still held."""
    store = MemoryStore()
    store.create("a", title="The <b>title</b>")
    store.append("a", [Draft(MessageRecord(Message("user", (Text("An umbrella & a hat"),)))) for _ in range(2)])
    store.append("a", [Draft(Decision("rewind", 2, 2))])
    whole = "".join(hits(store, "umbrella", SERVED))
    assert whole.count("<mark>umbrella</mark> &amp; a hat") == 2
    assert whole.count("taken back by decision 3") == 1
    assert "2 hits in 1 session" in whole
    assert "The &lt;b&gt;title&lt;/b&gt;" in whole


def test_sessions_are_found_by_title_and_by_the_beginning_of_their_id() -> None:
    """Who remembers what a session is called cannot go there without words of its talk."""
    store = MemoryStore()
    for n in range(9):
        store.create(f"abc{n}", title=f"Plan number {n}")
    assert "Plan number 7" in found(store, "NUMBER 7").text
    assert "Plan number 3" in found(store, "abc3").text
    assert "4 more sessions" in found(store, "plan").text


def test_nothing_found_says_what_to_try() -> None:
    """Who finds nothing does not learn that all words must be in one record, or that words may be cut."""
    store = filled(Random(5), 8)
    assert "the beginning of a word: zeug*" in found(store, "login zeugma").text
    assert "fewer words" in found(store, "login zeugma").text
    assert "without filters" in found(store, "login", among=set()).text
    assert "letters or digits" in found(store, "???").text
