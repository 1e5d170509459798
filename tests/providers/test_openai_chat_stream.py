"""Chat Completions: answers, whole and streamed."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from openai import OpenAI

from turnlog.errors import FormatError
from turnlog.log.messages import Form, Message, Opaque, Reasoning, Text, ToolCall, sha256_hex
from turnlog.log.records import Configuration
from turnlog.log.usage import Usage
from turnlog.models.target import target
from turnlog.providers.openai_chat import PROVIDER
from turnlog.providers.protocol import Reply
from turnlog.view.types import Shown

TOOLS: Any = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("f", "g")]
SCRIPTS: list[dict[str, Any]] = [
    {"text": "A longer answer, which comes in pieces. ü 😀"},
    {"text": "", "stop": "max_tokens"},
    {"text": "I will look.", "thinking": "hm", "tool_calls": [{"name": "f", "args": {"a": "ü" * 20, "b": [1, None]}}]},
    {"tool_calls": [{"name": "f", "args": {}}, {"name": "g", "args": {"x": 1.5}}, {"name": "f", "args": {"x": 2}}]},
]


def assembled(chunks: list[Any]) -> Reply:
    assembler = PROVIDER.assembler()
    for chunk in chunks:
        assembler.feed(chunk)
    return assembler.reply()


def replayed(message: Message) -> Any:
    view = [Shown(message, (1,))]
    result = PROVIDER.render(view, Configuration(), target("openai-chat", "gpt-4o"), dict[str, bytes]().__getitem__)
    return result.body["messages"]


@pytest.mark.parametrize("script", SCRIPTS)
def test_streams_and_whole_answers_agree(fake_server: Callable[..., Any], script: dict[str, Any]) -> None:
    """Fails if a streamed answer is recorded otherwise than the same answer in one piece."""
    fixed = dict(script)
    fixed["tool_calls"] = [{**call, "id": f"call_{i}"} for i, call in enumerate(script.get("tool_calls", []))]
    server = fake_server(script=[fixed, fixed])
    client = OpenAI(base_url=server.url + "/v1", api_key="k")
    ask: dict[str, Any] = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}], "tools": TOOLS}
    whole = PROVIDER.parse_response(client.chat.completions.create(**ask))
    options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(client.chat.completions.create(**ask, **options))
    streamed = assembled(chunks)
    assert whole.usage is not None and whole.complete
    assert (streamed.message, streamed.stop, streamed.model) == (whole.message, whole.stop, whole.model)
    assert streamed.usage is not None and streamed.usage.output == whole.usage.output
    assert streamed.complete and not streamed.error and not streamed.fragments
    assert assembled([chunk.to_dict() for chunk in chunks]) == streamed


def test_a_stream_may_be_cut_anywhere(fake_server: Callable[..., Any]) -> None:
    """Fails if a cut stream counts as whole, loses what had come, or leaves half a call in the message."""
    server = fake_server(script=[SCRIPTS[2]])
    client = OpenAI(base_url=server.url + "/v1", api_key="k")
    ask: dict[str, Any] = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}], "tools": TOOLS}
    chunks = list(client.chat.completions.create(**ask, stream=True))
    whole = assembled(chunks)
    assert whole.complete
    arguments = ""
    for end in range(len(chunks)):
        cut = assembled(chunks[:end])
        assert not cut.complete and cut.error
        kept = [part for part in cut.message.parts if isinstance(part, ToolCall)]
        assert kept in ([], [part for part in whole.message.parts if isinstance(part, ToolCall)])
        text = "".join(part.text for part in cut.message.parts if isinstance(part, Text))
        assert "I will look.".startswith(text)
        for part in cut.fragments:
            assert isinstance(part, ToolCall) and part.arguments is None and part.raw is not None
            assert part.raw.startswith(arguments)
            arguments = part.raw
    assert arguments


def chunk(delta: dict[str, Any], stop: str | None = None, **keys: Any) -> dict[str, Any]:
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": stop}], **keys}


def piece(index: int | None, arguments: str, **keys: Any) -> dict[str, Any]:
    numbered = {} if index is None else {"index": index}
    return {**numbered, **keys, "function": {"arguments": arguments}}


def test_pieces_of_calls_belong_together_by_index() -> None:
    """Fails if interleaved pieces of parallel calls are mixed up."""
    f, g = ({"id": name, "type": "function", "function": {"name": name, "arguments": ""}} for name in "fg")
    streamed = assembled(
        [
            chunk({"role": "assistant", "content": None, "tool_calls": [{"index": 0, **f}]}),
            chunk({"tool_calls": [{"index": 1, **g}, piece(0, '{"a"')]}),
            chunk({"tool_calls": [piece(1, "{"), piece(0, ":1}"), piece(1, "}")]}),
            chunk({}, "tool_calls"),
        ]
    )
    assert streamed.message == Message("assistant", (ToolCall("f", "f", {"a": 1}), ToolCall("g", "g", {})))


@pytest.mark.parametrize("index", [0, None])
def test_calls_that_share_an_index_are_told_apart_by_id(index: int | None) -> None:
    """Fails if servers that number every call 0, or none, lose all calls but one."""
    entries = [{**piece(index, "{}", id=name), "function": {"name": name, "arguments": "{}"}} for name in "fg"]
    streamed = assembled([*(chunk({"tool_calls": [entry]}) for entry in entries), chunk({}, "tool_calls")])
    assert streamed.message == Message("assistant", (ToolCall("f", "f", {}), ToolCall("g", "g", {})))


@pytest.mark.parametrize("keys", [{}, {"index": 0}, {"index": 0, "id": ""}])
def test_whole_calls_without_ids_stay_apart(keys: dict[str, Any]) -> None:
    """Fails if two calls of a server that numbers all of them 0 and gives no ids become one of a tool that nobody
    has, `fg`; or if one whose name comes with each piece, and once more at the end, becomes several."""

    def called(*said: tuple[str, str]) -> list[tuple[str, Any]]:
        entries = [{**keys, "function": {"name": name, "arguments": text}} for name, text in said]
        streamed = assembled([*(chunk({"tool_calls": [entry]}) for entry in entries), chunk({}, "tool_calls")])
        return [(part.name, part.arguments) for part in streamed.message.parts if isinstance(part, ToolCall)]

    assert called(("f", "{}"), ("g", "{}"), ("g", "{}")) == [("f", {}), ("g", {}), ("g", {})]
    assert called(("f", '{"a":'), ("f", '{"b":1}'), ("f", "}"), ("f", "")) == [("f", {"a": {"b": 1}})]


def test_only_the_first_choice_is_taken() -> None:
    """Fails if with n > 1 the choices run into each other."""
    chunks = [
        {"choices": [{"index": 1, "delta": {"content": "b"}}]},
        {"choices": [{"index": 0, "delta": {"content": "a"}}]},
        {"choices": [{"index": 1, "delta": {}, "finish_reason": "stop"}]},
    ]
    assert assembled(chunks).message == Message("assistant", (Text("a"),))
    assert not assembled(chunks).complete
    choices = [{"index": 1, "message": {"content": "b"}}, {"index": 0, "message": {"content": "a"}}]
    assert PROVIDER.parse_response({"choices": choices}).message == Message("assistant", (Text("a"),))


def test_an_error_in_the_stream_is_a_value() -> None:
    """Fails if a server's error event is taken for the end of an answer, or raises."""
    streamed = assembled([chunk({"content": "a"}), {"error": {"message": "overloaded", "code": 503}}])
    assert (streamed.message, streamed.complete, streamed.error) == (
        Message("assistant", (Text("a"),)),
        False,
        "503: overloaded",
    )


def test_a_call_cut_by_the_token_limit_is_a_fragment() -> None:
    """Fails if half a call, whole answer or streamed, stands in the message: it could be run."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"path": "/'}}
    wire = {"role": "assistant", "content": "so", "tool_calls": [call]}
    whole = PROVIDER.parse_response({"choices": [{"message": wire, "finish_reason": "length"}]})
    streamed = assembled([chunk({"content": "so"}), chunk({"tool_calls": [{"index": 0, **call}]}), chunk({}, "length")])
    for reply in (whole, streamed):
        assert reply.message == Message("assistant", (Text("so"),))
        assert reply.fragments == (ToolCall("c", "f", raw='{"path": "/'),)
        assert (reply.complete, reply.stop) == (True, "length")


PIECES = [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        (["a", PIECES, "d"], [{"type": "text", "text": "ab"}, {"type": "text", "text": "cd"}]),
        ([PIECES, "d", PIECES], [PIECES[0], {"type": "text", "text": "cdb"}, PIECES[1]]),
    ],
    ids=["text first", "list first"],
)
def test_content_that_changes_its_shape_loses_nothing(said: list[Any], parts: list[Any]) -> None:
    """Servers that give citations or thinking as parts say the rest as text: the later shape would replace all that
    the earlier had said."""
    whole = {"id": "c1", "model": "m", "choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    streamed = assembled([*(chunk({"content": content}) for content in said), chunk({}, "stop")])
    assert streamed == PROVIDER.parse_response(whole)


@pytest.mark.parametrize("had", ["so", PIECES], ids=["text", "list"])
@pytest.mark.parametrize("wrong", [[None], ["a"], [PIECES[0], None]], ids=repr)
def test_parts_that_cannot_be_read_are_refused_when_they_come(had: Any, wrong: list[Any]) -> None:
    """Taken into the answer, they would make all of it unreadable once the stream is over."""
    assembler = PROVIDER.assembler()
    assembler.feed(chunk({"content": had}))
    before = assembler.reply()
    assert before.message.parts
    with pytest.raises(FormatError):
        assembler.feed(chunk({"content": wrong}))
    assert assembler.reply() == before


def test_usage_in_common_terms() -> None:
    """Fails if cached or reasoning tokens are counted twice or not at all."""
    raw = {
        "prompt_tokens": 100,
        "completion_tokens": 30,
        "prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 20},
    }
    answer = {
        "id": "x",
        "model": "m",
        "usage": raw,
        "choices": [{"message": {"content": "a"}, "finish_reason": "stop"}],
    }
    expected = Usage(input=100, output=30, cached=64, cache_write=10, reasoning=20)
    assert PROVIDER.parse_response(answer) == Reply(
        message=Message("assistant", (Text("a"),)),
        usage=expected,
        raw_usage=raw,
        model="m",
        stop="stop",
        response_id="x",
    )
    streamed = assembled([chunk({"content": "a"}, "stop", usage=None), {"choices": [], "usage": raw}])
    assert (streamed.usage, streamed.raw_usage) == (expected, raw)
    deepseek = {"prompt_tokens": 5, "completion_tokens": 1, "prompt_cache_hit_tokens": 4}
    assert PROVIDER.parse_response({**answer, "usage": deepseek}).usage == Usage(input=5, output=1, cached=4)


def test_answers_replay_without_the_noise_of_the_response() -> None:
    """Fails if nulls, annotations or stream indexes of an answer are sent back as history."""
    call = {"id": "c", "index": 0, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    signed = {**call, "extra_content": {"google": {"thought_signature": "s"}}}
    wire = {
        "role": "assistant",
        "content": "a",
        "refusal": None,
        "audio": None,
        "annotations": [{"type": "url_citation"}],
        "reasoning_content": "because",
        "tool_calls": [signed],
    }
    message = PROVIDER.parse_response({"choices": [{"message": wire, "finish_reason": "tool_calls"}]}).message
    extra = Form("openai-chat", delta={"+": {"extra_content": {"google": {"thought_signature": "s"}}}})
    assert message == Message(
        "assistant",
        (
            Reasoning("openai-chat", text="because"),
            Text("a"),
            ToolCall("c", "f", {}, form=extra),
            Opaque("openai-chat", "response", {"annotations": [{"type": "url_citation"}]}),
        ),
    )
    sent = {key: value for key, value in signed.items() if key != "index"}
    assert replayed(message) == [
        {"role": "assistant", "content": "a", "reasoning_content": "because", "tool_calls": [sent]}
    ]


def test_refusals_are_text_that_goes_back_as_a_refusal() -> None:
    """Fails if a refusal is lost, or shown to the model as something it said."""
    message = PROVIDER.parse_response({"choices": [{"message": {"content": None, "refusal": "no"}}]}).message
    assert message == Message("assistant", (Text("no", Form("openai-chat", shape="refusal-field")),))
    assert replayed(message) == [{"role": "assistant", "content": None, "refusal": "no"}]


def test_spoken_answers_go_back_by_reference() -> None:
    """Fails if a spoken answer loses its sound, its words, or the reference that replaces both."""
    halves = [base64.b64encode(half).decode() for half in (b"RIFF0", b"1")]
    audio = {"id": "audio_1", "expires_at": 9, "data": halves[0], "transcript": "hel"}
    chunks = [chunk({"audio": audio}), chunk({"audio": {"data": halves[1], "transcript": "lo"}}), chunk({}, "stop")]
    reply = assembled(chunks)
    digest = sha256_hex(b"RIFF01")
    assert reply.blobs == {digest: b"RIFF01"}
    assert reply.message == Message(
        "assistant",
        (
            Opaque("openai-chat", "audio", {"id": "audio_1", "expires_at": 9, "sha256": digest}),
            Text("hello", Form("openai-chat", shape="transcript")),
        ),
    )
    assert replayed(reply.message) == [{"role": "assistant", "content": None, "audio": {"id": "audio_1"}}]
    assert replayed(Message("assistant", reply.message.parts[1:])) == [{"role": "assistant", "content": "hello"}]


def test_custom_and_legacy_calls_stream() -> None:
    """Fails if custom tools or the old `function_call` come as something else than a call."""
    custom = {"index": 0, "id": "c", "type": "custom", "custom": {"name": "patch", "input": "*** "}}
    more = {"index": 0, "custom": {"input": "a"}}
    streamed = assembled([chunk({"tool_calls": [custom]}), chunk({"tool_calls": [more]}), chunk({}, "tool_calls")])
    assert streamed.message == Message("assistant", (ToolCall("c", "patch", raw="*** a", kind="custom"),))
    old = [chunk({"function_call": {"name": "f", "arguments": ""}}), chunk({"function_call": {"arguments": "{}"}})]
    legacy = assembled([*old, chunk({}, "function_call")]).message
    assert legacy == Message("assistant", (ToolCall("", "f", {}, form=Form("openai-chat", shape="legacy")),))
    assert replayed(legacy) == [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    ]


def test_what_is_no_answer() -> None:
    """Fails if an error object or nonsense is recorded as an answer."""
    empty = PROVIDER.parse_response({"choices": []})
    assert empty == Reply(message=Message("assistant"), complete=False, error="the response holds no answer")
    for nonsense in ({"object": "list"}, "text", {"choices": [{"message": "a"}]}):
        with pytest.raises(FormatError):
            PROVIDER.parse_response(nonsense)
    with pytest.raises(FormatError):
        PROVIDER.assembler().feed(b"data: {}")


@pytest.mark.parametrize("space", ["", " ", "\n"])
def test_a_call_that_has_an_id_goes_on_under_its_name(space: str) -> None:
    """A server that says a call's name in each piece, and its id in the first alone: what is but space behind whole
    arguments made a second call of nobody, which waited for an answer."""
    pieces = [
        {"index": 0, "id": "c1", "function": {"name": "f", "arguments": '{"x":1}'}},
        {"index": 0, "function": {"name": "f", "arguments": space}},
    ]
    assembler = PROVIDER.assembler()
    for piece in pieces:
        assembler.feed(chunk({"tool_calls": [piece]}))
    parts = assembler.reply().message.parts
    assert [(p.id, p.name, p.arguments) for p in parts if isinstance(p, ToolCall)] == [("c1", "f", {"x": 1})]


def test_usage_that_says_nothing_takes_no_other_away() -> None:
    """Servers that report usage as they go end with one that is empty: a bill was lost, and a session's cost."""
    said = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    answer = [
        {"model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "a"}}], "usage": None},
        {"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": said},
    ]
    for last in ({}, dict.fromkeys(said), dict.fromkeys(said, 0), "none"):
        reply = assembled([*answer, {"model": "m", "choices": [], "usage": last}])
        assert (reply.usage, reply.raw_usage) == (Usage(input=10, output=2), said)
    grown = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
    assert assembled([*answer, {"model": "m", "choices": [], "usage": grown}]).usage == Usage(input=10, output=3)


def test_usage_that_groq_has_in_its_own_key_is_read() -> None:
    """Groq's streams have it there unless it is asked for: an answer would have no bill."""
    assembler = PROVIDER.assembler()
    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    assembler.feed({"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": None}]})
    assembler.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "x_groq": {"usage": usage}})
    assert (assembler.reply().usage, assembler.reply().raw_usage) == (Usage(input=5, output=2), usage)
