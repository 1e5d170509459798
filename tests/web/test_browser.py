"""The pages of `turnlog serve` in a real browser: nothing runs that is not ours, nothing is fetched from elsewhere,
nothing is wider than the window, and nobody is kept out."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import turnlog
from browsing import browser
from draws import draws
from image_sessions import with_images
from real_transcripts import FOLDERS, imported
from turnlog.display.frame import Ways
from turnlog.display.page import shows_images
from turnlog.display.past_request import requests_of
from turnlog.importers.sync.session import sync_session
from turnlog.log.messages import Message, Text, ToolCall
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft, Store
from turnlog.stores import open_store
from turnlog.testing.hostile import hostile_session
from turnlog.web.guard import root_of

pytestmark = [pytest.mark.clients, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
web = pytest.importorskip("turnlog.web.app")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

SERVED = Ways("served")
LOOKS = ((400, "dark"), (1_600, "light"), (400, "light"), (1_600, "dark"))[: draws(2, 4)]
AGENTS = ("claude-code-entire", "codex-entire", "gemini-entire", "pi", "cline", "openhands", "swe-agent", "tau-bench")


def a_compacted_session(store: Store) -> None:
    """A session of turnlog itself, with tools, files, bills and a decision."""
    target = turnlog.target("anthropic", "claude-sonnet-4-5")
    with turnlog.open("compacted", store=store, target=target) as session:
        for n in range(1, 7):
            with session.turn(f"Do part {n} of `the work`.") as turn:
                call = ToolCall(f"c{n}", "edit", {"path": "a.py"})
                session.add(Message("assistant", (Text("**Now.**"), call)))
                session.tool_result(call, "it \x1b[31mwent\x1b[0m wrong\n" * 300, outcome="failed")
                body = {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
                usage = {"input_tokens": 1_000 * n, "output_tokens": 10, "cache_read_input_tokens": 700 * n}
                text = [{"type": "text", "text": f"Part {n} is done."}]
                turn.receive({**body, "content": text, "stop_reason": "end_turn", "usage": usage})
                session.files("/src").record("a.py", b"one\n" * n, b"one\n" * n + b"<two>\n")
        session.compact(keep=1)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Store]:
    """Real transcripts of each agent, images, hostile texts, and a session that turnlog compacted."""
    made = open_store(str(tmp_path_factory.mktemp("pages") / "log.db"))
    hostile_session(made, "../every/<b>", 100_000)
    a_compacted_session(made)
    with suppress(pytest.skip.Exception):
        shared: Path = request.getfixturevalue("shared")
        for folder in FOLDERS if draws(0, 1) else AGENTS:
            for _, one in islice(imported(shared, [folder]), draws(1, 40)):
                sync_session(made, one)
        for _, one in islice(with_images(shared), draws(1, 20)):
            sync_session(made, one)
    yield made
    made.close()


@pytest.fixture(scope="module")
def address(store: Store) -> Iterator[str]:
    """Where the pages of the store are, with the token."""
    socket = web.listening(0)
    server = web.PageServer(store, "secret", socket)
    thread = threading.Thread(target=server.serve_pages, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{socket.getsockname()[1]}{root_of('secret')}"
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def opened() -> Iterator[Any]:
    """A browser."""
    if (found := browser()) is None:
        pytest.skip("Chromium or the package playwright is absent")
    with found as running:
        yield running


def pages_of(store: Store, session_id: str) -> Iterator[str]:
    """The pages of a session."""
    many = store.info(session_id).records
    yield SERVED.session(session_id)
    yield SERVED.session(session_id, max(1, many // 2))
    yield SERVED.part(session_id, "r", max(1, many))
    yield SERVED.part(session_id, "requests")
    yield from (SERVED.request(session_id, one.n) for one in requests_of(store, session_id).requests[-1:])
    yield SERVED.part(session_id, "changes")
    if shows_images(store, session_id):
        yield SERVED.part(session_id, "trajectory")


def all_pages(store: Store) -> list[str]:
    """The pages of the store, those of everything first."""
    ids = [info.id for info in store.sessions()]
    lists = ("/", "/?q=the", "/?group=day", "/?errors=1&sort=cost", "/figures")
    return [*lists, *(page for session_id in ids for page in pages_of(store, session_id))]


class Looked:
    """One page of a browser, and what was wrong with what it showed."""

    def __init__(self, opened: Any, address: str, width: int, scheme: str) -> None:
        self.address, self.width = address, width
        self.context, self.view = opened.tab(width, scheme)
        self.wrong: list[str] = []
        self.view.on("console", lambda message: self.wrong.append(f"console: {message.text}"))
        self.view.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.view.on("dialog", lambda dialog: (self.wrong.append("a dialog"), dialog.dismiss()))
        self.view.on("request", self._asked)
        self.view.goto(f"{address}/?token=secret")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:")):
            self.wrong.append(f"asks {request.url[:80]}")

    def at(self, page: str, *, axe_too: bool = True) -> list[str]:
        """What is wrong with a page."""
        self.wrong.clear()
        self.view.goto(self.address + page)
        later = self.view.locator("[data-load]")
        for place in range(later.count()):  # loaded when they are seen
            later.nth(place).scroll_into_view_if_needed()
            self.view.locator("[data-load][data-loaded]").nth(place).wait_for(state="attached", timeout=60_000)
        if (wide := self.view.evaluate("document.documentElement.scrollWidth")) > self.width:
            self.wrong.append(f"{wide} pixels wide")
        if self.view.evaluate("document.documentElement.dataset.ran"):
            self.wrong.append("foreign script ran")
        nodes = self.view.evaluate("document.querySelectorAll('*').length")
        if page.startswith("/s/") and page.count("/") == 2 and nodes > 2_000:
            self.wrong.append(f"{nodes} nodes")
        if axe_too:
            found = axe.Axe().run(self.view).response["violations"]
            serious = [one for one in found if one["impact"] in ("serious", "critical")]
            self.wrong += [f"axe {one['id']}: {one['nodes'][0]['html'][:150]}" for one in serious]
        return [f"{page} {self.width}: {line}" for line in self.wrong]


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_every_page_is_right(store: Store, address: str, opened: Any, width: int, scheme: str) -> None:
    """A page has an error, fetches something, is wider than its window, or shuts somebody out."""
    looked = Looked(opened, address, width, scheme)
    pages = all_pages(store)
    step = draws(3, 1)  # each look has its share of the pages, unless there is time
    chosen = [*pages[:5], *pages[5 + LOOKS.index((width, scheme)) % step :: step]]
    assert [line for page in chosen for line in looked.at(page)] == []
    looked.context.close()


def test_every_control_works(store: Store, address: str, opened: Any) -> None:
    """A button or a fold does nothing, or breaks the page."""
    looked = Looked(opened, address, 1_600, "light")
    for page in (
        SERVED.session("compacted"),
        SERVED.session("../every/<b>"),
        SERVED.part("compacted", "requests"),
        "/",
    ):
        looked.at(page, axe_too=False)
        view = looked.view
        view.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        for button in view.locator("button:visible").all():
            button.click()
            view.keyboard.press("Escape")
        for box in view.locator("input[type=checkbox]:visible").all():
            box.check()
        assert looked.wrong == []
    looked.context.close()


def test_enter_opens_the_hit_of_these_words(address: str, opened: Any) -> None:
    """Enter in the palette opens the heading above the hit, or what was found for the words typed before."""
    looked = Looked(opened, address, 1_600, "light")
    looked.view.goto(address + SERVED.part("compacted", "requests"))
    looked.view.keyboard.press("Control+k")
    looked.view.keyboard.type('"part 3 is done"')
    looked.view.locator(".palette .hits:not([aria-busy]) li").first.wait_for()
    looked.view.keyboard.press("Control+a")
    looked.view.keyboard.type('"Part 5 is done"')
    looked.view.keyboard.press("Enter")
    looked.view.wait_for_url("**/s/compacted?at=*")
    number = looked.view.url.rpartition("#")[2]
    assert "Part 5 is done." in looked.view.locator(f"#{number}").inner_text()
    looked.context.close()


def test_prompts_come_after_a_long_sleep(store: Store, address: str, opened: Any) -> None:
    """A page that missed more records than are sent at once keeps its old list of prompts."""
    store.create("slept")
    store.append("slept", [Draft(MessageRecord(Message("user", (Text("the first prompt"),))))])
    looked = Looked(opened, address, 1_600, "light")
    looked.view.goto(address + SERVED.session("slept"))
    looked.view.locator(".rail a[data-n]").first.wait_for()
    said = [Draft(MessageRecord(Message("user" if n == 600 else "assistant", (Text("more"),)))) for n in range(601)]
    store.append("slept", said)
    looked.view.locator('.rail a[data-n="602"]').wait_for()
    looked.context.close()
