"""A navigating agent over real SDKs, and its page in a real browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asking import AGENTS
from sdk_clients import sdk_client

from browsing import Opened, browser, wrong_images
from image_sessions import with_images
from navigating import THUMBNAIL, navigation, png, session_of
from turnlog.export import as_trajectory
from turnlog.importers.sync.session import sync_session
from turnlog.log.messages import Tool
from turnlog.models.target import Target
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.testing.hostile import hostile_text
from turnlog.trajectory import Navigation, walk

CROP = Tool("crop", "Show a region of the slide.", {"type": "object", "properties": {"x": {"type": "integer"}}})


@pytest.mark.parametrize("aim", AGENTS, ids=[aim.provider for aim in AGENTS])
@pytest.mark.parametrize("way", ["text", "call"])
def test_an_agent_navigates_with_a_real_client(way: str, aim: Target, fake_server: Callable[..., Any]) -> None:
    """Five steps and an answer through the provider's SDK, by text or by tool calls, with thoughts: a server that
    refuses what the provider refuses takes each request, and the path is on record with its bills."""
    server = fake_server(verify_signatures="all")
    ask = sdk_client(aim.provider, server.url).send
    session = session_of(aim)
    if way == "call":
        session.configure(tools=[CROP])
    made = Navigation(session, "Where is the tumor?", THUMBNAIL, slide_width=1_000, slide_height=800, system="Look.")
    for step in range(1, 6):
        said = f"Thought: to the left, {step}.\nAction: crop({step})"
        call = {"tool_calls": [{"name": "crop", "args": {"x": step}}], "thinking": f"left {step}"}
        server.script(call if way == "call" else {"text": said, "thinking": f"left {step}"})
        request = made.request(max_history_images=2)
        assert wrong_images(session, request, 2) == []
        made.add_turn(png(step), region=(step, 0, 50, 50), response=ask(request.body, aim.model))
    server.script({"text": "At the left."})
    made.answer(response=ask(made.request(max_history_images=2).body, aim.model))
    assert [one.errors for one in server.requests] == [[]] * 6
    found = walk(session.log.records())
    assert found.final_answer == "At the left." and len(found.steps) == 5
    assert all(step.bills for step in found.steps) and session.log.unfinished() == []
    if way == "text":
        assert [step.response.action for step in found.steps] == [f"crop({step})" for step in range(1, 6)]
    else:
        assert [step.response.action["arguments"]["x"] for step in found.steps] == [1, 2, 3, 4, 5]
    assert [turn.image for turn in made.trajectory.turns] == [png(step) for step in range(1, 6)]


@pytest.fixture(scope="module")
def opened() -> Any:
    """A browser; skips where Playwright or Chromium is missing."""
    found = browser()
    if found is None:
        pytest.skip("no Playwright or no Chromium here: what a real browser makes of the page is not looked at")
    with found as running:
        yield running


def test_pages_in_a_browser(opened: Opened, shared: Path) -> None:
    """The pages of real runs of browser and desktop agents: no console errors, no requests, every step reached by keys
    and slider, nothing wider than the window on a phone."""
    seen = 0
    for path, imported in with_images(shared, ("webvoyager", "ui-tars", "cua")):
        store = MemoryStore()
        session = Session(store, store.info(sync_session(store, imported).session))
        page = b"".join(as_trajectory(session.log, []))
        assert (path.name, opened.wrong_with(page, len(walk(session.log.records()).steps))) == (path.name, [])
        seen += 1
    assert seen == 6


def test_the_page_of_a_slide_in_a_browser(opened: Opened) -> None:
    """The page with a map, and hostile texts in every place: they show, and nothing of them runs."""
    text = hostile_text(5_000).encode("utf-8", "replace").decode()
    made = navigation(3, wsi_path=text[:200])
    made.add_turn(png(9), text, {"action": json.dumps(text[:500])}, (5, 5, 9, 9), extra={"other": text})
    made.answer(text)
    page = b"".join(as_trajectory(made.session.log, []))
    assert opened.wrong_with(page, 4) == []
    assert opened.evaluate(page, "document.documentElement.dataset.ran || ''") == ""
    assert opened.evaluate(page, "document.querySelectorAll('.map .mark.on').length") == "2"
