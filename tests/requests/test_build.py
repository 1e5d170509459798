"""Any history, any target: the request is accepted, and nothing is lost in silence."""

from __future__ import annotations

import copy
import json
import random
from types import ModuleType
from typing import Any

import msgspec
import pytest

import turnlog
from accounting import unaccounted
from budget_triples import with_outputs
from draws import seeds
from judging import TARGETS, errors_of, numbered, shown
from turnlog.log.messages import Message, Opaque, Reasoning, Text, Tool, ToolCall, ToolResult
from turnlog.log.records import Configuration
from turnlog.models.target import Target, target
from turnlog.providers import provider
from turnlog.requests.build import build
from turnlog.requests.translate import plan
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.testing import damaged_history, sound_history
from turnlog.testing.damages import DAMAGES
from turnlog.view.curate.conversation import Curator, Rule
from turnlog.view.repair.repair import declare_tools

HISTORIES, SPRINKLED, CURATED = seeds(120, 50_000), seeds(120, 5_000), seeds(20, 5_000)


@pytest.mark.slow
@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
def test_damaged_histories_make_requests_that_are_accepted(aim: Target, oracle: ModuleType) -> None:
    """A refused request is a bricked session: the complaint that this library exists to end."""
    refused = []
    for seed in HISTORIES:
        history = damaged_history(random.Random(seed))
        prepared = build(plan(Configuration(), aim), shown(history), history.blobs.__getitem__)
        missing = unaccounted(
            enumerate(history.messages, 1), prepared.body, [*prepared.edits, *prepared.losses], history.blobs
        )
        refused += [(seed, error) for error in (*errors_of(oracle, aim, prepared.body), *missing)]
    assert refused == []


@pytest.mark.slow
@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
def test_curated_outputs_of_damaged_histories_are_accepted(aim: Target, oracle: ModuleType) -> None:
    """What curation leaves of a damaged output would be refused, or miss something that no edit names."""
    refused, curated = [], 0
    for seed in CURATED:
        history = with_outputs(random.Random(seed), damaged_history(random.Random(seed)))
        curator = Curator(Rule(True))
        view = [curator.see(one, one) for one in shown(history)]
        curated += bool(curator.kinds)
        prepared = build(plan(Configuration(), aim), view, history.blobs.__getitem__)
        said = ((one.records[0], one.message) for one in view)
        missing = unaccounted(said, prepared.body, [*prepared.edits, *prepared.losses], history.blobs)
        refused += [(seed, error) for error in (*errors_of(oracle, aim, prepared.body), *missing)]
    assert refused == [] and curated


def test_most_damage_is_refused_without_repair(oracle: ModuleType) -> None:
    """Damage that providers take anyway would make of the tests above nothing."""
    refused = set()
    for seed in range(50):
        history = damaged_history(random.Random(seed))
        for aim in TARGETS:
            speaker, view = provider(aim.provider), shown(history)
            tools, _ = declare_tools(view, (), speaker.rules(aim, aim.settings))
            written = Configuration(provider=aim.provider, model=aim.model, settings=aim.settings, tools=tools)
            body = speaker.render(view, written, aim, history.blobs.__getitem__).body
            if errors_of(oracle, aim, speaker.sanitize(body, aim).body):
                refused.add(seed)
    assert len(refused) > 40


@pytest.mark.slow
@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
def test_texts_that_say_nothing_make_requests_that_are_accepted(aim: Target, oracle: ModuleType) -> None:
    """Agents record blank texts beside calls and results. What is moved or left out leaves them behind, and a message
    of nothing else is refused by Anthropic."""
    refused = []
    for seed in SPRINKLED:
        chance = random.Random(seed)
        history = damaged_history(chance)
        messages = [sprinkled(message, chance) for message in history.messages]
        prepared = build(plan(Configuration(), aim), numbered(messages), history.blobs.__getitem__)
        missing = unaccounted(enumerate(messages, 1), prepared.body, [*prepared.edits, *prepared.losses], history.blobs)
        refused += [(seed, error) for error in (*errors_of(oracle, aim, prepared.body), *missing)]
    assert refused == []


OWN = Opaque("anthropic", "server_tool_use", {"type": "server_tool_use", "id": "srvtoolu_1", "name": "s", "input": {}})
THOUGHT = Reasoning("anthropic", text="thought", signature="c2ln")


@pytest.mark.parametrize(
    "last",
    [
        Message("assistant", (THOUGHT, Text(" "))),
        Message("assistant", (Text("a "), Text(" "))),
        Message("assistant", (Text("a"), THOUGHT, Text("\n"))),
        Message("system", (Text("a note"), OWN)),
        Message("user", (Text("and?"), OWN)),
    ],
    ids=["thought", "blank", "thought in between", "own part of system text", "own part of a user"],
)
@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
def test_odd_ends_make_requests_that_are_accepted(aim: Target, last: Message, oracle: ModuleType) -> None:
    """What is left of an end when its whitespace goes is an end too; parts that a provider makes itself stand in its
    own answers only."""
    view = numbered([Message("user", (Text("go"),)), Message("assistant", (Text("well"),)), last])
    prepared = build(plan(Configuration(), aim), view, {}.__getitem__)
    assert errors_of(oracle, aim, prepared.body) == []
    changes = [*prepared.edits, *prepared.losses]
    assert unaccounted(enumerate([shown.message for shown in view], 1), prepared.body, changes, {}) == []


def test_an_end_that_vanishes_is_the_same_in_pieces() -> None:
    """A request is put together from pieces that were sent before, and only its ends are looked at: an end that goes
    wholly makes another message the last."""
    aim = target("anthropic", "claude-sonnet-4-5")
    store = MemoryStore()
    session = Session(store, store.create("s"))
    session.switch(aim)
    session.user("go")
    session.request()
    for message in (Message("assistant", (Text("first  "),)), Message("assistant", (THOUGHT, Text(" ")))):
        session.add(message)
        opened = Session(store, store.info("s"))
        assert session.request().json() == opened.request().json()
        assert session.request().body["messages"][-1]["content"] == "first"


HOSTED = (
    Tool("web_search", kind="hosted", provider="openai-responses", data={"type": "web_search"}),
    Tool("web_search", kind="hosted", provider="anthropic", data={"type": "web_search_20250305", "name": "web_search"}),
    Tool("googleSearch", kind="hosted", provider="google", data={"googleSearch": {}}),
)


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
def test_tools_that_another_provider_runs_are_as_none(aim: Target, oracle: ModuleType) -> None:
    """A session with a web search of its provider's and calls of tools could go on with no other: where nothing is
    left to be declared, the calls have to declare their tools."""
    tools = tuple(tool for tool in HOSTED if tool.provider != aim.provider)
    call = ToolCall("call_1", "read", {"path": "a"})
    result = ToolResult("call_1", "read", (Text("content"),))
    view = numbered([Message("user", (Text("go"),)), Message("assistant", (call,)), Message("user", (result,))])
    prepared = build(plan(Configuration(tools=tools), aim), view, {}.__getitem__)
    without = build(plan(Configuration(), aim), view, {}.__getitem__)
    assert errors_of(oracle, aim, prepared.body) == []
    assert prepared.body == without.body
    assert [loss.kind for loss in prepared.losses if loss not in without.losses] == ["tool"] * len(tools)


def test_results_of_calls_made_at_once_stand_together(oracle: ModuleType) -> None:
    """Anthropic's guide: results in a message each teach the model to call one tool at a time. What somebody else's
    request holds stays as it is."""
    aim = TARGETS[4]
    calls = tuple(ToolCall(f"call_{n}", "read", {"n": n}) for n in range(3))
    results = [ToolResult(call.id, call.name, (Text(f"content {call.id}"),)) for call in calls]
    said = [Message("user", (Text("go"),)), Message("assistant", calls)]
    apart = numbered([*said, *(Message("user", (result,)) for result in results)])
    whole = numbered([*said, Message("user", tuple(results))])
    prepared = build(plan(Configuration(), aim), apart, {}.__getitem__)
    assert errors_of(oracle, aim, prepared.body) == []
    assert prepared.body == build(plan(Configuration(), aim), whole, {}.__getitem__).body
    assert [shown.records for shown in prepared.view] == [(1,), (2,), (3, 4, 5)]
    two = [
        *prepared.body["messages"][:2],
        *({"role": "user", "content": [b]} for b in prepared.body["messages"][2]["content"]),
    ]
    body = {**prepared.body, "messages": two}
    assert turnlog.repair(body, "anthropic").body == body


def sprinkled(message: Message, chance: random.Random) -> Message:
    """The message with texts of nothing but whitespace among its parts."""
    parts = [part for one in message.parts for part in (*blanks(chance), one)]
    return msgspec.structs.replace(message, parts=(*parts, *blanks(chance)))


def blanks(chance: random.Random) -> list[Text]:
    return [Text(chance.choice(("", " ", "\n", " \n\t"))) for _ in range(chance.choice((0, 0, 0, 1, 2)))]


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
def test_sound_histories_need_no_edits_but_tools_and_an_end(aim: Target, oracle: ModuleType) -> None:
    """Edits on an undamaged conversation would be changes that nobody asked for."""
    for seed in HISTORIES[: len(HISTORIES) // 5]:
        history = sound_history(random.Random(seed))
        prepared = build(plan(Configuration(), aim), shown(history), history.blobs.__getitem__)
        assert errors_of(oracle, aim, prepared.body) == []
        assert {edit.kind for edit in prepared.edits} <= {"tool", "ends_with_assistant", "thinking"}


def test_each_damage_is_done_to_at_least_a_tenth_of_the_histories() -> None:
    """A damage that the generator hardly ever does is not tested by it."""
    done = [damaged_history(random.Random(seed)).damages for seed in HISTORIES]
    rare = [name for name in DAMAGES if sum(name in damages for damages in done) < len(HISTORIES) / 10]
    assert rare == []


def test_the_same_history_makes_the_same_bytes() -> None:
    """A prompt cache is keyed by bytes; a replay is judged by them."""
    for aim in TARGETS:
        first, second = (
            build(plan(Configuration(), aim), shown(history), history.blobs.__getitem__).body
            for history in (damaged_history(random.Random(7)), damaged_history(random.Random(7)))
        )
        assert first == second
        assert list(first) == list(second)


@pytest.mark.parametrize(("call_id", "kept"), [("call_1", True), ("a" * 64, True), ("a" * 65, False)])
@pytest.mark.parametrize("kind", ["function", "custom", "local_shell"])
def test_a_result_under_an_id_that_the_provider_cannot_hold_is_left_out_by_name(
    call_id: str, kept: bool, kind: str, oracle: ModuleType
) -> None:
    """Where the calls lie at the provider, their results stand alone. One whose id is too long answers none of them:
    without its id it would be refused, and an edit that names no record cannot be looked up."""
    aim = target("openai-responses", "gpt-5", previous_response_id="resp_1")
    result = ToolResult(call_id, parts=(Text("done"),), kind=kind)
    prepared = build(plan(Configuration(), aim), numbered([Message("user", (result,))]), {}.__getitem__)
    assert errors_of(oracle, aim, prepared.body) == []
    assert len(prepared.body["input"]) == kept
    assert [(edit.kind, edit.records) for edit in prepared.edits] == ([] if kept else [("orphan", (1,))])


def scribbled(value: Any) -> None:
    """Everything in a request changed in place, as by somebody who adds a date here and a tool there."""
    for item in list(value.values()) if isinstance(value, dict) else value:
        if isinstance(item, (dict, list)):
            scribbled(item)
    if isinstance(value, dict):
        value.update({key: item + "!" for key, item in value.items() if isinstance(item, str)}, added=True)
    else:
        value.append("added")


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider} {aim.model}")
def test_what_is_changed_in_a_request_is_in_no_other(aim: Target) -> None:
    """A tool or a date that is added to each request before it is sent would be in the next one twice, and after a
    restart once."""
    tools = [{"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]
    with turnlog.open(
        "trip", target=aim, tools=tools, store=":memory:", settings=turnlog.Settings(system="Be brief.")
    ) as session:
        session.user("Is it warm in Oslo?")
        call = ToolCall("call_1", "weather", {"city": {"name": "Oslo"}})
        session.add(Message("assistant", (call,)))
        session.tool_result(call, "4 degrees")
        session.user("And in Bergen? " + "Think of the coast. " * 500)
        prepared = session.request()
        before = prepared.json()
        scribbled(prepared.body)
        assert prepared.json() == before
        again = session.request()
        assert again.json() == before
        assert again.body == json.loads(before)


def test_a_request_that_is_mended_shares_nothing_with_the_one_given() -> None:
    """Cache marks that are put on what `fit` gave would be in the caller's history from then on."""
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "metadata": {"user_id": "u"},
        "tools": [{"name": "weather", "input_schema": {"type": "object", "properties": {}}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Oslo?", "cache_control": {"type": "ephemeral"}}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "weather", "input": {"a": [1]}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "4 degrees"}]},
        ],
    }
    kept = copy.deepcopy(body)
    fitter = turnlog.Fitter()
    for made in (turnlog.repair(body, "anthropic"), turnlog.convert(body, to="google"), fitter.fit(body)):
        scribbled(made.body)
        assert body == kept
    assert fitter.fit(body).body == kept
