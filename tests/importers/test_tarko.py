"""Tarko event streams, one habit of theirs a test."""

from __future__ import annotations

import base64
import json
from typing import Any

from transcripts import jsonl, messages_of, of_kind

from turnlog.importers import Imported, read_file
from turnlog.log.messages import Media, Message, Reasoning, Text, Tool, ToolCall, ToolResult, sha256_hex, text_of
from turnlog.log.records import Configuration, PartialAnswer, ToolFinished, ToolStarted, TurnClosed, TurnOpened

URL = "data:image/jpeg;base64," + base64.b64encode(b"\xff\xd8\xff").decode()


def event(kind: str, **more: Any) -> dict[str, Any]:
    """An event."""
    return {"id": f"e-{kind}", "type": kind, "timestamp": 1_747_901_656_622, **more}


def user(text: str) -> dict[str, Any]:
    """A user's words with a picture."""
    parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": URL}}]
    return event("user_message", content=parts)


def answer(action: str) -> dict[str, Any]:
    """An answer with a call; all calls have one id, as in real streams."""
    function = {"name": "browser", "arguments": json.dumps({"action": action}, separators=(",", ":"))}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    return event("assistant_message", content=f"I {action}.", toolCalls=calls, finishReason="tool_calls")


def ran(action: str, **result: Any) -> list[dict[str, Any]]:
    """The run of that call."""
    tool = {"name": "browser", "description": "Acts.", "schema": {"type": "object"}}
    began = event("tool_call", toolCallId="call_1", name="browser", arguments={"action": action}, tool=tool)
    content = {"action": action, "status": "success"}
    ended = event("tool_result", toolCallId="call_1", name="browser", content=content, elapsedMs=1223)
    return [began, {**ended, **result}]


def imported(*events: Any) -> Imported:
    """The session of a stream, the same as lines and as an array."""
    (session,) = read_file(jsonl(events))
    assert read_file(json.dumps(events).encode()) == [session]
    assert session.warnings == ()
    return session


def test_calls_of_one_id_meet_their_own_results() -> None:
    """Ids come again in real streams: a result at another's call is a wrong conversation."""
    session = imported(user("go"), answer("click"), *ran("click"), answer("type"), *ran("type", error="gone"))
    image = Media("image", "image/jpeg", sha256_hex(b"\xff\xd8\xff"), 3)
    first, second = '{"action":"click","status":"success"}', '{"action":"type","status":"success"}'
    assert messages_of(session) == [
        Message("user", (Text("go"), image)),
        Message("assistant", (Text("I click."), ToolCall("call_1", "browser", {"action": "click"}))),
        Message("user", (ToolResult("call_1", "browser", (Text(first),)),)),
        Message("assistant", (Text("I type."), ToolCall("call_1", "browser", {"action": "type"}))),
        Message("user", (ToolResult("call_1", "browser", (Text(second), Text("gone")), "failed"),)),
    ]
    calls = [n for n, draft in enumerate(session.drafts, 1) if _calls(draft.body)]
    assert [(body.call_id, body.call_record) for body in of_kind(session, ToolStarted)] == [
        ("call_1", n) for n in calls
    ]
    assert of_kind(session, ToolFinished) == [
        ToolFinished("call_1", calls[0], "ok", 1.223),
        ToolFinished("call_1", calls[1], "failed", 1.223),
    ]
    tool = Tool("browser", "Acts.", {"type": "object"})
    assert of_kind(session, Configuration) == [Configuration("openai-chat", tools=(tool,))]


def _calls(body: Any) -> bool:
    message = getattr(body, "message", None)
    return message is not None and any(isinstance(part, ToolCall) for part in message.parts)


def test_a_run_names_its_session_and_turn() -> None:
    """Without the run's own id each export of a session would be another one."""
    session = imported(
        event("agent_run_start", sessionId="own", model="m"), user("go"), event("agent_run_end", status="aborted")
    )
    assert session.session_id == "own"
    assert of_kind(session, TurnOpened) == [TurnOpened("e-agent_run_start")]
    assert of_kind(session, TurnClosed) == [TurnClosed("e-agent_run_start", "cancelled")]


def test_thinking_belongs_to_the_answer_behind_it() -> None:
    """Reasoning as a message of its own stands between a call and its result."""
    thought = event("assistant_thinking_message", content="hm", isComplete=True)
    session = imported(user("go"), thought, event("assistant_message", content="yes"))
    assert messages_of(session)[-1] == Message("assistant", (Reasoning("openai-chat", text="hm"), Text("yes")))


def test_streamed_pieces_are_echoes_until_one_is_cut() -> None:
    """What was being said when the stream ended stands in the pieces alone."""
    pieces = [event("assistant_streaming_message", content=piece) for piece in ("he", "llo")]
    whole = imported(user("go"), *pieces, event("assistant_message", content="hello"))
    assert of_kind(whole, PartialAnswer) == []
    cut = imported(user("go"), *pieces)
    assert [text_of(one.message) for one in of_kind(cut, PartialAnswer)] == ["hello"]


def test_of_a_broken_array_the_events_before_the_damage_are_read() -> None:
    """An array that was cut while it was written holds the whole session but its end."""
    data = json.dumps([user("go"), answer("click"), *ran("click")], indent=1).encode()
    (session,) = read_file(data[:-30])
    assert len(messages_of(session)) == 2
    assert "3 entries" in session.warnings[0].message
