"""Answers that the Messages API made in steps: what they cost, how full the window is, what was left out."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog.log.records import Note, UsageRecord
from turnlog.log.usage import Count, Usage
from turnlog.models.pricing import Cost, cost
from turnlog.providers import PROVIDERS
from turnlog.tokens.calibration import Calibration

PROVIDER = PROVIDERS["anthropic"]
MODEL = "claude-sonnet-4-5"
TOKENS = st.integers(0, 200_000)


@st.composite
def figures(draw: st.DrawFn) -> dict[str, Any]:
    """What one iteration was billed."""
    hour, minutes = draw(TOKENS), draw(TOKENS)
    return {
        "input_tokens": draw(TOKENS),
        "output_tokens": draw(TOKENS),
        "cache_read_input_tokens": draw(TOKENS),
        "cache_creation_input_tokens": hour + minutes,
        "cache_creation": {"ephemeral_5m_input_tokens": minutes, "ephemeral_1h_input_tokens": hour},
    }


@st.composite
def usages(draw: st.DrawFn) -> dict[str, Any]:
    """The usage of an answer, with the iterations that made it or without."""
    kinds = st.sampled_from(["compaction", "message", "fallback_message", "advisor_message", "later_kind"])
    iterations = [{"type": kind, **draw(figures())} for kind in draw(st.lists(kinds, max_size=4))]
    return {**draw(figures()), **({"iterations": iterations} if draw(st.booleans()) else {})}


def answer(usage: Any, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": "Done."}]
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "stop_reason": "end_turn"}
    return {**head, "content": content, "usage": usage, **more}


def streamed(whole: dict[str, Any], *, late: bool) -> list[dict[str, Any]]:
    """The events of an answer; what else the API says comes at the start, or `late`."""
    more = {key: whole[key] for key in ("input_transformations", "context_management", "diagnostics") if key in whole}
    start = {key: value for key, value in whole.items() if key not in (*more, "stop_reason")}
    usage = {**whole["usage"], "output_tokens": 0}
    usage.pop("iterations", None)
    return [
        {"type": "message_start", "message": {**start, "content": [], "usage": usage, **({} if late else more)}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Done."}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": whole["usage"],
            **(more if late else {}),
        },
        {"type": "message_stop"},
    ]


@given(usages())
def test_compactions_are_billed_to_the_cent(raw: dict[str, Any]) -> None:
    """A compaction of 180,000 tokens for nothing: its tokens are in no top-level figure."""
    usage = PROVIDER.parse_response(answer(raw)).usage
    assert usage is not None
    apart = [raw, *(each for each in raw.get("iterations", ()) if each["type"] == "compaction")]
    bills = [{key: value for key, value in each.items() if key != "iterations"} for each in apart]
    costs = [cost(PROVIDER.parse_response(answer(each)).usage or Usage(), MODEL) for each in bills]
    assert cost(usage, MODEL) == sum(costs, Cost())


@given(st.lists(figures(), min_size=1, max_size=4))
def test_each_step_has_the_price_of_its_own_prompt(steps: list[dict[str, Any]]) -> None:
    """Three steps of 100,000 tokens at the price of a prompt of 300,000."""
    keys = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    kept = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
    top: dict[str, Any] = {key: sum(step[key] for step in steps) for key in keys}
    top["cache_creation"] = {key: sum(step["cache_creation"][key] for step in steps) for key in kept}
    usage = PROVIDER.parse_response(
        answer({**top, "iterations": [{"type": "message", **step} for step in steps]})
    ).usage
    each = [cost(PROVIDER.parse_response(answer(step)).usage or Usage(), MODEL) for step in steps]
    assert usage is not None and cost(usage, MODEL) == sum(each, Cost())


def test_a_compaction_of_the_price_list() -> None:
    """180,000 tokens read and 3,500 written at 3 and 15 dollars per million."""
    spent = {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500}
    made = {"type": "message", "input_tokens": 400, "output_tokens": 12}
    usage = PROVIDER.parse_response(answer({**made, "iterations": [spent, made]})).usage
    assert usage is not None and cost(usage, MODEL).total == Decimal("0.5925") + Decimal("0.00138")
    assert usage.window == 400


@given(usages())
def test_the_window_is_that_of_the_last_step(raw: dict[str, Any]) -> None:
    """A window that looks full because a compaction or several steps were billed together: it would be compacted
    again at once."""
    usage = PROVIDER.parse_response(answer(raw)).usage
    assert usage is not None
    steps = [each for each in raw.get("iterations", ()) if each["type"] in ("message", "fallback_message")]
    keys = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    wanted = sum(steps[-1][key] for key in keys) if steps else usage.input
    assert wanted in (usage.window or usage.input, 0)


def test_later_counts_start_at_the_window() -> None:
    """Counts of the next request that are anchored at what a compaction was billed."""
    counted = Count(500, "claude-3:1", "estimated")
    bill = UsageRecord("anthropic", MODEL, Usage(input=180_400, window=400), counted=counted)
    assert Calibration().observe(bill).predict("anthropic", counted).tokens == 400


SAID: dict[str, Any] = {
    "input_transformations": [
        {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}
    ],
    "context_management": {
        "applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 4, "cleared_input_tokens": 9_000}]
    },
    "diagnostics": {"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 12_000}},
}


@given(usages(), st.sets(st.sampled_from(sorted(SAID))), st.booleans())
def test_what_the_api_did_with_a_request_is_kept(raw: dict[str, Any], keys: set[str], late: bool) -> None:
    """Thinking that the API dropped, results that it cleared and caches that it missed, without a trace; or an answer
    that is billed otherwise when it is streamed."""
    said = {key: SAID[key] for key in keys}
    whole = answer(raw, **said)
    notes = []
    for given_answer in (whole, iter(streamed(whole, late=late))):
        with turnlog.open("s", target=turnlog.target("anthropic", MODEL), store=":memory:") as session:
            session.user("hi")
            got = session.receive(given_answer)
            notes.append([record.body.data for record in session.history() if isinstance(record.body, Note)])
            assert got.complete and got.usage == PROVIDER.parse_response(whole).usage
    assert notes[0] == notes[1] == ([said] if said else [])


def test_nothing_to_say_is_no_note() -> None:
    """A note behind every answer because the API reports empty lists."""
    nothing = {"context_management": {"applied_edits": []}, "diagnostics": {"cache_miss_reason": None}}
    assert PROVIDER.parse_response(answer({}, **nothing)).beside == {}
