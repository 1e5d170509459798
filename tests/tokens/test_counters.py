"""Counters: which one counts for a model, and what their counts are made of."""

from __future__ import annotations

import base64
import random
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog.log.messages import Media, Message, Opaque, Reasoning, Text, Tool, ToolCall, ToolResult
from turnlog.log.usage import Count
from turnlog.tokens import Counter, FactoredCounter, OpenAICounter, Tally, counter_for
from turnlog.tokens.approximate import _BLOB, MARK, _blobs_in, marked
from turnlog.tokens.counters import count_frame, count_message, count_tools
from turnlog.tokens.families import claude_family, gemini_family
from turnlog.tokens.openai import typescript

MODELS = {
    ("openai-chat", "gpt-4o-2024-08-06"): "gpt-4o:5",
    ("openai-chat", "gpt-4"): "gpt-4:5",
    ("openai-chat", "gpt-4-0613"): "gpt-4:5",
    ("openai-chat", "gpt-35-turbo"): "gpt-3.5:5",
    ("openai-chat", "gpt-3.5-turbo-0125"): "gpt-4:5",
    ("openai-chat", "gpt-4.1"): "gpt-4o:5",
    ("openai-responses", "gpt-5.2"): "gpt-5-responses:5",
    ("openai-responses", "gpt-6-astra"): "gpt-5-responses:5",
    ("openai-responses", "o3-mini"): "o3-mini-responses:5",
    ("openai-chat", "ft:gpt-4o-mini:acme::x1"): "gpt-4o-mini:5",
    ("openai-chat", "gpt-9"): "gpt-new:5",
    ("openai-chat", "llama-4"): "unknown-llama-4:5",
    ("openai-chat", "google/gemini-3-pro-preview"): "gemini-3-pro:5",
    ("openai-chat", "anthropic/claude-sonnet-4.5"): "claude-3:5",
    ("anthropic", "claude-sonnet-4-20250514"): "claude-3-312:5",
    ("anthropic", "claude-3-5-haiku-latest"): "claude-3-264:5",
    ("anthropic", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"): "claude-3:5",
    ("anthropic", "claude-opus-4-6"): "claude-3-497:5",
    ("anthropic", "claude-opus-4-7"): "claude-4.7:5",
    ("anthropic", "claude-opus-4-8"): "claude-4.8:5",
    ("anthropic", "claude-sonnet-5"): "claude-4.8-355:5",
    ("anthropic", "claude-opus-5"): "claude-4.8-286:5",
    ("anthropic", "claude-fable-5"): "claude-4.8:5",
    ("anthropic", ""): "claude-4.8:5",
    ("google", "gemini-2.0-flash-001"): "gemini-2:5",
    ("google", "gemini-2.5-flash"): "gemini-2.5:5",
    ("google", "gemini-flash-latest"): "gemini-3:5",
    ("google-vertex", "gemini-2.5-flash"): "gemini-2.5-vertex:5",
    ("google-vertex", "gemini-3-flash"): "gemini-vertex:5",
    ("", ""): "unknown:5",
}
PARTS = st.one_of(
    st.builds(Text, st.text(max_size=40)),
    st.builds(
        ToolCall,
        id=st.just("c"),
        name=st.just("look"),
        arguments=st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
    ),
    st.builds(ToolResult, call_id=st.just("c"), parts=st.tuples(st.builds(Text, st.text(max_size=20)))),
    st.builds(Reasoning, provider=st.just("anthropic"), text=st.text(max_size=20)),
    st.builds(
        Media, kind=st.sampled_from(["image", "document", "audio", "video", "file"]), url=st.just("https://example.org")
    ),
    st.builds(Opaque, provider=st.just("openai-responses"), kind=st.just("web_search_call")),
)
MESSAGES = st.lists(
    st.builds(Message, st.sampled_from(["system", "user", "assistant"]), st.lists(PARTS, max_size=3).map(tuple)),
    max_size=5,
)
WEATHER = Tool(
    "weather",
    "Tells the weather.\n\nIn any city.",
    {
        "type": "object",
        "title": "Place",
        "properties": {
            "city": {"type": "string", "description": "Where"},
            "unit": {"enum": ["C", "F"], "default": "C", "title": "Unit"},
            "days": {"type": "array", "items": {"$ref": "#/$defs/Day"}},
        },
        "required": ["city"],
        "$defs": {"Day": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    },
)


@pytest.mark.parametrize(("provider", "model"), MODELS)
def test_models_find_their_family(provider: str, model: str) -> None:
    """A model that falls into another generation's family fails here: vocabularies and framing changed."""
    assert counter_for(provider, model).id == MODELS[provider, model]


@pytest.mark.slow
@given(MESSAGES, st.sampled_from(sorted(MODELS)))
def test_counts_are_never_negative_and_always_the_same(messages: list[Message], aim: tuple[str, str]) -> None:
    """Any conversation has a count, the same each time, whose parts make up the whole."""
    counter: Counter = counter_for(*aim)
    tally = counter.messages(messages)
    assert tally == counter.messages(messages)
    assert min(tally.parts.values()) >= 0
    assert tally.tokens == sum(tally.parts.values())


@given(MESSAGES, st.sampled_from([aim for aim in sorted(MODELS) if "gemini-3" not in MODELS[aim]]))
def test_messages_add_up(messages: list[Message], aim: tuple[str, str]) -> None:
    """A message counted when it was recorded counts as much in its request, calls and reasoning of
    OpenAI's models apart: counts would have to be made again for each request otherwise."""
    counter = counter_for(*aim)
    plain = [m for m in messages if not any(isinstance(part, (ToolCall, ToolResult, Reasoning)) for part in m.parts)]
    chosen = plain if isinstance(counter, OpenAICounter) else messages
    alone = sum(count_message(message, counter).tokens for message in chosen)
    assert counter.messages(chosen).tokens == alone


def test_plain_openai_requests_are_exact() -> None:
    """The framing that recorded requests show: 3 for the answer, 4 a message, a name and 1."""
    counter = counter_for("openai-chat", "gpt-4o")
    messages = (Message("system", (Text("You are brief."),)), Message("user", (Text("hello"),), name="ann"))
    assert counter.messages(messages) + counter.frame(system=True, tools=False) == Tally(
        system=4, user=1, framing=4 + 4 + 2 + 3, certainty="exact"
    )
    newer = counter_for("openai-responses", "gpt-5")
    answered = (*messages, Message("assistant", (Text("hi"),)))
    assert (newer.messages(answered) + newer.frame(system=True, tools=False)).framing == 4 + 4 + 2 + 4 + 2 + 2


def test_an_unseen_generation_is_not_called_exact() -> None:
    """A model newer than the table may have another vocabulary: its counts are estimates."""
    hello = Message("user", (Text("hello"),))
    assert [count_message(hello, counter_for("openai-chat", model)).certainty for model in ("gpt-6", "gpt-9")] == [
        "exact",
        "estimated",
    ]


def test_parallel_calls_are_billed_as_one() -> None:
    """Calls made at once, and their results, are wrapped together; one by itself is not."""
    counter = counter_for("openai-chat", "gpt-4o")
    calls = tuple(ToolCall(f"c{i}", "look", {"at": i}) for i in range(2))
    results = tuple(Message("user", (ToolResult(f"c{i}", parts=(Text(f"seen {i}"),)),)) for i in range(2))
    one = counter.messages((Message("assistant", calls[:1]), results[0]))
    both = counter.messages((Message("assistant", calls), *results))
    uses = ",".join(f'{{"recipient_name":"functions.look","parameters":{{"at":{i}}}}}' for i in range(2))
    wrapped = f'{{"tool_uses":[{uses}]}}'
    assert both == Tally(
        assistant=counter.text(wrapped),
        tool_results=counter.text('["seen 0", "seen 1"]'),
        framing=4 + 16,
        certainty="estimated",
    )
    assert one == Tally(
        assistant=counter.text('{"at":0}') + counter.text("look") + counter.text("functions.look"),
        tool_results=counter.text("seen 0"),
        framing=4 + 4 + 4,
        certainty="estimated",
    )


def test_reasoning_counts_while_its_turn_lasts() -> None:
    """Encrypted reasoning from before the last thing a user said is dropped by the provider."""
    counter = counter_for("openai-responses", "gpt-5")
    thought = Message("assistant", (Reasoning("openai-responses", encrypted="x" * 2850),))
    user = Message("user", (Text("go on"),))
    assert counter.messages((user, thought)).assistant == 250
    assert counter.messages((user, thought, user)).assistant == 0
    gemini = counter_for("google", "gemini-3-pro")
    call = Message("assistant", (ToolCall("c", "f", {}, signature="x" * 100, provider="google"),))
    assert gemini.messages((user, call)).assistant - gemini.messages((user, call, user)).assistant == 15
    newer = counter_for("google", "gemini-3.5-flash")  # bills the thoughts of earlier turns, too
    assert newer.messages((user, call)).assistant == newer.messages((user, call, user)).assistant


def test_thoughts_that_may_be_billed_are_not_exact() -> None:
    """Encrypted thoughts of a turn that has ended are billed by some models: 311 tokens where 95 were counted."""
    counter = counter_for("openai-responses", "gpt-5")
    thought = Message("assistant", (Reasoning("openai-responses", encrypted="x" * 2850), Text("So.")))
    user = Message("user", (Text("go on"),))
    assert counter.messages((user, thought, user)).certainty == "estimated"
    said = Message("assistant", (Reasoning("openai-responses", summary=("hm",)), Text("So.")))
    assert counter.messages((user, said, user)).certainty == "exact"


OWN_TOOLS: tuple[tuple[str, int, dict[str, Any]], ...] = (  # bills recorded in test cassettes of pydantic-ai
    ("claude-sonnet-4-5", 1581, {"say": "What is 2 + 2?", "tools": ["memory_20250818"]}),
    ("claude-sonnet-4-6", 1270, {
        "system": "Always use the text editor tool. Keep responses brief.", "say": "View the file /tmp/example.py",
        "tools": ["text_editor_20250728"],
    }),
    ("claude-sonnet-4-6", 774, {
        "system": "Always use the shell tool. Keep responses brief.",
        "say": "What is 2 + 2? Use python to calculate it.", "tools": ["bash_20250124"],
    }),
    ("claude-sonnet-4-0", 2040, {
        "say": "What is the weather in San Francisco today?", "tools": ["web_search_20250305"],
    }),
    ("claude-sonnet-4-6", 3465, {
        "say": "What is the first sentence on the page https://ai.pydantic.dev? Reply with only the sentence.",
        "tools": ["web_fetch_20260209", "code_execution_20260120"],
    }),
)  # fmt: skip


@pytest.mark.parametrize(("model", "billed", "asked"), OWN_TOOLS)
def test_tools_that_claude_defines_are_counted_as_billed(model: str, billed: int, asked: dict[str, Any]) -> None:
    """A short request with a search counted 350 tokens where 2,040 were billed."""
    body = {
        "model": model,
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": asked["say"]}],
        "tools": [{"type": kind, "name": kind.rpartition("_")[0]} for kind in asked["tools"]],
    }
    body |= {"system": asked["system"]} if "system" in asked else {}
    found = turnlog.count(body, "anthropic")
    assert abs(found.tokens - billed) <= 0.01 * billed
    assert found.certainty == "estimated"


def test_the_namespace_of_tools() -> None:
    """The form in which OpenAI's models see declarations, line by line."""
    assert typescript([WEATHER, Tool("now")]) == (
        "namespace functions {\n\n"
        "// Tells the weather.\n//\n// In any city.\n"
        "type weather = (_: // Place\n{\n"
        "// Where\ncity: string,\n"
        '// Unit\nunit?: "C" | "F", // default: "C"\n'
        "days?: {\nn?: number,\n}[],\n"
        "}) => any;\n\n"
        "type now = () => any;\n\n"
        "} // namespace functions"
    )


@pytest.mark.parametrize("aim", sorted(MODELS))
def test_schemas_without_end_are_counted(aim: tuple[str, str]) -> None:
    """A schema that refers to itself many times over would unfold to millions of types."""
    node = {"type": "object", "properties": {f"p{i}": {"$ref": "#/$defs/Node"} for i in range(30)}}
    tool = Tool("f", "", {"type": "object", "properties": {"a": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}})
    odd = Tool(
        "g", "", {"properties": {"a": 1, "b": {"$ref": "#/nowhere"}, "c": {"type": ["string", 7]}, "required": 3}}
    )
    counter = counter_for(*aim)
    assert 0 < counter.tools([tool, odd]).tokens < 3_000_000


def test_tools_cost_what_providers_add() -> None:
    """Claude's hidden prompt by tool choice, and OpenAI's message for tools without system text."""
    claude, gpt = counter_for("anthropic", "claude-sonnet-4-5"), counter_for("openai-chat", "gpt-4o")
    tools = [WEATHER]
    assert claude.tools(tools, "required").tokens - claude.tools(tools).tokens == 588 - 496
    assert claude.tools([]).tokens == gpt.tools([]).tokens == 0
    assert gpt.frame(system=False, tools=True).tokens - gpt.frame(system=True, tools=True).tokens == 4
    assert count_tools(tools, gpt).tokens == gpt.text(typescript(tools)) + 5
    assert count_frame(gpt, system=True, tools=True) == Count(3, "gpt-4o:5", "exact")


def test_encoded_blobs_are_no_prose() -> None:
    """base64 in a text counts by its own factor; for an exact vocabulary it counts as it is."""
    blob = base64.b64encode(random.Random(1).randbytes(3_000)).decode()
    claude, gpt = counter_for("anthropic", "claude-sonnet-4-5"), counter_for("openai-chat", "gpt-4o")
    family = claude_family("claude-sonnet-4-5")
    around = "The file holds: "
    prose = family.weights.tokens(around, gpt.text(around))
    assert claude.text(around + blob) == round(prose + gpt.text(blob) * family.base64)
    assert claude.text("x" * 40 + " y") == round(family.weights.tokens("x" * 40 + " y", gpt.text("x" * 40 + " y")))


@given(st.lists(st.integers(1, 300), max_size=6), st.integers(0, 300), st.sampled_from(" \n.é"))
def test_encoded_blobs_are_found_wherever_they_begin(lengths: list[int], before: int, between: str) -> None:
    """Base64 behind a few words counted as prose: that of a screenshot in an output is half as many tokens again."""
    text = " " * before + between.join("Ab/9" * (length // 4) + "x" * (length % 4) for length in lengths)
    assert _blobs_in(text) == _BLOB.findall(text)


@given(st.text(max_size=200))
def test_weights_stay_within_their_bounds(text: str) -> None:
    """A text unlike all that the weights were fitted to, counted as nothing or as many times what it is."""
    gpt = counter_for("openai-chat", "gpt-4o").text(text)
    for target in (("anthropic", "claude-sonnet-4-5"), ("anthropic", "claude-opus-5"), ("google", "gemini-3-pro")):
        assert ceil(0.85 * gpt - 0.5) <= counter_for(*target).text(text) <= ceil(2.6 * gpt - 0.5)


def test_code_counts_more_where_the_vocabulary_is_smaller() -> None:
    """Code for a Claude from 4.7 on, counted by a factor for prose: a request over its window by a tenth."""
    code = "def add_all(firstValue: int, *otherValues: int) -> int:\n    return sum([firstValue, *otherValues])\n" * 40
    prose = "The results of all the tests that were run by the others are on the page about it. " * 40
    gpt, older, newer = (
        counter_for(*target)
        for target in (("openai-chat", "gpt-4o"), ("anthropic", "claude-opus-4-5"), ("anthropic", "claude-opus-5"))
    )
    assert newer.text(code) > 1.5 * gpt.text(code) and newer.text(code) > 1.2 * older.text(code)
    assert older.text(prose) < older.text(code) * gpt.text(prose) / gpt.text(code)


def test_arguments_are_shown_to_claude_without_escapes() -> None:
    """A file that a call writes, counted with a backslash for each of its lines and quotes."""
    counter = FactoredCounter(claude_family("claude-sonnet-4-5"), texts=len)
    content = 'print("a")\n' * 100
    call = Message("assistant", (ToolCall("1", "write", {"path": "a.py", "content": content, "mode": 420}),))
    tally = counter.messages((call,))
    assert tally.assistant == len("write" + "path" + "content" + "mode" + "a.py" + content + "420")
    assert tally.framing == 3 + 25 + 3 * 14


def test_results_of_parallel_calls_repeat_their_names() -> None:
    """Requests with many parallel calls, too small by some tokens for each."""
    counter = FactoredCounter(claude_family("claude-sonnet-4-5"), texts=len)
    calls = [ToolCall(str(n), "look", {}) for n in range(3)]
    apart = sum(counter.messages((Message("assistant", (call,)),)).tokens for call in calls)
    assert counter.messages((Message("assistant", tuple(calls)),)).tokens - apart == 3 * 4 + 25 - 3 * 3 - 2 * 3


def test_gemini_reads_declarations_between_special_tokens() -> None:
    """Bills of Gemini 3 agree with this form to the token; JSON counts a tenth less."""
    shown = marked(Tool("at", "Look.", {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}))
    assert shown.replace(MARK, "|") == (
        "|declaration:at{description:|Look.|,parameters:{type:|OBJECT|,properties:{x:{type:|NUMBER|}},required:[|x|]}}|"
    )
    assert marked(Tool("at", "Look.")).replace(MARK, "|") == "|declaration:at{description:|Look.|}|"
    counter = FactoredCounter(gemini_family("gemini-3-flash"), texts=len)
    result = ToolResult("1", "at", (Text("plain words"),))
    assert counter.messages((Message("user", (result,)),)).tool_results == len("_response:at{output:_plain words_}_")


@pytest.mark.parametrize("model", ["gemini-2.0-flash", "gemini-2.5-pro", "gemini-3-pro", "claude-opus-5"])
def test_a_result_without_text_counts_as_an_empty_one(model: str) -> None:
    """Gemini is sent an empty output and the tool's name for a result of an image alone: a request over its budget."""
    image, counter = Media("image", url="https://example.org/1.png"), counter_for("google", model)
    for beside in ((), (image,)):
        bare, empty = ToolResult("1", "look", beside), ToolResult("1", "look", (Text(""), *beside))
        assert counter.messages((Message("user", (bare,)),)) == counter.messages((Message("user", (empty,)),))


def test_the_frame_of_a_system_text_counts_with_it() -> None:
    """Text that becomes system text once what stood ahead of it leaves: a decision said a token less than was sent."""
    for target in (("google", "gemini-3-pro"), ("google", "gemini-2.5-flash"), ("anthropic", "claude-opus-5")):
        counter = counter_for(*target)
        assert counter.frame(system=True, tools=False) == counter.frame(system=False, tools=False)
    gemini, texts = counter_for("google", "gemini-3-pro"), (Text("Be brief."), Text("Be kind."))
    apart = gemini.messages([Message("system", (text,)) for text in texts])
    assert apart == gemini.messages((Message("system", texts),)) and apart.framing == 2


def test_only_signatures_of_streams_count_for_gemini_2_5() -> None:
    """Each request of a tool loop too large by the thoughts of its answers, which are not billed."""
    counter = counter_for("google", "gemini-2.5-flash")
    whole, chunks = b"\x0a\xe8\x07" + bytes(1000), b"\x0a\x64" + bytes(100) + b"\x0a\xe8\x06" + bytes(872)
    made = {
        kind: counter.messages(
            (Message("assistant", (ToolCall("1", "f", {}, signature=base64.b64encode(signature).decode()),)),)
        ).tokens
        for kind, signature in {"none": b"", "whole": whole, "stream": chunks}.items()
    }
    assert made["whole"] == made["none"]
    assert made["stream"] - made["none"] == pytest.approx(1300 * 0.125, rel=0.05)


def test_a_better_tokenizer_can_be_plugged_in() -> None:
    """A tokenizer of one's own counts texts, and its name stands in every count."""
    counter = FactoredCounter(claude_family("claude-opus-4-5"), texts=len, name="letters-1")
    count = count_message(Message("user", (Text("hello"),)), counter)
    assert count == Count(5 + 3, "claude-3:5+letters-1", "estimated")
