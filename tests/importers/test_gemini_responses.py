"""Recorded answers of Google's API, and the shared real ones."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from test_real_transcripts import damaged
from transcripts import bodies_of, jsonl, of_kind

from turnlog.errors import ImportFailed
from turnlog.importers import Imported, detect, read_file
from turnlog.log.codec import encode_record
from turnlog.log.messages import Message, Reasoning, Text, ToolCall
from turnlog.log.records import MessageRecord, Note, PartialAnswer, Record, UsageRecord
from turnlog.log.usage import Usage

UNCOUNTED = {
    "hooks-system.tail-tool-call.responses": 1,
    "json-output.session-id.responses": 1,
    "parallel-tools.responses": 1,
    "perf.long-chat.responses": -1,
}
"""Where the manifest, which counts line ends, differs: three files lack the last one, and one line of
the fourth counts tokens and is no answer."""


def chunk(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A response with one candidate."""
    return {"candidates": [{"content": {"parts": list(parts), "role": "model"}, "index": 0, **more}]}


def recorded(response: Any, method: str = "generateContentStream") -> dict[str, Any]:
    """A line."""
    return {"method": method, "response": response}


def test_each_line_is_an_answer_whole_or_streamed() -> None:
    """A streamed answer read chunk by chunk would be many messages."""
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 2, "thoughtsTokenCount": 3}
    named = {"usageMetadata": usage, "modelVersion": "gemini-x", "responseId": "r1"}
    streamed = [
        chunk({"text": "hm", "thought": True}),
        chunk({"text": "It "}),
        {**chunk({"text": "is."}, finishReason="STOP"), **named},
    ]
    call = {"functionCall": {"id": "c1", "name": "shell", "args": {"c": 1}}}
    whole = chunk(call, finishReason="STOP")
    (session,) = read_file(jsonl([recorded(streamed), recorded(whole, "generateContent")]))
    assert bodies_of(session) == [
        MessageRecord(
            Message("assistant", (Reasoning("google", text="hm"), Text("It is."))),
            model="gemini-x",
            stop="STOP",
            response_id="r1",
            source="line 1",
        ),
        UsageRecord("google", "gemini-x", Usage(input=7, output=5, reasoning=3), raw=usage),
        MessageRecord(
            Message("assistant", (ToolCall("c1", "shell", {"c": 1}, provider="google"),)), stop="STOP", source="line 2"
        ),
    ]
    assert (session.format, session.title) == ("gemini-responses", "It is.")


def test_a_recording_that_grows_keeps_its_id(tmp_path: Path) -> None:
    """Each answer that is added makes another session of all; recordings that begin alike become one."""
    lines = [recorded(chunk({"text": text}, finishReason="STOP")) for text in ("one", "two")]
    ids = []
    for name, size in (("a", 1), ("a", 2), ("b", 2)):
        (tmp_path / name).write_bytes(jsonl(lines[:size]))
        ids.append(read_file(tmp_path / name)[0].session_id)
    assert ids[0] == ids[1] != ids[2]


def test_a_count_that_is_no_number_is_none() -> None:
    """`true` in the place of a number of tokens: a record that can be written, and that no command can read."""
    usage = {"promptTokenCount": True, "candidatesTokenCount": 2, "thoughtsTokenCount": True}
    answer = {**chunk({"text": "It is."}, finishReason="STOP"), "usageMetadata": usage}
    (session,) = read_file(jsonl([recorded(answer, "generateContent")]))
    (bill,) = of_kind(session, UsageRecord)
    assert msgspec.to_builtins(bill.usage) == {"output": 2, "incomplete": True}


def test_what_is_no_answer_or_more_than_one_is_kept() -> None:
    """Token counts, grounding and other candidates have no place in a message."""
    other = {"content": {"parts": [{"text": "or that"}]}, "index": 1}
    grounded = chunk({"text": "this"}, finishReason="STOP", groundingMetadata={"webSearchQueries": ["q"]})
    grounded["candidates"].append(other)
    count = recorded({"totalTokens": 100}, "countTokens")
    (session,) = read_file(jsonl([{**recorded(grounded), "seed": 5}, count]))
    assert [(note.topic, note.data) for note in of_kind(session, Note)] == [
        ("response", {
            "seed": 5,
            "responses": [{"candidates": [{"groundingMetadata": {"webSearchQueries": ["q"]}}, other]}],
        }),
        ("countTokens", count),
    ]  # fmt: skip


def test_an_answer_that_broke_off_is_no_whole_one() -> None:
    """Half a sentence taken for an answer is the worst of it."""
    (session,) = read_file(jsonl([recorded([chunk({"text": "It i"})]), recorded({"odd": 1})]))
    assert of_kind(session, PartialAnswer) == [
        PartialAnswer(Message("assistant", (Text("It i"),)), "the stream ended before a finishReason")
    ]
    assert of_kind(session, Note) == [Note("unreadable", data=recorded({"odd": 1}))]
    assert [warning.line for warning in session.warnings] == [2]


def test_a_call_that_did_not_come_to_its_end_is_kept() -> None:
    """It was left out of an answer that counted as whole."""
    begun = {
        "functionCall": {"name": "f", "partialArgs": [{"jsonPath": "$.n", "numberValue": 5}], "willContinue": True}
    }
    whole = {"functionCall": {"id": "c1", "name": "g", "args": {}}}
    (session,) = read_file(jsonl([recorded([chunk(begun), chunk(whole, finishReason="STOP")])]))
    call, half = ToolCall("c1", "g", {}, provider="google"), ToolCall("", "f", raw='{"n":5}', provider="google")
    assert bodies_of(session) == [
        PartialAnswer(Message("assistant", (call,)), "a call in it did not come to its end", fragments=(half,))
    ]


@pytest.mark.parametrize("kind", ["bare", "lines", "stream", "document"])
def test_responses_without_their_method_are_read(kind: str) -> None:
    """As people keep them from curl or a log."""
    one = chunk({"text": "hi"}, finishReason="STOP")
    data = {
        "bare": json.dumps(one, indent=2).encode(),
        "lines": jsonl([one]),
        "stream": json.dumps([chunk({"text": "h"}), chunk({"text": "i"}, finishReason="STOP")]).encode(),
        "document": json.dumps([recorded(one)]).encode(),
    }[kind]
    (session,) = read_file(data)
    assert [record.message for record in of_kind(session, MessageRecord)] == [Message("assistant", (Text("hi"),))]


def answers_of(session: Imported) -> list[Message]:
    """The answers, whole and broken off."""
    return [body.message for body in bodies_of(session) if isinstance(body, (MessageRecord, PartialAnswer))]


def test_counts_agree_with_the_manifest(shared: Path) -> None:
    """An answer or a call lost on import would not be missed by any other test."""
    checked = 0
    for entry in json.loads((shared / "data/manifest.json").read_text("utf-8")):
        if entry["format"] != "gemini-responses":
            continue
        path = shared / "data" / entry["file"]
        (session,) = read_file(path)
        messages = answers_of(session)
        calls = sum(isinstance(part, ToolCall) for message in messages for part in message.parts)
        expected = entry["stats"]["messages"] + UNCOUNTED.get(path.name, 0), entry["stats"]["calls"]
        assert (path.name, (len(messages), calls)) == (path.name, expected)
        assert session.warnings == ()
        assert (detect(path).name, session.title) == ("gemini-responses", path.stem)
        checked += 1
    assert checked == 71


def test_every_part_of_an_answer_is_in_its_message(shared: Path) -> None:
    """Texts, thoughts and arguments word for word, signatures too: nothing is lost on the way in."""
    signatures = 0
    for path in sorted((shared / "data/gemini-cli-responses").glob("*.responses")):
        messages = answers_of(read_file(path)[0])
        encoded = msgspec.json.encode(messages).decode()
        seen = ""
        for line in path.read_text("utf-8").splitlines():
            response = json.loads(line)["response"]
            for one in response if isinstance(response, list) else [response]:
                for candidate in one.get("candidates", []):
                    for part in candidate.get("content", {}).get("parts", []):
                        seen += part.get("text", "")
                        seen += json.dumps(part["functionCall"]["args"]) if "functionCall" in part else ""
                        signatures += "thoughtSignature" in part
                        assert part.get("thoughtSignature", "") in encoded
        kept = ""
        for message in messages:
            for part in message.parts:
                kept += part.text if isinstance(part, (Text, Reasoning)) else ""
                kept += json.dumps(part.arguments) if isinstance(part, ToolCall) else ""
        assert (path.name, kept) == (path.name, seen)
    assert signatures == 59


@pytest.mark.parametrize("seed", range(20))
def test_damage_is_a_warning_and_never_a_crash(shared: Path, seed: int) -> None:
    """People import what they have left; an exception keeps all of it from them."""
    rng = random.Random(seed)
    path = rng.choice(sorted((shared / "data/gemini-cli-responses").glob("*.responses")))
    data = damaged(path.read_bytes(), rng)
    try:
        found = read_file(data)
    except ImportFailed:
        return
    for session in found:
        for n, draft in enumerate(session.drafts, 1):
            encode_record(Record(n, draft.time, draft.body))
    assert found == read_file(data)
