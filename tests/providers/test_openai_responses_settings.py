"""The Responses API: settings, tools, rules, and what sanitizing takes out."""

from __future__ import annotations

import base64
from types import ModuleType
from typing import Any

import msgspec
import pytest

from turnlog.log.messages import (
    Message,
    Text,
    Tool,
    sha256_hex,
)
from turnlog.log.records import Configuration
from turnlog.models.target import target
from turnlog.providers.openai_responses import PROVIDER
from turnlog.providers.protocol import Rendered
from turnlog.requests.translate import plan
from turnlog.view.types import Shown

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
BLOBS = {sha256_hex(PNG): PNG}
MODEL = target("openai-responses", "gpt-5")
NAME = "openai-responses"


def rendered(messages: list[Message], configuration: Configuration | None = None, **settings: Any) -> Rendered:
    """The request for messages as they are, record numbers counting from 1."""
    view = [Shown(message, (i,)) for i, message in enumerate(messages, 1)]
    target = MODEL.with_settings(**settings)
    configuration = configuration or Configuration(provider=NAME)
    settings = {**configuration.settings, **settings}
    configuration = msgspec.structs.replace(configuration, settings=settings)
    return PROVIDER.render(view, configuration, target, BLOBS.__getitem__)


# -- settings ------------------------------------------------------------------------------------


def test_settings_of_the_target_lie_over_those_of_the_conversation() -> None:
    """A runner's own settings must win, and the target's model with them."""
    configuration = Configuration(provider=NAME, model="old", settings={"store": True, "user": "u"})
    target = MODEL.with_settings(store=False)
    view = [Shown(Message("user", (Text("x"),)), (1,))]
    request = PROVIDER.render(view, plan(configuration, target).local, target, BLOBS.__getitem__).body
    assert request == {"model": "gpt-5", "store": False, "user": "u", "input": [{"role": "user", "content": "x"}]}


def test_hosted_tools_of_others_are_a_loss() -> None:
    """Another provider's search tool cannot run here, and must not vanish without a word."""
    tools = (Tool("web_search", kind="hosted", provider="anthropic", data={"type": "web_search_20250305"}),)
    out = rendered([Message("user", (Text("x"),))], Configuration(provider=NAME, tools=tools))
    assert "tools" not in out.body
    assert [loss.kind for loss in out.losses] == ["tool"]


@pytest.mark.parametrize("store", [None, True, False])
def test_reasoning_without_a_blob_needs_a_store(store: bool | None) -> None:
    """`Items are not persisted when `store` is set to false.`"""
    settings = {} if store is None else {"store": store}
    assert PROVIDER.rules(MODEL, settings).reasoning == ("encrypted" if store is False else "own")


TIDIED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"messages": [], "n": 1}, {}),
    ({"stream_options": {"include_obfuscation": False}}, {}),
    ({"tool_choice": "required"}, {}),
    ({"tool_choice": {"type": "function", "name": "f"}}, {}),
    ({"tools": None}, {}),
    ({"max_output_tokens": 1}, {"max_output_tokens": 16}),
    ({"temperature": 0.2, "top_p": 1}, {"top_p": 1}),
    ({"previous_response_id": "resp_1", "conversation": "conv_1"}, {"conversation": "conv_1"}),
    ({"text": {"format": {"type": "text", "cache": 1}}}, {"text": {"format": {"type": "text"}}}),
    ({"stream": "yes", "include": ["x"], "top_logprobs": 99}, {"include": [], "top_logprobs": 20}),
    ({"reasoning": {"effort": "huge", "summary": "auto"}}, {"reasoning": {"summary": "auto"}}),
    (
        {
            "tools": [
                {"type": "function", "function": {"name": "f", "description": "d"}},
                {"type": "function", "name": "f"},
            ]
        },
        {"tools": [{"type": "function", "name": "f", "description": "d"}]},
    ),
    (
        {
            "input": [
                {"role": "USER", "content": [{"type": "text", "text": "a"}, {"type": "output_text", "text": "b"}]},
                {"role": "tool", "content": "42"},
                {
                    "role": "assistant",
                    "content": [{"type": "input_text", "text": "c"}, {"type": "input_file"}],
                    "phase": {},
                },
                {"type": "reasoning", "encrypted_content": "e"},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": None},
                {
                    "type": "function_call_output",
                    "call_id": "c",
                    "output": [{"type": "text", "text": "r"}],
                    "status": 0,
                },
            ]
        },
        {
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
                {"role": "user", "content": "42"},
                {"role": "assistant", "content": [{"type": "output_text", "text": "c"}]},
                {"type": "reasoning", "encrypted_content": "e", "summary": []},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "r"}]},
            ]
        },
    ),
    (
        {"tools": [{"type": "function", "name": "f", "cache_control": {}, "parameters": {"type": "object", "x": 1}}]},
        {"tools": [{"type": "function", "name": "f", "parameters": {"type": "object", "x": 1}}]},
    ),
    (
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "x", "index": 0}], "name": "a"}]},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "x"}]}]},
    ),
    (
        {
            "input": [
                {
                    "type": "reasoning",
                    "id": "toolu_1",
                    "summary": [],
                    "encrypted_content": "b",
                    "content": [{"type": "reasoning_text", "text": "t"}],
                    "metadata": {},
                },
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "namespace": None},
                {"type": "function_call_output", "call_id": "c", "output": "x", "is_error": True},
            ]
        },
        {
            "input": [
                {"type": "reasoning", "summary": [], "encrypted_content": "b"},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "x"},
            ]
        },
    ),
]


@pytest.mark.parametrize(("extra", "left"), TIDIED)
def test_tidy_takes_out_what_is_refused(oracle: ModuleType, extra: dict[str, Any], left: dict[str, Any]) -> None:
    """Each of these is a 400 that costs the user a turn; sanitizing twice must find nothing more."""
    plain = {"model": "gpt-5", "input": "hello"}
    sanitized = PROVIDER.sanitize({**plain, **extra}, MODEL)
    assert sanitized.body == {**plain, **left}
    assert sanitized.edits
    assert oracle.check_openai_responses(sanitized.body) == []
    assert PROVIDER.sanitize(sanitized.body, MODEL) == Rendered(body=sanitized.body)


def test_open_models_keep_their_reasoning_text() -> None:
    """gpt-oss is fed its own thoughts in the clear; OpenAI's own models refuse them."""
    body = {
        "model": "openai/gpt-oss-120b",
        "input": [{"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]}],
    }
    assert PROVIDER.sanitize(body, MODEL).body is body


@pytest.mark.parametrize(
    ("settings", "common"),
    [
        ({}, None),
        ({"tool_choice": "auto"}, "auto"),
        ({"tool_choice": "required"}, "required"),
        ({"tool_choice": {"type": "function", "name": "f"}}, "tool:f"),
        ({"tool_choice": {"type": "custom", "name": "f"}}, "tool:f"),
        ({"tool_choice": {"type": "allowed_tools", "mode": "required", "tools": []}}, "required"),
        ({"tool_choice": {"type": "web_search_preview"}}, None),
    ],
)
def test_tool_choice_in_common_words(settings: dict[str, Any], common: str | None) -> None:
    """What was said in this API's words must not change when it is said again in common ones."""
    assert PROVIDER.tool_choice(settings) == common
    if common is not None:
        assert PROVIDER.with_tool_choice(settings, common) == settings
    assert PROVIDER.tool_choice(PROVIDER.with_tool_choice(settings, "tool:g")) == "tool:g"
    assert PROVIDER.tool_choice(PROVIDER.with_tool_choice(settings, "none")) == "none"
