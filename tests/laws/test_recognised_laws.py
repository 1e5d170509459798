"""A request body is recognised as that of the provider that it was built for, and by all who ask alike.

The long run of the first law, with the number of bodies of each kind:

    python -c "import sys; sys.path[:0] = ['tests', 'tests/laws', 'tests/providers']; import collections
    from test_recognised_laws import judge; print(collections.Counter(map(judge, range(50_000))))"
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from sound import BODIES, ODD_BODIES

from judging import TARGETS, shown
from recorded_bodies import recorded_bodies
from turnlog.errors import ImportFailed, InputError
from turnlog.importers.bodies import read
from turnlog.log.messages import Text, Tool, ToolCall, ToolResult
from turnlog.log.records import Configuration
from turnlog.providers import PROVIDERS
from turnlog.providers.recognise import provider_of
from turnlog.requests.build import build
from turnlog.requests.translate import plan
from turnlog.testing import sound_history

OWN: dict[str, dict[str, Any]] = {
    "openai-chat": {"max_tokens": 9, "n": 1, "seed": 7, "stop": ["x"], "min_p": 0.1, "reasoning": {"effort": "low"}},
    "openai-responses": {"max_output_tokens": 99, "truncation": "auto", "text": {"verbosity": "low"}, "top_k": 5},
    "anthropic": {"stop_sequences": ["x"], "system": "s", "mcp_servers": [], "anthropic_version": "bedrock-2023-05-31"},
    "google": {"safetySettings": [], "labels": {}, "generation_config": {"top_k": 1}},
    "google-interactions": {"system_instruction": "s", "generation_config": {"seed": 7}, "response_modalities": []},
}
"""Settings of which each names its provider, where nothing else does, and some that more than one accepts."""

SHARED: dict[str, Any] = {
    "cache_control": {"type": "ephemeral"},
    "metadata": {},
    "service_tier": "auto",
    "stream": True,
    "temperature": 1,
    "thinking": {"type": "enabled", "budget_tokens": 2000},
    "top_k": 20,
    "top_p": 0.5,
}
"""Settings that servers of several formats accept: they name nobody."""

FOREIGN = sorted({key for one in PROVIDERS.values() for key in (*one.settings, *one.signs.settings)})
KEYS = {one.conversation for one in PROVIDERS.values()}
NEUTRAL = ("my-proxy", "llama-4", "")


def draw(chance: random.Random) -> tuple[str, dict[str, Any], str]:
    """A provider, a request body for it, and what names the provider in it: `structure`, `setting`, `model`, or ""."""
    aim = chance.choice(TARGETS)
    history = sound_history(chance, aim.provider)
    if chance.random() < 0.3:
        said = [one for one in history.messages if one.role != "system" and all(isinstance(p, Text) for p in one.parts)]
        history = replace(history, messages=tuple(said[: chance.choice([1, 9])]))
    tools = (Tool("f", "d", {"type": "object"}),) if chance.random() < 0.2 else ()
    body = build(plan(Configuration(tools=tools), aim), shown(history), history.blobs.__getitem__).body
    key = PROVIDERS[aim.provider].conversation
    body = {key: body[key], "model": aim.model} | ({"tools": body["tools"]} if "tools" in body else {})
    if key == "input" and len(history.messages) == 1 and chance.random() < 0.7:
        body[key] = chance.choice(["Name a fjord.", ""])
    calls = any(isinstance(part, (ToolCall, ToolResult)) for one in history.messages for part in one.parts)
    if calls and chance.random() < 0.5:
        body.pop("tools", None)
    elif aim.provider in ("openai-responses", "google-interactions") and not calls:
        body.pop("tools", None)  # both declare functions in the same way
    is_structured = calls or "tools" in body or key == "contents" or (isinstance(body[key], list) and key == "input")
    shared = [name for name in sorted(SHARED) if is_structured or _says_nothing(name, key)]
    body |= {name: SHARED[name] for name in chance.sample(shared, chance.randint(0, min(3, len(shared))))}
    if is_structured:
        body["model"] = chance.choice([one.model for one in TARGETS] + ["anthropic/claude-sonnet-4.5", *NEUTRAL])
        others = chance.sample(FOREIGN, chance.randint(0, 6))
        others = [name for name in others if name not in (*KEYS, "tools", "model", "tool_choice")]
        return aim.provider, body | {name: chance.choice([1, "x", {}, [], True]) for name in others}, "structure"
    own = OWN[aim.provider]
    names = chance.sample(sorted(own), chance.randint(0, 2))
    if isinstance(body[key], list) and body[key] and body[key][0]["role"] == "system":
        names = []
    body |= {name: own[name] for name in names}
    if any(name in PROVIDERS[aim.provider].settings for name in names if not _says_nothing(name, key)):
        body["model"] = chance.choice([body["model"], *NEUTRAL])
        return aim.provider, body, "setting"
    if chance.random() < 0.5:
        body["model"] = chance.choice(NEUTRAL)
        return aim.provider, body, ""
    return aim.provider, body, "model"


def _says_nothing(name: str, key: str) -> bool:
    """Whether all providers with this conversation have a setting, or none."""
    rivals = [one for one in PROVIDERS.values() if one.conversation == key]
    return len({name in one.settings or name in one.signs.settings for one in rivals}) == 1


def imported_as(body: dict[str, Any]) -> str:
    """The format in which `import` reads a body; "" if it refuses it."""
    try:
        (session,) = read(json.dumps(body).encode())
    except ImportFailed:
        return ""
    return session.format


def checked_as(body: dict[str, Any]) -> str:
    """The provider by whose rules `check`, `repair`, `count` and the others read a body; "" if they refuse it."""
    try:
        return provider_of(body)
    except InputError:
        return ""


def judge(seed: int) -> str:
    """Draw a body and see whom it is taken for; returns what named its provider."""
    built_for, body, named_by = draw(random.Random(seed))
    found = checked_as(body)
    assert imported_as(body) == found, (seed, body)
    assert found == built_for or not named_by, (seed, named_by, body)
    return named_by


@given(st.integers(0, 2**32))
def test_a_body_is_recognised_as_that_of_its_provider(seed: int) -> None:
    """A setting that other servers accept too, or the name of a model behind a gateway, would have a body read in
    another format, in which its calls are unknown content."""
    judge(seed)


def recorded(shared: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every request body in the shared material: those that were recorded as such, and every object in any other file
    that has the key of a conversation."""
    for line in _lines(shared / "data/token_truth/requests.jsonl", shared / "data/token_truth/refusals.jsonl"):
        yield "recorded", line["request"]
    for path in sorted((shared / "data").rglob("*.json*")):
        if "token_truth" not in path.parts and "vocab" not in path.parts:
            try:
                values = [json.loads(path.read_bytes())]
            except ValueError:
                values = list(_lines(path))
            yield from (("found", body) for value in values for body in _bodies(value))


def _lines(*paths: Path) -> Iterator[Any]:
    for path in paths:
        for line in path.read_text("utf-8", "replace").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue


def _bodies(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and any(isinstance(value.get(key), list) for key in KEYS):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _bodies(inner)


def test_check_and_import_name_the_same_provider_for_every_recorded_body(shared: Path) -> None:
    """What `check` finds nothing wrong with would be imported in another format, and lose its calls, with exit code
    0."""
    bodies = [*recorded(shared), *(("fixture", one) for one in (*BODIES.values(), *ODD_BODIES.values()))]
    assert len(bodies) > 2_500
    assert [body for _, body in bodies if checked_as(body) != imported_as(body)] == []


def test_recorded_bodies_are_those_of_the_api_that_they_were_sent_to(shared: Path) -> None:
    """The answer would be the same for both, and wrong."""
    wrong = [one.name for one in recorded_bodies(shared) if checked_as(one.body) != one.provider]
    assert wrong == ["refusals.jsonl:1"]  # a list of texts: the API refused it for that


@pytest.mark.parametrize("name", PROVIDERS)
def test_the_key_of_the_conversation_is_one_of_the_schema(name: str) -> None:
    """By the row's key a folder is loaded; with another key in its schema, a body would be read by the wrong one."""
    assert PROVIDERS[name].conversation in PROVIDERS[name].settings
    assert provider_of(BODIES[name]) == name
