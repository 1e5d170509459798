"""Requests with only the newest images, made without reading the others, are those of a strategy with that cap."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browsing import wrong_images
from draws import examples
from image_sessions import JUDGED, with_images
from judging import errors_of
from navigating import navigation, png
from turnlog.importers.sync.session import sync_session
from turnlog.log.budget import Strategy
from turnlog.models.target import Target, target
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.trajectory import Navigation

CHAT = target("openai-chat", "gpt-4o")
AGENTS = ("webvoyager", "ui-tars", "cua")


def by_strategy(session: Session, aim: Target, most: int) -> dict[str, Any]:
    """The request that the session's own engine makes under a cap on images."""
    strategy = Strategy("navigation", ("images", "slide"), max_history_images=most, max_history_turns=None)
    return session.preview(aim, strategy=strategy).body


@pytest.mark.slow
@settings(max_examples=examples(25, 1_000))
@given(
    steps=st.integers(1, 9),
    most=st.integers(0, 10),
    pins=st.lists(st.integers(1, 9), max_size=2),
    cap=st.none() | st.integers(0, 5),
    aim=st.sampled_from(JUDGED),
)
def test_both_ways_give_the_same_request(steps: int, most: int, pins: list[int], cap: int | None, aim: Target) -> None:
    """Pinned images, decisions on record and tool results included: a shortcut that sends something else is a second
    engine."""
    made = navigation(steps, CHAT)
    shown = [record.n for record in made.session.history() if getattr(record.body, "step", 0)]
    for pin in pins:
        if pin <= steps:
            made.session.pin(shown[pin - 1])
    if cap is not None:
        made.session.configure(strategy=Strategy("images", ("images",), max_history_images=cap))
        made.session.request()
    assert made.request(aim, most).body == by_strategy(made.session, aim, most)
    made.session.user([made.session.media(png(30), "image/png"), made.session.media(png(31), "image/png")])
    assert made.request(aim, most).body == by_strategy(made.session, aim, most)


@pytest.mark.slow
def test_real_sessions(shared: Path, oracle: ModuleType) -> None:
    """The same for the recordings of other agents, whose images are in results and several in a message; and each
    request is valid for its API and shows the thumbnail and the newest images."""
    seen = 0
    for _, imported in with_images(shared, AGENTS):
        store = MemoryStore()
        session = Session(store, store.info(sync_session(store, imported).session))
        made = Navigation(session)
        for most in (0, 3):
            assert made.request(CHAT, most).body == by_strategy(session, CHAT, most)
        for aim in JUDGED:
            for most in (0, 1, 3, None):
                request = made.request(aim, most)
                assert errors_of(oracle, aim, request.body) == [] and wrong_images(session, request, most) == []
        seen += 1
    assert seen == 6


def test_images_that_left_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of a request must not grow with the images that it does not show."""
    made = navigation(12, CHAT)
    store: Any = made.session._store
    read: list[str] = []
    whole = store.get_blob
    monkeypatch.setattr(store, "get_blob", lambda sha256: (read.append(sha256), whole(sha256))[1])
    made.get_messages(max_history_images=2)
    assert len(set(read)) == 3
