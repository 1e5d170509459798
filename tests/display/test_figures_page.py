"""The page of figures: the same figures as `turnlog ls --cost --json` and `turnlog show --all --tools` have."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from listed_sessions import filled, stores
from pages import Page, strange_served
from turnlog._platform.visible import visible
from turnlog.display.charts import bar
from turnlog.display.figures_page import figures_page
from turnlog.display.frame import Ways
from turnlog.display.listing import Listing
from turnlog.display.wording import at_least
from turnlog.log.bills import Bills, added, total_usage
from turnlog.log.records import MessageRecord, UsageRecord
from turnlog.log.store import Draft, Store
from turnlog.log.usage import Usage
from turnlog.memory import Memory
from turnlog.models.pricing import dollars, total_cost
from turnlog.session.reader import tools_over
from turnlog.stores import MemoryStore, open_store
from turnlog.testing.histories import History
from turnlog.testing.hostile import HOSTILE
from turnlog.testing.strategies import damaged_histories

SERVED = Ways("served")


def page_of(store: Store, **query: str) -> Page:
    """The page, without anything strange in it."""
    page = Page("".join(figures_page(store, query, SERVED)))
    assert not strange_served(page)
    return page


def words_of(bills: Bills) -> str:
    """Tokens and cost as the page shows them."""
    usage = total_usage(bills)
    return f"{at_least(usage, usage.input + usage.output, short=True)} tokens, {dollars(total_cost(bills), digits=2)}"


@given(stores())
def test_totals_and_tables_are_the_bills_of_the_store(store: Store) -> None:
    """The sum of all sessions, or a model's, is not what the store says was billed."""
    bill = added(store.usages().values())
    page = page_of(store)
    assert words_of(bill) in page.text
    for model, usage in bill.items():
        assert visible(model, one_line=True) in page.text
        assert at_least(usage, usage.input + usage.output, short=True) in page.text


@given(stores())
def test_tools_are_those_of_all_sessions(store: Store) -> None:
    """A call is counted twice because a fork or a resumed transcript has it as well, or not at all."""
    tallies: dict[str, list[int]] = {}
    for known in Listing(store).with_calls(store.sessions()).values():
        for (_, name), tool in known.tools.items():
            calls, timed = tallies.setdefault(name, [0, 0])
            tallies[name] = [calls + tool.calls, timed + len(tool.seconds)]
    told = tools_over(store, store.sessions())
    assert tallies == {tool.name: [tool.calls, tool.timed] for tool in told}


@given(damaged_histories())
def test_calls_without_texts_are_the_same_calls(history: History) -> None:
    """Dropping texts while a log is read changes which result belongs to which call, or which calls failed: the page
    says another number than `turnlog errors`."""
    store = MemoryStore()
    store.create("s")
    store.append("s", [Draft(body) for body in map(MessageRecord, history.messages)])
    tools = Listing(store).with_calls(store.sessions())["s"].tools
    counted: Counter[str] = sum((Counter({name: tool.calls}) for (_, name), tool in tools.items()), Counter())
    assert counted == {tool.name: tool.calls for tool in tools_over(store, store.sessions())}
    failed = [call for call in Memory.of(store.read("s")).failed_calls if call.outcome != "canceled"]
    assert sum(tool.failed for tool in tools.values()) == len(failed)


@given(stores(), st.sampled_from(["2026-02-01", "2026-02-03"]))
def test_days_part_what_was_billed(store: Store, day: str) -> None:
    """What was billed on a day is in neither or both of two spans that meet there."""
    before = [known.days for known in Listing(store).known(store.sessions()).values()]
    spans = [
        added(bills for days in before for at, bills in days.items() if fits(at))
        for fits in (lambda at: at <= day, lambda at: at > day)
    ]
    assert words_of(spans[0]) in page_of(store, until=day).text
    assert total_usage(added(spans)).input == total_usage(added(store.usages().values())).input


def test_figures_are_those_of_the_command_line(tmp_path: Path, turnlog: Callable[..., Any]) -> None:
    """The page and `turnlog ls --cost --json` or `turnlog show --all --tools --json` disagree."""
    source, place = filled(Random(8), 30), str(tmp_path / "log.db")
    with closing(open_store(place)) as store:
        for info in sorted(source.sessions(), key=lambda info: (info.created, info.id)):
            store.create(info.id, title=info.title, created=info.created, parent=info.parent)
            store.append(info.id, [Draft.of(record) for record in source.read(info.id)])
        page = page_of(store)
    listed = [json.loads(line) for line in turnlog("--store", place, "ls", "--cost", "--json").out.splitlines()]
    total = sum(each["cost"]["at_least"] for each in listed)
    assert f"${total:,.2f}" in page.text
    tools = turnlog("--store", place, "show", "--all", "--tools", "--json").out.splitlines()
    calls = sum(json.loads(line)["calls"] for line in tools)
    assert f"{calls:,} call" in page.text


def test_without_use_there_are_no_charts() -> None:
    """An empty store, or a span without use, ends in an error."""
    assert "0 calls" in page_of(MemoryStore()).text
    assert "0 calls" in page_of(filled(Random(2), 9), since="2030-01-01").text
    assert "since: 'x' is not" in page_of(MemoryStore(), since="x").text


def test_many_days_are_drawn_if_asked() -> None:
    """Earlier days are left out without a word, or cannot be seen."""
    store = MemoryStore()
    usage = UsageRecord("anthropic", "gpt-5", Usage(input=9))
    store.create("a")
    store.append("a", [Draft(usage, time=f"2026-0{1 + n // 28}-{1 + n % 28:02}T12:00:00.000Z") for n in range(50)])
    assert "20 earlier days with use" in page_of(store).text
    whole = "".join(figures_page(store, {"all": "1"}, SERVED))
    assert whole.count("<title>2026-") == 100


@given(st.lists(st.floats(), max_size=3), st.just(0.0) | st.floats(1, 1e9), st.lists(st.integers(0), max_size=2))
def test_bars_stay_in_their_place(sizes: list[float], whole: float, marks: list[int]) -> None:
    """A strange share draws a bar beyond its row."""
    drawn = Page(bar([("bad", size) for size in sizes], whole, marks))
    for rect in (element.attributes for element in drawn.elements if element.tag == "rect"):
        x, width = float(rect["x"] or "x"), float(rect["width"] or "x")
        assert x >= 0
        assert width >= 0
        assert x + width <= 1_000.1


@given(st.dictionaries(st.sampled_from(["since", "until", "all", "model"]), st.sampled_from(HOSTILE)))
def test_no_query_breaks_the_figures(query: dict[str, str]) -> None:
    """A value in the address becomes markup, or an error."""
    page_of(filled(Random(5), 12), **query)
