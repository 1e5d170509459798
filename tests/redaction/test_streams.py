"""No checkpoint of a stream holds a part of a secret, wherever the stream was cut into chunks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from planted import SECRETS, letters

import turnlog
from draws import examples
from turnlog.log.records import Record, StreamCheckpoint
from turnlog.stores import MemoryStore

Event = dict[str, Any]
Say = Callable[[list[str]], Iterator[Event]]

LONG_JWT = ".".join(("eyJ" + letters(1, 600), "eyJ" + letters(2, 4_000), letters(3, 300)))
PLANTED = {**SECRETS, "long jwt": (LONG_JWT, LONG_JWT)}
PLAIN = "There it was, all of it. "


def _chat(delta: Event) -> Event:
    return {"choices": [{"index": 0, "delta": delta}]}


def _chat_text(pieces: list[str]) -> Iterator[Event]:
    yield from (_chat({"content": piece}) for piece in pieces)


def _chat_reasoning(pieces: list[str]) -> Iterator[Event]:
    yield from (_chat({"reasoning_content": piece}) for piece in pieces)
    yield from _chat_text([PLAIN])


def _chat_around_a_call(pieces: list[str]) -> Iterator[Event]:
    """The text goes on after a call has fully come."""
    half = len(pieces) // 2
    yield from _chat_text(pieces[:half])
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    yield _chat({"tool_calls": [call]})
    yield from _chat_text(pieces[half:])


def _chat_arguments(pieces: list[str]) -> Iterator[Event]:
    for piece in _cut_alike(json.dumps({"command": "".join(pieces), "why": PLAIN}), pieces):
        yield _chat({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "run", "arguments": piece}}]})


def _anthropic(kind: str, start: Event, delta: str, key: str, pieces: list[str]) -> Iterator[Event]:
    yield {"type": "message_start", "message": {"role": "assistant", "model": "claude-sonnet-4-5"}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": kind, **start}}
    for piece in pieces:
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": delta, key: piece}}


def _anthropic_thinking(pieces: list[str]) -> Iterator[Event]:
    yield from _anthropic("thinking", {"thinking": ""}, "thinking_delta", "thinking", pieces)


def _anthropic_arguments(pieces: list[str]) -> Iterator[Event]:
    said = _cut_alike(json.dumps({"command": "".join(pieces), "why": PLAIN}), pieces)
    yield from _anthropic("tool_use", {"id": "c", "name": "run", "input": {}}, "input_json_delta", "partial_json", said)


def _anthropic_server_tool(pieces: list[str]) -> Iterator[Event]:
    said = _cut_alike(json.dumps({"query": "".join(pieces), "why": PLAIN}), pieces)
    start = {"id": "srvtoolu_1", "name": "web_search", "input": {}}
    yield from _anthropic("server_tool_use", start, "input_json_delta", "partial_json", said)


def _responses_summary(pieces: list[str]) -> Iterator[Event]:
    added = {"type": "reasoning", "id": "rs_1", "summary": []}
    yield {"type": "response.output_item.added", "output_index": 0, "item": added}
    for index, said in enumerate((pieces, [PLAIN])):
        for piece in said:
            yield {
                "type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": index,
                "delta": piece,
            }  # fmt: skip


MODELS = {"openai-chat": "gpt-4o", "openai-responses": "gpt-5", "anthropic": "claude-sonnet-4-5"}
STREAMS: dict[str, tuple[str, Say]] = {
    "text": ("openai-chat", _chat_text),
    "text around a call": ("openai-chat", _chat_around_a_call),
    "reasoning": ("openai-chat", _chat_reasoning),
    "arguments": ("openai-chat", _chat_arguments),
    "thinking": ("anthropic", _anthropic_thinking),
    "anthropic arguments": ("anthropic", _anthropic_arguments),
    "the input of a hosted tool": ("anthropic", _anthropic_server_tool),
    "summary": ("openai-responses", _responses_summary),
}


def _cut_alike(text: str, pieces: list[str]) -> list[str]:
    """`text` in as many chunks as `pieces`, about where those end."""
    ends, place = [0], 0
    for piece in pieces[:-1]:
        place += len(piece)
        ends.append(min(place, len(text)))
    return [text[start:end] for start, end in zip(ends, [*ends[1:], len(text)], strict=True)]


def _pieces(text: str, cuts: list[int]) -> list[str]:
    ends = sorted({cut % len(text) for cut in cuts} | {0, len(text)})
    return [text[start:end] for start, end in pairwise(ends)]


def _streamed(said: str, pieces: list[str]) -> list[Record]:
    """The log after a stream of which every chunk was followed by a look."""
    provider, say = STREAMS[said]
    target = turnlog.target(provider, MODELS[provider])
    session = turnlog.open("s", target=target, store=MemoryStore(), settings=turnlog.Settings(checkpoint=0.0))
    session.receive(say(pieces))
    return session.history()


def _parts_left(records: list[Record], text: str, secret: str) -> list[tuple[int, str]]:
    """Records that hold the first 12 characters of a secret, or of a line of its, or all of a shorter one."""
    lines = [line for line in text.split("\n") if line[:1] != "-"] if "PRIVATE KEY" in text else [secret]
    wanted = [line[:12] for line in lines]
    return [(record.n, one) for record in records for one in wanted if one.encode() in (record.raw or b"")]


@pytest.mark.parametrize("said", STREAMS)
@settings(max_examples=examples(30, 1_000), deadline=None)
@given(st.sampled_from(sorted(PLANTED)), st.lists(st.integers(0, 6_000), min_size=1, max_size=12))
@example("long jwt", list(range(20, 5_000, 200)))
@example("jwt", list(range(20, 200, 7)))
@example("rsa key", list(range(0, 700, 9)))
def test_no_record_holds_a_part_of_a_secret(said: str, name: str, cuts: list[int]) -> None:
    """The first half of a key looks like no key. It would stay on disk in a checkpoint when the answer has only a mark:
    before a call, in a summary of reasoning, in arguments, in a key longer than any window."""
    text, secret = PLANTED[name]
    records = _streamed(said, _pieces(f"{PLAIN}{text} {PLAIN}", cuts))
    assert _parts_left(records, text, secret) == []


@pytest.mark.parametrize("said", sorted(STREAMS.keys() - {"the input of a hosted tool"}))
def test_checkpoints_hold_what_is_said(said: str) -> None:
    """A checkpoint that held nothing would keep no secret either, and no word."""
    records = _streamed(said, [PLAIN] * 8)
    kept = [record for record in records if isinstance(record.body, StreamCheckpoint)]
    assert len(kept) >= 4
    assert b"There it was, all of " in (kept[-1].raw or b"")


@pytest.mark.parametrize("pattern", [r"\d{4} \d{4} \d{4} \d{4}", r"4[\d\s]{18}", r"4111.{15}"])
def test_no_checkpoint_holds_words_of_a_secret_of_several(pattern: str) -> None:
    """Twelve of the sixteen digits of a card on disk for good: the last four came with the next chunk, and where a
    pattern of one's own takes spaces, the word at the end of what has come is not all that may be of a secret."""
    text = "There it was.\nThe card is 4111 2222 3333 4444, and that is all.\nEnd"
    redactor = turnlog.Redactor({"card": pattern})
    store = MemoryStore()
    aim = turnlog.target("openai-chat", "gpt-4o")
    with turnlog.open(
        "s", store=store, target=aim, settings=turnlog.Settings(redact=redactor, checkpoint=0.0)
    ) as session:
        session.user("go")
        session.receive(_chat_text(list(text)))
    raws = [record.raw or b"" for record in store.read("s")]
    assert not any(part in raw for raw in raws for part in (b"4111", b"2222", b"3333", b"4444"))
    kept = [record.body for record in store.read("s") if isinstance(record.body, StreamCheckpoint)]
    assert [_said(body) for body in kept] == [
        "There it was.\n", "There it was.\nThe card is [redacted:card], and that is all.\n",
    ]  # fmt: skip


def _said(checkpoint: StreamCheckpoint) -> str:
    (part,) = checkpoint.message.parts
    assert isinstance(part, turnlog.Text)
    return part.text
