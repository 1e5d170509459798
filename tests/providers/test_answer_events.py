"""Answers from events: what a runner without a wire format of its own streams."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog.errors import FormatError
from turnlog.log.messages import Message, Part, Reasoning, Text, ToolCall
from turnlog.log.usage import Usage
from turnlog.models.makers import default_model
from turnlog.models.target import target
from turnlog.providers import PROVIDERS, provider
from turnlog.providers.answer_events import AnswerAssembler, RunnerEvent
from turnlog.session.answer import stop_of

NAMES = sorted(PROVIDERS)
PIECES = st.one_of(
    st.tuples(st.sampled_from(["text", "reasoning"]), st.text(max_size=4)),
    st.tuples(st.just("tool_call"), st.integers(0, 9)),
    st.tuples(st.just("ran_tool"), st.integers(0, 9)),
)


def event(kind: Any, what: Any) -> RunnerEvent:
    """A drawn event."""
    if isinstance(what, str):
        return RunnerEvent(kind=kind, text=what)
    return RunnerEvent(kind=kind, call=ToolCall(f"c{what}", "look", {"n": what}))


def whole(name: str, pieces: list[tuple[str, Any]]) -> Message:
    """The message that the pieces make: texts of a kind that follow each other are one."""
    parts: list[Part] = []
    for kind, what in pieces:
        last = parts[-1] if parts else None
        if kind == "tool_call":
            parts.append(ToolCall(f"c{what}", "look", {"n": what}))
        elif kind == "ran_tool" or not what:
            continue
        elif kind == "text":
            parts[len(parts) - isinstance(last, Text) :] = [Text((last.text if isinstance(last, Text) else "") + what)]
        else:
            said = last.text if isinstance(last, Reasoning) else ""
            parts[len(parts) - isinstance(last, Reasoning) :] = [Reasoning(name, said + what)]
    return Message("assistant", tuple(parts))


@given(st.sampled_from(NAMES), st.lists(PIECES, max_size=8), st.data())
def test_the_answer_is_what_the_events_told(name: str, pieces: list[tuple[str, Any]], data: st.DataObject) -> None:
    """A piece lost, told twice or joined with another kind; a stream that broke off and counts as complete."""
    end = data.draw(st.integers(0, len(pieces)))
    assembler = AnswerAssembler(provider(name))
    told = [delta for kind, what in pieces[:end] for delta in assembler.feed(event(kind, what))]
    assert [(one.kind, one.text) for one in told] == [one for one in pieces[:end] if one[1] and isinstance(one[1], str)]
    begun = any(kind != "ran_tool" for kind, _ in pieces[:end])
    if begun:
        half = assembler.reply()
        assert (half.message, half.complete, bool(half.error)) == (whole(name, pieces[:end]), False, True)
    for kind, what in pieces[end:]:
        assembler.feed(event(kind, what))
    assembler.feed(RunnerEvent(kind="usage", usage=Usage(3, 5)))
    assembler.feed(RunnerEvent(kind="done", stop="end"))
    reply = assembler.reply()
    assert (reply.message, reply.usage, reply.complete, reply.error) == (whole(name, pieces), Usage(3, 5), True, "")


@pytest.mark.parametrize("name", NAMES)
def test_how_it_ended_is_kept_in_the_words_of_the_provider(name: str) -> None:
    """An answer that was cut off, which the record of it calls finished."""
    for stop in ("end", "length"):
        assembler = AnswerAssembler(provider(name))
        assembler.feed(RunnerEvent(kind="text", text="Well"))
        assembler.feed(RunnerEvent(kind="done", stop=stop))
        assert stop_of(assembler.reply(), target(name, default_model(name))) == stop


def test_an_error_ends_it_and_chunks_of_a_provider_do_not_go_on_with_it() -> None:
    """An answer that failed looks complete, or its second half is lost in silence."""
    assembler = AnswerAssembler(provider("anthropic"))
    assembler.feed(RunnerEvent(kind="text", text="Well"))
    with pytest.raises(FormatError, match="found a chunk of a provider"):
        assembler.feed({"type": "message_stop"})
    assembler.feed(RunnerEvent(kind="error", error=OSError("no power")))
    assert (assembler.reply().complete, assembler.reply().error) == (False, "no power")


@pytest.mark.parametrize("name", NAMES)
def test_a_session_records_it_and_goes_on(name: str) -> None:
    """A runner of events that works with one provider only."""
    with turnlog.open("s", store=":memory:", target=turnlog.target(name, "scripted/demo")) as session:
        session.user("Look.")
        call = RunnerEvent(kind="tool_call", call=ToolCall("c1", "look", {}))
        thought, end = RunnerEvent(kind="reasoning", text="Hm."), RunnerEvent(kind="done", stop="tool_calls")
        answer = session.receive(iter([thought, call, end]), session.request())
        assert (answer.tool_calls, answer.stop) == ([ToolCall("c1", "look", {})], "tool_calls")
        session.tool_result(answer.tool_calls[0], "a door")
        request = session.request()
        parsed = provider(name).parse(request.body).messages
        assert [type(part) for message in parsed for part in message.parts if isinstance(part, ToolCall)] == [ToolCall]
