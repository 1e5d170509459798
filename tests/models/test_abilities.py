"""What models can do: the entries about families, names that are newer than the table, and the user's own word."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog.models.abilities import Abilities
from turnlog.models.catalog import (
    VARIABLE,
    ModelFacts,
    Prices,
    find_model,
    known_models,
    model_abilities,
    model_facts,
    model_origins,
)
from turnlog.providers import PROVIDERS

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = json.loads((ROOT / "src/turnlog/models/data/families.json").read_text("utf-8"))["families"]
SHIPPED = json.loads((ROOT / "src/turnlog/models/data/models.json").read_text("utf-8"))["models"]
CLAUDES = [name for name in SHIPPED if name.startswith("claude")]
NOT_IN_THE_TABLE = (
    "claude-3-7-sonnet claude-opus-6 claude-fable-5-2 gpt-3.5-turbo o1-mini o3-mini deepseek-v3.2 qwen3-vl "
    "gpt-4o-audio-preview gemini-3-pro gemini-2.5-pro qwen3.5-27b gemma-2-9b mistral-large phi-3 gpt-oss-120b"
).split()
BOUND = {"claude-fable-5-1", "claude-mythos-5-1", "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"}


def test_each_entry_names_a_model_and_a_source() -> None:
    """A pattern with a slip in it, which no model has ever matched, or a fact that nobody can check."""
    for entry in FAMILIES:
        assert set(entry) == {"names", "source", "facts"} and len(entry["source"]) > 20, entry
        assert any(re.search(entry["names"], name) for name in (*SHIPPED, *NOT_IN_THE_TABLE)), entry["names"]
        assert entry["facts"] and msgspec.convert(entry["facts"], ModelFacts), entry


def test_which_models_bind_their_thinking() -> None:
    """Thinking that is sent where it is refused, or lost where it would be read."""
    assert {name for name in CLAUDES if model_abilities(name).bound_thinking} == BOUND
    for vendor in ("anthropic/{}", "us.anthropic.{}-v1:0", "{}-20261001", "{}@20261001"):
        assert all(model_abilities(vendor.format(name)).bound_thinking for name in BOUND)
    assert model_abilities("anthropic/claude-sonnet-5.5").bound_thinking


@given(st.sampled_from("opus sonnet haiku fable mythos nova".split()), st.integers(6, 40), st.integers(0, 9))
def test_a_newer_claude_counts_as_the_strictest(kind: str, major: int, minor: int) -> None:
    """A model of next year gets what the newest of today refuse: stale thinking, sampling, forced tools."""
    now = model_abilities(f"claude-{kind}-{major}-{minor}")
    assert (now.bound_thinking, now.prefill, now.forced_tools, now.sampling) == (True, False, False, "none")
    assert now.thinking is not None and "disabled" not in now.thinking and "enabled" not in now.thinking


@given(st.sampled_from(["claude-opus-{}", "claude-sonnet-{}", "gpt-{}", "gemini-{}-flash"]), st.integers(41, 99))
def test_a_newer_version_is_taken_for_the_newest_known_one(name: str, version: int) -> None:
    """A new version had the smallest window of all, or the price of another; and nobody was told."""
    found = find_model(name.format(version))
    newest = {"c": ("claude-opus-5-5", "claude-sonnet-5-5"), "g": ("gpt-5.6", "gemini-3.8-flash")}[name[0]]
    assert found is not None and found.taken_for in newest and found.newer
    known = model_facts(found.taken_for)
    assert known is not None and (found.facts.input, found.facts.output) == (known.input, known.output)
    assert found.facts.prices == Prices()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        target = turnlog.target("anthropic", name.format(version))
    assert f"the limits of {found.taken_for!r} are used" in target.doubt


def test_an_older_version_is_not_taken_for_a_newer_one() -> None:
    """Claude Opus 4.1 with the window of Claude Opus 5, and a model from before all that are known with that of any."""
    older = find_model("claude-opus-4-1-20250805")
    assert older is not None and (older.id, older.facts.input) == ("claude-opus-4-1", 200_000)
    assert find_model("claude-opus-3-9") is None
    later = find_model("claude-opus-5-3")
    assert later is not None and later.taken_for == "claude-opus-5"


def test_caches_with_breakpoints() -> None:
    """Models whose cache finds marked prefixes only: from GPT-5.6 on, and no Claude or GPT-3.5 by its spelling."""
    with_them = {name for name, facts in known_models().items() if facts.cache.breakpoints}
    assert with_them == {name for name in known_models() if re.match(r"gpt-(5\.6|6)", name)}
    assert not any(facts.cache.breakpoints for facts in map(model_facts, ("gpt-35-turbo", "gpt-5.5")) if facts)
    for name in with_them:
        prices = known_models()[name].prices
        if prices.cache_write is not None and prices.input is not None:
            assert float(prices.cache_write / prices.input) == pytest.approx(1.25), name


@pytest.mark.parametrize("field", Abilities.__struct_fields__)
def test_the_users_word_wins(field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ability that the user's own entry cannot change, or that changes others with it."""
    default = getattr(Abilities(), field)
    values: Mapping[str, Any] = {
        "sampling": "one",
        "answer_schema": "any",
        "thinking": ["adaptive"],
        "chat_media": ["image"],
        "template_system": "first",
        "template_alternates": ["user"],
        "template_call_ids": ".{9}",
    }
    value = not default if isinstance(default, bool) else values.get(field, ["claude-x"])
    path = tmp_path / f"{field}.json"
    models = {name: {"abilities": {field: value}} for name in ("nova-1", "claude-opus-5-5")}
    path.write_text(json.dumps({"models": models}), "utf-8")
    before = model_abilities("claude-opus-5-5")
    monkeypatch.setenv(VARIABLE, str(path))
    said = tuple(value) if isinstance(value, list) else value
    assert model_abilities("nova-1") == msgspec.structs.replace(Abilities(), **{field: said})
    assert model_abilities("claude-opus-5-5") == msgspec.structs.replace(before, **{field: said})
    told = {fact.name: fact for fact in model_origins("claude-opus-5-5")}
    assert (told[f"abilities.{field}"].value, told[f"abilities.{field}"].source) == (said, str(path))
    assert told["input"].source.startswith("table of models (litellm")


OTHERS = (
    "claude-opus-6 company-claude-opus-4-8 openai/gpt-4o grok-4 glm-4.6 claude-opus-4-1 groq/llama-3.3-70b-versatile"
)
SOLD = "openrouter/openai/gpt-4o openrouter/moonshotai/kimi-k2.5 azure/gpt-4o together/gpt-4o xai/grok-4.5 gemini-3-pro"


@pytest.mark.parametrize("model", [*SHIPPED, *OTHERS.split(), *SOLD.split()])
def test_everything_known_has_an_origin(model: str) -> None:
    """A fact that `turnlog models` hides, or tells otherwise than targets have it."""
    told = {fact.name: fact.value for fact in model_origins(model)}
    facts = model_facts(model) or ModelFacts(abilities=model_abilities(model))
    for name in ModelFacts.__struct_fields__:
        value = getattr(facts, name)
        inner = msgspec.structs.asdict(value).items() if isinstance(value, msgspec.Struct) else [("", value)]
        for key, fact in inner:
            default = getattr(type(value)(), key) if key else None
            path = f"{name}.{key}" if key else name
            assert fact == default or told[path] == fact, path
    assert len(told) == len(model_origins(model))


THINKING: tuple[dict[str, Any], ...] = (
    {"type": "adaptive"},
    {"type": "enabled", "budget_tokens": 2000},
    {"type": "disabled"},
    {"type": "between_tools"},
)
TOOL = {"name": "f", "input_schema": {"type": "object"}}


@pytest.mark.parametrize("model", [*CLAUDES, "claude-3-7-sonnet-20250219", "claude-opus-6"])
@pytest.mark.parametrize("thinking", THINKING, ids=lambda value: value["type"])
@pytest.mark.parametrize("choice", ["auto", "any", "tool"])
def test_requests_ask_for_what_the_model_takes(model: str, thinking: dict[str, Any], choice: str) -> None:
    """Thinking that cannot be switched off, or a call that cannot be forced: a 400 from Claude 5.5. What the model
    takes is not touched."""
    named = {"name": "f"} if choice == "tool" else {}
    settings = {"max_tokens": 4000, "thinking": thinking, "tools": [TOOL], "tool_choice": {"type": choice, **named}}
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}], **settings}
    rendered = PROVIDERS["anthropic"].sanitize(body, turnlog.target("anthropic", "claude-sonnet-4-5"))
    made, edits = rendered.body, rendered.edits
    can = model_abilities(model)
    kind = made.get("thinking", {}).get("type")
    assert can.thinking is None or kind is None or kind in can.thinking
    if can.thinking is None or thinking["type"] in can.thinking:
        assert made["thinking"] == thinking
    forced = made["tool_choice"]["type"] != "auto"
    assert forced == (choice != "auto" and can.forced_tools and kind != "enabled")
    changed = {key for key in body if made.get(key) != body[key]}
    assert changed == {edit.path.partition(".")[0] for edit in edits}


def test_system_text_stays_where_a_model_takes_it() -> None:
    """Claude Sonnet 5 refuses system text in mid-conversation, Claude Haiku 5.5 takes it."""
    body = {
        "model": "",
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "system", "content": "be brief"},
            {"role": "assistant", "content": "ok"},
            {"role": "user", "content": "go on"},
        ],
    }
    for model, roles in (
        ("claude-sonnet-5", "user user assistant user"),
        ("claude-haiku-5-5", "user system assistant user"),
    ):
        made = turnlog.repair({**body, "model": model}, "anthropic").body
        assert [message["role"] for message in made["messages"]] == roles.split(), model
