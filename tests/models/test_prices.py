"""The tables of models against genai-prices: the same prices, at every length of prompt, with and without caches."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog.log.usage import PROMPT_LENGTHS, Usage
from turnlog.models.catalog import find_model, known_models, model_facts
from turnlog.models.sellers import _document, makers_models, seller_at

genai_prices = pytest.importorskip("genai_prices", reason="genai-prices (group dev) is not installed")
DATA = pytest.importorskip("genai_prices.data")

ROOT = Path(__file__).resolve().parents[2]
DAY = datetime(2026, 11, 28, 2, 0, tzinfo=UTC)
"""The day of the table, in the dearer hours of DeepSeek's models of today."""
OLD_HOURS = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
"""The dearer hours of its older models."""
DIFFERENT = {
    "gpt-4o-search-preview",
    "gpt-4o-search-preview-2025-03-11",
    "gemini-2.5-pro-preview-tts",
}
"""Models for which litellm has a price of cached input, and genai-prices none."""


@cache
def providers() -> dict[str, Any]:
    """The source's providers by id."""
    return {provider.id: provider for provider in DATA.providers}


@cache
def sold(seller: str) -> dict[str, Any]:
    """The models of a seller, by id."""
    return {model.id: model for model in providers()[seller].models}


def rows() -> list[tuple[str, str]]:
    """Each seller's model in the second table that has prices, as (seller, model)."""
    sellers = _document()["sellers"].items()
    return [(seller, name) for seller, sold in sellers for name, row in sold["models"].items() if row[0] is not None]


def theirs(seller: str, model: str, usage: Usage, kinds: set[str]) -> Decimal:
    """What genai-prices takes for this usage, without the kinds of tokens for which no price is known."""
    found = sold(seller)[model]
    tokens: dict[str, int] = {"input_tokens": usage.input, "output_tokens": usage.output}
    if "cached" in kinds:
        tokens["cache_read_tokens"] = usage.cached
    if "cache_write" in kinds:
        tokens["cache_write_tokens"] = usage.cache_write
    if "cache_write_1h" in kinds:
        tokens["cache_write_1h_tokens"] = usage.cache_write_1h
    times = (DAY, OLD_HOURS) if isinstance(found.prices, list) else (DAY,)  # one price holds at any time
    prices = (
        found.calc_price(genai_prices.Usage(**tokens), providers()[seller], genai_request_timestamp=time).total_price
        for time in times
    )
    return max(prices)


def kept(name: str, usage: Usage) -> tuple[Usage, set[str]]:
    """The usage without the kinds of tokens that have no price, and the kinds that have one."""
    facts = model_facts(name)
    assert facts is not None
    prices = facts.prices
    kinds = {kind for kind in ("cached", "cache_write", "cache_write_1h") if getattr(prices, kind) is not None}
    written = usage.cache_write if "cache_write" in kinds else 0
    long = min(usage.cache_write_1h, written) if "cache_write_1h" in kinds else 0
    read = usage.cached if "cached" in kinds else 0
    return Usage(usage.input, usage.output, read, written, cache_write_1h=long), kinds


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    """Usage of one request; prompts are often as long as a tier begins, or a token more."""
    edges = [length + more for length in PROMPT_LENGTHS for more in (0, 1)]
    tokens = draw(st.sampled_from(edges) | st.integers(0, 2_000_000))
    read = draw(st.integers(0, tokens))
    written = draw(st.integers(0, tokens - read))
    return Usage(tokens, draw(st.integers(0, 200_000)), read, written, cache_write_1h=draw(st.integers(0, written)))


@given(st.data(), usages())
def test_a_price_is_that_of_the_source(data: st.DataObject, usage: Usage) -> None:
    """A price in the wrong column, of another seller, of another length of prompt, or lost."""
    seller, model = data.draw(st.sampled_from(rows()))
    usage, kinds = kept(f"{seller}/{model}", usage)
    assert turnlog.cost(usage, f"{seller}/{model}").total == theirs(seller, model, usage, kinds)


@pytest.mark.slow
def test_each_model_costs_what_the_source_says() -> None:
    """As above, of every model of every seller, and on both sides of every tier."""
    for seller, model in rows():
        for tokens in (1_000, *(length + more for length in PROMPT_LENGTHS for more in (0, 1))):
            wanted = Usage(tokens, 100, tokens // 2, tokens // 4, cache_write_1h=tokens // 8)
            usage, kinds = kept(f"{seller}/{model}", wanted)
            found = turnlog.cost(usage, f"{seller}/{model}")
            assert (found.total, found.assumed) == (theirs(seller, model, usage, kinds), ()), (seller, model, usage)


def test_the_first_table_agrees_with_the_source() -> None:
    """Prices of the three makers of the APIs, of which the first table has its own, from another source."""
    compared = 0
    for name, facts in known_models().items():
        maker = providers().get(facts.provider or "")
        other = maker.find_model(name) if maker and not name.startswith("ft:") and name not in DIFFERENT else None
        if other is None or facts.prices.input is None or facts.prices.up_to is not None:
            continue
        for tokens in (1_000, 100_001, 200_000, 200_001, 272_000, 272_001):
            usage, kinds = kept(name, Usage(tokens, 100, tokens // 2, tokens // 4, cache_write_1h=tokens // 8))
            assert turnlog.cost(usage, name).total == theirs(maker.id, other.id, usage, kinds), (name, usage)
        compared += 1
    assert compared > 200


def test_every_tier_begins_where_sums_keep_prompts_apart() -> None:
    """A tier at a length at which sums do not keep prompts apart: what they cost would not be known."""
    lengths = {tier.above for facts in known_models().values() for tier in facts.prices.tiers}
    for seller, model in rows():
        found = find_model(f"{seller}/{model}")
        assert found is not None
        lengths |= {tier.above for tier in found.facts.prices.tiers}
    assert lengths <= set(PROMPT_LENGTHS)


def test_the_makers_price_is_that_of_the_name_alone() -> None:
    """A model's name alone that has the price of somebody who sells it too."""
    first_table = known_models()
    for name, (_, own, entry) in makers_models().items():
        found = find_model(name)
        assert found is not None and found.seller == ""
        if entry and name not in first_table:
            assert found.id == own, name


def test_a_seller_is_known_by_its_address() -> None:
    """Costs of a server at the prices of another, or of none."""
    for maker in _document()["makers"]:
        assert seller_at(f"https://{_document()['sellers'][maker]['hosts'][0]}/v1".replace("//.", "//x.")) == maker
    at = {
        "https://api.groq.com/openai/v1": "groq",
        "https://openrouter.ai/api/v1": "openrouter",
        "https://my.openai.azure.com/openai/v1": "azure",
        "https://router.huggingface.co/together/v1": "huggingface_together",
        "https://api.groq.com.example.com/v1": "",
        "http://localhost:8000/v1": "",
        "not a url": "",
    }
    assert {url: seller_at(url) for url in at} == at
    assert seller_at("https://router.huggingface.co/v1", "Qwen/Qwen3-32B:groq") == "huggingface_groq"
    assert seller_at("https://router.huggingface.co/v1", "Qwen/Qwen3-32B:nobody") == ""


def test_the_table_is_what_its_script_writes(tmp_path: Path) -> None:
    """A table that was edited by hand, or that is older than its script, or larger than it may be."""
    data = tmp_path / "src/turnlog/models/data"
    data.mkdir(parents=True)
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "src/turnlog/models/data/models.json", data)
    script = shutil.copy(ROOT / "scripts/prices_table.py", tmp_path / "scripts")
    subprocess.run([sys.executable, script], check=True)
    made = (data / "prices.json").read_text("utf-8")
    assert made == (ROOT / "src/turnlog/models/data/prices.json").read_text("utf-8")
    tables = (ROOT / "src/turnlog/models/data" / name for name in ("models.json", "families.json", "prices.json"))
    assert sum(path.stat().st_size for path in tables) < 150_000


def test_what_is_served_for_nothing_costs_nothing() -> None:
    """A model behind `:free` that the table does not list would be billed at the price of the paid one."""
    usage = Usage(input=1_000, output=10)
    costs = [turnlog.cost(usage, f"openrouter/deepseek/deepseek-r1{free}").total for free in ("", ":free")]
    assert costs[0] is not None and costs[0] > 0 == costs[1]
