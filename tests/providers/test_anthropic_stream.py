"""Answers of the Messages API, whole and streamed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import anthropic
import httpx2
import pytest

from turnlog.errors import BlobMissing, FormatError
from turnlog.log.messages import Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from turnlog.log.records import Configuration
from turnlog.log.usage import Usage
from turnlog.models.target import target
from turnlog.providers.anthropic import PROVIDER
from turnlog.providers.protocol import Reply
from turnlog.view.types import Shown

# The SDK warns of models near their end of life; which ones is of no interest here.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]
REQUEST: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 4000,
    "tools": TOOLS,
    "messages": [{"role": "user", "content": "Look at both."}],
}
SCRIPT = {
    "thinking": "Which one first?",
    "text": "I look at both, naïvely 🙂.",
    "tool_calls": [
        {"name": "look", "args": {"at": "a", "deep": {"list": [1, None]}}, "id": "toolu_1"},
        {"name": "look", "args": {}, "id": "toolu_2"},
    ],
}

CITATION = {
    "type": "char_location", "cited_text": "x", "document_index": 0, "document_title": None,
    "start_char_index": 0, "end_char_index": 1,
}  # fmt: skip
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {
    "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "e", "page_age": None}],
}  # fmt: skip
WHOLE: dict[str, Any] = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
    "content": [
        {"type": "thinking", "thinking": "Hm, hm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "YmxvYg=="},
        SEARCH,
        FOUND,
        {"type": "text", "text": "So x.", "citations": [{**CITATION, "file_id": None}]},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": ["a"]}, "caller": {"type": "direct"}},
    ],
    "stop_reason": "tool_use", "stop_sequence": None,
    "usage": {"input_tokens": 5, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20, "output_tokens": 30,
              "output_tokens_details": {"thinking_tokens": 12}},
}  # fmt: skip
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {**WHOLE, "content": [], "stop_reason": None, "usage": {
        **WHOLE["usage"], "output_tokens": 1, "output_tokens_details": None}}},
    {"type": "ping"},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm, "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm."}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": WHOLE["content"][1]},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": {**SEARCH, "input": {}}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"query":"x"}'}},
    {"type": "content_block_stop", "index": 2},
    {"type": "content_block_start", "index": 3, "content_block": FOUND},
    {"type": "content_block_stop", "index": 3},
    {"type": "content_block_start", "index": 4, "content_block": {"type": "text", "text": "", "citations": []}},
    {"type": "content_block_delta", "index": 4, "delta": {"type": "citations_delta", "citation": CITATION}},
    {"type": "content_block_delta", "index": 4, "delta": {"type": "text_delta", "text": "So "}},
    {"type": "content_block_delta", "index": 4, "delta": {"type": "text_delta", "text": "x."}},
    {"type": "content_block_stop", "index": 4},
    {"type": "content_block_start", "index": 5, "content_block": {"type": "tool_use", "id": "toolu_1", "name": "look",
                                                                  "input": {}, "caller": {"type": "direct"}}},
    {"type": "content_block_delta", "index": 5, "delta": {"type": "input_json_delta", "partial_json": '{"at": '}},
    {"type": "content_block_delta", "index": 5, "delta": {"type": "input_json_delta", "partial_json": '["a"]}'}},
    {"type": "content_block_stop", "index": 5},
    {"type": "a_newer_event", "anything": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None},
     "usage": {"output_tokens": 30, "input_tokens": None, "output_tokens_details": {"thinking_tokens": 12}}},
    {"type": "message_stop"},
]  # fmt: skip


def assembled(events: list[Any]) -> Reply:
    assembler = PROVIDER.assembler()
    for event in events:
        assembler.feed(event)
    return assembler.reply()


def no_media(sha256: str) -> bytes:
    raise BlobMissing(sha256)


def gist(reply: Reply) -> tuple[Any, ...]:
    return reply.message, reply.usage, reply.model, reply.stop, reply.response_id, reply.complete, reply.error


def test_a_whole_response_is_one_message_and_its_usage() -> None:
    """Response-only keys kept here would be refused when the message is sent back."""
    reply = PROVIDER.parse_response(WHOLE)
    text = reply.message.parts[4]
    assert isinstance(text, Text) and text.form is not None
    assert text.form.delta == {"+": {"citations": [CITATION]}}
    assert reply.message == Message(
        "assistant",
        (
            Reasoning("anthropic", text="Hm, hm.", signature="c2ln"),
            Reasoning("anthropic", encrypted="YmxvYg=="),
            Opaque("anthropic", "server_tool_use", SEARCH),
            Opaque("anthropic", "web_search_tool_result", FOUND),
            Text("So x.", form=text.form),
            ToolCall("toolu_1", "look", arguments={"at": ["a"]}),
        ),
    )
    assert reply.usage == Usage(input=95, output=30, cached=70, cache_write=20, reasoning=12)
    assert (reply.stop, reply.model, reply.response_id) == ("tool_use", "claude-sonnet-4-5", "msg_1")


def test_a_stream_adds_up_to_the_whole_response() -> None:
    """Streaming is how agents run; a message that differs from the billed one breaks replay."""
    assert gist(assembled(EVENTS)) == gist(PROVIDER.parse_response(WHOLE))
    assert assembled(EVENTS).fragments == ()


@pytest.mark.parametrize("cut", range(len(EVENTS)))
def test_a_cut_stream_gives_what_had_come_and_can_be_replayed(cut: int, oracle: ModuleType) -> None:
    """An interruption may come at any byte; what is kept must be acceptable in the next request."""
    reply = assembled(EVENTS[:cut])
    assert (reply.complete, bool(reply.error)) == (False, True)
    calls = [part for part in reply.message.parts if isinstance(part, ToolCall)]
    thoughts = [part for part in reply.message.parts if isinstance(part, Reasoning)]
    assert all(part.signature or part.encrypted for part in thoughts)
    results = tuple(ToolResult(call.id, parts=(Text("seen"),)) for call in calls)
    parts = reply.message.parts
    while parts and isinstance(parts[-1], Reasoning):  # as repair does
        parts = parts[:-1]
    view = [Message("user", (Text("go"),)), Message("assistant", parts), Message("user", (*results, Text("on")))]
    shown = [Shown(message, (n,)) for n, message in enumerate(view, start=1) if message.parts]
    aim = target("anthropic", "claude-sonnet-4-5")
    configuration = Configuration(provider="anthropic", settings={"max_tokens": 9, "tools": TOOLS})
    body = PROVIDER.render(shown, configuration, aim, no_media).body
    assert oracle.check_anthropic(body) == []
    assert PROVIDER.sanitize(body, aim).edits == ()


def test_what_came_in_half_is_kept_as_fragments() -> None:
    """Half a call must not run, and unsigned thinking must not be sent; both must stay readable."""
    assert assembled(EVENTS[:5]).fragments == (Reasoning("anthropic", text="Hm, hm."),)
    half_search = {**SEARCH, "input": '{"query":"x"}'}
    assert assembled(EVENTS[:13]).fragments == (Opaque("anthropic", "server_tool_use", half_search),)
    assert assembled(EVENTS[:22]).fragments == (ToolCall("toolu_1", "look", raw='{"at": '),)
    assert assembled(EVENTS[:18]).message.parts[-1].text == "So "  # type: ignore[union-attr]


def test_arguments_that_are_no_object_are_a_fragment_even_at_the_end() -> None:
    """At `max_tokens` the API closes a call whose JSON is not finished."""
    events = [*EVENTS[:22], *EVENTS[23:]]
    reply = assembled(events)
    assert (reply.complete, reply.fragments) == (True, (ToolCall("toolu_1", "look", raw='{"at": '),))
    assert not any(isinstance(part, ToolCall) for part in reply.message.parts)


def test_blocks_that_nobody_closed_end_with_the_answer() -> None:
    """Some servers leave out `content_block_stop`: a whole call would not be run, and half of one, or a block that
    cannot be read, must not be."""
    events = [event for event in EVENTS if event["type"] != "content_block_stop"]
    assert assembled(events) == assembled(EVENTS)
    reply = assembled([event for event in events if event is not EVENTS[22]])
    assert (reply.complete, reply.fragments) == (True, (ToolCall("toolu_1", "look", raw='{"at": '),))
    assert reply.message == Message("assistant", assembled(EVENTS).message.parts[:-1])
    begun = [event for event in events if event is not EVENTS[21] and event is not EVENTS[22]]
    cut = [{**one, "delta": {"stop_reason": "max_tokens"}} if one["type"] == "message_delta" else one for one in begun]
    half = assembled(cut)
    assert half.fragments == (ToolCall("toolu_1", "look", raw=""),)  # of its input nothing had come
    block = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    whole = PROVIDER.parse_response({"type": "message", "content": [block], "stop_reason": "max_tokens"})
    assert (whole.message.parts, whole.fragments) == ((), half.fragments)
    ended = PROVIDER.parse_response({"type": "message", "content": [block], "stop_reason": "tool_use"})
    assert (len(ended.message.parts), ended.fragments) == (1, ())
    odd = {"type": "image", "source": 5}
    reply = assembled([*events[:-1], {"type": "content_block_start", "index": 6, "content_block": odd}, events[-1]])
    assert (reply.complete, reply.fragments) == (True, (Opaque("anthropic", "image", odd),))
    assert reply.message == assembled(EVENTS).message


def test_an_error_event_says_why_the_stream_ended() -> None:
    """`overloaded_error` may come at any time, after half an answer too."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    reply = assembled([*EVENTS[:18], error])
    assert (reply.complete, reply.error) == (False, "overloaded_error: Overloaded")
    assert reply.usage == Usage(input=95, output=1, cached=70, cache_write=20)


@pytest.mark.parametrize(
    "events",
    [
        ["data: {}"],
        [{"no": "type"}],
        [{"type": "content_block_delta", "index": 0, "delta": {}}],
        [{"type": "content_block_start", "index": 0}],
    ],
)
def test_what_is_no_event_is_refused(events: list[Any]) -> None:
    """Another provider's chunks, fed by mistake, must not become an empty answer."""
    with pytest.raises(FormatError):
        assembled(events)


@pytest.mark.parametrize("response", ["text", {"id": "x"}, {"type": "error", "error": {"message": "no"}}])
def test_what_is_no_response_is_refused(response: Any) -> None:
    """An error body taken for an answer would be recorded as one."""
    with pytest.raises(FormatError):
        PROVIDER.parse_response(response)


def test_sdk_streams_add_up_to_the_sdk_message(fake_server: Callable[..., Any]) -> None:
    """The official client's objects, not our idea of them: raw events, helper events and whole messages agree."""
    said = {key: value for key, value in SCRIPT.items() if key != "thinking"}  # its signatures are numbered
    client = anthropic.Anthropic(base_url=fake_server(script=[said, said, SCRIPT]).url, api_key="k")
    whole = PROVIDER.parse_response(client.messages.create(**REQUEST))
    raw = PROVIDER.assembler()
    for event in client.messages.create(**REQUEST, stream=True):
        raw.feed(event)
    assert gist(raw.reply())[:4] == gist(whole)[:4]
    assert (raw.reply().complete, raw.reply().fragments) == (True, ())
    helped = PROVIDER.assembler()
    with client.messages.stream(**REQUEST) as stream:
        for helper_event in stream:
            helped.feed(helper_event)
        final = PROVIDER.parse_response(stream.get_final_message())
    assert gist(helped.reply()) == gist(final)
    assert [type(part) for part in final.message.parts] == [Reasoning, Text, ToolCall, ToolCall]
    assert final.message.parts[2] == ToolCall("toolu_1", "look", arguments={"at": "a", "deep": {"list": [1, None]}})
    client.close()


def test_a_recorded_answer_is_accepted_in_the_next_request(fake_server: Callable[..., Any]) -> None:
    """Signatures go back unchanged and response-only keys do not; else the second step of every agent fails."""
    server = fake_server(script=[SCRIPT, {"text": "Done."}], verify_signatures="own")
    client = anthropic.Anthropic(base_url=server.url, api_key="k")
    first = PROVIDER.parse_response(client.messages.create(**REQUEST))
    parsed = PROVIDER.parse(REQUEST)
    results = tuple(ToolResult(name, parts=(Text("seen"),)) for name in ("toolu_1", "toolu_2"))
    messages = (*parsed.messages, first.message, Message("user", results))
    shown = [Shown(message, (n,)) for n, message in enumerate(messages, start=1)]
    aim = target("anthropic", "claude-sonnet-4-5")
    body = PROVIDER.render(shown, parsed.configuration, aim, no_media).body
    assert PROVIDER.sanitize(body, aim).edits == ()
    assert PROVIDER.parse_response(client.messages.create(**body)).message == Message("assistant", (Text("Done."),))
    client.close()


@pytest.mark.parametrize("after", [1, 3, 6, 12])
def test_a_dropped_connection_leaves_an_incomplete_answer(fake_server: Callable[..., Any], after: int) -> None:
    """The assembler must know that the answer is not whole, whatever the client made of the lost connection."""
    server = fake_server(script=[{**SCRIPT, "cut_after": after}])
    client = anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0)
    assembler = PROVIDER.assembler()
    with contextlib.suppress(anthropic.APIError, httpx2.HTTPError):
        for event in client.messages.create(**REQUEST, stream=True):
            assembler.feed(event)
    reply = assembler.reply()
    assert (reply.complete, reply.error) == (False, "the stream ended before message_stop")
    assert reply.usage is not None
    client.close()


def test_usage_that_an_event_says_to_be_nothing_stays() -> None:
    """Servers that imitate this API tell the input at the start, and say 0 of it at the end: a bill was lost."""
    start = {"input_tokens": 10, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 0, "output_tokens": 1}
    assembler = PROVIDER.assembler()
    for event in (
        {"type": "message_start", "message": {**WHOLE, "content": [], "stop_reason": None, "usage": start}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {**dict.fromkeys(start, 0), "output_tokens": 5},
        },
        {"type": "message_stop"},
    ):
        assembler.feed(event)
    assert assembler.reply().usage == Usage(input=80, output=5, cached=70)


def test_an_input_that_is_told_anew_is_told_whole() -> None:
    """A server that estimates the input at the start, and at the end says that all of it came from the cache: what it
    takes back, a 0 beside figures, would be billed a second time."""
    start = {"input_tokens": 100, "output_tokens": 1}
    end = {"input_tokens": 0, "cache_read_input_tokens": 100, "output_tokens": 5}
    assembler = PROVIDER.assembler()
    for event in (
        {"type": "message_start", "message": {**WHOLE, "content": [], "stop_reason": None, "usage": start}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": end},
        {"type": "message_stop"},
    ):
        assembler.feed(event)
    assert assembler.reply().usage == Usage(input=100, output=5, cached=100)


def _streamed(*blocks: tuple[int, dict[str, Any], dict[str, Any] | None]) -> list[dict[str, Any]]:
    """A stream of blocks: index, start, and the one delta of each."""
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**WHOLE, "content": [], "stop_reason": None}}]
    for index, start, delta in blocks:
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        if delta is not None:
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    return [*events, {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]


CALL_START = {"type": "tool_use", "id": "toolu_1", "name": "look"}
CALL_INPUT = {"type": "input_json_delta", "partial_json": '{"at": "a"}'}
TEXT_START = {"type": "text", "text": ""}
TEXT_DELTA = {"type": "text_delta", "text": "I look."}


def test_a_call_that_began_without_an_input_has_the_one_that_came() -> None:
    """Servers that leave out what is empty begin a call without `input`: its tool ran without any arguments."""
    reply = assembled(_streamed((0, CALL_START, CALL_INPUT), (1, {**CALL_START, "id": "toolu_2"}, None)))
    calls = (ToolCall("toolu_1", "look", arguments={"at": "a"}), ToolCall("toolu_2", "look", arguments={}))
    assert (reply.message, reply.complete, reply.fragments) == (Message("assistant", calls), True, ())
    assert PROVIDER.parse_response({**WHOLE, "content": [CALL_START]}).message.parts == (
        ToolCall("toolu_1", "look", arguments={}),
    )


def test_blocks_that_are_all_of_one_index_are_all_kept() -> None:
    """A gateway that numbers every block 0 lost what the model said before its call, and the first of two calls."""
    second = {**CALL_START, "id": "toolu_2"}
    blocks = ((0, TEXT_START, TEXT_DELTA), (0, CALL_START, CALL_INPUT), (0, second, CALL_INPUT))
    calls = [ToolCall(name, "look", arguments={"at": "a"}) for name in ("toolu_1", "toolu_2")]
    assert assembled(_streamed(*blocks)).message == Message("assistant", (Text("I look."), *calls))


def test_an_answer_that_is_streamed_once_more_is_said_once() -> None:
    """A proxy that asks again, or a block that comes twice, would have the model say everything twice."""
    whole = _streamed((0, TEXT_START, TEXT_DELTA), (1, CALL_START, CALL_INPUT))
    said = Message("assistant", (Text("I look."), ToolCall("toolu_1", "look", arguments={"at": "a"})))
    for cut in range(len(whole)):
        assert assembled([*whole[:cut], *whole]).message == said
    assert assembled(_streamed((0, TEXT_START, TEXT_DELTA), *[(1, CALL_START, CALL_INPUT)] * 2)).message == said


def test_an_answer_that_came_whole_in_its_first_event_is_read() -> None:
    """A gateway that does not stream wraps the answer in `message_start`: the answer was empty, and taken for whole."""
    whole = {
        "id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Bergen."}], "usage": {"input_tokens": 5, "output_tokens": 2},
    }  # fmt: skip
    assembler = PROVIDER.assembler()
    for event in ({"type": "message_start", "message": whole}, {"type": "message_stop"}):
        assembler.feed(event)
    assert assembler.reply() == PROVIDER.parse_response(whole)
