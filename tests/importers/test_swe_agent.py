"""SWE-agent trajectories: real ones against the manifest, and one habit of theirs a test."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from mangling import check_damage, counted, stats_in_manifest
from transcript_stats import stats_of
from transcripts import messages_of, of_kind

from turnlog.errors import ImportFailed
from turnlog.importers import Imported, detect, read_file
from turnlog.importers.catalog import NAMED
from turnlog.importers.repeats import result_text
from turnlog.log.messages import Message, Reasoning, Text, ToolCall, ToolResult, text_of
from turnlog.log.records import Configuration, MessageRecord, Note, ToolFinished

REUSED_IDS = {
    "mm1867__function_calling__install-1__marshmallow-code__marshmallow-1867.traj": 5,
    "mm1867__function_calling_replace__install-1__marshmallow-code__marshmallow-1867.traj": 5,
}
"""Calls that the manifest leaves out: it counts distinct ids, and these demonstrations reuse theirs."""


def answer(content: str, **more: Any) -> dict[str, Any]:
    """An answer as the history has it."""
    return {"role": "assistant", "content": content, "agent": "main", "message_type": "action", **more}


def call(call_id: str, name: str = "bash") -> list[dict[str, Any]]:
    """The calls of an answer."""
    return [{"id": call_id, "type": "function", "function": {"name": name, "arguments": '{"command":"ls"}'}}]


def observed(content: str, *call_ids: str) -> dict[str, Any]:
    """What a command gave: the result of calls, or what the next user message says."""
    message = {"role": "user", "content": content, "agent": "main", "message_type": "observation"}
    return {**message, "role": "tool", "tool_call_ids": list(call_ids)} if call_ids else message


def imported(history: Iterable[Any], **more: Any) -> Imported:
    """The session of a trajectory."""
    (session,) = read_file(json.dumps({"history": list(history), **more}).encode())
    return session


def notes(session: Imported, topic: str) -> list[Any]:
    """What the notes of a topic hold."""
    return [note.data for note in of_kind(session, Note) if note.topic == topic]


def test_counts_agree_with_the_manifest(shared: Path) -> None:
    """A message or call lost on import would not be missed by any other test."""
    files = stats_in_manifest(shared, "swe-agent-traj")
    for path, wanted in files:
        (session,) = read_file(path)
        different = counted(stats_of(session), wanted, messages="canonical")
        assert {key: ours - n for key, (n, ours) in different.items()} == (
            {"calls": REUSED_IDS[path.name]} if path.name in REUSED_IDS else {}
        )
        assert (session.format, session.warnings) == ("swe-agent-traj", ())
    assert len(files) == 16


def test_every_word_of_the_history_is_there(shared: Path) -> None:
    """Messages are read word for word, results by the id of the call that they answer."""
    for path, _ in stats_in_manifest(shared, "swe-agent-traj"):
        history = json.loads(path.read_bytes())["history"]
        got = []
        for message in messages_of(read_file(path)[0]):
            calls = [part.id for part in message.parts if isinstance(part, ToolCall)]
            answered = [part.call_id for part in message.parts if isinstance(part, ToolResult)]
            got.append((result_text(message.parts), calls, answered))
        assert got == [
            (wire["content"], [made["id"] for made in wire.get("tool_calls") or ()], wire.get("tool_call_ids") or [])
            for wire in history
        ]


def test_calls_and_results_are_paired_and_timed() -> None:
    """SWE-agent names the answered calls in a list of its own, and times steps elsewhere."""
    history = [observed("do it"), answer("I look", tool_calls=call("c1"), action="ls"), observed("a.txt", "c1")]
    step = {"action": "ls", "observation": "a.txt", "response": "I look", "thought": "I look", "execution_time": 0.5}
    session = imported(history, trajectory=[{**step, "state": {"working_dir": "/w"}}])
    assert messages_of(session) == [
        Message("user", (Text("do it"),)),
        Message("assistant", (Text("I look"), ToolCall("c1", "bash", {"command": "ls"}))),
        Message("user", (ToolResult("c1", "", (Text("a.txt"),)),)),
    ]
    assert of_kind(session, ToolFinished) == [ToolFinished("c1", 3, "ok", 0.5)]
    assert notes(session, "step") == [{"state": {"working_dir": "/w"}}]


def test_steps_that_the_history_lacks_are_kept() -> None:
    """A step that was taken back, or the last one, stands in `trajectory` only."""
    steps: list[Any] = [
        {"response": "taken back", "action": "rm"},
        {"response": "kept", "action": "ls", "observation": "a.txt"},
        {"response": "never shown", "action": "exit"},
        "no step",
    ]
    session = imported([observed("do"), answer("kept", action="ls"), observed("a.txt")], trajectory=steps)
    assert notes(session, "step") == [
        {"response": "taken back", "action": "rm"},
        {"response": "never shown", "action": "exit"},
        "no step",
    ]


def test_a_step_does_not_repeat_the_request_it_came_from() -> None:
    """Each step holds all messages before it: kept so, a trajectory grows with its square."""
    history = [observed("do"), answer("kept")]
    elided = {"role": "user", "content": "Old environment output: (9 lines omitted)"}
    session = imported(history, trajectory=[{"response": "kept", "query": [history[0], elided]}])
    assert notes(session, "step") == [{"query": [elided]}]


def test_demonstrations_are_messages_marked_as_such() -> None:
    """The model saw them; they are no part of the run, and take no step."""
    demo = answer("as shown", is_demo=True)
    session = imported(
        [
            {**observed("Here is a demonstration"), "is_demo": True, "message_type": "demonstration"},
            demo,
            answer("own"),
        ],
        trajectory=[{"response": "as shown", "state": "s0"}, {"response": "own", "state": "s1"}],
    )
    assert [record.source for record in of_kind(session, MessageRecord)] == [
        "history[0] demonstration is_demo",
        "history[1] is_demo",
        "history[2]",
    ]
    assert notes(session, "step") == [{"response": "as shown", "state": "s0"}, {"state": "s1"}]


@pytest.mark.parametrize("as_text", [False, True])
def test_what_the_run_was_started_with(as_text: bool) -> None:
    """Newer versions write the configuration as a text: id and model are found in both."""
    config = {
        "agent": {"model": {"name": "m-1", "temperature": 0.5, "api_key": None}},
        "problem_statement": {"id": "i-1"},
    }
    told: Any = json.dumps(config) if as_text else config
    session = imported([observed("do")], replay_config=told, environment="main", info={"exit_status": "submitted"})
    assert session.session_id == "i-1"
    assert of_kind(session, Configuration) == [Configuration("openai-chat", "m-1", {"temperature": 0.5})]
    assert notes(session, "run") == [{"replay_config": config, "environment": "main"}]
    assert notes(session, "info") == [{"exit_status": "submitted"}]


def test_thinking_is_reasoning_of_its_provider() -> None:
    """Signed thinking that is not kept as such cannot be sent back."""
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "sig"}]
    (message,) = messages_of(imported([answer("so", thinking_blocks=blocks)]))
    assert message.parts == (Reasoning("anthropic", "hm", signature="sig"), Text("so"))


def test_titles_say_the_task() -> None:
    """All prompts begin with the same words."""
    session = imported([observed("We're solving the following issue:\nISSUE:\nIt breaks\n\nINSTRUCTIONS:\nNow")])
    assert (session.title, text_of(messages_of(session)[0])[:5]) == ("It breaks", "We're")


def test_files_without_messages_are_refused() -> None:
    """A trajectory cut off by a crash has to be named as such."""
    with pytest.raises(ImportFailed, match="the JSON is damaged or cut off"):
        NAMED["swe-agent"].read(b'{"history": [')
    with pytest.raises(ImportFailed, match="no messages"):
        NAMED["swe-agent"].read(b'{"history": []}')


@pytest.mark.parametrize("seed", range(30))
def test_damage_never_crashes(shared: Path, seed: int) -> None:
    """People import what they have left; an exception keeps all of it from them."""
    files = [path for path, _ in stats_in_manifest(shared, "swe-agent-traj")]
    path = files[seed % len(files)]
    assert detect(path) is NAMED["swe-agent"]
    check_damage(NAMED["swe-agent"], path.read_bytes(), seed)
