"""Windows of a session's page: together they are the page, each is small, and what is new is what changed."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.display import page
from turnlog.display.frame import Ways
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft, Store
from turnlog.stores import MemoryStore
from turnlog.testing.histories import sound_history
from turnlog.testing.hostile import hostile_session

SERVED = Ways("served")
_TURN = re.compile("<h2.*?</h2>|<footer>.*?</footer>")  # a window has the cost only of turns that it has whole
_RECORD = re.compile(r'<div id="r(\d+)" class="rec')


def numbers(pieces: Iterable[str]) -> list[int]:
    """The records of a fragment, in its order."""
    return [int(n) for n in _RECORD.findall("".join(pieces))]


def elements(pieces: Iterable[str]) -> dict[int, str]:
    """The elements of a fragment, by record."""
    html = "".join(pieces)
    places = [found.start() for found in _RECORD.finditer(html)]
    return {
        int(_RECORD.match(html, start)[1]): html[start:end]  # type: ignore[index]
        for start, end in zip(places, [*places[1:], len(html)], strict=True)
    }


def nodes(html: str) -> int:
    """How many elements a piece of HTML has."""
    return html.count("<") - html.count("</")


def long_session(turns: int) -> MemoryStore:
    """A session `s` of turns with three calls each."""
    store = MemoryStore()
    store.create("s")
    for turn in range(turns):
        said = [Message("user", (Text(f"Do part {turn}."),))]
        for call in range(3):
            name = f"c{turn}-{call}"
            said.append(Message("assistant", (Text("I *look*."), ToolCall(name, "look", {"at": name}))))
            said.append(Message("user", (ToolResult(name, "look", (Text(f"seen {name}"),)),)))
        said.append(Message("assistant", (Text(f"Part {turn} is done."),)))
        store.append("s", [Draft(MessageRecord(message), f"2026-01-01T{turn % 24:02}:00:00.000Z") for message in said])
    return store


def walked(store: Store, session_id: str) -> list[int]:
    """The records that somebody sees who goes from window to window."""
    info, seen = store.info(session_id), list[int]()
    while not seen or seen[-1] < info.records:
        part = numbers(page.window(store, session_id, SERVED, first=seen[-1] + 1 if seen else 1))
        assert part, "a window without a record"
        seen += part
    return seen


@pytest.mark.slow
def test_windows_are_the_whole_session() -> None:
    """Who scrolls misses a record, or sees one twice, forwards or backwards; a window is too large to scroll."""
    store = long_session(80)
    many = store.info("s").records
    assert walked(store, "s") == [*range(1, many + 1)]
    back = list[int]()
    while not back or back[0] > 1:
        html = "".join(page.window(store, "s", SERVED, before=back[0] if back else many + 1))
        assert nodes(html) < 650
        back = numbers([html]) + back
    assert back == [*range(1, many + 1)]


@given(st.integers(0, 1_000))
def test_a_window_shows_what_the_whole_page_shows(seed: int) -> None:
    """A record in a window lacks its result or its outcome because the window ends there."""
    store = MemoryStore()
    store.create("s")
    for _ in range(6):
        store.append("s", [Draft(MessageRecord(one)) for one in sound_history(random.Random(seed)).messages])
    many = store.info("s").records
    whole = elements(page.window(store, "s", SERVED, first=1))
    first = random.Random(seed).randint(1, many)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "_WHOLE", 0)
        patch.setattr("turnlog.display.talk._AROUND", 6)
        part = elements(page.window(store, "s", SERVED, first=first))
    both = whole.keys() & part.keys() - {max(whole), max(part)}  # the last one ends with the fragment
    assert {n: _TURN.sub("", part[n]) for n in both} == {n: _TURN.sub("", whole[n]) for n in both}


@pytest.mark.slow
def test_any_record_is_in_its_window() -> None:
    """A link to a record opens a page without it."""
    store = long_session(300)
    for at in (1, 2, 777, 1_500, store.info("s").records):
        assert at in numbers(page.session_page(store, "s", SERVED, at))


def test_what_is_new_is_what_changed() -> None:
    """A page that grows shows a call as unanswered for ever, or a record twice."""
    store = long_session(3)
    call = Message("assistant", (ToolCall("late", "look", {}),))
    store.append("s", [Draft(MessageRecord(Message("user", (Text("Go on."),)))), Draft(MessageRecord(call))])
    before = store.info("s").records
    shown = elements(page.window(store, "s", SERVED, first=1))
    assert page.news(store, "s", SERVED, before) == (before, [])
    store.append("s", [Draft(MessageRecord(Message("user", (ToolResult("late", "look", (Text("found"),)),))))])
    last, pieces = page.news(store, "s", SERVED, before)
    assert last == before + 1
    new = elements(pieces)
    assert [*new] == [before, last]
    assert "found" in new[before] and "found" not in shown[before]


@pytest.mark.slow
def test_hostile_records_stay_small() -> None:
    """One record with long lines or thousands of brackets makes a window that no browser scrolls."""
    store = MemoryStore()
    hostile_session(store, "every", 200_000)
    deep = Message("assistant", (Text("[" * 50_000), Text("* a\n" * 5_000), Text("`x`" * 10_000)))
    store.append("every", [Draft(MessageRecord(deep)), Draft(MessageRecord(Message("user", (Text("x" * 10**7),))))])
    calls = tuple(ToolCall(f"c{n}", "look", {"at": n}) for n in range(3_000))
    store.append("every", [Draft(MessageRecord(Message("assistant", calls)))])
    for n, html in elements(page.window(store, "every", SERVED, first=1)).items():
        assert (nodes(html) < 1_200, len(html) < 400_000) == (True, True), (n, nodes(html), len(html))
    assert walked(store, "every") == [*range(1, store.info("every").records + 1)]
    last = store.info("every").records - 1
    assert "x" * 10**7 in "".join(page.record_page(store, "every", last, SERVED))


def test_failed_calls_are_beside_the_talk() -> None:
    """Who looks for what went wrong reads the whole talk; or the list is not what `turnlog errors` tells."""
    store = long_session(1)
    call = Message("assistant", (ToolCall("bad", "run", {"command": "make"}),))
    result = ToolResult("bad", "run", (Text("Exit code 2"),), "failed")
    store.append("s", [Draft(MessageRecord(call)), Draft(MessageRecord(Message("user", (result,))))])
    html = "".join(page.rail(store, "s", SERVED))
    at = store.info("s").records - 1
    assert html.endswith(
        f'<p class="small">1 failed call</p><ol><li dir="auto"><a href="/s/s?at={at}#r{at}">run make</a></li></ol>'
    )
