"""Trajectories and images for tests: small pictures made from a number, and trajectories drawn by Hypothesis."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from hypothesis import strategies as st

from turnlog.models.target import Target
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.trajectory import Navigation, Region, StepResponse, Trajectory, Turn

__all__ = ["CROP", "THUMBNAIL", "navigation", "png", "session_of", "texts_of", "trajectories"]


def png(number: int, side: int = 4, height: int = 0) -> bytes:
    """A PNG of one colour, square without a `height`; each number has another colour."""
    height = height or side
    line = b"\0" + struct.pack(">I", number)[1:] * side

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", side, height, 8, 2, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(line * height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + pixels + chunk(b"IEND", b"")


THUMBNAIL = png(0)
CROP = {"action_type": "crop", "x": 1, "y": 2, "width": 30, "height": 40}


def session_of(aim: Target | None = None) -> Session:
    """A session in memory, with a target if one is given."""
    store = MemoryStore()
    store.create("s")
    session = Session(store, store.info("s"))
    if aim is not None:
        session.switch(aim)
    return session


def navigation(steps: int, aim: Target | None = None, **options: Any) -> Navigation:
    """A navigation of so many steps with different crops."""
    options = {"system": "You read slides.", "slide_width": 1_000, "slide_height": 800, "wsi_path": "a.svs", **options}
    made = Navigation(session_of(aim), "Where is the tumor?", THUMBNAIL, **options)
    for step in range(1, steps + 1):
        made.add_turn(png(step), f"I zoom in, {step}.", {**CROP, "x": step}, (step, 2, 30, 40))
    return made


def texts_of(value: Any) -> list[str]:
    """Every text in a body, in order, wherever it is."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for inner in value.values() for text in texts_of(inner)]
    return [text for inner in value for text in texts_of(inner)] if isinstance(value, (list, tuple)) else []


_WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**50), 2**50) | st.floats(-1e9, 1e9) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=3),
    max_leaves=6,
)
_KEYS = st.text("abcdefghij", min_size=1, max_size=5)
_EXTRA = st.dictionaries(_KEYS.map(lambda key: f"other_{key}"), _JSON, max_size=2)
_REGIONS = st.builds(
    Region, st.integers(0, 400), st.integers(0, 300), st.integers(1, 600), st.integers(1, 500), extra=_EXTRA
)
_ACTIONS = st.none() | _WORDS | st.dictionaries(_WORDS, _JSON, max_size=3) | st.just(CROP)
_RESPONSES = st.builds(StepResponse, _WORDS, _ACTIONS, _EXTRA)
_IMAGES = st.integers(0, 20).map(png)
_TURNS = st.builds(Turn, st.integers(0, 99), st.none() | _IMAGES, _RESPONSES, st.none() | _REGIONS, _EXTRA)
trajectories = st.builds(
    Trajectory,
    wsi_path=_WORDS,
    question=_WORDS.map(lambda text: f"Where? {text}"),
    turns=st.lists(_TURNS, max_size=6),
    final_answer=st.none() | _WORDS,
    thumbnail=st.none() | _IMAGES,
    slide_width=st.none() | st.integers(1_000, 100_000),
    slide_height=st.none() | st.integers(800, 100_000),
    extra=_EXTRA,
)
"""Any trajectory, with regions inside its slide."""
