"""Chat Completions: what was said elsewhere, and what sanitizing mends."""

from __future__ import annotations

import base64
import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.log.messages import (
    Form,
    Media,
    Message,
    Opaque,
    Outcome,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
    sha256_hex,
)
from turnlog.log.records import Configuration
from turnlog.models.target import target
from turnlog.providers.openai_chat import PROVIDER
from turnlog.providers.protocol import Rendered
from turnlog.requests.translate import plan
from turnlog.view.repair.repair import declare_tools
from turnlog.view.types import Shown

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01"
BLOBS = {sha256_hex(PNG): PNG}
IMAGE = Media(kind="image", mime="image/png", sha256=sha256_hex(PNG), size=len(PNG))
IMAGE_URL = "data:image/png;base64," + base64.b64encode(PNG).decode()
IMAGE_WIRE: dict[str, Any] = {"type": "image_url", "image_url": {"url": IMAGE_URL}}
MODELS = ("gpt-4o", "gpt-5", "o3-mini", "deepseek-chat", "o1-mini", "gpt-4o-audio-preview")


def render(*messages: Message, model: str = "gpt-4o", configuration: Configuration | None = None) -> Rendered:
    view = [Shown(message, (i,)) for i, message in enumerate(messages, 1)]
    return PROVIDER.render(view, configuration or Configuration(), target("openai-chat", model), BLOBS.__getitem__)


def texts(*parts: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": part} for part in parts]


def test_media_of_results_stand_after_the_last_answer_of_the_batch() -> None:
    """Fails if an image parts the answers of parallel calls, or forgets whose it is."""
    result = render(
        Message("user", (ToolResult("a", "shot", (IMAGE,)),)),
        Message("user", (ToolResult("b", "shot", (Text("seen"), IMAGE)),)),
        Message("user", (ToolResult("c", "list", (Text("1"),)),)),
        Message("user", (Text("go on"),)),
    )
    assert result.body["messages"] == [
        {"role": "tool", "tool_call_id": "a", "content": "[image: see the next user message]"},
        {"role": "tool", "tool_call_id": "b", "content": "seen"},
        {"role": "tool", "tool_call_id": "c", "content": "1"},
        {
            "role": "user",
            "content": [
                *texts("[image returned by shot, call a]"),
                IMAGE_WIRE,
                *texts("[image returned by shot, call b]"),
                IMAGE_WIRE,
            ],
        },
        {"role": "user", "content": "go on"},
    ]
    assert [(loss.kind, loss.records) for loss in result.losses] == [("place", (1,)), ("place", (2,))]


def test_results_and_texts_of_one_message_are_taken_apart() -> None:
    """Fails if one canonical user message does not become n tool messages and one user message."""
    result = render(
        Message("user", (ToolResult("a", "f", (Text("1"), Text("2"))), ToolResult("b", "f"), Text("x"), IMAGE)),
    )
    assert result.body["messages"] == [
        {"role": "tool", "tool_call_id": "a", "content": texts("1", "2")},
        {"role": "tool", "tool_call_id": "b", "content": ""},
        {"role": "user", "content": [*texts("x"), IMAGE_WIRE]},
    ]
    assert result.losses == ()


def test_calls_of_every_kind_are_shown() -> None:
    """Fails if a call that this API has no kind for is lost or malformed."""
    calls = (
        ToolCall("a", "f", {"ü": 1}, signature="s", provider="google"),
        ToolCall("b", "patch", raw="*** x", kind="custom"),
        ToolCall("c", "shell", {"command": ["ls"]}, kind="shell", item_id="sh_1"),
    )

    def entry(call_id: str, name: str, arguments: str) -> dict[str, Any]:
        return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}

    older = [
        entry("a", "f", '{"ü":1}'),
        entry("b", "patch", '{"input":"*** x"}'),
        entry("c", "shell", '{"command":["ls"]}'),
    ]
    newer = [older[0], {"id": "b", "type": "custom", "custom": {"name": "patch", "input": "*** x"}}, older[2]]
    for model, wires in (("gpt-4o", older), ("gpt-5", newer)):
        result = render(Message("assistant", calls), model=model)
        assert result.body["messages"] == [{"role": "assistant", "content": None, "tool_calls": wires}]


@pytest.mark.parametrize(
    ("message", "kinds"),
    [
        (Message("assistant", (Text("a"), Reasoning("anthropic", "t", signature="s"))), ["reasoning"]),
        (Message("assistant", (Text("a"), Opaque("anthropic", "server_tool_use", {}))), ["opaque"]),
        (Message("assistant", (ToolCall("c", "f", {}), Text("a"))), ["place"]),
        (Message("user", (Text("a", Form("anthropic", delta={"+": {"cache_control": {"type": "e"}}})),)), ["extra"]),
        (Message("user", (ToolResult("c", "f", (Text("no"),), "failed"),)), ["outcome"]),
        (Message("user", (Media(kind="video", sha256="0" * 64), Text("a"))), ["media"]),
        (Message("user", (Media(kind="document", url="https://example.com/a.pdf"),)), ["media"]),
        (Message("user", (Media(kind="image", file_id="f", provider="anthropic"),)), ["media"]),
        (Message("user", (Text("a"), ToolResult("c", "f"))), ["place"]),
        (Message("system", (Text("a"), IMAGE)), ["media"]),
        (Message("user", (Unknown("hologram"), Text("a"))), ["unknown"]),
        (Message("user", (Text("a"), ToolCall("c", "f", {}), Reasoning("openai-chat", "t"))), ["place", "place"]),
    ],
)
def test_what_cannot_be_said_is_declared(message: Message, kinds: list[str]) -> None:
    """Fails if something of a message vanishes or moves without a loss that names its record."""
    result = render(message)
    assert [loss.kind for loss in result.losses] == kinds
    assert {loss.records for loss in result.losses} == {(1,)}
    assert result.body["messages"]


def test_a_message_of_which_nothing_is_left_is_not_sent() -> None:
    """Fails if an assistant message of foreign reasoning alone leaves an empty message behind."""
    result = render(Message("assistant", (Reasoning("anthropic", "t"),)), Message("user", (Text("a"),)))
    assert result.body["messages"] == [{"role": "user", "content": "a"}]


def test_tools_of_others_are_declared() -> None:
    """Fails if another provider's hosted tools leak into the body."""
    configuration = Configuration(
        tools=(
            Tool("f", "does f", {"type": "object"}, form=Form("anthropic", delta={"+": {"cache_control": {"a": 1}}})),
            Tool("web", kind="hosted", provider="anthropic", data={"type": "web_search_20250305"}),
            Tool("patch", "free text", kind="custom"),
        ),
    )
    result = render(Message("user", (Text("a"),)), configuration=configuration)
    free = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    assert result.body == {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": "a"}],
        "tools": [
            {"type": "function", "function": {"name": "f", "description": "does f", "parameters": {"type": "object"}}},
            {"type": "function", "function": {"name": "patch", "description": "free text", "parameters": free}},
        ],
    }
    assert [loss.kind for loss in result.losses] == ["extra", "tool", "tool"]


def test_target_settings_lie_over_the_conversations() -> None:
    """Fails if what the caller sets for a request is not what is sent."""
    configuration = Configuration(provider="openai-chat", model="gpt-4", settings={"temperature": 1, "seed": 1})
    model = target("openai-chat", "gpt-4o", temperature=0)
    result = PROVIDER.render([], plan(configuration, model).local, model, BLOBS.__getitem__)
    assert result.body == {"model": "gpt-4o", "messages": [], "temperature": 0, "seed": 1}


# Valid histories of any origin: each assistant turn answered in full, in one or several messages.
FORMS = st.sampled_from(
    [None, Form("anthropic", delta={"+": {"cache_control": {"type": "ephemeral"}}}), Form("google")]
)
TEXTS = st.builds(Text, st.text("abc é\n", min_size=1, max_size=8), FORMS)
MEDIA = st.sampled_from([IMAGE, Media(kind="image", url="https://example.com/a.png"), Media(kind="video", url="v")])
SAID = st.lists(st.one_of(TEXTS, MEDIA), min_size=1, max_size=3)
ARGUMENTS = st.dictionaries(st.sampled_from(["a", "ü"]), st.integers() | st.text(max_size=5), max_size=2)
INNER = st.lists(st.one_of(TEXTS, st.just(IMAGE)), max_size=3)


@st.composite
def turns(draw: st.DrawFn, number: int) -> list[Message]:
    """One turn: something said, calls of several kinds, their answers spread over messages."""
    kinds = draw(st.lists(st.sampled_from(["function", "custom", "shell"]), max_size=3))
    calls: list[Part] = []
    results: list[ToolResult] = []
    for i, kind in enumerate(kinds):
        call_id = f"call_{number}_{i}"
        raw = "free" if kind == "custom" else None
        calls.append(ToolCall(call_id, "f", None if raw else draw(ARGUMENTS), raw, kind))
        outcome: Outcome = "failed" if draw(st.booleans()) else "ok"
        results.append(ToolResult(call_id, "f", tuple(draw(INNER)), outcome, kind))
    said: list[Part] = [draw(TEXTS)]
    foreign: list[Part] = [Reasoning("anthropic", "t", signature="s"), Opaque("google", "code", {})]
    said[:0] = foreign[: draw(st.integers(0, 2))]
    first = Message("user", tuple(draw(SAID)))
    cut = draw(st.integers(0, len(results)))
    answers = [Message("user", tuple(part)) for part in (results[:cut], results[cut:]) if part]
    go_on = draw(st.booleans())
    if answers and go_on:
        answers[-1] = Message("user", (*answers[-1].parts, *draw(SAID)))
    return [first, Message("assistant", (*said, *calls)), *answers]


HISTORIES = st.integers(1, 4).flatmap(lambda n: st.tuples(*(turns(i) for i in range(n))))


@given(HISTORIES, st.sampled_from(MODELS))
def test_valid_histories_of_any_origin_are_accepted(
    oracle: ModuleType, history: tuple[list[Message], ...], model: str
) -> None:
    """Fails if a valid conversation becomes a request that the API refuses, or loses words, calls or
    results, or their order."""
    messages = [Message("system", (Text("s"),)), *(message for turn in history for message in turn)]
    view = [Shown(message, (i,)) for i, message in enumerate(messages, 1)]
    tools, _ = declare_tools(view, (), PROVIDER.rules(target("openai-chat", model), {}))
    result = render(*messages, model=model, configuration=Configuration(tools=tools))
    request = PROVIDER.sanitize(result.body, target("openai-chat", model)).body
    assert oracle.check_openai_chat(request) == []
    again = PROVIDER.parse(request).messages
    assert said_in(again) == said_in(messages)


def said_in(messages: Any) -> dict[str, list[Any]]:
    """What must survive, each in its order. Texts that rendering adds stand in brackets."""
    said: dict[str, list[Any]] = {"texts": [], "calls": [], "results": []}
    for message in messages:
        for part in message.parts:
            match part:
                case Text():  # some servers take one text
                    said["texts"] += [line for line in part.text.split("\n") if not line.startswith("[")]
                case ToolCall():
                    arguments = {"input": part.raw} if part.kind == "custom" else part.arguments
                    said["calls"].append((part.id, part.name, arguments))
                case ToolResult():
                    inner = [line for item in part.parts if isinstance(item, Text) for line in item.text.split("\n")]
                    said["results"].append(
                        (part.call_id, [text for text in inner if not text.startswith("[") and text])
                    )
                case _:
                    pass
    return said


@pytest.mark.parametrize(
    ("body", "sanitized", "count"),
    [
        ({"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}, {}, 3),
        ({"tool_choice": "none"}, {"tool_choice": "none"}, 0),
        ({"stream_options": {"include_usage": True}}, {}, 1),
        ({"max_tokens": 1, "max_completion_tokens": 2}, {"max_completion_tokens": 2}, 1),
        ({"stop": ["a", "b", "c", "d", "e"], "response_format": None}, {"stop": ["a", "b", "c", "d"]}, 2),
        ({"system": "x", "extra_body": {"top_k": 1}}, {"extra_body": {"top_k": 1}}, 1),
    ],
)
def test_tidy_settings(body: dict[str, Any], sanitized: dict[str, Any], count: int) -> None:
    """Fails if settings that the API refuses together are sent, or others are touched."""
    head = {"model": "gpt-4o", "messages": [{"role": "user", "content": "a"}]}
    result = PROVIDER.sanitize({**head, **body}, target("openai-chat", "gpt-4o"))
    assert (result.body, len(result.edits)) == ({**head, **sanitized}, count)


def test_tidy_knows_models_that_reason() -> None:
    """Fails if a switch to a reasoning model sends settings that it refuses, or drops stop sequences, which o3-mini
    takes."""
    for model, stop in (("gpt-5-mini", {}), ("o1-mini", {}), ("o3-mini", {"stop": ["a"]})):
        body = {"model": model, "messages": [], "max_tokens": 9, "temperature": 0.5, "top_p": 1, "stop": ["a"]}
        result = PROVIDER.sanitize(body, target("openai-chat", model))
        assert result.body == {"model": model, "messages": [], "max_completion_tokens": 9, "top_p": 1, **stop}
    assert PROVIDER.sanitize({**body, "model": "gpt-4o"}, target("openai-chat", "gpt-4o")).edits == ()


def test_tidy_messages(oracle: ModuleType) -> None:
    """Fails if undocumented keys or misshapen parts of an imported conversation reach the API."""
    body = {
        "messages": [
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": "https://example.com/a.png"}],
                "name": "a b",
            },
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": IMAGE_URL, "size": 1}}, {"type": "video_url"}],
            },
            {
                "role": "assistant",
                "reasoning_content": "because",
                "tool_calls": [{"id": "c", "index": 0, "function": {"name": "f", "arguments": {"a": 1}}}],
            },
            {"role": "tool", "tool_call_id": "c", "name": "f", "content": None},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}], "tool_calls": []},
            {"role": "assistant", "content": "a", "tool_calls": [{"type": "hologram"}, None]},
        ]
    }
    model = target("openai-chat", "gpt-4o")
    result = PROVIDER.sanitize(body, model)
    assert result.body == {
        "model": "gpt-4o",
        "messages": [
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}],
                "name": "a_b",
            },
            {"role": "user", "content": [IMAGE_WIRE]},
            {
                "role": "assistant",
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": ""},
            {"role": "assistant", "content": ""},
            {"role": "assistant", "content": "a"},
        ],
    }
    assert oracle.check_openai_chat(result.body) == []
    assert PROVIDER.sanitize(result.body, model).edits == ()


def test_reasoning_goes_back_to_those_who_take_it() -> None:
    """Fails if a server that wants its reasoning back does not get it, or OpenAI does."""
    message = Message("assistant", (Reasoning("openai-chat", "because"), Text("a")))
    for model, reasoning in (("deepseek-reasoner", {"reasoning_content": "because"}), ("gpt-4o", {})):
        model_target = target("openai-chat", model)
        request = PROVIDER.sanitize(render(message, model=model).body, model_target).body
        assert request["messages"] == [{"role": "assistant", "content": "a", **reasoning}]
        assert PROVIDER.rules(model_target, {}).reasoning == ("own" if reasoning else "none")


def test_models_without_system_text() -> None:
    """Fails if o1-mini, which knows no system role, is sent one."""
    request = {"model": "o1-mini", "messages": [{"role": "developer", "content": "s"}]}
    result = PROVIDER.sanitize(request, target("openai-chat", "o1-mini"))
    assert result.body["messages"] == [{"role": "user", "content": "s"}]


def test_rendering_is_the_same_bytes_again() -> None:
    """Fails if anything in rendering depends on more than the view."""
    messages = [Message("user", (Text("a"), IMAGE)), Message("user", (ToolResult("c", "f", (IMAGE,)),))]
    assert json.dumps(render(*messages).body) == json.dumps(render(*messages).body)


@given(HISTORIES)
def test_a_longer_view_starts_with_the_shorter_one(history: tuple[list[Message], ...]) -> None:
    """Fails if saying more rewrites what was sent before: the provider's cache would be lost."""
    messages = [message for turn in history for message in turn]
    whole = render(*messages).body["messages"]
    for end in range(1, len(messages)):
        if not any(isinstance(part, ToolResult) for part in messages[end].parts):
            start = render(*messages[:end]).body["messages"]
            assert whole[: len(start)] == start


def test_details_of_reasoning_go_only_to_those_who_take_them() -> None:
    """Left to sanitize, they would vanish as an unknown key that names no record."""
    details = Opaque("openai-chat", "reasoning_details", [{"type": "reasoning.text", "text": "b"}])
    message = Message("assistant", (details, Text("a")))
    assert render(message, model="deepseek/deepseek-r1").losses == ()
    result = render(message, model="gpt-4o")
    assert [(loss.kind, loss.records) for loss in result.losses] == [("opaque", (1,))]
    assert result.body["messages"] == [{"role": "assistant", "content": "a"}]


def test_what_only_answers_hold_is_not_known() -> None:
    """Parts that rendering has no place for must leave the view by record number."""
    kinds = {"response": {"annotations": []}, "text": {"type": "text"}, "audio": {}, "tool_call": {"type": "?"}}
    for kind, data in kinds.items():
        assert not PROVIDER.knows(Opaque("openai-chat", kind, data))
    for kind, data in {
        "audio": {"id": "a"},
        "video_url": {"type": "video_url"},
        "file": {"file": {"file_id": "f"}},
    }.items():
        assert PROVIDER.knows(Opaque("openai-chat", kind, data))


def test_too_many_of_anything(oracle: ModuleType) -> None:
    """129 tools, or 129 calls at once, would be refused, with all that was said."""
    tools = [{"type": "function", "function": {"name": f"f{i}"}} for i in range(129)]
    calls = [{"id": f"c{i}", "type": "function", "function": {"name": "f1", "arguments": "{}"}} for i in range(257)]
    answers = [{"role": "tool", "tool_call_id": f"c{i}", "content": str(i)} for i in range(257)]
    messages = [{"role": "assistant", "content": "a", "tool_calls": calls}, *answers, {"role": "user", "content": "b"}]
    body = {"model": "gpt-4o", "tools": tools, "messages": messages}
    result = PROVIDER.sanitize(body, target("openai-chat", "gpt-4o"))
    assert oracle.check_openai_chat(result.body) == []
    assert [edit.path for edit in result.edits] == ["tools", "messages[0].tool_calls"]
    sent = result.body["messages"]
    assert [m for m in sent if m["role"] == "tool"] == answers
    assert [call for m in sent for call in m.get("tool_calls", ())] == calls


@pytest.mark.parametrize(
    ("extra", "sanitized"),
    [
        ({"temperature": {}, "top_p": "1", "n": 0, "seed": 1.5}, {"n": 1}),
        ({"temperature": float("nan"), "presence_penalty": -3}, {"presence_penalty": -2}),
        ({"stop": [1, "a"], "service_tier": "vip", "user": None}, {"stop": ["a"]}),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": 5}}}, {}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": "yes", "x": 1}}},
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}},
        ),
        ({"metadata": {"k": "v", "n": 1, "long": "x" * 513}}, {"metadata": {"k": "v"}}),
        (
            {"tools": [{"function": {"name": "f", "parameters": {"properties": {}}}}, {"type": "x"}]},
            {
                "tools": [
                    {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
                ]
            },
        ),
        (
            {"tools": [{"type": "function", "name": "f", "strict": True}], "tool_choice": {"type": "function"}},
            {"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]},
        ),
    ],
)
def test_refused_values_go_or_are_mended(oracle: ModuleType, extra: dict[str, Any], sanitized: dict[str, Any]) -> None:
    """A value of a wrong type or out of bounds is a 400; what can be kept of the setting must be."""
    head = {"model": "gpt-4o", "messages": [{"role": "user", "content": "a"}]}
    result = PROVIDER.sanitize({**head, **extra}, target("openai-chat", "gpt-4o"))
    assert result.body == {**head, **sanitized}
    assert result.edits
    assert oracle.check_openai_chat(result.body) == []
