"""Requests for servers that imitate OpenAI, before a judge of what each accepts."""

from __future__ import annotations

import base64
import importlib
import json
import random
from types import ModuleType
from typing import Any

import msgspec
import pytest

import turnlog
from accounting import unaccounted
from draws import batches
from turnlog.log.messages import Message, Opaque, Reasoning, Text, Tool
from turnlog.log.records import Configuration
from turnlog.models.target import Target, target
from turnlog.providers.openai_chat import PROVIDER
from turnlog.requests.build import Builder, build
from turnlog.requests.request import Request
from turnlog.requests.standalone import convert, repair
from turnlog.requests.translate import plan
from turnlog.testing.damages import damaged_history
from turnlog.testing.histories import PIXEL, History, sound_history
from turnlog.view.types import Shown

MODELS = {
    "vllm": ("Qwen/Qwen3.6-27B", "google/gemma-3-27b-it", "mistralai/Mistral-Small-3.2", "openai/gpt-oss-120b"),
    "sglang": ("Qwen/Qwen3.5-9B", "zai-org/GLM-4.6"),
    "llama.cpp": ("qwen3.6-27b", "gemma-2-9b", "mistral-small"),
    "ollama": ("qwen3.5:9b", "gemma3:12b", "llama3.2"),
    "lmstudio": ("qwen3.6-27b", "gemma-3-12b-it"),
    "mistral": ("mistral-large-latest", "mistral-small-latest"),
    "deepseek": ("deepseek-chat", "deepseek-v4-pro", "deepseek-reasoner"),
    "moonshot": ("kimi-k2.6", "kimi-k3", "kimi-k2-thinking", "moonshot-v1-128k"),
    "zai": ("glm-5", "glm-4.6v"),
    "minimax": ("MiniMax-M2", "MiniMax-M3"),
    "dashscope": ("qwen3-max", "qwen3.5-plus", "qwen3-32b"),
    "groq": ("openai/gpt-oss-120b", "llama-3.3-70b-versatile"),
    "cerebras": ("gpt-oss-120b", "zai-glm-4.7"),
    "xai": ("grok-4", "grok-4.3", "grok-3"),
    "together": ("deepseek-ai/DeepSeek-V3.1", "meta-llama/Llama-4-Maverick"),
    "fireworks": ("accounts/fireworks/models/kimi-k2p5",),
    "openrouter": (
        "anthropic/claude-sonnet-4.6", "openai/gpt-5.2", "google/gemini-3-pro-preview", "mistralai/mistral-large",
        "qwen/qwen3-coder", "x-ai/grok-4.1-fast", "deepseek/deepseek-v3.2",
    ),
    "azure": ("gpt-4o", "gpt-5", "a-deployment"),
    "gemini": ("gemini-3-pro-preview", "gemini-2.5-flash"),
    "anthropic": ("claude-sonnet-4-5",),
    "bedrock": ("openai.gpt-oss-120b-1:0",),
    "bedrock-gateway": ("anthropic.claude-sonnet-4-5-v1:0",),
    "github-models": ("openai/gpt-4o", "mistral-ai/mistral-medium-2505", "meta/llama-4-scout"),
    "copilot": ("claude-sonnet-4.5", "gpt-5", "gemini-2.5-pro"),
}  # fmt: skip
"""Models of each server that have rules of their own."""

_SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"max_completion_tokens": 900},
    {"temperature": 1.5, "seed": 3, "n": 1},
    {"temperature": 0.7, "top_p": 0.9},
    {"tool_choice": "required"},
    {"tool_choice": {"type": "function", "function": {"name": "bash"}}},
    {"response_format": {"type": "json_object"}},
    {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": _SCHEMA}}},
    {"reasoning_effort": "low"},
    {"logprobs": True, "top_logprobs": 2},
    {"stop": ["x"], "presence_penalty": 0.5, "frequency_penalty": 0.1},
    {"store": False, "metadata": {"a": "b"}, "user": "u", "parallel_tool_calls": True},
    {"stream": True, "stream_options": {"include_usage": True}},
    {"thinking": {"type": "disabled"}},
    {"thinking": {"type": "enabled"}},
    {"reasoning": {"effort": "high"}},
)
_ODD = {"type": "object", "properties": {"c": {"anyOf": [{"type": "string"}, {"type": "null"}], "type": "string"}}}
TOOLS = (
    Tool(name="bash", description="run", parameters=_ODD),
    Tool(name="read_file"),
    Tool(name="3d", parameters={"type": "object", "properties": {}}),
)


@pytest.fixture(scope="module")
def judge(oracle: ModuleType) -> ModuleType:
    """The judge of servers, which stands beside the judge of the APIs."""
    return importlib.import_module("servers")


def as_recorded(history: History) -> History:
    """The history with reasoning as this API records it: without signatures."""

    def bare(part: Any) -> Any:
        own = isinstance(part, Reasoning) and part.provider == "openai-chat"
        return msgspec.structs.replace(part, signature="", encrypted="") if own else part

    messages = (msgspec.structs.replace(message, parts=tuple(map(bare, message.parts))) for message in history.messages)
    return msgspec.structs.replace(history, messages=tuple(messages))


def request_for(aim: Target, history: History, tools: tuple[Tool, ...] = ()) -> Request:
    """The request for a whole history."""
    view = [Shown(message, (n,)) for n, message in enumerate(history.messages, 1)]
    configuration = Configuration(provider="openai-chat", model=aim.model, tools=tools)
    return build(plan(configuration, aim), view, history.blobs.__getitem__)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seeds", batches(24, 250, size=250), ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_no_server_refuses_a_request_and_nothing_goes_in_silence(name: str, seeds: range, judge: ModuleType) -> None:
    """A conversation that a server's model, another one, or a crash left behind could not be continued there."""
    for seed in seeds:
        chance = random.Random(seed)
        home = chance.choice(["", "openai-chat", "openai-chat", "anthropic", "google"])
        history = as_recorded(damaged_history(chance, home))
        model = MODELS[name][seed % len(MODELS[name])]
        aim = target("openai-chat", model, server=name, **chance.choice(SETTINGS))
        request = request_for(aim, history, chance.choice([(), TOOLS, TOOLS]))
        body = json.loads(json.dumps(request.body))
        said = [*enumerate(history.messages, 1)]
        assert judge.check_server(name, body, model) == [], (seed, model)
        assert unaccounted(said, body, [*request.edits, *request.losses], history.blobs) == [], (seed, model)
        if not aim.server_row.own_api:
            again = repair(body, "openai-chat", model=model, server=name)
            assert json.loads(json.dumps(again.body)) == body, (seed, model)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mistral", "vllm", "ollama", "openrouter"])
def test_messages_rendered_one_by_one_are_those_of_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view whose messages were joined would give other bytes, or other edits, than one built as a whole."""
    for seed in range(24):
        chance = random.Random(seed)
        history = as_recorded(damaged_history(chance))
        aim = target("openai-chat", MODELS[name][seed % len(MODELS[name])], server=name)
        one_by_one = request_for(aim, history, TOOLS)
        found = one_by_one.body, one_by_one.edits, one_by_one.losses
        with monkeypatch.context() as patch:
            patch.setattr(Builder, "_rendered_each", lambda self, repaired: None)
            whole = request_for(aim, history, TOOLS)
            assert (whole.body, whole.edits, whole.losses) == found, seed


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mistral", "vllm", "openrouter", "gemini", "deepseek"])
def test_a_session_that_grows_makes_the_requests_of_a_whole_one(name: str) -> None:
    """Requests would depend on when a process began, and on the requests before them."""
    for seed in range(4):
        history = as_recorded(sound_history(random.Random(seed)))
        aim = target("openai-chat", MODELS[name][seed % len(MODELS[name])], server=name)
        bit_by_bit, whole = (turnlog.open("s", store=":memory:", target=aim) for _ in range(2))
        for session in (bit_by_bit, whole):
            for data in history.blobs.values():
                session._store.put_blob(data)
        for message in history.messages:
            bit_by_bit.add(message)
            bit_by_bit.request()
        whole.extend(history.messages)
        assert bit_by_bit.request().body == whole.request().body
        assert bit_by_bit.window.tokens == whole.window.tokens


CALL = {"id": "call_PTLP8xhu3uwZk4l3", "type": "function", "function": {"name": "look", "arguments": ""}}
ASKED = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": CALL["id"], "content": "x"},
]


def test_ids_for_mistral_are_the_same_in_every_request() -> None:
    """A cache that never fits, and results of calls that nobody made."""
    first = convert({"model": "gpt-4o", "messages": ASKED}, to="openai-chat", model="mistral-large-latest").body
    longer = [*ASKED, {"role": "assistant", "content": "done"}, {"role": "user", "content": "next"}]
    second = convert({"model": "gpt-4o", "messages": longer}, to="openai-chat", model="mistral-large-latest").body
    call = first["messages"][1]["tool_calls"][0]
    assert len(call["id"]) == 9 and call["id"].isalnum() and call["function"]["arguments"] == "{}"
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert first["messages"][2]["tool_call_id"] == call["id"]


def test_system_text_and_order_as_a_strict_template_wants_them() -> None:
    """vLLM answers 400 with the template's own words."""
    session = turnlog.open(
        "s", store=":memory:", target=target("openai-chat", "mistralai/Mistral-Small-3.2", base_url="http://gpu:9/v1")
    )
    session.system("A.")
    session.system("B.")
    session.user("hi")
    session.user("you")
    session.assistant("ho")
    session.system("C.")
    session.user("next")
    request = session.request()
    assert request.body["messages"] == [
        {"role": "system", "content": [{"type": "text", "text": text} for text in ("A.", "B.")]},
        {"role": "user", "content": [{"type": "text", "text": text} for text in ("hi", "you")]},
        {"role": "assistant", "content": "ho"},
        {"role": "user", "content": [{"type": "text", "text": text} for text in ("[system]", "C.", "next")]},
    ]
    assert {edit.kind for edit in request.edits} == {"joined"}
    assert [loss.kind for loss in request.losses] == ["place"]


def test_calls_and_results_as_texts_for_a_template_without_tools() -> None:
    """Gemma's template refuses the role of results."""
    body = convert({"model": "gpt-4o", "messages": ASKED}, to="openai-chat", model="gemma3:4b").body
    assert body["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "[I call the tool look with {}]"},
        {"role": "user", "content": [{"type": "text", "text": t} for t in ("[Result of the tool look]", "x")]},
    ]


def test_reasoning_goes_back_under_the_servers_own_key() -> None:
    """A 400 for an unknown key, or a model that forgets what it thought."""
    answer = {"role": "assistant", "content": "a", "reasoning_content": "I think", "tool_calls": [CALL]}
    body = {"model": "deepseek-v4-pro", "messages": [ASKED[0], answer, ASKED[2]]}
    keys = {}
    for model, server in (("deepseek-v4-pro", "deepseek"), ("gpt-oss-120b", "groq"), ("grok-4", "xai"), ("m", "azure")):
        made = convert(body, to="openai-chat", model=model, server=server)
        sent = {key: made.body["messages"][1][key] for key in made.body["messages"][1] if "reasoning" in key}
        keys[server] = sent, [loss.kind for loss in made.losses]
    assert keys == {
        "deepseek": ({"reasoning_content": "I think"}, []),
        "groq": ({"reasoning": "I think"}, []),
        "xai": ({"reasoning_content": "I think"}, []),
        "azure": ({}, ["reasoning"]),
    }


def test_details_of_reasoning_are_put_together_as_they_stream_in() -> None:
    """A signature apart from what it signs is refused by Claude behind OpenRouter."""

    def piece(**entry: Any) -> dict[str, Any]:
        kind = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
        return {"choices": [{"index": 0, "delta": {"reasoning_details": [{**kind, **entry}]}}]}

    aim = target("openai-chat", "anthropic/claude-sonnet-4.6", base_url="https://openrouter.ai/api/v1")
    session = turnlog.open("s", store=":memory:", target=aim)
    session.user("hi")
    end = {"choices": [{"index": 0, "delta": {"content": "done"}, "finish_reason": "stop"}]}
    session.receive(iter([piece(text="Let"), piece(text=" me"), piece(signature="SIG"), end]))
    session.user("next")
    entry = {
        "type": "reasoning.text",
        "format": "anthropic-claude-v1",
        "index": 0,
        "text": "Let me",
        "signature": "SIG",
    }
    assert session.request().body["messages"][1] == {
        "role": "assistant",
        "content": "done",
        "reasoning_details": [entry],
    }


def _detail(kind: str, **entry: Any) -> dict[str, Any]:
    return {"type": f"reasoning.{kind}", **entry}


@pytest.mark.parametrize(
    ("pieces", "entries"),
    [
        # two blocks by turns
        (
            [_detail("text", index=i % 2, **entry) for i, entry in enumerate(
                [{"text": "a"}, {"text": "x"}, {"text": "b"}, {"text": "y"}, {"signature": "A"}, {"signature": "X"}]
            )],
            [_detail("text", index=0, text="ab", signature="A"), _detail("text", index=1, text="xy", signature="X")],
        ),
        # no index at all
        (
            [_detail("text", text="a"), _detail("text", text="b"), _detail("text", signature="A")],
            [_detail("text", text="ab", signature="A")],
        ),
        # the next block under the same index
        (
            [_detail("text", index=0, text="a", signature="A"), _detail("text", index=0, text="b", signature="B")],
            [_detail("text", index=0, text="a", signature="A"), _detail("text", index=0, text="b", signature="B")],
        ),
        # signatures of two calls under the same index, and one that is repeated
        (
            [_detail("encrypted", index=0, id=name, data=name) for name in ("a", "b", "b")],
            [_detail("encrypted", index=0, id=name, data=name) for name in ("a", "b")],
        ),
        # one in pieces, of which only the first has the id
        (
            [_detail("encrypted", index=0, id="a", data="S"), _detail("encrypted", index=0, data="IG")],
            [_detail("encrypted", index=0, id="a", data="SIG")],
        ),
    ],
)  # fmt: skip
def test_entries_of_reasoning_are_told_apart_however_they_are_numbered(pieces: list[Any], entries: list[Any]) -> None:
    """A signature over an empty text, or two signatures in one, are refused: the tool loop could not go on."""
    assembler = PROVIDER.assembler()
    for piece in pieces:
        assembler.feed({"choices": [{"index": 0, "delta": {"reasoning_details": [piece]}}]})
    (part,) = assembler.reply().message.parts
    assert isinstance(part, Opaque) and part.data == entries


@pytest.mark.parametrize(("details", "kept"), [([{"text": "a", "signature": "A"}], True), ([{"text": "a"}], False)])
def test_reasoning_without_a_format_goes_back_to_claude_if_it_is_signed(details: list[Any], kept: bool) -> None:
    """OpenRouter may leave out the format: Claude refused the calls of an open step without its thinking."""
    entries = [{"type": "reasoning.text", "index": 0, **entry} for entry in details]
    body = {"model": "anthropic/claude-sonnet-4.6", "messages": json.loads(json.dumps(ASKED))}
    next(each for each in body["messages"] if each["role"] == "assistant")["reasoning_details"] = entries
    made = repair(body, "openai-chat")
    (answer,) = (each for each in made.body["messages"] if each["role"] == "assistant")
    assert answer.get("reasoning_details") == (entries if kept else None)


@pytest.mark.parametrize(("model", "stand_in"), [("deepseek-v4-pro", ""), ("kimi-k2.6", " ")])
def test_another_servers_switch_for_thinking_does_not_turn_it_off(model: str, stand_in: str) -> None:
    """DashScope's `enable_thinking` is nothing to DeepSeek and Kimi: they think, and refuse calls without reasoning."""
    made = repair({"model": model, "messages": ASKED, "enable_thinking": False}, "openai-chat")
    assert "enable_thinking" not in made.body
    assert made.body["messages"][1]["reasoning_content"] == stand_in


def test_thinking_is_off_where_another_model_began_the_step() -> None:
    """Claude refuses calls of an open step without the thinking before them."""
    asked = {"model": "gpt-4o", "messages": ASKED, "reasoning": {"effort": "high"}}
    made = repair(asked, "openai-chat", model="anthropic/claude-sonnet-4.6")
    assert "reasoning" not in made.body and "thinking" in {edit.kind for edit in made.edits}
    told = repair(
        {**asked, "messages": [*ASKED, {"role": "user", "content": "go"}]}, model="anthropic/claude-sonnet-4.6"
    )
    assert told.body["reasoning"] == {"effort": "high"}


@pytest.mark.parametrize(
    "answer",
    [
        {"role": "assistant", "content": None, "refusal": "I will not."},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]},
    ],
)
@pytest.mark.parametrize("name", ["ollama", "groq", "mistral", "dashscope"])
def test_a_refusal_is_sent_as_text_to_servers_that_know_no_refusals(name: str, answer: Any) -> None:
    """Ollama, LM Studio and DashScope refuse a message without content, llama.cpp a part of an unknown type, and where
    the key was left out, so was what the model said."""
    body = {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": "Hi."}, answer, {"role": "user", "content": "Why?"}],
    }
    made = turnlog.convert(body, to="openai-chat", model="some-model", server=name)
    said = made.body["messages"][1]["content"]
    assert said in ("I will not.", [{"type": "text", "text": "I will not."}])
    assert {"part"} == {edit.kind for edit in made.edits}
    assert turnlog.repair(made.body, server=name).body == made.body


def test_texts_are_one_only_where_they_have_to_be() -> None:
    """A list refused by DeepSeek, or marks in its parts lost where they are read."""
    content = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    body = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": content}]}
    made = repair(body, "openai-chat")
    assert made.body["messages"] == [{"role": "user", "content": "one\ntwo"}]
    assert [(edit.kind, edit.detail) for edit in made.edits] == [("part", "texts sent as one")]
    assert repair({**body, "model": "glm-5"}, "openai-chat").body["messages"] == body["messages"]
    url = f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"
    seen = [{"role": "user", "content": [*content, {"type": "image_url", "image_url": {"url": url}}]}]
    assert repair({"model": "grok-4", "messages": seen}, "openai-chat").body["messages"] == seen


def test_a_message_of_the_user_is_added_where_one_is_required() -> None:
    """Qwen's template: No user query found in messages."""
    made = request_for(
        target("openai-chat", "Qwen/Qwen3.6-27B"), History((Message("assistant", (Text("ho"),)),), {}, frozenset())
    )
    assert [message["role"] for message in made.body["messages"]] == ["user", "assistant"]


def test_what_a_server_silently_leaves_out_is_told_once() -> None:
    """Ollama drops the beginning of a request that is longer than `num_ctx`: the model forgets who it is, and nobody
    knows why."""
    session = turnlog.open("s", store=":memory:", target=target("openai-chat", "llama3.2", server="ollama"))
    told: list[str] = []
    session.on_event(lambda event: told.append(event.text) if event.kind == "warning" else None)
    for read in (4_096, 4_096):
        session.user("word " * 9_000)
        request = session.request()
        choice = {"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
        session.receive({"choices": [choice], "usage": {"prompt_tokens": read, "completion_tokens": 2}}, request)
    assert len(told) == 1 and "Ollama read 4,096 tokens of a request of about 11,258" in told[0]
    assert "num_ctx" in told[0]
