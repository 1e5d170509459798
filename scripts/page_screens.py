"""Takes the pictures in docs/serve.md: the pages of `turnlog serve` over made-up sessions, in Chromium.

python scripts/page_screens.py
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from playwright.sync_api import sync_playwright

import turnlog
from screens import home_of_agents
from turnlog.display.past_request import requests_of
from turnlog.importers import read_sessions
from turnlog.importers.discovery import discover
from turnlog.importers.sync.session import sync_session
from turnlog.log.messages import Text, ToolCall
from turnlog.log.records import Record
from turnlog.log.store import Draft, Store
from turnlog.stores import open_store
from turnlog.stores.wrapper import StoreWrapper
from turnlog.web.app import PageServer, listening
from turnlog.web.guard import root_of

ASSETS = Path(__file__).parent.parent / "docs/assets"
MODEL = "claude-sonnet-4-5"
SESSION = "parcels"


class Timed(StoreWrapper):
    """A store whose clock goes on by some seconds with each record, from the morning of a made-up day on."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._now = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        """See `Store.append`."""
        timed = []
        for draft in drafts:
            self._now += timedelta(seconds=1.7 + len(timed))
            timed.append(replace(draft, time=self._now.strftime("%Y-%m-%dT%H:%M:%S.000Z")))
        return self.store.append(session_id, timed, expected=expected)


WORK = (
    ("Uploads of labels over 5 MB fail now and then. Find out why.", "upload.py", "timeout=5", "timeout=30"),
    (
        "Right. Now retry what failed, but never twice at once.",
        "retry.py",
        "for each in failed:",
        "for each in waiting():",
    ),
    ("The tests take three minutes. Why?", "conftest.py", 'scope="function"', 'scope="session"'),
    ("Write the customs form for parcels to Norway, too.", "customs.py", "EU | {'CH'}", "EU | {'CH', 'NO'}"),
    ("What did we decide about weights? Round them up.", "weights.py", "round(grams)", "ceil(grams / 10) * 10"),
    ("Show the price before tax on the label.", "label.py", "{price}", "{net} + {tax}"),
    ("Make the list of parcels faster; it loads all of them.", "listing.py", ".all()", ".page(size=50)"),
)
"""What the user asks for, and the file that is changed: before and after."""


def worked(store: Store) -> None:
    """A session of turnlog with tools, files, bills, a cache, and decisions on what to leave out."""
    target = turnlog.target("anthropic", MODEL)
    with turnlog.open(SESSION, store=store, target=target, budget=6_000) as session:
        session.system("You work on the parcel service. Its rules are in RULES.md.")
        files, cached = session.files("/home/ann/parcels"), 0
        for number, (asked, name, before, after) in enumerate(WORK, 1):
            with session.turn(asked) as turn:
                told = "\n".join(f"{line:4}  def step_{line}(parcel): ...  # {before}" for line in range(1, 55))
                for call, result, outcome in (
                    (ToolCall(f"r{number}", "Read", {"path": name}), told, "ok"),
                    (ToolCall(f"t{number}", "Bash", {"command": f"pytest tests/test_{name}"}), "1 failed", "failed"),
                    (ToolCall(f"e{number}", "Edit", {"path": name, "old": before, "new": after}), "changed", "ok"),
                    (ToolCall(f"u{number}", "Bash", {"command": f"pytest tests/test_{name}"}), "31 passed", "ok"),
                ):
                    cached = answer(session, turn, [call], cached)
                    session.tool_started(call)
                    if call.name == "Edit":
                        files.record(name, f"a = 1\n{before}\nb = 2\n".encode(), f"a = 1\n{after}\nb = 2\n".encode())
                    session.tool_finished(call, outcome, seconds=0.4 * number)
                    session.tool_result(call, result, outcome=outcome)
                said = f"`{name}` had `{before}`; it is `{after}` now:\n\n- the test passes\n- nothing else moved"
                cached = answer(session, turn, [Text(said)], cached)


def answer(session: Any, turn: Any, parts: list[Any], cached: int) -> int:
    """Ask, and record what the model said, with its bill; returns how many tokens its cache holds."""
    request = session.request()
    size = request.tokens
    read = min(cached, size) if request.cache is None or request.cache.shared >= request.cache.previous else 900
    content: list[dict[str, Any]] = [
        {"type": "text", "text": part.text}
        if isinstance(part, Text)
        else {"type": "tool_use", "id": part.id, "name": part.name, "input": part.arguments}
        for part in parts
    ]
    usage = {"input_tokens": 12, "cache_read_input_tokens": read, "cache_creation_input_tokens": max(0, size - read)}
    body = {
        "id": f"msg_{session.log.message_count}",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": content,
    }
    stop = "tool_use" if isinstance(parts[0], ToolCall) else "end_turn"
    turn.receive({**body, "stop_reason": stop, "usage": {**usage, "output_tokens": 180}})
    return int(size)


def others(store: Store, home: Path) -> None:
    """Sessions of agent programs."""
    home_of_agents(home)
    for file in discover(home, lambda error: None):
        for session in read_sessions(file.path):
            sync_session(store, session)


def pictures(store: Store) -> Iterator[tuple[str, str, int, int, str]]:
    """Name, page, width, height and scheme of each picture."""
    requests = requests_of(store, SESSION).requests
    late = requests[-3].n
    yield "serve-sessions", "/", 1_200, 480, "light"
    yield "serve-session", f"/s/{SESSION}?at={requests[-9].n}", 1_400, 760, "light"
    yield "serve-request", f"/s/{SESSION}/requests/{late}", 1_200, 900, "light"
    yield "serve-requests", f"/s/{SESSION}/requests", 1_200, 760, "dark"
    yield "serve-figures", "/figures", 1_200, 860, "light"
    yield "serve-small", f"/s/{SESSION}", 420, 760, "dark"


def main() -> None:
    """Take all pictures."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        sys.exit("there is no Chromium on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"{folder}/log.db")
        others(store, Path(folder).resolve() / "home")
        worked(Timed(store))
        at = listening(0)
        server = PageServer(store, "secret", at)
        serving = threading.Thread(target=server.serve_pages, daemon=True)
        serving.start()
        address = f"http://127.0.0.1:{at.getsockname()[1]}{root_of('secret')}"
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
            for name, page, width, height, scheme in pictures(store):
                size: Any = {"width": width, "height": height}
                view = browser.new_context(
                    viewport=size, color_scheme="dark" if scheme == "dark" else "light"
                ).new_page()
                view.goto(f"{address}/?token=secret")
                view.goto(address + page)
                if view.locator("[data-load]").count():
                    view.locator("[data-load][data-loaded]").first.wait_for(state="attached")
                    view.wait_for_timeout(500)
                view.screenshot(path=ASSETS / f"{name}.png")
            browser.close()
        server.should_exit = True
        serving.join()
        store.close()


if __name__ == "__main__":
    main()
