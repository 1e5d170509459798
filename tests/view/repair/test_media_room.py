"""Screens that are large, in pixels or in bytes, and many: what a provider takes in one request."""

from __future__ import annotations

import base64
import struct
import zlib
from types import ModuleType
from typing import Any

import pytest

import turnlog
from draws import LONG
from judging import errors_of
from turnlog.log.messages import Message, ToolCall
from turnlog.models.target import Target
from turnlog.session.session import Session
from turnlog.view.repair.media_room import MediaTotals

CLAUDE = turnlog.target("anthropic", "claude-sonnet-4-5", max_tokens=99)
CLAUDE_1M = turnlog.target("anthropic", "claude-sonnet-4-6", max_tokens=99)
GPT = turnlog.target("openai-chat", "gpt-4.1")
RESPONSES = turnlog.target("openai-responses", "gpt-5.4")
GEMINI = turnlog.target("google", "gemini-2.5-pro")
MB = 1_000_000


def png(width: int, height: int, number: int, size: int = 0) -> bytes:
    """A picture of its own of these sides, and about so many bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    filling = chunk(b"tEXt", b"number\0%d " % number + b"." * size)
    data = chunk(b"IHDR", head) + filling + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + data


def look(session: Session, number: int, data: bytes) -> None:
    """A step of an agent that looks at a screen."""
    call = ToolCall(f"c{number}", "look", {"step": number})
    session.add(Message("assistant", (call,)))
    session.tool_result(call, [f"step {number}", session.media(data, "image/png")])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("aim", "side", "size", "steps", "most"),
    [
        (CLAUDE, 2_560, 0, 50, 2 * MB),
        (CLAUDE_1M, 2_560, 0, 50, 2 * MB),
        (CLAUDE, 9_000, 0, 30, 2 * MB),
        (CLAUDE, 1_280, 1_500_000, 28, 32 << 20),
        *([(CLAUDE_1M, 1_280, 1_500_000, 28, 32 << 20)] if LONG else []),
        (GPT, 1_280, 2_500_000, 28, 50 * MB),
        (RESPONSES, 1_280, 2_500_000, 28, 50 * MB),
        (GEMINI, 1_280, 4_000_000, 28, 100 << 20),
    ],
    ids=lambda value: value.model if isinstance(value, Target) else str(value),
)
def test_each_request_of_many_large_screens_is_taken(
    oracle: ModuleType, aim: Target, side: int, size: int, steps: int, most: int
) -> None:
    """At the 21st screen of 2,560 pixels, and once all screens took more than 32 MB, each request to Claude was
    refused, and so was every one after it. What leaves does so by decisions, and not at each step."""
    with turnlog.open("s", store=":memory:", target=aim) as session:
        session.user(["Find the flight.", session.media(png(800, 600, -1), "image/png")])
        for n in range(steps):
            look(session, n, png(side, 700, n, size))
            made = session.request()
            body = made.json()
            assert len(body) <= most
            if n % (14 if size else 7) == 0 or n == steps - 1:  # to judge 100 MB takes a second
                assert errors_of(oracle, aim, made.body) == []
            assert side > 8_000 or all(loss.kind != "media" for loss in made.losses)
            assert made.cache is None or made.cache.moved_by or made.cache.shared == made.cache.previous
        moved = [ruling.decision for ruling in session.explain().rulings]
        assert {decision.action for decision in moved} == {"images"}
        assert len(moved) <= steps // 5


def images_in(body: dict[str, Any]) -> int:
    """How many images a request shows."""
    return str(body["messages"]).count("'type': 'image'")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("side", "count", "size", "left"),
    [
        (2_000, 30, 0, 30),
        (2_001, 20, 0, 20),
        (2_001, 21, 0, 20),
        (8_000, 3, 0, 3),
        (8_001, 3, 0, 0),
        (100, 9, 3 * MB, 8),
    ],
)
def test_bodies_are_repaired_at_the_very_limits(
    oracle: ModuleType, side: int, count: int, size: int, left: int
) -> None:
    """`check` found nothing wrong with a request that the API refuses; one within its limits is not to be changed."""
    sources = [base64.b64encode(png(side, 700, n, size)).decode() for n in range(count)]
    images = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}} for data in sources
    ]
    whole = {"model": CLAUDE.model, "max_tokens": 99, "messages": [{"role": "user", "content": images}]}
    repaired = turnlog.repair(whole, "anthropic")
    assert images_in(repaired.body) == left
    assert bool(turnlog.check(whole, "anthropic")) == (left < count)
    assert errors_of(oracle, CLAUDE, repaired.body) == []
    assert turnlog.repair(repaired.body, "anthropic").body == repaired.body
    assert turnlog.fit(whole, strategy="auto").body.keys() == whole.keys()


def test_a_switch_to_a_provider_with_less_room_for_large_screens_is_a_decision(oracle: ModuleType) -> None:
    """Forty screens that Gemini was shown made every request to Claude invalid. A fork, and a session that is opened
    again, show the same; undone, and back with Gemini, all are there again."""
    with turnlog.open("s", store=":memory:", target=GEMINI) as session:
        task = session.user("Find the flight.")
        for n in range(40):
            look(session, n, png(2_560, 1_440, n))
        kept = session.user(["Like this one.", session.media(png(3_000, 1_440, 99), "image/png")])
        session.pin(kept.n)
        whole = session.request().body["contents"]
        session.switch(CLAUDE)
        made = session.request()
        assert errors_of(oracle, CLAUDE, made.body) == []
        assert 10 < images_in(made.body) <= 20
        assert made.losses == ()
        assert session.fork("f").request().json() == made.json()
        assert session.explain().accounts[task.n].fate == "kept"
        session.undo("compaction")
        session.switch(GEMINI)
        assert session.request().body["contents"] == whole


def test_what_pieces_hold_adds_up() -> None:
    """Images that are over what a provider takes only together: only their number was summed, not their bytes, and a
    large one among them was forgotten."""
    totals = [MediaTotals(1, 10), MediaTotals(2, 300, True), MediaTotals()]
    assert sum(totals, MediaTotals()) == MediaTotals(3, 310, True)
    assert sum(totals[::-1], MediaTotals()) == MediaTotals(3, 310, True)
