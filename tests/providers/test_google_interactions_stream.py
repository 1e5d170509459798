"""The Interactions API: whole answers, and streams that end anywhere."""

from __future__ import annotations

import base64
import copy
import json
import random
from types import ModuleType
from typing import Any

import pytest
from google.genai._gaos.types.interactions import Interaction
from hypothesis import given
from hypothesis import strategies as st
from mutants import attempted, mutant

import turnlog
from turnlog.errors import FormatError
from turnlog.log.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall
from turnlog.models.target import target
from turnlog.providers.google_interactions import PROVIDER
from turnlog.providers.protocol import Reply
from turnlog.testing.histories import PIXEL

NAME = "google-interactions"
PICTURE = base64.b64encode(PIXEL).decode()
BASE = {"id": "v1_x", "object": "interaction", "model": "gemini-3-pro", "created": "2026-11-24T00:00:00Z"}
USAGE = {
    "total_input_tokens": 100,
    "total_cached_tokens": 60,
    "total_output_tokens": 20,
    "total_thought_tokens": 7,
    "total_tool_use_tokens": 5,
    "total_tokens": 132,
}
STEPS: list[dict[str, Any]] = [
    {"type": "thought", "signature": "AAAA", "summary": [{"type": "text", "text": "Look at both."}]},
    {"type": "google_search_call", "id": "s1", "arguments": {"queries": ["fjords"]}, "signature": "BBBB"},
    {"type": "google_search_result", "call_id": "s1", "result": [{"search_suggestions": "<p>"}], "is_error": False},
    {
        "type": "model_output",
        "content": [
            {"type": "text", "text": "I look at both files. 🙂", "annotations": [{"type": "url_citation", "url": "u"}]},
            {"type": "image", "data": PICTURE, "mime_type": "image/png"},
        ],
    },
    {"type": "model_output", "content": [{"type": "text", "text": "Both, then."}]},
    {"type": "function_call", "id": "c1", "name": "read", "arguments": {"path": "a.py", "deep": {"n": [1, None]}}},
    {"type": "function_call", "id": "c2", "name": "read", "arguments": {}},
]
WHOLE = {**BASE, "status": "requires_action", "steps": STEPS, "usage": USAGE}


def pieces(text: str, size: int = 5) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def deltas(step: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What a step starts with, and what comes after."""
    match step["type"]:
        case "thought":
            summary = [{"type": "thought_summary", "content": content} for content in step["summary"]]
            return {"type": "thought"}, [*summary, {"type": "thought_signature", "signature": step["signature"]}]
        case "model_output":
            found: list[dict[str, Any]] = []
            for content in step["content"]:
                if content["type"] == "text":
                    found += [{"type": "text", "text": piece} for piece in pieces(content["text"])]
                    if "annotations" in content:
                        found.append({"type": "text_annotation_delta", "annotations": content["annotations"]})
                else:
                    found.append(content)
            return {"type": "model_output"}, found
        case "function_call":
            spelled = json.dumps(step["arguments"])
            return {**step, "arguments": {}}, [{"type": "arguments_delta", "arguments": one} for one in pieces(spelled)]
        case "google_search_call":
            rest = {key: value for key, value in step.items() if key != "id"}
            return {"type": step["type"], "id": step["id"], "arguments": {}}, [rest]
        case kind:
            rest = {key: value for key, value in step.items() if key != "call_id"}
            return {"type": kind, "call_id": step["call_id"], "result": []}, [rest]


def events(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """A response as the stream that brings it."""
    base = {key: value for key, value in whole.items() if key not in ("steps", "usage", "status")}
    made: list[dict[str, Any]] = [
        {"event_type": "interaction.created", "interaction": {**base, "status": "in_progress"}},
        {"event_type": "interaction.status_update", "interaction_id": base["id"], "status": "in_progress"},
    ]
    for index, step in enumerate(whole["steps"]):
        start, rest = deltas(step)
        made.append({"event_type": "step.start", "index": index, "step": start})
        made += [{"event_type": "step.delta", "index": index, "delta": delta} for delta in rest]
        made.append({"event_type": "step.stop", "index": index})
    end = {**base, "status": whole["status"], "usage": whole.get("usage")}
    return [*made, {"event_type": "interaction.completed", "interaction": end}]


def assembled(chunks: list[Any]) -> Reply:
    assembler = PROVIDER.assembler()
    for chunk in chunks:
        assembler.feed(chunk)
    return assembler.reply()


# -- whole ---------------------------------------------------------------------------------------


def test_a_whole_answer_is_read() -> None:
    """Each kind of step has its place in the message, and the bill is in common terms."""
    reply = PROVIDER.parse_response(WHOLE)
    kinds = [type(part) for part in reply.message.parts]
    assert kinds == [Reasoning, Opaque, Opaque, Text, Media, Text, ToolCall, ToolCall]
    assert (reply.complete, reply.error, reply.stop) == (True, "", "requires_action")
    assert (reply.model, reply.response_id, reply.raw_usage) == ("gemini-3-pro", "v1_x", USAGE)
    assert reply.usage is not None
    assert (reply.usage.input, reply.usage.output, reply.usage.cached, reply.usage.reasoning) == (105, 27, 60, 7)


def test_an_object_of_the_sdk_is_read_as_its_json() -> None:
    """The SDK adds keys without a value, which no request takes."""
    assert PROVIDER.parse_response(Interaction.model_validate(WHOLE)) == PROVIDER.parse_response(WHOLE)


def test_an_answer_goes_back_as_it_came() -> None:
    """A step that comes back otherwise is not the one that was signed."""
    with turnlog.open(target=target(NAME, "gemini-3-pro"), store=":memory:") as session:
        session.configure(tools=[{"name": "read", "parameters": {"type": "object"}}])
        session.user("What is in there?")
        answer = session.receive(WHOLE)
        for call in answer.tool_calls:
            session.tool_result(call, "nothing")
        sent = session.request()
        assert sent.body["input"][1 : 1 + len(STEPS)] == STEPS
        assert sent.body["store"] is False and sent.losses == () and sent.edits == ()


@pytest.mark.parametrize("status", ["failed", "cancelled", "in_progress", "queued", "requires_continuation", "new"])
def test_an_answer_that_did_not_end_is_not_whole(status: str) -> None:
    """Half an answer taken for a whole one is built upon."""
    reply = PROVIDER.parse_response({**WHOLE, "status": status, "errors": [{"code": "x", "message": "It broke."}]})
    assert not reply.complete and reply.error == "x: It broke."
    assert not PROVIDER.parse_response({**WHOLE, "status": status}).complete


@pytest.mark.parametrize("status", ["incomplete", "budget_exceeded", "completed"])
def test_an_answer_that_a_limit_cut_off_is_told_by_its_stop(status: str) -> None:
    """It is all that comes; only whoever looks at `stop` knows that a limit was met."""
    reply = PROVIDER.parse_response({**WHOLE, "status": status})
    assert (reply.complete, reply.stop) == (True, status)


def test_an_output_that_broke_off_says_why_and_is_sent_without_that() -> None:
    """The error is Google's word about the answer, not a word of the answer."""
    broken = {"type": "model_output", "content": [{"type": "text", "text": "So"}], "error": {"code": 8, "message": "m"}}
    reply = PROVIDER.parse_response({**WHOLE, "status": "completed", "steps": [broken]})
    assert (reply.complete, reply.error) == (False, "8: m")
    assert reply.message == Message("assistant", (Text("So"),))


@pytest.mark.parametrize(
    "answer", [{"error": {"code": "invalid_argument", "message": "No."}}, {"candidates": []}, {"id": "x"}, []]
)
def test_what_is_no_answer_is_refused(answer: Any) -> None:
    """Read as an empty answer, it would be appended as one."""
    with pytest.raises(FormatError) as caught:
        PROVIDER.parse_response(answer)
    assert not isinstance(answer, dict) or "error" not in answer or "invalid_argument: No." in str(caught.value)


# -- streams -------------------------------------------------------------------------------------


def test_a_stream_is_the_whole_answer() -> None:
    """Streaming that changes what is kept (a text split, a signature lost) fails here."""
    assert assembled(events(WHOLE)) == PROVIDER.parse_response(WHOLE)


def test_a_stream_cut_anywhere_gives_what_had_come(oracle: ModuleType) -> None:
    """More than had come would be invented, less would be lost; and the next request is accepted."""
    chunks, whole = events(WHOLE), PROVIDER.parse_response(WHOLE)
    said = 0
    for at in range(len(chunks)):
        reply = assembled(chunks[:at])
        assert not reply.complete and reply.error
        assert _begins(reply.message.parts, whole.message.parts)
        length = len(str(reply.message.parts)) + len(str(reply.fragments))
        said = max(said, length if at else 0)
        with turnlog.open(target=target(NAME, "gemini-3-pro"), store=":memory:") as session:
            session.user("What is in there?")
            session.receive(iter(chunks[:at]))
            assert oracle.check_interactions(session.request().body) == [], at
    assert said > 300


def _begins(less: tuple[Part, ...], more: tuple[Part, ...]) -> bool:
    """Whether an answer is a beginning of another. The last text may be cut short."""
    if not less:
        return True
    last, whole = less[-1], more[len(less) - 1]
    cut = isinstance(last, Text) and isinstance(whole, Text) and whole.text.startswith(last.text)
    return less[:-1] == more[: len(less) - 1] and (cut or last == whole)


def test_half_a_call_and_half_a_thought_are_fragments() -> None:
    """Half a call must not run, and a thought without its signature is not sent back."""
    start = [event for event in events(WHOLE) if event.get("index", 0) == 0][:4]
    thought = assembled(start)
    assert thought.message.parts == ()
    assert [type(part) for part in thought.fragments] == [Reasoning]
    call = [event for event in events(WHOLE) if event.get("index") == 5][:3]
    half = assembled([events(WHOLE)[0], *call])
    assert half.message.parts == ()
    assert half.fragments == (ToolCall("c1", "read", raw='{"path": "', provider=NAME),)


def test_steps_may_come_by_turns() -> None:
    """Events name the step that they belong to: nothing says that one ends before the next begins."""
    chunks = events(WHOLE)
    by_turns = [chunks[0], *(event for event in chunks if "index" in event), chunks[-1]]
    rng = random.Random(1)
    queues = [[event for event in by_turns if event.get("index") == n] for n in range(len(STEPS))]
    mixed: list[dict[str, Any]] = []
    while any(queues):
        mixed.append(rng.choice([queue for queue in queues if queue]).pop(0))
    assert assembled([chunks[0], *mixed, chunks[-1]]) == PROVIDER.parse_response(WHOLE)


def test_a_call_that_a_limit_cut_off_does_not_run() -> None:
    """Its step is closed like any other; only its arguments tell that they broke off."""
    chunks = events({**WHOLE, "status": "incomplete", "steps": STEPS[3:6]})
    kept = [event for event in chunks if event.get("index") != 2 or event["event_type"] != "step.delta"]
    start = next(i for i, event in enumerate(kept) if event.get("index") == 2)
    half = {"event_type": "step.delta", "index": 2, "delta": {"type": "arguments_delta", "arguments": '{"path": "a'}}
    reply = assembled([*kept[: start + 1], half, *kept[start + 1 :]])
    assert (reply.complete, reply.stop) == (True, "incomplete")
    assert reply.fragments == (ToolCall("c1", "read", raw='{"path": "a', provider=NAME),)
    assert [type(part) for part in reply.message.parts] == [Text, Media, Text]


def test_steps_need_no_end_of_their_own() -> None:
    """The end of the interaction is that of its steps: some servers leave out the other."""
    chunks = [event for event in events(WHOLE) if event["event_type"] != "step.stop"]
    assert assembled(chunks) == PROVIDER.parse_response(WHOLE)


def test_an_error_in_mid_stream_is_told() -> None:
    """What came before it is kept, and the reason beside it."""
    chunks = [*events(WHOLE)[:20], {"event_type": "error", "error": {"code": "unavailable", "message": "Busy."}}]
    reply = assembled(chunks)
    assert (reply.complete, reply.error) == (False, "unavailable: Busy.")
    assert reply.message.parts


def test_pieces_of_a_sound_are_one() -> None:
    """Each piece by itself would be a sound of its own."""
    sound = [b"RIFF1", b"RIFF22", b"RIFF333"]
    found = [{"type": "audio", "data": base64.b64encode(one).decode(), "mime_type": "audio/wav"} for one in sound]
    chunks = [
        {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
        *({"event_type": "step.delta", "index": 0, "delta": delta} for delta in found),
        {"event_type": "step.stop", "index": 0},
        {"event_type": "interaction.completed", "interaction": {**BASE, "status": "completed"}},
    ]
    reply = assembled(chunks)
    (part,) = reply.message.parts
    assert isinstance(part, Media) and reply.blobs[part.sha256] == b"".join(sound)


def test_steps_that_only_the_last_event_has_are_taken() -> None:
    """A server that streams no steps is still heard."""
    end = {"event_type": "interaction.completed", "interaction": WHOLE}
    assert assembled([events(WHOLE)[0], end]) == PROVIDER.parse_response(WHOLE)


@given(seed=st.integers(min_value=0, max_value=2**32))
def test_broken_events_are_refused_with_a_path_or_read(seed: int) -> None:
    """A TypeError from the depths would end the session of whoever streams."""
    rng = random.Random(seed)
    chunks: list[Any] = copy.deepcopy(events(WHOLE))
    for _ in range(2):
        at = rng.randrange(len(chunks))
        chunks[at] = mutant(chunks[at], rng)
    assembler = PROVIDER.assembler()
    for chunk in chunks:
        refused = attempted(lambda chunk=chunk: assembler.feed(chunk))  # type: ignore[misc]
        assert not isinstance(refused, FormatError) or refused.path
    reply = assembler.reply()
    assert reply.complete or reply.error


@given(seed=st.integers(min_value=0, max_value=2**32))
def test_a_broken_answer_is_refused_with_a_path_or_read(seed: int) -> None:
    """The same for whole answers."""
    reply = attempted(lambda: PROVIDER.parse_response(mutant(WHOLE, random.Random(seed))))
    assert isinstance(reply, Reply) or reply.path
