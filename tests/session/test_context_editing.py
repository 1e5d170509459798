"""What a provider leaves out of requests by itself: counted as left out, expected to be, and not left out here too."""

from __future__ import annotations

from typing import Any

import pytest

import turnlog
from turnlog.log.records import UsageRecord
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

CLEAR = {"edits": [{"type": "clear_tool_uses_20250919"}]}
MODEL = "claude-opus-4-8"
TOOLS = [{"name": "read", "description": "Read.", "parameters": {"type": "object", "properties": {}}}]


def opened(strategy: str = "auto", **settings: Any) -> Session:
    target = turnlog.target("anthropic", MODEL, max_tokens=1_000, **settings)
    made = turnlog.open("s", store=MemoryStore(), target=target, tools=TOOLS, budget=6_000)
    made.configure(strategy=strategy)
    made.user("Read all of it.")
    return made


def step(session: Session, n: int, *, billed: int, cleared: int = 0) -> None:
    """One call and its result, and what the request was billed."""
    content = [{"type": "tool_use", "id": f"toolu_{n}", "name": "read", "input": {"n": n}}]
    head = {"type": "message", "role": "assistant", "model": MODEL, "content": content, "stop_reason": "tool_use"}
    edit = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 1, "cleared_input_tokens": cleared}
    edits = {"context_management": {"applied_edits": [edit]}} if cleared else {}
    session.request()
    session.receive({**head, "usage": {"input_tokens": billed, "output_tokens": 20}, **edits})
    session.tool_result(f"toolu_{n}", f"Page {n}. " + "Words of the page. " * 60)


def lived(session: Session, steps: int, kept: int) -> list[tuple[int, int]]:
    """What each request was predicted to be billed, and what it was: the API keeps the newest `kept` results."""
    found: list[tuple[int, int]] = []
    sizes: list[int] = []
    for n in range(steps):
        full = session.request().tokens
        sizes.append(full)
        cleared = 0 if n <= kept + 1 else sizes[n - kept] - sizes[1]
        found.append((session.window.prediction.tokens, full - cleared))
        step(session, n, billed=full - cleared, cleared=cleared)
    return found


def test_what_the_api_cleared_is_not_expected_in_the_next_bill() -> None:
    """A prediction of all that is sent would be several times the bill, and the counter taken for out of date."""
    found = lived(opened(context_management=CLEAR), 14, 3)
    late = [abs(expected - billed) / billed for expected, billed in found[7:]]
    assert max(late) < 0.25
    session = opened(context_management=CLEAR)
    lived(session, 14, 3)
    assert session.window.drift is None
    bill = [record.body for record in session.history() if isinstance(record.body, UsageRecord)][-1]
    assert bill.usage.cleared > bill.usage.input / 2
    assert session.window.tokens < session.request().tokens / 2


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["auto", "mask", "summarise"])
def test_what_the_api_cleared_leaves_room(strategy: str) -> None:
    """The view would be compacted although the model reads a fraction of it, and the API's own cache with it."""
    session = opened(strategy, context_management=CLEAR)
    lived(session, 24, 3)
    assert session.request().tokens > 6_000 > session.window.tokens
    assert not session.explain().saved and session.window.available > 0
    again = turnlog.Session(session._store, session._store.info("s"))
    assert again.request().json() == session.request().json()
    plain = opened(strategy)
    lived(plain, 24, 3)
    assert plain.explain().saved


def test_results_are_not_masked_beside_the_api_until_it_is_necessary() -> None:
    """Two would cut the same results, each at its own time, and each cut writes the cache anew."""
    masked = opened("mask")
    masked.configure(budget=turnlog.Budget(max_tokens=20_000, trigger=3_000.0))
    edited = opened("mask", context_management=CLEAR)
    edited.configure(budget=turnlog.Budget(max_tokens=20_000, trigger=3_000.0))
    for n in range(12):
        for session in (masked, edited):
            step(session, n, billed=session.request().tokens)
    assert masked.request().tokens < edited.request().tokens
    assert masked.explain().saved and not edited.explain().saved
    edited.configure(budget=3_000)
    assert edited.request().tokens <= 3_000


def test_settings_taken_back_count_again() -> None:
    """Without the setting the API clears nothing, so everything is read again."""
    session = opened(context_management=CLEAR)
    lived(session, 14, 3)
    assert session.window.tokens < session.request().tokens / 2
    session.configure(context_management=None)
    assert session.request().tokens <= 6_000
    assert session.window.tokens == session.request().tokens
