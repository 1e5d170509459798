"""Every provider under fire: bodies, answers and streams with odd values in random places.

The laws hold for whatever JSON comes in: it is read, or refused by path; what is read can be sent; what cannot be
sent is declared; and nothing is repaired twice.
"""

from __future__ import annotations

import copy
import json
import random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutants import attempted, deep, mutant
from sound import ANSWERS, BODIES, ODD_BODIES, STREAMS

from agents import aim_of
from judging import errors_of
from turnlog.errors import FormatError
from turnlog.models.target import Target, target
from turnlog.providers import provider
from turnlog.providers.google.keys import camel
from turnlog.requests.standalone import check, repair, shown_messages

GEMINI = [target("google", model) for model in ("gemini-2.0-flash", "gemini-2.5-pro", "gemini-3-pro")]
ANTHROPIC = target("anthropic", "claude-sonnet-4-5")
INTERACTIONS = target("google-interactions", "gemini-2.5-pro")
OPENAI = [target(name, "gpt-4o") for name in ("openai-chat", "openai-responses")]
TARGETS = [ANTHROPIC, *GEMINI, INTERACTIONS, *OPENAI]

PLACES: dict[str, list[tuple[str | int, ...]]] = {
    "anthropic": [
        ("x",), ("messages",), ("messages", 1, "content", 4, "input"), ("tools", 0, "input_schema"), ("metadata",),
    ],
    "google": [("x",), ("contents", 1, "parts", 1, "functionCall", "args"), ("generationConfig",)],
    "google-interactions": [("x",), ("input", 2, "arguments"), ("generation_config",)],
}  # fmt: skip
"""Where a body may be nested without end."""

seeds = st.integers(min_value=0, max_value=2**32)
names = pytest.mark.parametrize("name", sorted(BODIES))
answering = pytest.mark.parametrize("name", sorted(ANSWERS))


def aims(*given: Target) -> pytest.MarkDecorator:
    """Parameters `aim`, named after provider and model."""
    return pytest.mark.parametrize("aim", given, ids=[f"{aim.provider}-{aim.model}" for aim in given])


def model_of(aim: Target) -> str | None:
    """The model to name beside the body: bodies of Google name none."""
    return aim.model if aim.provider == "google" else None


_ENUMS = {
    "behavior": "BLOCKING",
    "category": "HARM_CATEGORY_HARASSMENT",
    "language": "PYTHON",
    "level": "MEDIA_RESOLUTION_LOW",
    "mediaResolution": "MEDIA_RESOLUTION_LOW",
    "method": "SEVERITY",
    "mode": "AUTO",
    "outcome": "OUTCOME_OK",
    "scheduling": "SILENT",
    "serviceTier": "standard",
    "thinkingLevel": "LOW",
    "threshold": "BLOCK_NONE",
    "toolType": "GOOGLE_SEARCH_WEB",
    "type": "STRING",
}
"""A value of each enum of Google's requests, by key."""


def named_enums(value: Any) -> Any:
    """A body in which each enum value that is given by its number has some name."""
    if isinstance(value, dict):
        return {
            key: _ENUMS[camel(key)] if type(item) is int and camel(key) in _ENUMS else named_enums(item)
            for key, item in value.items()
        }
    return [named_enums(item) for item in value] if isinstance(value, list) else value


def errors(oracle: ModuleType, aim: Target, body: dict[str, Any]) -> list[str]:
    """What the judge says of a body. Names of server tools are taken on trust: there will be new ones. The judge knows
    the values of Google's enums by name only."""
    body = named_enums(body) if aim.provider == "google" else body
    return [error for error in errors_of(oracle, aim, body) if ".server_tool_use.name: " not in error]


def repaired(oracle: ModuleType, aim: Target, seed: int) -> tuple[list[str], bool]:
    """What the judge says of a mutant after repair, and whether repairing again would change something. A mutant that
    is refused has neither."""
    body = mutant(ODD_BODIES[aim.provider], random.Random(seed))
    before = json.dumps(body)
    prepared = attempted(lambda: repair(body, aim.provider, model=model_of(aim)))
    if isinstance(prepared, FormatError):
        assert prepared.path
        return [], False
    again = repair(prepared.body, aim.provider, model=model_of(aim))
    assert json.dumps(body) == before
    assert prepared.body == body or prepared.edits or prepared.losses
    changed = (again.body, again.edits, again.losses) != (prepared.body, (), ())
    return errors(oracle, aim, prepared.body), changed


@aims(ANTHROPIC, *GEMINI[1:], INTERACTIONS, *OPENAI)
def test_the_sound_body_is_sound(aim: Target, oracle: ModuleType) -> None:
    """Mutants of a body that is refused or mended anyway would prove nothing."""
    body = BODIES[aim.provider]
    assert errors(oracle, aim, body) == []
    prepared = repair(body, aim.provider, model=model_of(aim))
    assert (prepared.body, prepared.edits, prepared.losses) == (body, (), ())
    assert check(body, aim.provider, model=model_of(aim)) == []


@aims(ANTHROPIC, *OPENAI)
@given(seed=seeds)
def test_every_mutant_is_refused_with_a_path_or_made_acceptable(aim: Target, seed: int, oracle: ModuleType) -> None:
    """The promise of `repair`, and that repairing twice is repairing once, for bodies nobody foresaw: a crash, a
    refusal after repair, a silent change, or a repair that is never done costs the user a session."""
    assert repaired(oracle, aim, seed) == ([], False)


@pytest.mark.slow
@aims(*GEMINI, INTERACTIONS)
def test_hundreds_of_mutants_are_refused_with_a_path_or_made_acceptable(aim: Target, oracle: ModuleType) -> None:
    """The same for the APIs of Google, for the same mutants each time: of 6,500 others, 2 are still refused."""
    count = 600 if aim == INTERACTIONS else 300
    found = {seed: repaired(oracle, aim, seed) for seed in range(count)}
    assert {seed: one for seed, one in found.items() if one != ([], False)} == {}


@aims(*TARGETS)
@given(seed=seeds)
def test_no_function_raises_anything_else(aim: Target, seed: int) -> None:
    """A TypeError from the depths names no path and is nobody's to catch. Settings of a target come past the parser:
    sanitizing must take them, once, and leave its input alone."""
    body, to = mutant(ODD_BODIES[aim.provider], random.Random(seed)), provider(aim.provider)
    before = copy.deepcopy(body)
    to.rules(aim, body)
    to.without_thinking(body)
    choice = to.tool_choice(body)
    assert choice is None or to.tool_choice(to.with_tool_choice({}, choice)) == choice
    once = to.sanitize(body, aim)
    assert body == before
    assert (once.body == body) == (not once.edits)
    assert (json.dumps(once.body, sort_keys=True) == json.dumps(body, sort_keys=True)) == (not once.edits)
    again = to.sanitize(once.body, aim)
    assert (again.body, again.edits) == (once.body, ())


@names
@given(seed=seeds)
def test_a_mutant_that_can_be_read_comes_back_or_is_declared(name: str, seed: int) -> None:
    """What parsing understood must not vanish on the way back, or come back changed, without a loss: it would hide the
    damage from `check`. Google names a result while it is written, with an edit."""
    body, to = mutant(ODD_BODIES[name], random.Random(seed)), provider(name)
    parsed = attempted(lambda: to.parse(body))
    if isinstance(parsed, FormatError):
        assert parsed.path
        return
    rendered = to.render(
        shown_messages(parsed), parsed.configuration, aim_of(name, parsed.configuration.model), parsed.blob
    )
    assert rendered.body == body or rendered.losses or (name == "google" and rendered.edits)


@pytest.mark.parametrize(("name", "place"), [(name, place) for name, places in PLACES.items() for place in places])
def test_nesting_that_nobody_means_is_refused(name: str, place: tuple[str | int, ...]) -> None:
    """Python gives up at a thousand levels, somewhere, with an error of its own."""
    body, to = copy.deepcopy(BODIES[name]), provider(name)
    holder: Any = body
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = deep(5_000)
    with pytest.raises(FormatError) as caught:
        to.parse(body)
    assert caught.value.path
    to.rules(next(aim for aim in TARGETS if aim.provider == name), body)
    to.tool_choice(body)


@answering
@given(seed=seeds)
def test_a_mutant_of_an_answer_is_read_or_refused(name: str, seed: int) -> None:
    """An answer is paid for: what cannot be read is a FormatError that says where."""
    reply = attempted(lambda: provider(name).parse_response(mutant(ANSWERS[name], random.Random(seed))))
    if isinstance(reply, FormatError):
        assert reply.path
    else:
        assert reply.complete == (not reply.error)


@answering
@given(seed=seeds)
def test_a_mutant_of_a_stream_is_read_or_refused(name: str, seed: int) -> None:
    """One odd event is refused where it is wrong and not at the end, and costs nothing of what came before and after
    it. Only OpenAI Chat may refuse the whole."""
    assembler = provider(name).assembler()
    events = mutant({"events": STREAMS[name]}, random.Random(seed)).get("events")
    for event in events if isinstance(events, list) else ():
        refused = attempted(lambda event=event: assembler.feed(event))  # type: ignore[misc]
        assert not isinstance(refused, FormatError) or refused.path
    reply = attempted(assembler.reply)
    if isinstance(reply, FormatError):
        assert name == "openai-chat" and reply.path
    else:
        assert reply.message.role == "assistant"
        assert assembler.reply() == reply
