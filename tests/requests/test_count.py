"""`turnlog.count`: the tokens of request bodies of all providers."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

import turnlog
from turnlog.errors import FormatError, InputError
from turnlog.log.messages import Message, Text, ToolCall
from turnlog.providers import provider as speaker
from turnlog.tokens import FactoredCounter
from turnlog.tokens.families import claude_family

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
BODIES: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "model": "gpt-4o",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Rain in Oslo?"}],
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}],
    },
    "openai-responses": {
        "model": "gpt-5",
        "instructions": "Be brief.",
        "input": "Rain in Oslo?",
        "tools": [{"type": "function", "name": "weather", "parameters": SCHEMA}],
    },
    "anthropic": {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Rain in Oslo?"}],
        "tools": [{"name": "weather", "input_schema": SCHEMA}],
    },
    "google": {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "Rain in Oslo?"}]}],
        "tools": [{"functionDeclarations": [{"name": "weather", "parameters": SCHEMA}]}],
    },
    "google-interactions": {
        "model": "gemini-2.5-pro",
        "system_instruction": "Be brief.",
        "input": "Rain in Oslo?",
        "tools": [{"type": "function", "name": "weather", "parameters": SCHEMA}],
    },
}
MODELS = {"google": "gemini-2.5-pro"}


@pytest.mark.parametrize("provider", BODIES)
def test_every_provider_is_counted_by_kind(provider: str) -> None:
    """A part that is counted as nothing, or as another kind, fails here."""
    found = turnlog.count(BODIES[provider], model=MODELS.get(provider, ""))
    assert found.tokens == sum(found.parts.values())
    assert found.certainty == "estimated"
    assert found.parts["system"] in (3, 4) and found.parts["user"] in (4, 5, 6)
    assert found.parts["tools"] > 20
    assert [found.parts[kind] for kind in ("assistant", "tool_results", "images")] == [0, 0, 0]


@pytest.mark.parametrize(
    ("provider", "tokens"), [("openai-chat", 4 + 3 + 4 + 4 + 3), ("openai-responses", 4 + 3 + 4 + 4 + 2)]
)
def test_plain_requests_are_exact(provider: str, tokens: int) -> None:
    """Text alone, by the published vocabulary and the framing that is billed."""
    body = {key: value for key, value in BODIES[provider].items() if key != "tools"}
    found = turnlog.count(body)
    assert (found.tokens, found.certainty) == (tokens, "exact")


def test_the_model_given_wins_over_the_bodys() -> None:
    """A body counts for the model asked about, wherever it was written for."""
    ours, theirs = (turnlog.count(BODIES["openai-chat"], model=model) for model in ("", "claude-opus-4-8"))
    assert (ours.counter, theirs.counter) == ("gpt-4o:5", "claude-4.8:5")
    assert theirs.tokens > ours.tokens


def test_images_are_counted_by_their_size() -> None:
    """An image inside a body is measured, not counted as the base64 it is sent in."""
    out = BytesIO()
    Image.new("RGB", (640, 480)).save(out, "PNG")
    url = "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()
    content = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    found = turnlog.count({"model": "gpt-4o", "messages": [{"role": "user", "content": content}]})
    assert found.parts["images"] == 425
    assert found.parts["user"] < 6


@pytest.mark.parametrize(
    ("provider", "key", "value"),
    [
        ("openai-chat", "response_format", {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}),
        ("openai-responses", "text", {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}),
    ],
)
def test_an_answers_schema_is_counted(provider: str, key: str, value: Any) -> None:
    """The schema that an answer has to keep to is sent to the model too."""
    plain, with_schema = ({**BODIES[provider], **more} for more in ({}, {key: value}))
    model = MODELS.get(provider, "")
    assert turnlog.count(with_schema, model=model).tokens - turnlog.count(plain, model=model).tokens > 15


def test_a_counter_of_ones_own() -> None:
    """A counter that is given counts, and says so."""
    counter = FactoredCounter(claude_family("claude-sonnet-4-5"), texts=len, name="letters-1")
    found = turnlog.count(BODIES["anthropic"], counter=counter)
    assert (found.counter, found.parts["user"]) == ("claude-3:5+letters-1", len("Rain in Oslo?"))


def test_what_is_no_request_is_refused() -> None:
    """Bodies of nobody, or broken ones, raise the errors that name the field."""
    with pytest.raises(InputError, match="messages"):
        turnlog.count({"prompt": "hi"})
    with pytest.raises(FormatError):
        turnlog.count({"model": "gpt-4o", "messages": [{"role": "tool"}, 3]})


def test_without_a_model_nothing_is_exact() -> None:
    """A figure for some model or other that is taken for a certain one."""
    body = {"messages": [{"role": "user", "content": "hello"}]}
    certain = [turnlog.count(body, model=model).certainty for model in ("", "gpt-4o")]
    assert certain == ["estimated", "exact"]


TOOLS = [{"type": "function", "name": "bash", "parameters": {"type": "object", "properties": {}}}]


@pytest.mark.parametrize("model", ["gpt-5", "gpt-4o"])
def test_a_session_counts_what_it_sends_to_the_responses_api(model: str) -> None:
    """A budget that is kept by one count and broken by the other, further with each step."""
    session = turnlog.open("s", target=turnlog.target("openai-responses", model), store=":memory:", tools=TOOLS)
    session.user("go")
    for n in range(5):
        call = ToolCall(f"c{n}", "bash", {"n": n})
        session.add(Message("assistant", (Text(f"step {n}"), call)))
        session.tool_result(call, f"line {n} of it")
        assert session.window.tokens == turnlog.count(session.request().body).tokens


def test_what_chat_puts_around_a_result_with_an_image_counts() -> None:
    """A request over its budget by a label and a message for each image."""
    session = turnlog.open("s", target=turnlog.target("openai-chat", "gpt-4o"), store=":memory:")
    session.configure(tools=[{"type": "function", "function": {"name": "look", "parameters": TOOLS[0]["parameters"]}}])
    session.system("Look.")
    session.user("go")
    drawn = BytesIO()
    Image.new("RGB", (64, 64)).save(drawn, "PNG")
    for n, words in enumerate(((Text("here"),), ())):
        call = ToolCall(f"c{n}", "look", {})
        session.add(Message("assistant", (call,)))
        session.tool_result(call, [*words, session.media(drawn.getvalue(), "image/png")])
        assert turnlog.count(session.request().body).tokens <= session.window.tokens


PAGE = "Every fox of the wood knows its own way home. " * 200
PLAIN: dict[str, list[dict[str, Any]]] = {  # what the user says, without such parts
    "anthropic": [{"role": "user", "content": PAGE}],
    "openai-responses": [{"role": "user", "content": PAGE}],
    "google": [{"role": "user", "parts": [{"text": PAGE}]}],
    "google-interactions": [{"type": "user_input", "content": [{"type": "text", "text": PAGE}]}],
}
FETCHED = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": PAGE}}
OWN_PARTS: list[tuple[str, list[dict[str, Any]]]] = [
    ("anthropic", [{"role": "user", "content": [
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": PAGE}]}}]}]),
    ("anthropic", [{"role": "user", "content": "go"}, {"role": "assistant", "content": [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_fetch", "input": {"url": "x"}},
        {"type": "web_fetch_tool_result", "tool_use_id": "srvtoolu_1", "content": {
            "type": "web_fetch_result", "url": "x", "content": FETCHED}}]}]),
    ("openai-responses", [{"role": "user", "content": "go"}, {
        "type": "mcp_call", "id": "m", "server_label": "s", "name": "n", "arguments": "{}", "output": PAGE}]),
    ("google", [{"role": "user", "parts": [{"text": "go"}]}, {"role": "model", "parts": [
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": PAGE}}]}]),
    ("google-interactions", [
        {"type": "user_input", "content": [{"type": "text", "text": "go"}]},
        {"type": "code_execution_result", "call_id": "1", "result": PAGE}]),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "messages"), OWN_PARTS)
def test_what_a_provider_has_parts_of_its_own_for_is_counted(provider: str, messages: list[dict[str, Any]]) -> None:
    """A page that a tool of the provider's own fetched, or a document made of pieces, which counts as nothing, however
    large: requests beyond the window pass for small ones."""
    found = turnlog.count({speaker(provider).conversation: messages}, provider=provider)
    said = turnlog.count({speaker(provider).conversation: PLAIN[provider]}, provider=provider).tokens
    assert said <= found.tokens < 1.1 * said
    assert found.certainty == "estimated"


def test_a_compacted_conversation_counts_as_what_it_stands_for() -> None:
    """An item of some thousand encrypted characters that counts as nothing. A recorded request with one was billed 276
    tokens, 263 of them for the item, which holds as much as this."""
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAAB" + "x" * 2_900}
    bare = turnlog.count({"model": "gpt-4.1", "input": [{"role": "user", "content": "go"}]}).tokens
    assert turnlog.count({"model": "gpt-4.1", "input": [item, {"role": "user", "content": "go"}]}).tokens == bare + 257


def test_functions_are_counted_as_the_tools_that_they_are() -> None:
    """The Chat API's first way to declare tools, counted as nothing and called exact. This recorded request was billed
    82 tokens."""
    place = {"type": "string", "description": "The city and state, e.g. San Francisco, CA"}
    unit = {"type": "string", "enum": ["celsius", "fahrenheit"]}
    schema = {"type": "object", "properties": {"location": place, "unit": unit}, "required": ["location"]}
    weather = {
        "name": "get_current_weather",
        "description": "Get the current weather in a given location",
        "parameters": schema,
    }
    asked = [{"role": "user", "content": "What's the weather like in Boston?"}]
    found = turnlog.count({"model": "gpt-4", "messages": asked, "functions": [weather], "function_call": "auto"})
    assert (found.tokens, found.certainty, found.parts["tools"]) == (82, "estimated", 63)
    for odd in ("weather", [5], [{"name": None, "parameters": []}], []):
        assert (
            turnlog.count({"model": "gpt-4", "messages": asked, "functions": odd}, provider="openai-chat").tokens < 60
        )


@pytest.mark.parametrize("key", ["previous_response_id", "conversation", "prompt"])
def test_what_the_provider_keeps_is_not_counted_exactly(key: str) -> None:
    """A count that is called exact, of a request to which the provider adds a whole conversation that it has stored."""
    body = {"model": "gpt-4o", "input": "Go on."}
    assert turnlog.count(body).certainty == "exact"
    assert turnlog.count({**body, key: "stored_1"}).certainty == "estimated"
    assert turnlog.count({**body, key: None}).certainty == "exact"
