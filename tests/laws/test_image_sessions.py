"""Sessions with images: real ones under `max_history_images`, and more images than a provider takes."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path
from types import ModuleType

import pytest
from msgspec.structs import replace

import turnlog
from draws import LONG
from image_sessions import CAPS, JUDGED, judge_images, with_images
from turnlog.importers import read_file
from turnlog.log.budget import PRESETS, Strategy
from turnlog.log.messages import Message, ToolCall, images_in
from turnlog.log.records import Decision
from turnlog.models.target import Target

FILES = (
    None
    if LONG
    else (
        "webvoyager/taskGitHub--0/interact_messages.json",
        "ui-tars/event-stream-with-many-images.json",
        "cua/puppet.jsonl",
    )
)


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.mark.parametrize("aim", JUDGED, ids=lambda aim: aim.provider)
@pytest.mark.parametrize("most", CAPS)
def test_images_of_real_sessions(shared: Path, oracle: ModuleType, aim: Target, most: int | None) -> None:
    """Screens pile up in such sessions; a wrong number or a lost thumbnail sends the model to the wrong screen."""
    found = with_images(shared) if FILES is None else (
        (shared / "data" / name, session) for name in FILES for session in read_file(shared / "data" / name)
    )  # fmt: skip
    for path, session in found:
        asked, wrong = judge_images(session, aim, most, oracle, every=5 if LONG else 3)
        assert (path.name, wrong) == (path.name, [])
        assert asked > (0 if LONG else 3)


@pytest.mark.parametrize("papers", [0, 5])
def test_more_images_than_a_provider_takes_go_by_decisions(oracle: ModuleType, papers: int) -> None:
    """From the hundredth screen on each request to Claude left out one more, and said nothing of it: the cache was
    written anew at each step, and the log knew of nothing."""
    aim = turnlog.target("anthropic", "claude-sonnet-4-5", max_tokens=99)
    with turnlog.open("s", store=":memory:", target=aim) as session:
        image = session.media(base64.b64decode(PIXEL), "image/png")
        session.user(["Find the flight.", image])
        for n in range(papers):
            session.user(["Read this.", session.media(b"%PDF-1.4 " + bytes([65 + n]), "application/pdf")])
        before: list[object] = []
        for n in range(130):
            call = ToolCall(f"c{n}", "click", {"x": n})
            session.add(Message("assistant", (call,)))
            session.tool_result(call, [f"step {n}", image])
            made = session.request()
            messages = [strip(message) for message in made.body["messages"]]
            assert made.losses == ()
            held = str(messages).count("'type': 'image'")
            assert 75 - papers <= held <= 100 - papers or n < 75
            moved = made.cache is not None and made.cache.moved_by
            assert moved or messages[: len(before)] == before
            before = messages
        assert oracle.check_anthropic(made.body) == []
        decisions = [ruling.decision for ruling in session.explain().rulings]
        assert [decision.action for decision in decisions] == ["images", "images"]
        assert PIXEL in str(made.body["messages"][0])  # the task's own


@pytest.mark.parametrize(("pinned", "most"), [(30, None), (0, 100)])
def test_what_must_stay_counts_among_what_a_provider_takes(pinned: int, most: int | None) -> None:
    """With pinned screens, or the task's picture beside a hundred others, one more had to go at each request, and it
    was one of those that must stay."""
    aim = turnlog.target("anthropic", "claude-sonnet-4-5", max_tokens=99)
    with turnlog.open("s", store=":memory:", target=aim) as session:
        session.configure(strategy=replace(PRESETS["auto"], max_history_images=most))
        image = session.media(base64.b64decode(PIXEL), "image/png")
        task = session.user(["The task: as in this picture.", image])
        for n in range(130):
            session.assistant(f"step {n}")
            record = session.user([f"screen {n}", image])
            if n < pinned:
                session.pin(record.n)
            made = session.request()
            assert made.losses == ()
            shown = [one for one in made.view if one.treatment == "verbatim" and images_in(one.message)]
            assert {one.records[0] for one in shown} >= {task.n, *pins(session)}
        assert sum(images_in(one.message) for one in made.view) <= 100
        actions = [ruling.decision.action for ruling in session.explain().rulings]
        assert actions.count("images") < (5 if most is None else 40)


def screens(strategy: Strategy, *, budget: int | None = None, steps: int = 40) -> tuple[float, int, turnlog.Session]:
    """An agent that looks at a large screen at each step: the share of its requests that a cache could have, its
    decisions, and the session, still open."""
    session = turnlog.open(
        "s", store=":memory:", target=turnlog.target("anthropic", "claude-sonnet-4-5", max_tokens=99)
    )
    session.configure(strategy=strategy, **({} if budget is None else {"budget": budget}))
    shared = tokens = 0
    session.user(["Find what this shows.", session.media(screen(0), "image/png")])
    for n in range(steps):
        call = ToolCall(f"c{n}", "click", {"x": n})
        session.add(Message("assistant", (call,)))
        session.tool_result(call, [f"step {n}", session.media(screen(n + 1), "image/png")])
        cache = session.request().cache
        if cache is not None:
            shared, tokens = shared + cache.shared, tokens + cache.tokens
    return shared / tokens, len(session.explain().rulings), session


def screen(shade: int) -> bytes:
    """A grey PNG of 1024 x 768 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1024, 768, 8, 0, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n"
        + head
        + chunk(b"IDAT", zlib.compress((b"\0" + bytes([shade]) * 1024) * 768))
        + chunk(b"IEND", b"")
    )


def test_of_screens_the_tasks_own_and_the_newest_stay() -> None:
    """The manual says which image never goes: the user's own. Who takes the first screenshot for it waits for a picture
    that is gone."""
    _, _, session = screens(PRESETS["images"], budget=12_000)
    fates = [account.fate for account in session.explain().accounts.values() if account.tokens > 500]
    assert fates[:2] == ["kept", "placeholder"] and fates[-3:] == ["kept"] * 3
    session.close()


def test_a_budget_moves_screens_seldom_and_a_number_of_them_at_each_step() -> None:
    """The manual sends who pays for a cache from `max_history_images` to a budget: that has to be worth it, at requests
    of about one size."""
    shared, decisions, session = screens(replace(PRESETS["auto"], max_history_images=5))
    session.close()
    rarely, few, other = screens(PRESETS["images"], budget=14_000)
    other.close()
    assert decisions == 40 - 5 and few < 10
    assert shared < 0.5 and rarely > 0.7


def pins(session: turnlog.Session) -> set[int]:
    """The numbers of the records that are pinned."""
    found = (record.body for record in session.history())
    return {body.first for body in found if isinstance(body, Decision) and body.action == "pin"}


def strip(value: object) -> object:
    """A message without the marks of the prompt cache."""
    if isinstance(value, dict):
        return {key: strip(inner) for key, inner in value.items() if key != "cache_control"}
    return [strip(inner) for inner in value] if isinstance(value, list) else value
