"""What a prompt cache makes of requests: what they share, and where they are marked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from draws import examples
from judging import TARGETS, errors_of, numbered
from turnlog import Budget, Strategy, target
from turnlog.log.messages import Message, ToolCall
from turnlog.log.records import Configuration, Decision
from turnlog.log.store import Store
from turnlog.models.target import Target
from turnlog.providers import provider
from turnlog.requests import prompt_cache as caching
from turnlog.requests.build import build
from turnlog.requests.pieces import wire_messages
from turnlog.requests.request import CacheUse
from turnlog.requests.translate import plan
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.testing.histories import History
from turnlog.testing.strategies import damaged_histories, sound_histories
from turnlog.view.types import Shown

CHAT = target("openai-chat", "gpt-4o")
CLAUDE = target("anthropic", "claude-sonnet-4-5", max_tokens=500)


def opened(aim: Target, budget: int, strategy: Strategy | str = "sliding") -> Session:
    store: Store = MemoryStore()
    session = Session(store, store.create("s"))
    session.switch(aim)
    session.configure(budget=budget, strategy=strategy)
    session.system("Be brief. " + "rule " * 100)
    session.user("The task. " + "detail " * 50)
    return session


def step(session: Session, n: int) -> None:
    session.assistant(f"answer {n} " + "word " * 80)
    session.user(f"go on {n}")


def test_a_request_that_goes_on_shares_all_of_the_one_before() -> None:
    """Whoever watches the bill must see that nothing moved as long as nothing did."""
    session = opened(CHAT, 3_000)
    first = session.request()
    assert first.cache is None
    before = session.window.tokens
    step(session, 1)
    assert session.request().cache == CacheUse(session.window.tokens, before, before)


def test_a_decision_that_moves_the_first_byte_is_named() -> None:
    """A bill that doubled must be traced to what did it."""
    session = opened(CHAT, 1_200)
    uses = []
    for n in range(14):
        uses.append(session.request().cache)
        step(session, n)
    moved = [use for use in uses if use is not None and use.moved_by]
    decisions = {r.n: r.body for r in session.history() if type(r.body).__name__ == "Decision"}
    assert moved and {use.moved_by for use in moved} == set(decisions)
    for use in moved:
        assert 0 < use.shared < use.previous
        assert use.why == decisions[use.moved_by].why  # type: ignore[union-attr]


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: aim.model)
@pytest.mark.parametrize("said", ("nothing", "system text", "an answer"))
def test_a_word_that_was_put_in_gives_way(aim: Target, said: str) -> None:
    """Where nobody had said anything yet, or an answer stood last, a user's word is put in. The next request was told
    to share less than nothing of that one, because a call had its result: there is none."""
    session = Session(store := MemoryStore(), store.create("s"))
    session.switch(aim)
    if said != "nothing":
        session.system("Be brief.")
    if said == "an answer":
        session.user("Is it warm in Oslo?")
        session.assistant("It is.")
    before, asked = session.window.tokens, session.request().body
    session.user("And in Rome? " * 20)
    made = session.request()
    cache = made.cache
    key = provider(aim.provider).conversation
    old, new = (unmarked(request[key]) for request in (asked, made.body))
    assert cache is not None and (cache.tokens, cache.previous) == (session.window.tokens, before)
    if new[: len(old)] == old:
        assert (cache.shared, cache.why) == (before, "")
    else:
        assert 0 <= cache.shared < before and cache.why == "a user message was added at an end"


def test_a_tool_of_the_provider_is_not_declared() -> None:
    """The first call of the provider's own shell was said to have moved everything, as other tools were declared."""
    session = opened(target("openai-responses", "gpt-5"), 20_000)
    session.request()
    before = session.window.tokens
    action = {"type": "exec", "command": ["ls"], "env": {}}
    call = ToolCall("call_1", "local_shell", arguments=action, kind="shell", provider="openai-responses")
    session.add(Message("assistant", (call,)))
    session.tool_result(call, "README.md")
    made = session.request()
    assert "tools" not in made.body
    assert made.cache == CacheUse(session.window.tokens, before, before)


def test_thinking_that_is_switched_off_for_a_while_moves_everything() -> None:
    """A session that came to Claude in the midst of a tool loop goes without thinking until that closes. What is cached
    without it is nothing to a request with it, but was said to be shared."""
    session = opened(CHAT, 20_000)
    call = ToolCall("call_1", "read", arguments={})
    session.add(Message("assistant", (call,)))
    session.tool_result(call, "text")
    session.switch(
        target("anthropic", CLAUDE.model, max_tokens=4_000, thinking={"type": "enabled", "budget_tokens": 2_000})
    )
    without = session.request()
    assert session.request().cache == CacheUse(session.window.tokens, before := session.window.tokens, before)
    session.assistant("It is in order.")
    session.user("Go on.")
    made = session.request()
    assert [request.body["thinking"]["type"] for request in (without, made)] == ["disabled", "enabled"]
    why = "thinking is switched off while a tool loop is open"
    assert made.cache == CacheUse(session.window.tokens, before, 0, why=why, changed="settings")
    assert session.request().cache == CacheUse(session.window.tokens, before := session.window.tokens, before)


def unmarked(value: Any) -> Any:
    """Without cache marks, and texts spelled as parts: both are the same to a cache."""
    if isinstance(value, dict):
        value = {key: one for key, one in value.items() if key != "cache_control"}
        if isinstance(value.get("content"), str):
            value["content"] = [{"type": "text", "text": value["content"]}]
        return {key: unmarked(one) for key, one in value.items()}
    return [unmarked(one) for one in value] if isinstance(value, list) else value


def test_new_tools_move_everything() -> None:
    """Tools stand at the very beginning of what is cached."""
    session = opened(CHAT, 3_000)
    session.request()
    session.configure(tools=[{"name": "ls", "parameters": {"type": "object", "properties": {}}}])
    use = session.request().cache
    assert use is not None
    assert (use.shared, use.moved_by, use.why, use.changed) == (0, 0, "the tools changed", "tools")


@pytest.mark.parametrize(
    "between",
    [
        lambda session: session.switch(target("openai-chat", "gpt-4o-mini")),
        lambda session: session.switch(target("google", "gemini-2.5-pro")),
        lambda session: session.configure(budget=2_900),
        lambda session: session.configure(strategy="mask"),
    ],
    ids=["model", "provider", "budget", "strategy"],
)
def test_what_stands_in_no_request_moves_none(between: Callable[[Session], object]) -> None:
    """The same bytes as before, said to be served from no cache, because a configuration is another one since."""
    session = opened(CHAT, 3_000)
    step(session, 1)
    before, size = session.request().json(), session.window.tokens
    between(session)
    session.switch(CHAT, reason="as before")
    made = session.request()
    assert (made.json(), made.cache) == (before, CacheUse(size, size, size))


def test_what_another_model_had_decided_is_named_on_coming_back() -> None:
    """Nobody would look for the smaller window that a conversation went through, where tools are said to be others."""
    session = opened(CHAT, 100_000)
    session.configure(budget=Budget())
    for n in range(100):
        step(session, n)
    size = session.request() and session.window.tokens
    session.switch(target("openai-chat", "gpt-4"))  # a window of 8,192 tokens
    session.request()
    session.switch(CHAT, reason="more room")
    use = session.request().cache
    [decision] = [record for record in session.history() if isinstance(record.body, Decision)]
    assert use is not None and 0 < use.shared < use.tokens < use.previous == size
    assert (use.moved_by, use.why) == (decision.n, decision.body.why)  # type: ignore[union-attr]


def _marked(request: dict[str, Any]) -> list[Any]:
    found = ["system"] if isinstance(request["system"], list) and "cache_control" in request["system"][-1] else []
    for i, message in enumerate(request["messages"]):
        content = message["content"]
        if isinstance(content, list) and any("cache_control" in block for block in content):
            found.append(i)
    return found


def test_marks_are_few_and_where_the_cache_lasts(oracle: Any) -> None:
    """Without marks Anthropic caches nothing; a mark that moves each time is paid for and never read."""
    session = opened(CLAUDE, 3_000, "summarise")
    step(session, 0)
    assert _marked(session.request().body) == []  # too small to be cached at all
    for n in range(1, 40):
        step(session, n)
        made = session.request()
        marks, length = _marked(made.body), len(made.body["messages"])
        assert errors_of(oracle, CLAUDE, made.body) == []
        if session.window.tokens >= 1_024:
            assert marks[0] == "system" and marks[-1] == length - 1 and len(marks) <= 4
            if made.cache and not made.cache.moved_by:
                assert length - 3 in marks  # where the request before ended


def test_a_mark_costs_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """To find the places of marks each request to Claude spelled the whole conversation three times, its pictures too:
    20 ms a turn at 800 messages, and more with every one."""
    spelled_messages = [0]

    def counted(view: Sequence[Shown], *rest: Any) -> list[Any]:
        spelled_messages[0] += len(view)
        return wire_messages(view, *rest)

    monkeypatch.setattr(caching, "wire_messages", counted)
    session = opened(CLAUDE, 4_000, "summarise")
    costs = []
    for n in range(60):
        step(session, n)
        spelled_messages[0] = 0
        _marked(session.request().body)
        costs.append(spelled_messages[0])
    assert len(session.explain().rulings) > 1
    assert max(costs[1:]) <= 6 and any(costs)


@pytest.mark.parametrize("breakpoints", (False, True))
@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
@given(history=st.one_of(damaged_histories(), sound_histories()), place=st.integers(0, 40))
@settings(max_examples=examples(30, 1_000))
def test_marks_stand_where_spelling_the_whole_would_put_them(
    aim: Target, breakpoints: bool, history: History, place: int
) -> None:
    """Where they are is told from a part of the conversation: a mark beside its place is paid for and never read."""
    view = numbered(history.messages)
    view[place : place + 1] = [replace(shown, treatment="summarised") for shown in view[place : place + 1]]
    ways = plan(Configuration(), aim)
    made = build(ways, view, history.blobs.__getitem__)
    blob = history.blobs.__getitem__
    newest = next(
        (
            i
            for i in range(len(made.view) - 1, 0, -1)
            if made.view[i].message.role == "assistant" and made.view[i - 1].message.role != "assistant"
        ),
        0,
    )
    summary = next((i for i, shown in enumerate(made.view) if shown.treatment == "summarised"), 0)
    system = len([*takewhile(lambda shown: shown.message.role == "system", made.view)])
    third = (summary + 1 if summary else system + 1) if breakpoints else newest
    wanted = [end for end in (system, summary, third, len(made.view)) if end]
    ends = [len(wire_messages(made.view[:end], ways, blob)) for end in wanted]
    found = caching.MarkPlaces(ways, blob).of(made.view, made.body, breakpoints=breakpoints)
    assert found == tuple(sorted({end - 1 for end in ends if end}))


def test_marks_of_ones_own_are_left_alone() -> None:
    """Whoever marks knows why; a fifth mark would be refused."""
    session = opened(CLAUDE, 100_000)
    session.user("x " * 2_000)
    made = session.request(CLAUDE.with_settings(cache_control={"type": "ephemeral"}))
    assert made.body["cache_control"] == {"type": "ephemeral"}
    assert _marked(made.body) == []


@pytest.mark.parametrize("marks", [True, False])
def test_marks_can_be_switched_off(marks: bool) -> None:
    """A proxy that refuses them would otherwise be out of reach."""
    session = opened(CLAUDE, 100_000, Strategy(name="none", cache_marks=marks))
    session.user("x " * 2_000)
    assert bool(_marked(session.request().body)) is marks


def test_a_compaction_that_nobody_is_forced_to_has_to_pay() -> None:
    """With a horizon of no request at all, writing the cache anew is never worth it; at the limit it is done anyway."""
    for horizon, forced in ((0, False), (20, False), (0, True)):
        strategy = Strategy(name="x", steps=("slide",), trigger=0.5, goal=0.5, horizon=horizon)
        session = opened(CHAT, 2_000, strategy)
        for n in range(30 if forced else 9):
            step(session, n)
        session.request()
        made = [r for r in session.history() if type(r.body).__name__ == "Decision"]
        assert bool(made) is (horizon > 0 or forced)


def test_a_tool_whose_loading_is_deferred_gets_no_mark(oracle: Any) -> None:
    """The API refuses a mark on one; it stands last where tools are many and most of them are searched for."""
    schema = {"type": "object"}
    now = {"name": "read", "input_schema": schema}
    later = {"name": "bill", "input_schema": schema, "defer_loading": True}
    store: Store = MemoryStore()
    session = Session(store, store.create("s"))
    session.switch(CLAUDE)
    session.configure(tools=[now, later])
    session.user("The task. " + "detail " * 2_000)
    request = session.request().body
    assert request["tools"] == [{**now, "cache_control": {"type": "ephemeral"}}, later]
    assert errors_of(oracle, CLAUDE, request) == []
