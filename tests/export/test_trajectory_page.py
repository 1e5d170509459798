"""The page of a trajectory: whole, safe and small enough; and its picture."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from typing import Any

import pytest
from hypothesis import given, settings

from draws import examples
from navigating import THUMBNAIL, navigation, png, session_of, trajectories
from pages import Page, strange
from turnlog.errors import InputError
from turnlog.export import as_trajectory, as_trajectory_picture
from turnlog.importers import read_file
from turnlog.importers.sync.session import sync_session
from turnlog.log.messages import Media, Message, Text
from turnlog.log.store import Problem
from turnlog.models.target import target
from turnlog.session.reader import SessionLog
from turnlog.stores import MemoryStore
from turnlog.testing.hostile import hostile_text
from turnlog.tokens.dimensions import dimensions
from turnlog.trajectory import Trajectory
from turnlog.trajectory.images import encoded


def page_of(log: SessionLog, **options: Any) -> tuple[str, list[Problem]]:
    """The page of a session, and what is missing in it."""
    problems: list[Problem] = []
    return b"".join(as_trajectory(log, problems, **options)).decode("utf-8"), problems


def parsed(html: str) -> Page:
    """The page, which must have nothing strange in it."""
    page = Page(html)
    assert strange(page, drawn=True) == []
    return page


def test_a_page_shows_the_whole_path() -> None:
    """Every step with its words and image, the map with each region, the answer: what is left out is not seen."""
    made = navigation(3)
    made.get_messages(target("openai-chat", "gpt-4o"), 1)
    made.add_turn(png(9), "Last look.", "wait")
    made.answer("At the left.")
    html, problems = page_of(made.session.log)
    page = parsed(html)
    ids = [element.attributes.get("id") for element in page.elements if element.tag == "section"]
    assert problems == [] and ids == ["step-1", "step-2", "step-3", "step-4", "answer"]
    assert html.count('class="region mark"') == 3 and html.count('class="disc"') == 3
    for words in ("I zoom in, 2.", "Last look.", "At the left.", "a.svs", "1,000 × 800", "(2, 2, 30, 40)"):
        assert words in html
    assert "the thumbnail and the image of step 3; no longer that of 1–2" in html
    assert html.count("<symbol") == 5  # each picture once


def test_a_limit_shows_what_a_model_would_see() -> None:
    """`max_history_images` says what would be seen with that limit, whatever was sent."""
    html, _ = page_of(navigation(3).session.log, max_history_images=0)
    assert html.count("no longer that of") == 2 and "no longer that of 1–2" in html


def test_only_our_script_and_style_may_run() -> None:
    """The policy allows the script and the style of the page by their hashes, and no address at all."""
    html, _ = page_of(navigation(1).session.log)
    for kind in ("script", "style"):
        inside = re.search(f"<{kind}>(.*?)</{kind}>", html, re.DOTALL)
        assert inside is not None and html.count(f"<{kind}") == 1
        digest = base64.b64encode(hashlib.sha256(inside[1].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in html
    assert not re.search(r"https?://|\burl\(|@import", html)


@settings(max_examples=examples(30, 1_000))
@given(trajectories)
def test_any_trajectory_has_a_page(trajectory: Trajectory) -> None:
    """Whatever a trajectory holds (no images, equal images, empty texts), its page is well formed."""
    store = MemoryStore()
    kept = sync_session(store, read_file(trajectory.to_json())[0])
    html, problems = page_of(SessionLog(store, kept.session))
    parsed(html)
    assert problems == [] and html.count('class="step"') == len(trajectory.turns)


def test_foreign_text_stays_text() -> None:
    """Markup in a question, an answer, an action or a path must not become markup of the page."""
    text = hostile_text(3_000).encode("utf-8", "replace").decode()
    made = navigation(0, wsi_path=text)
    made.add_turn(png(1), text, {text[:300]: text}, extra={"other": text})
    made.answer(text)
    session = session_of()
    session.user(text)
    session.assistant(text)
    session.user([Text(text), Media("image", url="javascript:alert(1)")])
    for log in (made.session.log, session.log):
        parsed(page_of(log)[0])


def test_images_that_cannot_be_shown_are_named() -> None:
    """An image that is missing, damaged or only an address is named on the page, and is a problem for the exit code."""
    session = session_of()
    session.user("Find it.")
    for part in (Media("image", mime="image/png", sha256="0" * 64), session.media(b"no image", "image/png")):
        session.assistant("I look.")
        session.add(Message("user", (part,)))
    session.assistant("And there.")
    session.user([Media("image", url="https://example.org/a.png")])
    html, problems = page_of(session.log)
    parsed(html)
    assert len(problems) == 2 and "not an image" in html and "not in the session: https://example.org/a.png" in html


def _noise(side: int, seed: int) -> bytes:
    """A PNG that does not compress."""
    image = pytest.importorskip("PIL.Image")
    data = hashlib.shake_128(str(seed).encode()).digest(side * side * 3)
    return encoded(image.frombytes("RGB", (side, side), data), "PNG", 0)


def test_large_images_are_made_smaller_for_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of many large images would be too large to open: they share the room, small ones stay as they are, and the
    page says so. Without Pillow, the large ones are left out, with the command that installs it."""
    monkeypatch.setattr("turnlog.export.trajectory_page.PAGE_BYTES", 120_000)
    made = navigation(0)
    for seed in range(3):
        made.add_turn(_noise(200, seed), "a")
    html, problems = page_of(made.session.log)
    parsed(html)
    assert problems == [] and len(html) < 160_000 and "shown smaller" in html
    addresses = re.findall(r"data:image/(\w+);base64,([^\"]+)", html)
    assert [kind for kind, _ in addresses] == ["png", "jpeg", "jpeg", "jpeg"]
    assert base64.b64decode(addresses[0][1]) == THUMBNAIL
    monkeypatch.setitem(sys.modules, "PIL", None)
    html, problems = page_of(made.session.log)
    assert len(problems) == 3 and "pip install &#x27;.[images]&#x27;" in html


def test_a_picture_of_the_path() -> None:
    """The PNG has the shape of the slide with a number for each region, or all screenshots where there are none."""
    pytest.importorskip("PIL")
    problems: list[Problem] = []
    data = b"".join(as_trajectory_picture(navigation(3).session.log, problems))
    assert dimensions(data) == (1600, 1280) and problems == []
    plain = navigation(0)
    plain.add_turn(png(1), "a", "click(point='<point>500 500</point>')")
    plain.add_turn(png(2), "b", "drag(start_point='<point>1 1</point>', end_point='<point>900 900</point>')")
    assert dimensions(b"".join(as_trajectory_picture(plain.session.log, problems))) is not None
    empty = session_of()
    empty.user("Hello")
    with pytest.raises(InputError, match="no regions and no images"):
        as_trajectory_picture(empty.log, problems)


def test_a_picture_needs_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, the error is the command that installs it."""
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError, match=r"pip install '\.\[images\]'"):
        as_trajectory_picture(navigation(1).session.log, [])
