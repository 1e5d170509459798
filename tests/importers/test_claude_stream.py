"""Claude's stream-json output, one habit of it a test."""

from __future__ import annotations

import json
from typing import Any

from transcripts import jsonl, messages_of, of_kind

from turnlog.importers import Imported, detect, read_file
from turnlog.log.messages import Message, Text, ToolCall, ToolResult, text_of
from turnlog.log.records import Decision, Note, PartialAnswer, ToolFinished, UsageRecord

OWN = "7ed3c21d-374b-491a-8c66-05e191f6a0be"
INIT = {
    "type": "system",
    "subtype": "init",
    "session_id": OWN,
    "cwd": "/w",
    "model": "claude-x",
    "claude_code_version": "2.1.84",
}
USAGE = {"input_tokens": 3, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 7, "output_tokens": 1}


def answer(message_id: str, block: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A block of an answer."""
    message = {"id": message_id, "type": "message", "role": "assistant", "model": "claude-x", "content": [block]}
    message = {**message, "stop_reason": None, "usage": USAGE}
    return {"type": "assistant", "message": message, "parent_tool_use_id": None, "session_id": OWN, **more}


def user(content: Any, **more: Any) -> dict[str, Any]:
    """A user's record."""
    message = {"role": "user", "content": content}
    return {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": OWN, **more}


def text(words: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": words}


CALL = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}
RESULT = [{"type": "tool_result", "tool_use_id": "c1", "content": "a.txt"}]
END = {"type": "result", "subtype": "success", "session_id": OWN, "result": "Done.", "num_turns": 2, "usage": USAGE}


def imported(*records: Any) -> list[Imported]:
    """The sessions of these lines."""
    return read_file(jsonl(records))


def test_a_run_as_it_is_printed() -> None:
    """Blocks of one answer torn apart, usage counted for each, or a last answer kept twice would fail here."""
    (session,) = imported(
        INIT, answer("m1", text("I look.")), answer("m1", CALL),
        user(RESULT, tool_use_result={"stdout": "a.txt", "interrupted": False}), answer("m2", text("Done.")), END,
    )  # fmt: skip
    assert messages_of(session) == [
        Message("assistant", (Text("I look."), ToolCall("c1", "Bash", {"command": "ls"}))),
        Message("user", (ToolResult("c1", "Bash", (Text("a.txt"),), form=_form(session)),)),
        Message("assistant", (Text("Done."),), form=messages_of(session)[2].form),
    ]
    assert len(of_kind(session, UsageRecord)) == 2
    assert len(of_kind(session, ToolFinished)) == 1
    notes = {note.topic: note.data for note in of_kind(session, Note)}
    assert notes["system/init"]["data"]["cwd"] == "/w"
    assert notes["result/success"]["data"] == {"num_turns": 2, "usage": USAGE}
    assert (session.session_id, session.format) == (OWN, "claude-stream-json")


def test_what_is_printed_before_the_id_is_one_session() -> None:
    """Each import of what a run has printed so far makes another session, as long as it has not said its id."""
    lines = [{key: item for key, item in answer(f"m{n}", text("Hm.")).items() if key != "session_id"} for n in (1, 2)]
    asked = {"type": "control_request", "request_id": "r", "request": {"subtype": "initialize"}}
    begun, grown = (imported(asked, *lines[:size])[0] for size in (1, 2))
    assert begun.session_id == grown.session_id != OWN


def _form(session: Imported) -> Any:
    (part,) = messages_of(session)[1].parts
    return part.form


def test_a_recording_of_both_directions() -> None:
    """The prompt is in what was sent, under a session id that is none, and may be echoed."""
    sent = {**user("What is 2+2?"), "session_id": "default"}
    echo = {**sent, "isReplay": True, "session_id": OWN}
    pairs = [("send", sent), ("recv", INIT), ("recv", echo), ("recv", answer("m1", text("4")))]
    messages = [{"direction": direction, "message": message} for direction, message in pairs]
    data = json.dumps({"metadata": {"cli_version": "1"}, "messages": messages}, indent=1).encode()
    (session,) = read_file(data)
    assert [text_of(message) for message in messages_of(session)] == ["What is 2+2?", "4"]
    assert (session.session_id, session.title) == (OWN, "What is 2+2?")


def test_a_subagent_is_a_session_of_its_own() -> None:
    """Its calls among the main conversation's would be answered in the wrong order."""
    task = {**CALL, "name": "Task"}
    main, agent = imported(INIT, answer("m1", task), answer("m2", text("inside"), parent_tool_use_id="c1"))
    assert (agent.session_id, agent.parent) == (f"{OWN}.agent-c1", OWN)
    assert [text_of(message) for message in messages_of(agent)] == ["inside"]
    assert len(messages_of(main)) == 1


def test_a_compaction_hides_what_was_before() -> None:
    """A view with both the summary and what it sums up is twice as long as the model's."""
    boundary = {"type": "system", "subtype": "compact_boundary", "session_id": OWN}
    boundary["compact_metadata"] = {"trigger": "auto", "pre_tokens": 9}
    (session,) = imported(
        INIT, user("old"), answer("m1", text("older")), boundary, user("Summary", isSynthetic=True), user("new")
    )
    (decision,) = of_kind(session, Decision)
    assert (decision.action, decision.detail["pre_tokens"]) == ("compact", 9)
    summary = session.drafts[decision.detail["summary"] - 1].body
    assert text_of(summary.message) == "Summary"  # type: ignore[union-attr]


def event(**data: Any) -> dict[str, Any]:
    """A streamed piece of an answer."""
    return {"type": "stream_event", "event": data, "parent_tool_use_id": None, "session_id": OWN}


def streamed(message_id: str, words: str) -> list[dict[str, Any]]:
    """The beginning of an answer in pieces."""
    message = {"id": message_id, "type": "message", "role": "assistant", "model": "claude-x", "content": []}
    return [
        event(type="message_start", message={**message, "usage": USAGE}),
        event(type="content_block_start", index=0, content_block={"type": "text", "text": ""}),
        event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": words}),
    ]


def test_partial_messages_are_echoes_until_one_is_cut() -> None:
    """What had been said when the process died stands in the pieces alone."""
    end = [event(type="content_block_stop", index=0), event(type="message_stop")]
    (session,) = imported(INIT, *streamed("m1", "whole"), answer("m1", text("whole")), *end, *streamed("m2", "half a"))
    assert [text_of(message) for message in messages_of(session)] == ["whole"]
    assert [text_of(one.message) for one in of_kind(session, PartialAnswer)] == ["half a"]


def test_half_a_call_at_the_end_of_the_pieces_is_kept() -> None:
    """An answer that reached its limit in the midst of a call counted as whole, without the call."""
    half = {"type": "input_json_delta", "partial_json": '{"command": "l'}
    pieces = [
        *streamed("m1", "I look."),
        event(type="content_block_stop", index=0),
        event(type="content_block_start", index=1, content_block={**CALL, "input": {}}),
        event(type="content_block_delta", index=1, delta=half),
        event(type="content_block_stop", index=1),
        event(type="message_delta", delta={"stop_reason": "max_tokens"}),
        event(type="message_stop"),
    ]
    (session,) = imported(INIT, *pieces)
    assert messages_of(session) == []
    assert [(one.message, one.fragments) for one in of_kind(session, PartialAnswer)] == [
        (Message("assistant", (Text("I look."),)), (ToolCall("c1", "Bash", raw='{"command": "l'),))
    ]


def test_a_session_file_is_not_taken_for_its_output() -> None:
    """Both hold the same kinds of records."""
    record = {**user("hi"), "sessionId": OWN, "parentUuid": None, "isSidechain": False}
    assert detect(jsonl([record])).name == "claude-code"
    assert detect(jsonl([INIT, user("hi")])).name == "claude-stream-json"
