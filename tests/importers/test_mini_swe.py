"""mini-swe-agent trajectories: real ones against the manifest, and one habit of theirs a test."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from mangling import check_damage, counted, stats_in_manifest
from transcript_stats import stats_of
from transcripts import messages_of, of_kind

from turnlog.errors import ImportFailed
from turnlog.importers import Imported, detect, read_file
from turnlog.importers.catalog import NAMED
from turnlog.log.messages import Message, Reasoning, Text, ToolCall, ToolResult, text_of
from turnlog.log.records import Configuration, MessageRecord, Note, UsageRecord
from turnlog.log.usage import Usage


def response(content: str | None, **message: Any) -> dict[str, Any]:
    """A recorded answer."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content, **message}}
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}, "cost": 0.1}
    return {"id": "gen-1", "model": "m-1", "created": 1_763_506_508, "choices": [choice], "usage": usage}


def answer(content: str, of: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """An answer as the trajectory has it."""
    extra = {"response": response(content) if of is None else of, **more}
    return {"role": "assistant", "content": content, "extra": extra}


def imported(*messages: Any, **more: Any) -> Imported:
    """The session of a trajectory."""
    run = {"info": {"mini_version": "1.15.0"}, "messages": messages, "instance_id": "i-1", **more}
    (session,) = read_file(json.dumps(run).encode())
    return session


def notes(session: Imported, topic: str) -> list[Any]:
    """What the notes of a topic hold."""
    return [note.data for note in of_kind(session, Note) if note.topic == topic]


def test_counts_agree_with_the_manifest(shared: Path) -> None:
    """A message lost on import would not be missed by any other test."""
    files = stats_in_manifest(shared, "mini-swe-traj")
    for path, wanted in files:
        (session,) = read_file(path)
        assert counted(stats_of(session), wanted, messages="canonical") == {}
        document = json.loads(path.read_bytes())
        wires = document["messages"] if isinstance(document, dict) else document
        assert [text_of(message) for message in messages_of(session)] == [wire["content"] for wire in wires]
        assert (session.format, session.warnings) == ("mini-swe-traj", ())
    assert len(files) == 10


def test_the_bill_is_that_of_the_requests(shared: Path) -> None:
    """Every request's usage is recorded once, with what it cost."""
    for path, _ in stats_in_manifest(shared, "mini-swe-traj"):
        document = json.loads(path.read_bytes())
        if isinstance(document, list):
            continue
        told = [wire["extra"]["response"]["usage"] for wire in document["messages"] if "extra" in wire]
        found = of_kind(read_file(path)[0], UsageRecord)
        assert [record.raw for record in found] == told
        assert sum(record.usage.input for record in found) == sum(usage["prompt_tokens"] for usage in told)


def test_an_answer_is_the_response_behind_it() -> None:
    """Reasoning, usage, time and id of an answer stand in the response only."""
    details = [{"type": "reasoning.encrypted", "data": "AAAA"}]
    blocks = [{"type": "text", "text": "look, then list what is in the folder"}]
    whole = response(blocks[0]["text"], reasoning="hm", reasoning_details=details, content_blocks=blocks)
    session = imported({"role": "user", "content": "do"}, answer(blocks[0]["text"], whole, cost=0.5))
    record = of_kind(session, MessageRecord)[1]
    assert record.message.role == "assistant"
    assert [type(part) for part in record.message.parts] == [Reasoning, Text]
    assert (record.model, record.stop, record.response_id) == ("m-1", "stop", "gen-1")
    (usage,) = of_kind(session, UsageRecord)
    assert (usage.usage, usage.raw) == (Usage(input=9, output=4, cached=5, charged=Decimal("0.1")), whole["usage"])
    assert notes(session, "reasoning_details") == [details]
    assert notes(session, "extra") == [{"source": "messages[1]", "cost": 0.5}]
    assert {draft.time for draft in session.drafts} == {"2025-11-18T22:55:08.000Z"}


def test_an_answer_that_was_changed_is_what_the_model_saw_again() -> None:
    """mini-swe-agent sends back the trajectory's text; the response's own is kept beside it."""
    session = imported(answer("edited", response("as it came")))
    assert messages_of(session) == [Message("assistant", (Text("edited"),))]
    assert of_kind(session, UsageRecord)[0].usage == Usage(input=9, output=4, cached=5, charged=Decimal("0.1"))
    assert notes(session, "extra")[0]["response"]["choices"][0]["message"]["content"] == "as it came"


def test_calls_of_version_2() -> None:
    """Since 2.0 actions are calls, and the end of the run is a message of a role of its own."""
    calls = [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}]
    made = {**answer("", response(None, tool_calls=calls), actions=[{"command": "ls"}]), "tool_calls": calls}
    session = imported(
        made,
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": "a.txt",
            "extra": {"returncode": 0, "timestamp": 1_763_506_600},
        },
        {"role": "exit", "content": "done", "extra": {"exit_status": "Submitted"}},
    )
    assert messages_of(session) == [
        Message("assistant", (ToolCall("c1", "bash", {"command": "ls"}),)),
        Message("user", (ToolResult("c1", "", (Text("a.txt"),)),)),
    ]
    assert notes(session, "extra") == [
        {"source": "messages[0]", "actions": [{"command": "ls"}]},
        {"source": "messages[1]", "returncode": 0, "timestamp": 1_763_506_600},
    ]
    assert notes(session, "exit")[0]["extra"] == {"exit_status": "Submitted"}
    assert session.drafts[-1].time == "2025-11-18T22:56:40.000Z"


def test_what_the_run_was_and_how_it_ended() -> None:
    """Model, status and cost stand around the conversation."""
    config = {"model": {"model_name": "m-1", "model_kwargs": {"temperature": 0.0, "drop_params": True}}}
    stats = {"instance_cost": 0.5, "api_calls": 3}
    info = {
        "config": config,
        "mini_version": "1",
        "exit_status": "Submitted",
        "model_stats": stats,
        "submission": "diff",
    }
    session = imported({"role": "user", "content": "do"}, info=info)
    assert session.session_id == "i-1"
    assert of_kind(session, Configuration) == [Configuration("openai-chat", "m-1", {"temperature": 0.0})]
    assert notes(session, "run") == [{"instance_id": "i-1", "config": config, "mini_version": "1"}]
    assert notes(session, "info") == [{"exit_status": "Submitted", "model_stats": stats, "submission": "diff"}]


def test_a_list_of_messages_is_told_by_its_name_or_prompt(tmp_path: Path) -> None:
    """Old versions wrote the messages alone, which every agent's might be."""
    prompt = {"role": "system", "content": "end with echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}
    assert detect(json.dumps([prompt]).encode()) is NAMED["mini-swe-agent"]
    path = tmp_path / "run.traj.json"
    path.write_text('[{"role": "user", "content": "do"}]')
    assert detect(path) is NAMED["mini-swe-agent"]
    assert detect(path.read_bytes()) is not NAMED["mini-swe-agent"]


def test_files_without_messages_are_refused() -> None:
    """A trajectory cut off by a crash has to be named as such."""
    with pytest.raises(ImportFailed, match="the JSON is damaged or cut off"):
        NAMED["mini-swe-agent"].read(b'{"messages": [')
    with pytest.raises(ImportFailed, match="no messages"):
        NAMED["mini-swe-agent"].read(b'{"messages": [1]}')


@pytest.mark.parametrize("seed", range(30))
def test_damage_never_crashes(shared: Path, seed: int) -> None:
    """People import what they have left; an exception keeps all of it from them."""
    files = [path for path, _ in stats_in_manifest(shared, "mini-swe-traj") if path.stat().st_size < 200_000]
    path = files[seed % len(files)]
    assert detect(path) is NAMED["mini-swe-agent"]
    check_damage(NAMED["mini-swe-agent"], path.read_bytes(), seed)
