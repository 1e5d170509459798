"""What requests are expected to read from prompt caches, and what they are said to have read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from sessions_in_time import Clock
from turnlog import target
from turnlog.log.messages import Message
from turnlog.log.records import Configuration, Decision, MessageRecord, UsageRecord
from turnlog.log.store import Draft
from turnlog.log.usage import CacheRead, Usage
from turnlog.models.catalog import CacheRules, known_models, model_facts
from turnlog.models.target import Target
from turnlog.requests.prompt_cache import Bills, read_of
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

CHAT = target("openai-chat", "gpt-4o")
CLAUDE = target("anthropic", "claude-sonnet-4-5", max_tokens=500)
NEWER = target("openai-responses", "gpt-5.6-sol")
GEMINI = target("google", "gemini-2.5-pro")
TARGETS = (CHAT, CLAUDE, NEWER, GEMINI)


def begun(aim: Target, **usage: int) -> Clock:
    clock = Clock(aim)
    clock.say("Rules. " * 2_000, role="system")
    clock.say("Which tests fail?")
    assert clock.expected() == 0
    clock.answer(**usage)
    clock.say("Fix them.")
    return clock


@pytest.mark.parametrize(
    ("aim", "usage", "expected"),
    [
        (CHAT, {"input": 4_000}, 3_968),
        (CLAUDE, {"input": 4_000, "cache_write": 3_990}, 3_990),
        (CLAUDE, {"input": 4_000, "cached": 3_000, "cache_write": 500}, 3_500),
        (CLAUDE, {"input": 4_000}, 0),  # nothing was marked
        (NEWER, {"input": 4_000, "cached": 1_500, "cache_write": 2_490}, 3_990),
        (NEWER, {"input": 4_000}, 4_000),  # what was written is not reported
        (GEMINI, {"input": 5_000}, 4_096),
        (GEMINI, {"input": 7_000, "cached": 3_940}, 5_910),  # its steps have 1,970 billed tokens
        (CHAT, {"input": 1_000}, 0),  # too little to be cached
    ],
)
def test_the_last_bill_tells_what_is_read(aim: Target, usage: dict[str, int], expected: int) -> None:
    """By the rules of the model's own provider; a wrong one makes every request look as if its cache had failed."""
    clock = begun(aim, **usage)
    assert clock.expected() == expected
    again = Session(clock.store, clock.store.info("s"))
    assert again.request().expected_cache_read == expected  # the log alone tells as much


@pytest.mark.parametrize("aim", TARGETS, ids=str)
def test_what_is_too_old_is_not_expected(aim: Target) -> None:
    """A pause is the most frequent cause of a missed cache. It is taken from the log, not from the time of day."""
    facts = model_facts(aim.model)
    assert facts is not None and facts.cache.lifetime is not None
    for seconds, found in ((facts.cache.lifetime - 20, True), (facts.cache.lifetime + 20, False)):
        clock = begun(aim, input=9_000, cache_write=9_000 if aim is CLAUDE else 0)
        clock.say("And then?", seconds)
        assert bool(clock.expected()) is found
        clock.answer(input=9_000)
        clock.say("Well?")
        assert clock.session.request().expected_cache_read >= (9_000 - 4_096 if aim is not CLAUDE else 0)


def test_what_is_written_for_an_hour_is_expected_for_an_hour() -> None:
    """Whoever pays double for an hour wants to know whether it was worth it."""
    clock = begun(CLAUDE, input=9_000, cache_write=9_000, cache_write_1h=9_000)
    clock.say("And then?", 3_000)
    assert clock.expected() == 9_000
    clock.answer(input=9_000, cached=9_000)  # what is read stays for as long as it was written for
    clock.say("Well?", 3_000)
    assert clock.expected() == 9_000
    clock.say("Hello?", 1_000)
    assert clock.expected() == 0


@pytest.mark.parametrize("aim", TARGETS, ids=str)
def test_a_change_at_the_front_leaves_nothing(aim: Target) -> None:
    """New tools stand before everything else."""
    clock = begun(aim, input=9_000, cache_write=9_000 if aim is CLAUDE else 0)
    assert clock.expected() > 0
    clock.session.configure(tools=[{"name": "ls", "parameters": {"type": "object"}}])
    clock.session.user("Go on.")
    made = clock.session.request()
    assert made.cache is not None and (made.cache.changed, made.expected_cache_read) == ("tools", 0)
    assert Session(clock.store, clock.store.info("s")).request().expected_cache_read == 0


@pytest.mark.parametrize("aim", (CHAT, GEMINI), ids=str)
def test_other_settings_change_no_cache(aim: Target) -> None:
    """A request with another limit was said to find nothing."""
    clock = begun(aim, input=9_000)
    before = clock.expected()
    made = clock.session.request(aim.with_settings(temperature=0.5) if aim is CHAT else aim)
    assert made.expected_cache_read == before > 0


@pytest.mark.parametrize("aim", TARGETS, ids=str)
def test_after_a_decision_what_comes_before_it_is_expected(aim: Target) -> None:
    """Marked caches keep it only where a mark was; the others to the last step."""
    clock, writes = Clock(aim), aim in (CLAUDE, NEWER)
    clock.say("Rules. " * 3_000, role="system")
    clock.say("The task.")
    first = clock.session.request().tokens
    clock.answer(input=first, cache_write=first * writes)
    clock.say("Text. " * 3_000)
    size = clock.session.request().tokens
    clock.answer(input=size, cached=first, cache_write=(size - first) * writes)
    clock.say("Go on.")
    everything = clock.expected()
    clock.session.rewind(to=4)
    clock.say("Another task.")
    made = clock.session.request()
    assert made.cache is not None and made.cache.changed == "messages"
    assert first * 0.6 < made.expected_cache_read <= made.cache.shared * 1.1 < everything


@pytest.mark.parametrize("aim", TARGETS, ids=str)
def test_what_was_expected_stands_beside_what_was_read(aim: Target) -> None:
    """Only both together tell whether the cache is at fault or the conversation."""
    session = turnlog.open("s", store=MemoryStore(), target=CHAT)
    answer = {
        "model": "gpt-4o-2024-08-06",
        "choices": [{"message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 2_000, "completion_tokens": 1},
    }
    assert session.cache.last is None and list(session.cache) == []
    session.user("word " * 2_000)
    session.request()
    session.receive(answer)
    session.user("And?")
    session.request()
    details = {"prompt_tokens_details": {"cached_tokens": 1_920}}
    session.receive({**answer, "usage": {**answer["usage"], **details}})
    session.user("So?")
    session.receive(answer)  # to a request that turnlog did not make
    found = [(one.expected, one.read, one.changed, one.why) for one in session.cache]
    first = (0, 0, "", "no request to this model was billed before")
    assert found == [first, (1_920, 1_920, "", ""), (None, 0, "", "")]
    assert session.cache.last is not None and session.cache.last.input == 2_000
    [*_, second, _] = [r.body.cache for r in session.history() if isinstance(r.body, UsageRecord)]
    assert second == CacheRead(1_920)


def test_an_answer_of_another_target_does_not_take_the_expectation() -> None:
    """Two models asked in turn: what the one should read would be held against the bill of the other."""
    session = turnlog.open("s", store=MemoryStore(), target=CHAT)
    session.user("word " * 2_000)
    session.request()
    reply = {"model": "m", "role": "assistant", "content": [{"type": "text", "text": "Yes."}], "type": "message"}
    session.receive({**reply, "stop_reason": "end_turn", "usage": {"input_tokens": 2_000, "output_tokens": 1}}, CLAUDE)
    assert session.cache.last is not None and session.cache.last.expected is None


@given(
    st.lists(
        st.one_of(
            st.builds(
                UsageRecord,
                st.sampled_from(["openai-chat", "anthropic", "p"]),
                st.sampled_from(["gpt-4o", "claude-sonnet-4-5", "gemini-3-pro", "m"]),
                st.builds(Usage, *[st.integers(0, 10_000)] * 7),
            ),
            st.builds(MessageRecord, st.builds(Message, st.sampled_from(["user", "assistant"]), st.just(()))),
            st.just(Configuration()),
            st.just(Decision("clear", 1, 1)),
        ),
        max_size=12,
    ),
    st.floats(0, 1),
)
def test_no_bill_makes_it_fail(bodies: list[Any], share: float) -> None:
    """Servers report any figures. No request may fail for them, nor be expected to read more than there is."""
    store = MemoryStore()
    store.create("s")
    for n, body in enumerate(bodies):
        store.append("s", [Draft(body, "" if n % 3 else "not a time")])
    bills = Bills()
    for record in store.read("s"):
        bills = bills.observe(record, CacheRules("automatic", step=128, lifetime=300))
    for (provider, model), bill in bills.last.items():
        for rules in (facts.cache for facts in list(known_models().values())[::40]):
            assert 0 <= read_of(rules, bill, share, 1_024) <= bill.input
        assert bills.of(provider, model) is bill
