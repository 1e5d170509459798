"""Chat Completions: streams of servers that are compatible, each in its own way."""

from __future__ import annotations

from itertools import product
from types import ModuleType
from typing import Any

import pytest

from turnlog.log.messages import Message, Text, ToolCall
from turnlog.providers.openai_chat import PROVIDER
from turnlog.providers.protocol import Reply
from turnlog.session.inputs import to_run


def assembled(chunks: list[Any]) -> Reply:
    """The reply of a stream."""
    assembler = PROVIDER.assembler()
    for chunk in chunks:
        assembler.feed(chunk)
    return assembler.reply()


def _chunk(**choice: Any) -> dict[str, Any]:
    return {"id": "c", "model": "m", "choices": [{"index": 0, **choice}]}


def _piece(**call: Any) -> dict[str, Any]:
    return _chunk(delta={"tool_calls": [call]})


def test_pieces_that_repeat_an_id_as_empty_leave_it() -> None:
    """Qwen's endpoint says `"id": ""` with every further piece: calls lost their ids, and parallel ones what told their
    results apart."""
    pieces = [
        _piece(index=0, id="a", type="function", function={"name": "f", "arguments": ""}),
        _piece(index=0, id="", type="", function={"name": "", "arguments": '{"x":'}),
        _piece(index=0, id="", type="", function={"arguments": "1}"}),
    ]
    reply = assembled([*pieces, _chunk(delta={}, finish_reason="tool_calls")])
    assert reply.message == Message("assistant", (ToolCall("a", "f", arguments={"x": 1}),))


def test_pieces_under_an_index_that_is_no_integer_are_told_apart() -> None:
    """The pieces of one call would be put behind another's."""
    for first, second in (("0", "1"), (0.0, 1.0)):
        pieces = [
            _piece(index=first, id="a", function={"name": "f", "arguments": '{"x":'}),
            _piece(index=second, id="b", function={"name": "g", "arguments": '{"y":'}),
            _piece(index=first, function={"arguments": "1}"}),
            _piece(index=second, function={"arguments": "2}"}),
        ]
        reply = assembled([*pieces, _chunk(finish_reason="tool_calls")])
        calls = (ToolCall("a", "f", arguments={"x": 1}), ToolCall("b", "g", arguments={"y": 2}))
        assert reply.message == Message("assistant", calls)


def test_a_chunk_that_holds_the_whole_answer_is_the_answer() -> None:
    """A server that cannot stream gives all at once, as `message`: an answer of nothing would be on record as whole."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "I look.", "tool_calls": [call]}
    said = Message("assistant", (Text("I look."), ToolCall("a", "f", arguments={})))
    whole = _chunk(message=message, finish_reason="tool_calls")
    empty = _chunk(delta={"role": "assistant", "content": ""})
    assert assembled([whole]).message == assembled([empty, whole]).message == said
    pieces = [_chunk(delta={"content": "I look."}), _chunk(delta={"tool_calls": [{"index": 0, **call}]})]
    assert assembled([*pieces, whole]).message == said


@pytest.mark.parametrize("streamed", [False, True])
def test_a_choice_that_ended_in_an_error_is_no_whole_answer(streamed: bool) -> None:
    """OpenRouter says it of the choice: half an answer was on record as a whole one."""
    said = {"role": "assistant", "content": "It is"}
    error = {"code": 502, "message": "Provider disconnected"}
    choice = {"finish_reason": "error", "error": error, "delta" if streamed else "message": said}
    reply = assembled([_chunk(**choice)]) if streamed else PROVIDER.parse_response(_chunk(**choice))
    assert (reply.message.parts, reply.complete, reply.error) == ((Text("It is"),), False, "502: Provider disconnected")


def test_content_that_comes_in_parts_and_texts_is_one_text() -> None:
    """Mistral's models think in parts and then speak in texts: each word was a part of its own, so a block in every
    request, and a line of its own in digests and titles."""
    thoughts = [{"type": "thinking", "thinking": [{"type": "text", "text": word}]} for word in ("Hm", ", ", "hm.")]
    texts: list[Any] = ["It", " ", [{"type": "text", "text": "is"}], [{"type": "text", "text": "."}]]
    pieces = [*([thought] for thought in thoughts), *texts]
    reply = assembled([*(_chunk(delta={"content": piece}) for piece in pieces), _chunk(delta={}, finish_reason="stop")])
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm, hm."}]}
    said = {"role": "assistant", "content": [thinking, {"type": "text", "text": "It is."}]}
    whole = PROVIDER.parse_response(_chunk(message=said, finish_reason="stop"))
    assert reply.message == whole.message
    assert thoughts[0]["thinking"] == [{"type": "text", "text": "Hm"}]  # what was handed over stays as it was


@pytest.mark.parametrize("name", [{}, {"name": "f"}])
def test_pieces_of_a_call_that_each_have_an_id_are_one_call(name: dict[str, str]) -> None:
    """vLLM has made up an id for every piece: a call became as many halves of calls as it had pieces."""
    first, named = {"name": "f"}, [{"name": "f"}, name, name, name]
    texts = ['{"x":', "1", "}", *([] if name else [""])]
    functions = [{**called, "arguments": text} for called, text in zip(named, texts, strict=False)]
    pieces = [_piece(index=0, id=f"id{i}", type="function", function=one) for i, one in enumerate(functions)]
    second = [_piece(index=0, id="b0", function={**first, "arguments": "{"})]
    second.append(_piece(index=0, id="b1", function={**name, "arguments": "}"}))
    third = _piece(index=0, id="c", function={"name": "g", "arguments": ""})
    fourth = _piece(index=0, id="d", function={"name": "g", "arguments": "{}"})
    reply = assembled([*pieces, *second, third, fourth, _chunk(delta={}, finish_reason="tool_calls")])
    calls = (
        ToolCall("id0", "f", arguments={"x": 1}),
        ToolCall("b0", "f", arguments={}),
        ToolCall("c", "g", raw=""),
        ToolCall("d", "g", arguments={}),
    )
    assert reply.message == Message("assistant", calls)


def test_a_piece_that_says_nothing_of_its_call_goes_on_with_the_last() -> None:
    """It became a call of its own, without a name, and the call that it is of had half its arguments."""
    pieces = [
        _piece(index=0, id="a", function={"name": "f", "arguments": "{}"}),
        _piece(index=1, id="b", function={"name": "g", "arguments": '{"x":'}),
        _piece(function={"arguments": "1}"}),
    ]
    reply = assembled([*pieces, _chunk(delta={}, finish_reason="tool_calls")])
    calls = (ToolCall("a", "f", arguments={}), ToolCall("b", "g", arguments={"x": 1}))
    assert reply.message == Message("assistant", calls)


@pytest.mark.parametrize(
    "pieces", [[{"x": 1}], [{}, {"x": 1}, ""], ["", {"x": 1}], [{"x": 1}, {"x": 1}], [{"x": 1}, {}]]
)
def test_arguments_that_come_as_an_object_are_read_as_in_a_whole_answer(pieces: list[Any]) -> None:
    """The turn was lost with a FormatError, though the same answer in one piece was read (MiniMax, oh-my-pi#1779)."""
    first = _piece(index=0, id="a", type="function", function={"name": "f", "arguments": pieces[0]})
    more = [_piece(index=0, function={"arguments": piece}) for piece in pieces[1:]]
    reply = assembled([first, *more, _chunk(delta={}, finish_reason="tool_calls")])
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}
    whole = PROVIDER.parse_response(_chunk(message={"tool_calls": [call]}, finish_reason="tool_calls"))
    assert reply.message == whole.message and to_run(reply.message.parts[0]).arguments == {"x": 1}  # type: ignore[arg-type]


def test_an_object_for_arguments_may_be_empty() -> None:
    """It became an empty text, which other servers refuse."""
    piece = _piece(index=0, id="a", type="function", function={"name": "f", "arguments": {}})
    reply = assembled([piece, _chunk(delta={}, finish_reason="tool_calls")])
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": {}}}
    whole = PROVIDER.parse_response(_chunk(message={"tool_calls": [call]}, finish_reason="tool_calls"))
    assert reply.message == whole.message


_SAID: dict[str, list[dict[str, Any]]] = {
    "two tools": [{"name": "f", "args": {"x": 1, "y": "a b c d e f"}}, {"name": "g", "args": {"z": [1, {}]}}],
    "one tool twice": [{"name": "f", "args": {"x": 1, "y": "a b c d e f"}}, {"name": "f", "args": {"x": 2}}],
    "objects": [{"name": "f", "arguments": {"x": 1}}, {"name": "f", "arguments": {"x": 2}}],
    "no arguments": [{"name": "f"}, {"name": "g"}],
}


@pytest.mark.parametrize("said", _SAID)
def test_calls_are_told_apart_however_a_server_streams_them(said: str, servers: ModuleType) -> None:
    """Halves of calls, or two calls in one: for each way to number, to name and to cut the pieces of calls."""
    wrong = []
    ids = (f"{number:09}" + "0" * 31 for number in range(1, 1_000_000))
    ways = product(
        ("ok", "zero", "missing"),
        ("pieces", "whole", "braces"),
        ("absent", "repeat", "empty", "null", "never"),
        ("{}", ""),
    )
    used = dict.fromkeys(("input", "output", "thinking", "read"), 1)
    for index, args, later, none in ways:
        if (later, none, said) == ("never", "", "no arguments") and index != "ok":
            continue  # no number, no id, no arguments: such names may as well be pieces of one name
        quirks = {"index": index, "args": args, "later_ids": later, "noargs": none, "id": "{h9}"}
        script = {"tool_calls": _SAID[said]}
        _, chunks = servers.answer(
            "vllm", "m", {"stream": True}, script, used, lambda kind: kind + next(ids), lambda text: "s", 0, quirks
        )
        parts = assembled([chunk for chunk in chunks if isinstance(chunk, dict)]).message.parts
        calls = [to_run(part) for part in parts if isinstance(part, ToolCall)]
        expected = [(call["name"], call.get("arguments") or call.get("args") or {}) for call in _SAID[said]]
        if [(call.name, call.arguments) for call in calls] != expected:
            wrong.append((index, args, later, none))
    assert wrong == []
