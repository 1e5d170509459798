"""The Responses API: answers, whole and in pieces."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from msgspec.structs import replace
from openai import OpenAI
from openai.types.responses import Response

from turnlog.errors import FormatError
from turnlog.log.messages import Message, Opaque, Reasoning, Text, ToolCall, text_of
from turnlog.log.records import Configuration
from turnlog.log.usage import Usage
from turnlog.models.target import target
from turnlog.providers.openai_responses import PROVIDER
from turnlog.providers.protocol import Reply
from turnlog.view.types import Shown

NAME = "openai-responses"
MODEL = target(NAME, "gpt-5")
TOOLS: list[Any] = [
    {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False},
    {"type": "custom", "name": "write"},
]
SCRIPT: list[dict[str, Any]] = [
    {"text": "Hello, wörld " * 5},
    {"thinking": "let me see " * 4, "text": "so"},
    {
        "thinking": "both",
        "text": "calling",
        "tool_calls": [{"name": "look", "args": {"where": "here"}}, {"name": "look", "args": {}}],
        "custom_calls": [{"name": "write", "input": "free\ntext"}],
    },
    {"thinking": "t", "text": "cut by the limit", "stop": "max_tokens"},
]


def collected(events: list[Any]) -> Reply:
    """The reply of the events so far."""
    assembler = PROVIDER.assembler()
    for event in events:
        assembler.feed(event)
    return assembler.reply()


def replay(message: Message, **settings: Any) -> dict[str, Any]:
    """The request that shows `message` and asks on."""
    view = [Shown(message, (1,)), Shown(Message("user", (Text("go on"),)), (2,))]
    return PROVIDER.render(view, Configuration(provider=NAME, settings=settings), MODEL, {}.__getitem__).body


@pytest.mark.slow
@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("said", SCRIPT, ids=["text", "reasoning", "calls", "limit"])
def test_streams_say_what_whole_answers_say(fake_server: Callable[..., Any], said: dict[str, Any], store: bool) -> None:
    """A stream read otherwise than the whole answer would fork the log by transport."""
    server = fake_server(script=[said])
    client = OpenAI(base_url=server.url + "/v1", api_key="k")
    events = list(client.responses.create(model="gpt-5", input="hi", tools=TOOLS, store=store, stream=True))
    whole = events[-1].response  # type: ignore[union-attr]
    reply = collected(events)
    assert reply == PROVIDER.parse_response(whole)
    # A full dump adds nulls; those of the usage stay in what is the provider's own.
    dumped = whole.model_dump(mode="json")
    assert replace(reply, raw_usage=dumped["usage"]) == PROVIDER.parse_response(dumped)
    assert replace(reply, raw_usage=dumped["usage"]) == collected([event.model_dump(mode="json") for event in events])
    assert reply == PROVIDER.parse_response(json.loads(whole.to_json()))
    assert (reply.complete, reply.error, reply.fragments) == (True, "", ())
    assert reply.stop == ("max_output_tokens" if "stop" in said else "completed")
    assert reply.usage == Usage(
        input=whole.usage.input_tokens,
        output=whole.usage.output_tokens,
        cached=whole.usage.input_tokens_details.cached_tokens,
        reasoning=whole.usage.output_tokens_details.reasoning_tokens,
    )


@pytest.mark.slow
@pytest.mark.parametrize("store", [True, False])
def test_a_whole_loop_is_accepted(fake_server: Callable[..., Any], store: bool) -> None:
    """The provider checks ids, reasoning and pairs of its own earlier answers: replay must hold."""
    server = fake_server(script=[SCRIPT[2], SCRIPT[1], SCRIPT[0]], verify_signatures="all")
    client = OpenAI(base_url=server.url + "/v1", api_key="k")
    configuration = PROVIDER.parse({"model": "gpt-5", "tools": TOOLS, "store": store}).configuration
    messages = [Message("user", (Text("hi"),))]
    for _ in range(3):
        view = [Shown(message, (i,)) for i, message in enumerate(messages, 1)]
        out = PROVIDER.render(view, configuration, MODEL, {}.__getitem__)
        assert out.losses == ()
        answer = PROVIDER.parse_response(client.responses.create(**out.body)).message
        results = [
            {"type": f"{call.kind}_call_output".replace("custom", "custom_tool"), "call_id": call.id, "output": "ok"}
            for call in answer.parts
            if isinstance(call, ToolCall)
        ]
        follow = results or [{"role": "user", "content": "more"}]
        messages += [answer, *PROVIDER.parse({"input": follow}).messages]
    assert server.rejections() == []


@pytest.mark.parametrize("store", [True, False])
def test_a_stream_cut_anywhere_gives_what_had_come(
    fake_server: Callable[..., Any], oracle: ModuleType, store: bool
) -> None:
    """Half a call in the message would be answered and replayed; lost text would be paid for twice."""
    server = fake_server(script=[SCRIPT[2]])
    client = OpenAI(base_url=server.url + "/v1", api_key="k")
    events = list(client.responses.create(model="gpt-5", input="hi", tools=TOOLS, store=store, stream=True))
    whole = collected(events)
    for end in range(len(events)):
        reply = collected(events[:end])
        assert not reply.complete
        assert reply.error
        done = [event.item.type for event in events[:end] if event.type == "response.output_item.done"]
        parts = list(reply.message.parts)
        assert parts[: len(done)] == list(whole.message.parts[: len(done)])
        for part in parts[len(done) :]:  # the text that had come of a message which was not done
            assert isinstance(part, Text)
            assert whole.message.parts[len(done)].text.startswith(part.text)  # type: ignore[union-attr]
        for fragment in reply.fragments:
            assert isinstance(fragment, (ToolCall, Reasoning))
            if isinstance(fragment, ToolCall):
                call = whole.message.parts[len(done)]
                assert isinstance(call, ToolCall)
                assert call.raw_arguments.startswith(fragment.raw or "")
                assert (fragment.id, fragment.name, fragment.kind) == (call.id, call.name, call.kind)
        calls = [part for part in parts if isinstance(part, ToolCall)]
        if len(parts) > 1 and not calls:
            assert oracle.check_openai_responses(replay(reply.message, store=store)) == [], end


@pytest.mark.parametrize("end", ["completed", "incomplete", "failed"])
def test_a_last_event_without_items_takes_nothing_back(end: str) -> None:
    """Some servers end a stream with `output: []`; what had come, and was paid for, would be gone."""
    head = {"type": "message", "id": "m", "role": "assistant", "status": "in_progress", "content": []}
    call = {"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": ""}
    began = [
        {"type": "response.output_item.added", "output_index": 0, "item": head},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Half of it"},
    ]
    calling = [
        {"type": "response.output_item.added", "output_index": 1, "item": call},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"a": '},
    ]
    last = [{"type": f"response.{end}", "response": {"id": "r", "status": end, "output": []}}]
    reply = collected([*began, *last])
    assert (text_of(reply.message), reply.fragments, reply.complete) == ("Half of it", (), end != "failed")
    reply = collected([*began, *calling, *last])
    half = ToolCall("c", "look", raw='{"a": ')
    assert (text_of(reply.message), reply.fragments, reply.complete) == ("Half of it", (half,), end != "failed")
    done = {**head, "status": "completed", "content": [{"type": "output_text", "text": "Whole", "annotations": []}]}
    moved = {"type": "response.output_item.done", "output_index": 1, "item": done}
    assert text_of(collected([*began, moved, *last]).message) == "Whole"


@pytest.mark.parametrize(
    ("begun", "delta", "wrong", "at"),
    [
        (
            {"type": "message", "id": "m", "role": "assistant", "status": "in_progress", "content": []},
            {"type": "response.output_text.delta", "content_index": 0, "delta": "Half of it"},
            {"content": [{"text": "Half of it and more"}]},
            ".content[0]",
        ),
        (
            {"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": ""},
            {"type": "response.function_call_arguments.delta", "delta": '{"a": '},
            {"name": None, "arguments": '{"a": 1}'},
            ".name",
        ),
    ],
    ids=["message", "call"],
)
@pytest.mark.parametrize("where", ["event.item", "event.response.output[0]"])
def test_an_item_that_cannot_be_read_takes_nothing_back(
    begun: dict[str, Any], delta: dict[str, Any], wrong: dict[str, Any], at: str, where: str
) -> None:
    """Taken into the answer, it would make all of it unreadable, and what its deltas had said would be gone."""
    item = {key: value for key, value in {**begun, "status": "completed", **wrong}.items() if value is not None}
    bad: dict[str, Any] = {"type": "response.output_item.done", "output_index": 0, "item": item}
    if where != "event.item":
        bad = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [item]}}
    assembler = PROVIDER.assembler()
    assembler.feed({"type": "response.output_item.added", "output_index": 0, "item": begun})
    assembler.feed({**delta, "output_index": 0})
    before = assembler.reply()
    assert (text_of(before.message), before.fragments) in (
        ("Half of it", ()),
        ("", (ToolCall("c", "look", raw='{"a": '),)),
    )
    with pytest.raises(FormatError) as raised:
        assembler.feed(bad)
    assert raised.value.path == where + at
    assert assembler.reply() == before


def test_an_id_that_is_no_text_names_nothing() -> None:
    """A bare TypeError in the place of all that had come, for a search whose id some server spelled as an object."""
    search = {"type": "web_search_call", "id": {"text": "ws"}, "status": "completed"}
    said = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
    said["content"] = [{"type": "output_text", "text": "so", "annotations": []}]
    items = [
        {"type": "response.output_item.done", "output_index": i, "item": one} for i, one in enumerate((search, said))
    ]
    assert text_of(collected(items).message) == "so"
    last = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    assert text_of(collected([*items, last]).message) == "so"


def test_an_error_in_the_stream_is_the_replys(fake_server: Callable[..., Any]) -> None:
    """An error that became a complete answer would end the turn in silence."""
    error = {"type": "error", "code": "server_error", "message": "The model is overloaded.", "param": None}
    server = fake_server(script=[SCRIPT[0]])
    client = OpenAI(base_url=server.url + "/v1", api_key="k")
    events = list(client.responses.create(model="gpt-5", input="hi", stream=True))
    reply = collected([*events[:8], error])
    assert (reply.complete, reply.error) == (False, "server_error: The model is overloaded.")
    assert reply.message.parts
    failed = {**events[-1].response.model_dump(mode="json"), "status": "failed", "output": []}
    failed["error"] = {"code": "rate_limit_exceeded", "message": "Slow down."}
    reply = collected([*events[:3], {"type": "response.failed", "response": failed}])
    assert (reply.complete, reply.error, reply.stop) == (False, "rate_limit_exceeded: Slow down.", "failed")
    assert reply == PROVIDER.parse_response(failed)


def test_deltas_of_every_place_are_kept() -> None:
    """What had come of reasoning, refusals, searches and shell commands must be readable after a cut."""
    added = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "half"},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [], "phase": "commentary"},
        {"type": "shell_call", "id": "sh_1", "call_id": "c", "action": {"commands": []}, "status": "in_progress"},
        {"type": "web_search_call", "id": "ws_1", "status": "in_progress"},
    ]
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "output_index": i, "item": item} for i, item in enumerate(added)
    ]
    for event in (
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 1, "delta": "b"},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "a"},
        {"type": "response.reasoning_text.done", "output_index": 0, "content_index": 0, "text": "thought"},
        {"type": "response.refusal.delta", "output_index": 1, "content_index": 0, "delta": "I can"},
        {"type": "response.refusal.delta", "output_index": 1, "content_index": 0, "delta": "not"},
        {"type": "response.shell_call_command.delta", "output_index": 2, "command_index": 0, "delta": "ls -"},
        {"type": "response.web_search_call.searching", "output_index": 3},
        {"type": "response.of_tomorrow", "output_index": 3},
        {"type": "keepalive"},
    ):
        events.append(event)
    reply = collected(events)
    assert [part.text for part in reply.message.parts if isinstance(part, Text)] == ["I cannot"]
    items = replay(reply.message)["input"]
    assert items[0] == {
        "type": "message",
        "role": "assistant",
        "phase": "commentary",
        "content": [{"type": "refusal", "refusal": "I cannot"}],
    }
    assert reply.fragments == (
        Reasoning(NAME, text="thought", summary=("a", "b")),
        ToolCall("c", "shell", raw="ls -", kind="shell"),
        Opaque(NAME, "web_search_call", added[3]),
    )


OUTPUT: list[dict[str, Any]] = [
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"], "results": None},
    {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "status": "completed",
        "container_id": "cntr_1",
        "code": None,
        "outputs": None,
    },
    {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "QUJD", "error": None},
    {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": [], "error": None},
    {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "n", "arguments": "{}", "output": None},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "blob", "created_by": "api"},
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "f",
        "arguments": "{}",
        "status": "completed",
        "namespace": None,
        "parsed_arguments": {},
    },
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "phase": None,
        "content": [
            {
                "type": "output_text",
                "text": "{}",
                "logprobs": None,
                "parsed": {"a": 1},
                "annotations": [
                    {"type": "url_citation", "start_index": 0, "end_index": 1, "title": "t", "url": "https://x"}
                ],
            }
        ],
    },
]


@pytest.mark.parametrize("item", OUTPUT, ids=lambda item: str(item["type"]))
def test_what_only_responses_have_is_not_sent_back(oracle: ModuleType, item: dict[str, Any]) -> None:
    """An answer, appended as it came, is refused for its nulls and for keys that no input has."""
    reply = PROVIDER.parse_response({"id": "resp_1", "status": "completed", "output": [item]})
    request = replay(reply.message)
    errors = oracle.check_openai_responses(request)
    assert [error for error in errors if "No tool output" not in error] == []
    assert request["input"][0]["id"] == item["id"]
    assert PROVIDER.sanitize(request, MODEL).edits == ()


def test_calls_that_the_server_answered_stay_its_own() -> None:
    """A call with its output in one answer must not look like one that waits for the client."""
    output = [
        {"type": "shell_call", "id": "sh_1", "call_id": "c", "action": {"commands": ["ls"]}, "status": "completed"},
        {"type": "shell_call_output", "id": "sho_1", "call_id": "c", "output": [], "status": "completed"},
    ]
    parts = PROVIDER.parse_response({"status": "completed", "output": output}).message.parts
    assert parts == tuple(Opaque(NAME, str(item["type"]), item) for item in output)


def test_half_calls_of_a_limited_answer_are_fragments() -> None:
    """A call that a limit cut off has half its arguments, and cannot be run or replayed."""
    output = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "status": "incomplete"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a', "status": "incomplete"},
    ]
    reply = PROVIDER.parse_response(
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": output}
    )
    assert (reply.complete, reply.stop, reply.message) == (True, "max_output_tokens", Message("assistant"))
    assert [type(part) for part in reply.fragments] == [Reasoning, ToolCall]
    assert reply.fragments[1] == ToolCall("c", "f", raw='{"a')


@pytest.mark.parametrize("status", ["queued", "in_progress", "cancelled"])
def test_a_running_response_is_no_answer(status: str) -> None:
    """A background response that is still running must not be taken for a finished one."""
    reply = PROVIDER.parse_response({"status": status, "output": []})
    assert (reply.complete, reply.error) == (False, f"the response is {status}")


@pytest.mark.parametrize("response", [None, "text", {}, {"output": "x"}, {"output": ["x"]}, {"choices": []}])
def test_what_is_no_response_is_refused(response: Any) -> None:
    """A Chat completion handed to the wrong reader must not become an empty answer."""
    with pytest.raises(FormatError):
        PROVIDER.parse_response(response)


@pytest.mark.parametrize("chunk", [None, "data: [DONE]", {}, {"type": 5}, {"type": "response.output_item.done"}])
def test_what_is_no_event_is_refused(chunk: Any) -> None:
    """An event that cannot be read must not pass for one that says nothing."""
    with pytest.raises(FormatError):
        PROVIDER.assembler().feed(chunk)


def test_the_sdks_own_classes_are_read() -> None:
    """`async_` is how the SDK spells `async`; sent back that way it is an unknown key."""
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}", "async": True}
    whole = {"id": "resp_1", "status": "completed", "model": "gpt-5", "output": [call], "object": "response"}
    more = {"created_at": 0, "tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    reply = PROVIDER.parse_response(Response.model_validate({**whole, **more}))
    assert replay(reply.message)["input"][0] == call
    dumped = PROVIDER.parse_response(Response.model_validate({**whole, **more}).model_dump())
    assert dumped.message == reply.message


def test_an_answer_whose_call_did_not_come_is_a_fragment() -> None:
    """Sent back without its call, the output of a tool that the server ran would be refused."""
    output = {"type": "shell_call_output", "call_id": "c", "output": []}
    reply = PROVIDER.parse_response({"output": [output], "status": "completed"})
    assert (reply.message.parts, reply.fragments) == ((), (Opaque(NAME, "shell_call_output", output),))
    call = {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}
    whole = PROVIDER.parse_response({"output": [call, output], "status": "completed"})
    assert ([type(part) for part in whole.message.parts], whole.fragments) == ([Opaque, Opaque], ())


def test_an_index_that_is_no_number_is_the_first() -> None:
    """`true` counts as 1 in Python: what came for the first item would be said by no item, and lost."""
    assembler = PROVIDER.assembler()
    item = {"type": "message", "id": "m", "role": "assistant", "content": []}
    assembler.feed({"type": "response.output_item.added", "output_index": 0, "item": item})
    assembler.feed({"type": "response.output_text.delta", "output_index": True, "content_index": 0, "delta": "Half"})
    assert text_of(assembler.reply().message) == "Half"
