"""Usage in every shape in which a server reports it: to the token, and to the digit of a dollar."""

from __future__ import annotations

import json
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog import ToolCall, agent
from turnlog.importers import read_file
from turnlog.log.records import UsageRecord
from turnlog.log.usage import Usage, charge_of
from turnlog.models.pricing import Cost, cost
from turnlog.providers import provider
from turnlog.providers.openai_chat.usage import usage_of
from turnlog.providers.protocol import Reply
from turnlog.runners import ScriptedRunner

CHAT = turnlog.target("openai-chat", "gpt-4o")


def bill(prompt: Any, completion: Any, total: Any, **more: Any) -> dict[str, Any]:
    """A usage object in OpenAI's form."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total, **more}


def reasoned(tokens: Any) -> dict[str, Any]:
    """The details of an answer with so many tokens of reasoning."""
    return {"completion_tokens_details": {"reasoning_tokens": tokens}}


def read(tokens: int) -> dict[str, Any]:
    """The details of a prompt with so many tokens from the cache."""
    return {"prompt_tokens_details": {"cached_tokens": tokens}}


SHAPES: dict[str, tuple[dict[str, Any], Usage]] = {
    "OpenAI": (bill(1000, 300, 1300, **read(512), **reasoned(200)), Usage(1000, 300, 512, 0, 200)),
    "vLLM, SGLang, Ollama: no details": (bill(1000, 300, 1300), Usage(1000, 300)),
    "details that are null": (
        bill(1000, 300, 1300, prompt_tokens_details=None, completion_tokens_details=None),
        Usage(1000, 300),
    ),
    "no total": ({"prompt_tokens": 1000, "completion_tokens": 300, **reasoned(200)}, Usage(1000, 300, 0, 0, 200)),
    "xAI: reasoning outside the completion": (
        bill(
            1000,
            100,
            2100,
            prompt_tokens_details={"text_tokens": 1000, "audio_tokens": 0, "image_tokens": 0, "cached_tokens": 768},
            completion_tokens_details={"reasoning_tokens": 1000, "audio_tokens": 0, "accepted_prediction_tokens": 0},
            num_sources_used=0,
        ),
        Usage(1000, 1100, 768, 0, 1000),
    ),
    "xAI without reasoning": (bill(1000, 100, 1100, **reasoned(0)), Usage(1000, 100)),
    "nothing but reasoning (CLIProxyAPI)": (bill(21, 0, 81, **reasoned(60)), Usage(21, 60, 0, 0, 60)),
    "Gemini: reasoning in the total only": (bill(20, 198, 623), Usage(20, 603, 0, 0, 405)),
    "Gemini with a cache": (bill(2000, 100, 2500, **read(1024)), Usage(2000, 500, 1024, 0, 400)),
    "LiteLLM: an estimate of the reasoning (recorded)": (
        bill(2972, 75, 3047, **read(2028), **reasoned(202)),
        Usage(2972, 75, 2028, 0, 202),
    ),
    "a total that is larger by something else": (bill(1000, 100, 1500, **reasoned(60)), Usage(1000, 100, 0, 0, 60)),
    "a total that is larger, and no reasoning": (bill(1000, 100, 1500, **reasoned(0)), Usage(1000, 100)),
    "a cache beside the prompt": (bill(1000, 100, 1500, **read(400)), Usage(1000, 100, 400)),
    "two caches beside the prompt": (
        bill(1000, 100, 1500, cache_read_input_tokens=300, cache_creation_input_tokens=100),
        Usage(1000, 100),
    ),
    "citations beside the completion": (bill(1000, 100, 1500, citation_tokens=400), Usage(1000, 100)),
    "prompts of tools in the total": (bill(1000, 100, 1500, tool_use_prompt_tokens=400), Usage(1000, 100)),
    "a total that is less": (bill(1000, 100, 100), Usage(1000, 100)),
    "a total that was not counted": (bill(1000, 100, -1), Usage(1000, 100)),
    "figures that were not counted": (bill(-1, -1, 900), Usage(incomplete=True)),
    "more figures than can be tried": (
        bill(1000, 100, 1500, **{f"kind_{n}_tokens": 3**n for n in range(60)}),
        Usage(1000, 100),
    ),
    "Kimi": (bill(2989, 40, 3029, cached_tokens=1792), Usage(2989, 40, 1792)),
    "Kimi, in both places": (bill(2989, 40, 3029, cached_tokens=1792, **read(1792)), Usage(2989, 40, 1792)),
    "DeepSeek": (
        bill(500, 90, 590, prompt_cache_hit_tokens=448, prompt_cache_miss_tokens=52, **reasoned(30)),
        Usage(500, 90, 448, 0, 30),
    ),
    "Groq": (bill(50, 20, 70, queue_time=0.01, prompt_time=0.01, total_time=0.02), Usage(50, 20)),
    "OpenRouter (recorded)": (
        bill(
            5937,
            118,
            6055,
            cost=0.0058974,
            is_byok=False,
            prompt_tokens_details={"cached_tokens": 4107, "audio_tokens": 0, "video_tokens": 0},
            cost_details={"upstream_inference_cost": None, "upstream_inference_prompt_cost": 0.0044814},
            completion_tokens_details={"reasoning_tokens": 0, "image_tokens": 0},
        ),
        Usage(5937, 118, 4107, charged=Decimal("0.0058974")),
    ),
    "OpenRouter, written to the cache": (
        bill(5000, 10, 5010, cost=0.02, prompt_tokens_details={"cached_tokens": 0, "cache_write_tokens": 4000}),
        Usage(5000, 10, 0, 4000, charged=Decimal("0.02")),
    ),
    "OpenRouter, a free model": (bill(10, 5, 15, cost=0), Usage(10, 5, charged=Decimal(0))),
    "OpenRouter, with a key of one's own": (
        bill(10, 5, 15, cost=0.0005, is_byok=True, cost_details={"upstream_inference_cost": 0.01}),
        Usage(10, 5, charged=Decimal("0.0105")),
    ),
    "OpenRouter, with a key of one's own, at an unknown price": (
        bill(10, 5, 15, cost=0.0005, is_byok=True, cost_details={"upstream_inference_cost": None}),
        Usage(10, 5),
    ),
    "Perplexity": (
        bill(10, 5, 15, cost={"input_tokens_cost": 0.00001, "request_cost": 0.005, "total_cost": 0.00502}),
        Usage(10, 5, charged=Decimal("0.00502")),
    ),
    "xAI, in ticks": (
        bill(3834, 467, 4301, cost_in_usd_ticks=127_344_000),
        Usage(3834, 467, charged=Decimal("0.0127344")),
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape(shape: str) -> None:
    """A token that is billed and not counted, or counted and not billed; a cost that is rounded, or not a cost."""
    raw, expected = SHAPES[shape]
    assert usage_of(raw) == expected


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A chunk of a stream."""
    return {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def streamed(*chunks: dict[str, Any]) -> Reply:
    """The reply that these chunks make."""
    assembler = provider("openai-chat").assembler()
    for each in chunks:
        assembler.feed(json.loads(json.dumps(each)))
    return assembler.reply()


RAW = bill(9, 4, 13)
SAID = chunk({"content": "a"})
KIMI = chunk({}, "stop")
KIMI["choices"][0]["usage"] = RAW
PLACES: dict[str, list[dict[str, Any]]] = {
    "behind the end, without choices": [SAID, chunk({}, "stop"), {"choices": [], "usage": RAW}],
    "behind the end, with choices": [SAID, chunk({}, "stop"), chunk({"role": "assistant", "content": ""}, usage=RAW)],
    "in the last chunk": [SAID, chunk({}, "stop", usage=RAW)],
    "in the choice of the last chunk": [SAID, KIMI],
    "in x_groq": [SAID, chunk({}, "stop", x_groq={"id": "req_1", "usage": RAW})],
    "in each chunk": [
        chunk({"content": "a"}, usage=bill(9, 1, 10)),
        chunk({"content": "b"}, usage=bill(9, 2, 11)),
        chunk({}, "stop", usage=RAW),
    ],
    "in each chunk, null in the last": [chunk({"content": "a"}, usage=RAW), chunk({}, "stop", usage=None)],
    "empty in the last": [SAID, chunk({}, "stop", usage=RAW), {"choices": [], "usage": bill(0, 0, 0)}],
    "half in the last": [SAID, chunk({}, "stop", usage=RAW), {"choices": [], "usage": {"prompt_tokens": 9}}],
    "half in the first": [chunk({"content": "a"}, usage={"prompt_tokens": 9}), chunk({}, "stop", usage=RAW)],
}


@pytest.mark.parametrize("place", PLACES)
def test_usage_is_found_wherever_a_stream_has_it(place: str) -> None:
    """A server whose answers cost nothing, as its usage is in another place of the stream."""
    reply = streamed(*PLACES[place])
    assert (reply.usage, reply.raw_usage, reply.complete) == (Usage(input=9, output=4), RAW, True)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_what_openai_reports_is_taken_as_it_is(prompt: int, completion: int, reasoning: int) -> None:
    """Where the total is the sum of prompt and completion, nothing is added, whatever the reasoning is."""
    raw = bill(prompt, completion, prompt + completion, **reasoned(reasoning))
    assert usage_of(raw) == Usage(input=prompt, output=completion, reasoning=reasoning)


@given(st.floats(0, 100, allow_nan=False))
def test_a_cost_is_the_number_that_was_written(dollars: float) -> None:
    """0.1 that becomes 0.1000000000000000055, or a cost that is rounded to cents."""
    assert str(float(charge_of({"cost": dollars}) or 0)) == str(dollars) or dollars == 0
    assert charge_of({"cost": dollars}) == Decimal(repr(dollars))


@pytest.mark.parametrize(
    "said", [True, -1, "0.5", None, float("nan"), float("inf"), 1e300, [], {}, {"total_cost": "1"}]
)
def test_what_is_no_cost_is_none(said: Any) -> None:
    """A cost of nothing, or of infinity, for what is no number of dollars."""
    assert charge_of({"cost": said}) is None


def answer(content: str | None, usage: dict[str, Any], model: str = "gpt-4o", **message: Any) -> dict[str, Any]:
    """A whole answer."""
    said = {"role": "assistant", "content": content, **message}
    return {"model": model, "choices": [{"index": 0, "finish_reason": "stop", "message": said}], "usage": usage}


def test_what_the_provider_charged_counts() -> None:
    """A total at list prices where the provider said what it took; or a list price that is gone as it did."""
    with turnlog.open("s", store=":memory:", target=CHAT) as session:
        session.user("hi")
        told = session.receive(answer("a", bill(1000, 100, 1100, cost=0.004)))
        session.user("and?")
        listed = session.receive(answer("b", bill(2000, 100, 2100)))
        assert told.cost == Cost(charged=Decimal("0.004"), listed=Decimal("0.0035"), at_least=Decimal("0.004"))
        assert listed.cost == cost(Usage(input=2000, output=100), "gpt-4o")
        assert session.cost == told.cost + listed.cost
        assert (session.cost.total, session.usage.charged) == (Decimal("0.010"), Decimal("0.004"))
        session.user("a model without a price?")
        unpriced = session.receive(answer("c", bill(10, 1, 11, cost=0.001), model="of-my-own"))
        assert unpriced.cost == Cost(charged=Decimal("0.001"), listed=None, at_least=Decimal("0.001"))
        assert (session.cost.total, session.cost.listed) == (Decimal("0.011"), None)
        record = next(session.log.of_kinds("usage"))
    assert isinstance(record.body, UsageRecord)
    assert record.body.usage == Usage(input=1000, output=100, charged=Decimal("0.004"))


def test_a_limit_of_money_counts_what_was_charged() -> None:
    """A turn that goes on although the provider took more than the limit, as list prices are lower or unknown."""

    def look() -> str:
        """Look."""
        return "seen"

    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    for model in ("gpt-4o", "of-my-own"):
        with turnlog.open("s", store=":memory:", target=CHAT) as session:
            with suppress(InterruptedError), session.turn("go"):
                session.receive(answer(None, bill(10, 1, 11, cost=0.5), model=model, tool_calls=[call]))
                raise InterruptedError
            runner = ScriptedRunner([ToolCall("c2", "look", {})])
            found = agent.run(session, None, runner, tools=[look], max_cost=0.4)
            assert (found.stop, found.steps, found.cost.total) == ("cost", 0, Decimal("0.5"))


def test_list_prices_are_what_openrouter_charged(shared: Path) -> None:
    """A price, or a reading of usage, that is not what a provider really took: 6 recorded conversations."""
    found = []
    for path in sorted((shared / "data/mini-swe-agent").glob("*.json")):
        for imported in read_file(path):
            usages = (draft.body for draft in imported.drafts if isinstance(draft.body, UsageRecord))
            found += [body for body in usages if body.usage.charged is not None]
    assert len(found) > 100
    for body in found:
        spent = cost(body.usage, body.model)
        assert spent.total == body.usage.charged
        assert spent.listed is not None and abs(spent.listed - spent.charged) < Decimal("1e-9"), body
