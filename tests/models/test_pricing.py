"""Costs: what usage comes to in dollars, of a request, an answer, a session."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import turnlog
from turnlog.cli.costs import bill_json, bill_lines
from turnlog.display.wording import charged, in_short
from turnlog.errors import InputError
from turnlog.importers import read_file
from turnlog.log.bills import total_usage, usage_by_model
from turnlog.log.records import Record, UsageRecord
from turnlog.log.usage import Usage, summed
from turnlog.models.catalog import model_facts
from turnlog.models.pricing import Cost, cost, total_cost

MODELS = ["claude-sonnet-4-5", "gpt-4o", "gpt-5.6", "gemini-2.5-pro", "gpt-4o-2031-01-01", "gpt-4-turbo", "nova-1", ""]
_tokens = st.integers(0, 10**9) | st.integers(0, 10**5)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    """Usage that adds up: parts are no more than the whole."""
    fresh, cached, written, output = (draw(_tokens) for _ in range(4))
    return Usage(
        input=fresh + cached + written,
        output=output,
        cached=cached,
        cache_write=written,
        cache_write_1h=draw(st.integers(0, written)),
        incomplete=draw(st.booleans()),
        charged=draw(st.none() | st.decimals(0, 10, places=6)),
    )


_models = st.sampled_from(MODELS)


@given(usages(), usages(), _models)
def test_costs_add_up(one: Usage, other: Usage, model: str) -> None:
    """Two bills of a model cost what their sum costs, to the last digit, however long their prompts are and whether the
    provider said what it charged: sums by model may stand for a session's bills."""
    assert cost(one, model) + cost(other, model) == cost(one + other, model)


@given(st.lists(usages(), max_size=6))
def test_a_sum_does_not_depend_on_how_it_is_made(parts: list[Usage]) -> None:
    """Usage that has another price if it is added in another order, or in groups; or that adding nothing changes."""
    whole = summed(parts)
    assert whole == sum(reversed(parts), Usage()) == summed(parts[:3]) + summed(parts[3:])
    assert (whole + Usage(), summed([whole])) == (whole, whole)
    for name in ("input", "output", "cached", "cache_write", "reasoning", "cache_write_1h"):
        assert getattr(whole, name) == sum(getattr(part, name) for part in parts)
        assert not whole.apart or getattr(whole, name) == sum(getattr(part, name) for part in whole.apart)
    known = [part.charged for part in parts if part.charged is not None]
    assert whole.charged == (sum(known) if known else None)


@given(st.lists(st.tuples(usages(), _models)))
def test_the_order_of_bills_does_not_count(bills: list[tuple[Usage, str]]) -> None:
    """A session's cost that depends on which bill came first, or on how bills are gathered."""
    records = [Record(n, "", UsageRecord("p", model, usage)) for n, (usage, model) in enumerate(bills, 1)]
    ahead, back = usage_by_model(records), usage_by_model(reversed(records))
    assert (ahead, total_cost(ahead)) == (back, total_cost(back))
    assert total_usage(ahead) == sum((usage for usage, _ in bills), Usage())
    each = sum((cost(usage, model) for usage, model in bills), Cost())
    assert total_cost(ahead) == each


@given(usages(), _models)
def test_what_is_not_known_is_none_and_not_nothing(usage: Usage, model: str) -> None:
    """A total that leaves out a part, or an unknown price that counts as 0."""
    found = cost(usage, model)
    parts = (found.input, found.cached, found.cache_write, found.output)
    whole = None not in parts
    is_told = usage.charged is not None
    assert found.incomplete == ((model,) if usage.incomplete and not is_told else ())
    assert found.at_least == sum((part for part in parts if part is not None), found.charged)
    assert bool(found.unpriced) == (not whole)
    assert found.total == (found.at_least if whole and not found.incomplete and not found.longer else None)
    assert not is_told or (found.total, found.listed) == (
        usage.charged,
        cost(replace(usage, charged=None), model).total,
    )
    if model_facts(model) is None and (usage.input or usage.output) and not is_told:
        assert (found.total, found.at_least, found.unpriced) == (None, 0, (model,))


@given(usages(), st.sampled_from(MODELS[:4]))
def test_a_cache_that_is_read_never_costs_more(usage: Usage, model: str) -> None:
    """Reading from the cache dearer than reading: prices or parts that were swapped."""
    read = Usage(input=usage.input, output=usage.output, cached=usage.input)
    plain = Usage(input=usage.input, output=usage.output)
    assert cost(read, model).at_least <= cost(plain, model).at_least


def test_a_bill_with_every_part() -> None:
    """Tokens priced as another kind: each part by its own price, writes by how long they are kept."""
    usage = Usage(input=1_000_000, output=10_000, cached=600_000, cache_write=300_000, cache_write_1h=100_000)
    assert cost(usage, "claude-sonnet-4-6") == Cost(
        input=Decimal("0.3"),
        cached=Decimal("0.18"),
        cache_write=Decimal("1.35"),  # 200,000 at 3.75, 100,000 at 6
        output=Decimal("0.15"),
        at_least=Decimal("1.98"),
    )


def test_a_long_prompt_costs_its_own_price() -> None:
    """A prompt of 200,001 tokens of Claude Sonnet 4.5 costs twice as much a token, and its answer half as much again; a
    sum of two prompts of 150,000 does not."""
    model = "claude-sonnet-4-5"
    short, long = Usage(input=200_000, output=1_000), Usage(input=200_001, output=1_000, cached=100_000)
    assert cost(short, model).total == Decimal("0.615")
    assert cost(long, model).total == Decimal("0.600006") + Decimal("0.06") + Decimal("0.0225")
    assert cost(short + long + short, model).total == 2 * Decimal("0.615") + Decimal("0.682506")
    assert cost(Usage(input=150_000) + Usage(input=150_000), model).total == Decimal("0.9")
    steps = cost(Usage(input=300_000, window=150_000), model)
    assert (steps.total, steps.at_least, steps.longer) == (None, Decimal("0.9"), (model,))
    assert cost(Usage(input=300_000), "gpt-4o").total == Decimal("0.75")


def test_of_a_session_each_prompt_has_its_own_price() -> None:
    """A session, a turn and a store's figures at the price of a long prompt for all, or of a short one for all."""
    model = "claude-sonnet-4-5"
    target = turnlog.target("anthropic", model)
    with turnlog.open("s", store=":memory:", target=target) as session:
        with session.turn("hi") as turn:
            for tokens in (150_000, 250_000, 10):
                session.receive(
                    {
                        "type": "message",
                        "role": "assistant",
                        "model": model,
                        "content": [{"type": "text", "text": "Hm."}],
                        "usage": {"input_tokens": tokens, "output_tokens": 100},
                    }
                )
        expected = Decimal("0.45") + Decimal("1.5") + Decimal("0.00003") + 2 * Decimal("0.0015") + Decimal("0.00225")
        assert (session.cost.total, turn.info.cost.total) == (expected, expected)
        assert cost(session.usage, model).total == expected
        [bills] = session._store.usages().values()
        assert total_cost(bills).total == expected


def test_a_cost_that_may_be_more_is_a_minimum() -> None:
    """Prompts of over 272,000 tokens of GPT-5.5 Cyber cost more, nobody says how much. A total at the lower price looks
    certain."""
    model = "gpt-5.5-cyber"
    price = model_facts(model)
    assert price is not None and price.prices.up_to == 272_000
    short, long = cost(Usage(input=272_000), model), cost(Usage(input=300_000), model)
    assert (short.total, short.longer) == (short.at_least, ())
    assert (long.total, long.longer, (short + long).total) == (None, (model,), None)
    assert in_short({model: Usage(input=300_000)}).endswith("costs more in prompts of over 272,000 tokens)")


def test_what_was_charged_is_shown_beside_the_list_price() -> None:
    """A figure of the provider's that looks like one of turnlog's, or hides it."""
    told = Usage(input=1_000, output=100, charged=Decimal("0.004"))
    both = told + Usage(input=1_000, output=100)
    assert in_short({"gpt-4o": told}).endswith("$0.0040 (as charged by the provider, list price $0.0035)")
    assert in_short({"gpt-4o": both}).endswith("$0.0075 ($0.0040 as charged by the provider, list price $0.0035)")
    assert in_short({"nova-1": told}).endswith("$0.0040 (as charged by the provider, list price unknown)")
    assert charged(cost(Usage(input=5), "gpt-4o")) == ""
    json_of = bill_json({"gpt-4o": both})
    assert (json_of["usage"]["charged"], json_of["cost"]["charged"], json_of["cost"]["listed"]) == (
        0.004,
        0.004,
        0.0035,
    )
    assert json_of["cost"]["total"] == 0.0075
    lines = list(bill_lines({"gpt-4o": both}))
    assert lines[-1] == "$0.0040 as charged by the provider, list price $0.0035"


def test_doubts_are_named() -> None:
    """A cost by another model's prices that looks certain, and one without prices that looks complete."""
    assumed = cost(Usage(input=1_000_000), "gpt-4o-2031-01-01")
    assert (assumed.total, assumed.assumed, assumed.unpriced) == (Decimal("2.5"), ("gpt-4o-2031-01-01",), ())
    both = assumed + cost(Usage(output=5), "nova-1")
    assert (both.total, both.at_least) == (None, Decimal("2.5"))
    assert (both.output, both.unpriced, both.assumed) == (None, ("nova-1",), ("gpt-4o-2031-01-01",))


def test_writing_to_a_cache_that_works_by_itself_is_plain_input() -> None:
    """Models that list no price for writing: not unknown, as writing to them is not billed apart."""
    assert cost(Usage(input=2_000_000, cache_write=1_000_000), "gpt-4o").total == Decimal(5)
    assert cost(Usage(input=200_000, cache_write=200_000), "gpt-5.6").total == Decimal(1)


def test_of_an_answer_and_a_session(tmp_path: Path) -> None:
    """A session's cost that forgets a model it was switched from, and an answer's that is the session's."""

    def reply(model: str, usage: dict[str, Any]) -> dict[str, Any]:
        said = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi."}}
        return {"model": model, "choices": [said], **({"usage": usage} if usage else {})}

    bill = {"prompt_tokens": 1_000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 400}}
    with turnlog.open("s", target=turnlog.target("openai-chat", "gpt-4o"), store=tmp_path / "s.db") as session:
        assert (session.cost, session.usage) == (Cost(), Usage())
        session.user("Hi?")
        first = session.receive(reply("gpt-4o-2024-08-06", bill))
        assert first.cost == cost(Usage(input=1_000, output=100, cached=400), "gpt-4o")
        assert first.cost.total == Decimal("0.003")
        session.switch(turnlog.target("openai-chat", "gpt-5"))
        session.user("And now?")
        second = session.receive(reply("", bill))
        assert second.cost == cost(Usage(input=1_000, output=100, cached=400), "gpt-5")
        assert session.receive(reply("gpt-5", {})).cost is None
        assert (session.cost, session.usage.input) == (first.cost + second.cost, 2_000)


def test_writes_for_an_hour_are_told_apart() -> None:
    """Anthropic's own split of what was written to its cache, lost on the way to the bill."""
    usage = {
        "input_tokens": 10,
        "output_tokens": 1,
        "cache_creation_input_tokens": 5_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 1_000, "ephemeral_1h_input_tokens": 4_000},
    }
    said = {"type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [], "usage": usage}
    with turnlog.open("s", target=turnlog.target("anthropic", "claude-sonnet-4-5"), store=":memory:") as session:
        session.user("hi")
        answer = session.receive(said)
    assert answer.usage == Usage(input=5_010, output=1, cache_write=5_000, cache_write_1h=4_000)
    assert answer.cost is not None
    assert answer.cost.cache_write == Decimal("0.02775")


def test_costs_are_those_that_an_agent_worked_out_itself(shared: Path) -> None:
    """pi writes dollars beside its tokens: 439 answers of Claude Sonnet 4.5, with caches read and written."""
    found = []
    for path in sorted((shared / "data/pi").rglob("*.jsonl")):
        for imported in read_file(path):
            found += [draft.body for draft in imported.drafts if isinstance(draft.body, UsageRecord)]
    assert len(found) == 439
    for bill in found:
        assert float(cost(bill.usage, bill.model).at_least) == pytest.approx(bill.raw["cost"]["total"], abs=1e-9)


def test_what_is_no_usage_is_refused() -> None:
    """A provider's own usage, handed over as it is, would end in an error about one of its fields."""
    with pytest.raises(InputError, match=r"a turnlog.Usage, not dict"):
        cost({"prompt_tokens": 5}, "gpt-4o")  # type: ignore[arg-type]


FIGURES: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "openai-chat": (
        "gpt-4o",
        "usage",
        {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Yes."}}]},
        "prompt_tokens completion_tokens",
    ),
    "openai-responses": (
        "gpt-5",
        "usage",
        {
            "status": "completed",
            "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
            ],
        },
        "input_tokens output_tokens",
    ),
    "anthropic": (
        "claude-sonnet-4-5",
        "usage",
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": "Yes."}],
            "stop_reason": "end_turn",
        },
        "input_tokens output_tokens cache_read_input_tokens cache_creation_input_tokens",
    ),
    "google": (
        "gemini-2.5-pro",
        "usageMetadata",
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "Yes."}]}, "finishReason": "STOP"}]},
        "promptTokenCount candidatesTokenCount thoughtsTokenCount",
    ),
}


@pytest.mark.parametrize("provider", FIGURES)
@pytest.mark.parametrize(
    ("said", "meant"), [(-1, 0), (-(10**9), 0), (10**400, 0), (1e300, 0), (12.0, 12), (1.5, 0), (True, 0), ("7", 0)]
)
def test_a_figure_that_no_request_can_have_is_none(provider: str, said: Any, meant: int) -> None:
    """Servers that imitate an API say -1 for what they did not count. Taken at its word, that made a session's cost
    less than it was, or less than nothing; a whole number that came as 12.0 was lost, one of hundreds of digits made
    the next prediction an OverflowError."""
    model, key, answer, names = FIGURES[provider]
    with turnlog.open("s", store=":memory:", target=turnlog.target(provider, model)) as session:
        session.user("Is it?")
        session.request()
        usage = session.receive({"model": model, **answer, key: dict.fromkeys(names.split(), said)}).usage
        session.request()
        assert usage is not None and session.window.prediction.tokens > 0
    assert {value for value in (usage.input, usage.output) if value} == (
        {usage.input, usage.output} if meant else set()
    )
    assert usage.input == meant * sum("input" in name or "prompt" in name for name in names.split())
    assert min(usage.input, usage.output, usage.cached, usage.cache_write) >= 0


@given(st.builds(Usage, *[st.integers(-(10**6), 10**6)] * 6))
def test_nobody_is_paid_for_a_request(usage: Usage) -> None:
    """Without it the negative figures of a log that is there already come off what other requests cost."""
    spent = cost(usage, "claude-sonnet-4-5")
    parts = [spent.at_least, spent.input, spent.cached, spent.cache_write, spent.output]
    assert [part for part in parts if part is None or part < 0] == []
