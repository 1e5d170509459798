"""Streams of every API, cut anywhere and badly ended: what has come of an answer is never lost.

The words of an answer are marked, each with a number of its own, so that it can be told whether a word is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from draws import examples
from turnlog.errors import FormatError
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import PartialAnswer
from turnlog.models.target import Target, target
from turnlog.providers import provider
from turnlog.providers.protocol import Reply
from turnlog.runners.protocol import EventReader
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

Event = dict[str, Any]
Piece = tuple[str, list[str]]
"""What an answer says at one place: of which kind, and the words in which it comes."""

_MARK = re.compile(r"w\d+w")
_NUMBERED = st.lists(
    st.tuples(st.sampled_from(["text", "thinking", "call"]), st.integers(1, 4)), min_size=1, max_size=5
)


def answer(shape: list[tuple[str, int]]) -> list[Piece]:
    """The pieces of an answer, every word with a number of its own."""
    said, nth = [], 0
    for kind, words in shape:
        said.append((kind, [f"w{nth + i}w " for i in range(words)]))
        nth += words
    return said


def arguments(words: list[str]) -> list[str]:
    """Words as the pieces of a call's arguments."""
    return ['{"at": "', *words, '"}']


def chat(pieces: list[Piece], *, whole: bool) -> list[Event]:
    """An answer of Chat Completions: texts run together, calls have an index. `whole` adds the chunk that ends it."""
    calls = 0
    found: list[Event] = []

    def chunk(delta: Event, finish: str | None = None) -> Event:
        return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    for kind, words in pieces:
        if kind == "call":
            head = {"index": calls, "id": f"call_{calls}", "type": "function"}
            found.append(chunk({"tool_calls": [{**head, "function": {"name": "look", "arguments": ""}}]}))
            found += [
                chunk({"tool_calls": [{"index": calls, "function": {"arguments": text}}]}) for text in arguments(words)
            ]
            calls += 1
        else:
            key = "content" if kind == "text" else "reasoning_content"
            found += [chunk({key: word}) for word in words]
    return [*found, chunk({}, "tool_calls" if calls else "stop")] if whole else found


def responses(pieces: list[Piece], *, whole: bool) -> list[Event]:
    """An answer of the Responses API: an item each, with its deltas and what it came to."""
    found: list[Event] = []
    items: list[Event] = []
    for at, (kind, words) in enumerate(pieces):
        where: Event = {"output_index": at, "item_id": f"i{at}"}
        text = "".join(arguments(words) if kind == "call" else words)
        if kind == "text":
            head = {"type": "message", "id": f"i{at}", "role": "assistant", "status": "in_progress", "content": []}
            done = {
                **head,
                "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}],
            }
            deltas = [{"type": "response.output_text.delta", "content_index": 0, "delta": word} for word in words]
        elif kind == "thinking":
            head = {"type": "reasoning", "id": f"i{at}", "summary": []}
            done = {**head, "summary": [{"type": "summary_text", "text": text}], "encrypted_content": "ZW5j"}
            name = "response.reasoning_summary_text.delta"
            deltas = [{"type": name, "summary_index": 0, "delta": word} for word in words]
        else:
            head = {"type": "function_call", "id": f"i{at}", "call_id": f"call_{at}", "name": "look", "arguments": ""}
            done = {**head, "arguments": text, "status": "completed"}
            name = "response.function_call_arguments.delta"
            deltas = [{"type": name, "delta": word} for word in arguments(words)]
        found.append({"type": "response.output_item.added", **where, "item": head})
        found += [{**delta, **where} for delta in deltas]
        found.append({"type": "response.output_item.done", **where, "item": done})
        items.append(done)
    last = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": items}}
    return [*found, last] if whole else found


def anthropic(pieces: list[Piece], *, whole: bool) -> list[Event]:
    """An answer of the Messages API: a block each."""
    message = {"id": "msg", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []}
    found: list[Event] = [{"type": "message_start", "message": message}]
    for at, (kind, words) in enumerate(pieces):
        if kind == "call":
            block: Event = {"type": "tool_use", "id": f"toolu_{at}", "name": "look", "input": {}}
            deltas: list[Event] = [{"type": "input_json_delta", "partial_json": text} for text in arguments(words)]
        elif kind == "text":
            block = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": word} for word in words]
        else:
            block = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": word} for word in words]
            deltas.append({"type": "signature_delta", "signature": "c2ln"})
        found.append({"type": "content_block_start", "index": at, "content_block": block})
        found += [{"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas]
        found.append({"type": "content_block_stop", "index": at})
    stop = "tool_use" if any(kind == "call" for kind, _ in pieces) else "end_turn"
    ends = [{"type": "message_delta", "delta": {"stop_reason": stop}}, {"type": "message_stop"}]
    return [*found, *ends] if whole else found


def google(pieces: list[Piece], *, whole: bool) -> list[Event]:
    """An answer of generateContent: parts, calls in one piece."""
    parts: list[Event] = []
    for kind, words in pieces:
        if kind == "call":
            parts.append({"functionCall": {"name": "look", "args": {"at": "".join(words)}}})
        else:
            parts += [{"text": word, **({"thought": True} if kind == "thinking" else {})} for word in words]
    found: list[Event] = [
        {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]} for part in parts
    ]
    return [*found, {"candidates": [{"index": 0, "finishReason": "STOP"}]}] if whole else found


def interactions(pieces: list[Piece], *, whole: bool) -> list[Event]:
    """An answer of the Interactions API: a step each."""
    found: list[Event] = [{"event_type": "interaction.created", "interaction": {"id": "v", "status": "in_progress"}}]
    for at, (kind, words) in enumerate(pieces):
        if kind == "call":
            step: Event = {"type": "function_call", "id": f"c{at}", "name": "look", "arguments": {}}
            deltas: list[Event] = [{"type": "arguments_delta", "arguments": text} for text in arguments(words)]
        elif kind == "text":
            step = {"type": "model_output"}
            deltas = [{"type": "text", "text": word} for word in words]
        else:
            step = {"type": "thought"}
            contents = [{"type": "text", "text": word} for word in words]
            deltas = [{"type": "thought_summary", "content": content} for content in contents]
            deltas.append({"type": "thought_signature", "signature": "c2ln"})
        found.append({"event_type": "step.start", "index": at, "step": step})
        found += [{"event_type": "step.delta", "index": at, "delta": delta} for delta in deltas]
        found.append({"event_type": "step.stop", "index": at})
    status = "requires_action" if any(kind == "call" for kind, _ in pieces) else "completed"
    end = {"event_type": "interaction.completed", "interaction": {"id": "v", "status": status}}
    return [*found, end] if whole else found


APIS: dict[str, tuple[Target, Callable[..., list[Event]]]] = {
    "openai-chat": (target("openai-chat", "gpt-4o"), chat),
    "openai-responses": (target("openai-responses", "gpt-5"), responses),
    "anthropic": (target("anthropic", "claude-sonnet-4-5"), anthropic),
    "google": (target("google", "gemini-2.5-pro"), google),
    "google-interactions": (target("google-interactions", "gemini-2.5-pro"), interactions),
}
_ENDINGS = ("response.output_item.done", "content_block_stop", "message_delta", "step.stop")
"""Events that say no word that others did not say, and that some servers leave out."""


def fed(name: str, events: list[Event]) -> tuple[Reply, str]:
    """What is made of these events, and all that they said until one could not be read."""
    assembler = provider(name).assembler()
    taken = []
    for event in events:
        try:
            assembler.feed(event)
        except FormatError:
            continue
        taken.append(event)
    return assembler.reply(), json.dumps(taken)


def words(value: Any) -> set[str]:
    """The marked words in a value."""
    return set(_MARK.findall(value if isinstance(value, str) else repr(value)))


def kept(reply: Reply) -> set[str]:
    """The marked words that are kept of an answer."""
    return words([reply.message, reply.fragments])


@pytest.mark.parametrize("name", sorted(APIS))
@given(shape=_NUMBERED, data=st.data())
@settings(max_examples=examples(80, 1_000), deadline=None)
def test_every_word_that_came_is_kept(name: str, shape: list[tuple[str, int]], data: st.DataObject) -> None:
    """A word that came and is kept nowhere was paid for and is gone: whatever the stream leaves out behind it, and
    wherever it ends."""
    events = APIS[name][1](answer(shape), whole=True)
    unsaid = data.draw(st.sets(st.integers(0, len(events) - 1)) | st.just(set(range(len(events)))), label="unsaid")
    kinds = [event.get("type") or event.get("event_type") for event in events]
    events = [event for i, event in enumerate(events) if i not in unsaid or kinds[i] not in _ENDINGS]
    unlisted = data.draw(st.sets(st.integers(0, len(shape) - 1)), label="unlisted")
    for response in (event["response"] for event in events if "response" in event):
        response["output"] = [item for i, item in enumerate(response["output"]) if i not in unlisted]
    end = data.draw(st.just(len(events)) | st.integers(0, len(events)), label="cut at")
    reply, said = fed(name, events[:end])
    assert kept(reply) == words(said)


@pytest.mark.parametrize("name", sorted(APIS))
@given(shape=_NUMBERED, data=st.data())
@settings(max_examples=examples(40, 1_000), deadline=None)
def test_what_is_shown_while_it_comes_is_what_was_said(
    name: str, shape: list[tuple[str, int]], data: st.DataObject
) -> None:
    """A word that is shown twice, late, never, or as another kind of text than it is, fails here."""
    said = answer(shape)
    events = APIS[name][1](said, whole=True)
    end = data.draw(st.just(len(events)) | st.integers(0, len(events)), label="cut at")
    reader = EventReader(APIS[name][0])
    shown = [event for chunk in events[:end] for event in reader.feed(chunk)]
    came = "".join(str(event) for event in events[:end] if event.get("type") not in ("response.completed", *_ENDINGS))
    ended = reader.end()
    for kind, shown_as in (("text", "text"), ("thinking", "reasoning")):
        told = [word for each, each_words in said if each == kind for word in each_words if word in came]
        assert "".join(event.text for event in shown if event.kind == shown_as) == "".join(told)
    assert [event.kind for event in ended if event.kind in ("text", "reasoning")] == []
    assert ended[-1].kind in ("done", "error") and (end < len(events) or ended[-1].kind == "done")


@pytest.mark.parametrize("name", sorted(APIS))
@given(shape=_NUMBERED, more=_NUMBERED, data=st.data())
@settings(max_examples=examples(40, 1_000), deadline=None)
def test_a_session_goes_on_behind_any_cut(
    name: str, shape: list[tuple[str, int]], more: list[tuple[str, int]], data: st.DataObject
) -> None:
    """Behind half an answer the next one has to find a conversation that its provider takes, live and opened again, in
    which every word that may be sent still stands."""
    aim, events_of = APIS[name]
    events = events_of(answer(shape), whole=True)
    end = data.draw(st.integers(0, len(events)), label="cut at")
    store = MemoryStore()
    store.create("s")
    session = Session(store, store.info("s"))
    session.switch(aim)
    session.user("Look.")
    got = session.receive(iter(events[:end]))
    for call in (part for part in got.message.parts if isinstance(part, ToolCall)):
        session.add(Message("user", (ToolResult(call.id, call.name, (Text("found"),)),)))
    session.user("Go on.")
    made = session.request()
    assert Session(store, store.info("s")).request().json() == made.json()
    sent = {word for part in got.message.parts if isinstance(part, (Text, ToolCall)) for word in words(part)}
    assert sent <= words(json.dumps(made.body))
    assert turnlog.check(made.body, provider=name) == []


@pytest.mark.parametrize(("came", "asked"), list(permutations(sorted(APIS), 2)))
@pytest.mark.filterwarnings("ignore::turnlog.models.UnknownModelWarning")
def test_a_stream_of_another_provider_is_told_as_that(came: str, asked: str) -> None:
    """Received without the target that was asked, an answer was gone, and the log told of a stream that had ended."""
    session = turnlog.open("wrong", target=APIS[asked][0], store=MemoryStore())
    session.user("hi")
    with suppress(FormatError):
        session.receive(iter(APIS[came][1](answer([("text", 3)]), whole=True)))
    told = next(record.body for record in session.history() if isinstance(record.body, PartialAnswer))
    assert not told.message.parts
    assert "FormatError" in told.reason or "`target`" in told.reason
