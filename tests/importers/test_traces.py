"""How calls of models that repeat their history become sessions, by traces of Langfuse."""

from __future__ import annotations

import json
from typing import Any

from transcripts import of_kind

from turnlog.importers import Imported, read_file
from turnlog.log.messages import ToolResult, text_of
from turnlog.log.records import Decision, MessageRecord, UsageRecord


def _trace(*calls: tuple[list[str], str], **more: Any) -> bytes:
    """A trace of calls, each with its history and its answer. A text is a user's; "s:" and "a:" begin others."""
    roles = {"s:": "system", "a:": "assistant"}
    steps = [
        {
            "id": f"o-{number}",
            "traceId": "t",
            "type": "GENERATION",
            "startTime": f"2026-07-05T00:{number:02}:00Z",
            "endTime": f"2026-07-05T00:{number:02}:30Z",
            "input": [{"role": roles.get(text[:2], "user"), "content": text} for text in given],
            "output": answer,
            "usageDetails": {"input": 10, "output": 1},
        }
        for number, (given, answer) in enumerate(calls)
    ]
    return json.dumps({"id": "t", "observations": steps, **more}).encode()


def _texts(session: Imported) -> list[str]:
    return [text_of(record.message) for record in of_kind(session, MessageRecord)]


def test_each_call_adds_what_is_new() -> None:
    """Read one by one, the calls of a trace are the same conversation as often as the model was called."""
    history = ["s: be brief", "hello"]
    (session,) = read_file(_trace((history, "a: hello"), ([*history, "a: hello", "more"], "a: there is more")))
    assert _texts(session) == [*history, "a: hello", "more", "a: there is more"]
    assert [record.usage.input for record in of_kind(session, UsageRecord)] == [10, 10]


def test_a_call_that_was_made_again_is_a_rewind() -> None:
    """The answer that was thrown away would stand beside the one that counts."""
    history = ["s: be brief", "hello"]
    (session,) = read_file(_trace((history, "a: wrong"), (history, "a: right")))
    assert _texts(session) == [*history, "a: wrong", "a: right"]
    (decision,) = of_kind(session, Decision)
    numbers = [number for number, draft in enumerate(session.drafts, 1) if isinstance(draft.body, MessageRecord)]
    assert (decision.action, decision.first) == ("rewind", numbers[2])


def test_another_history_is_another_session() -> None:
    """A subagent's messages would stand in the middle of its caller's."""
    main, sub = ["s: be brief", "hello"], ["s: count", "count them"]
    first, second = read_file(_trace((main, "a: wait"), (sub, "a: two"), ([*main, "a: wait", "and?"], "a: two")))
    assert _texts(first) == [*main, "a: wait", "and?", "a: two"]
    assert (_texts(second), second.parent, second.session_id) == ([*sub, "a: two"], "t", "t-2")


def test_a_system_text_that_changes_is_the_same_session() -> None:
    """An agent that tells the time in its system text would be a session for each call."""
    (session,) = read_file(
        _trace((["s: it is one", "hi"], "a: hi"), (["s: it is two", "hi", "a: hi", "more"], "a: yes"))
    )
    assert _texts(session) == ["s: it is one", "hi", "a: hi", "more", "a: yes"]
    assert "s: it is two" in str(session.drafts)


def test_a_window_of_the_history_is_the_same_session() -> None:
    """An agent that sends the newest messages only would be a session for each call."""
    history = ["s: be brief", "one", "a: one", "two"]
    (session,) = read_file(_trace((history, "a: two"), (["s: be brief", "two", "a: two", "three"], "a: three")))
    assert _texts(session) == [*history, "a: two", "three", "a: three"]


def test_a_trace_without_messages_still_says_what_was_billed() -> None:
    """Content is often not recorded; the cost of the calls is all that there is."""
    steps = json.loads(_trace(([], ""), ([], "")))
    (session,) = read_file(json.dumps(steps).encode())
    assert [record.usage.input for record in of_kind(session, UsageRecord)] == [10, 10]
    assert ["the messages of a call" in warning.message for warning in session.warnings] == [True]


def test_a_tool_that_ran_last_has_its_result() -> None:
    """The run that ended an agent, or was cut, would be a call without an answer."""
    trace = json.loads(_trace((["hello"], "")))
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    trace["observations"][0]["output"] = {"role": "assistant", "content": None, "tool_calls": [call]}
    about = {"id": "o-9", "traceId": "t", "type": "TOOL", "name": "look", "startTime": "2026-07-05T00:09:00Z"}
    trace["observations"].append({**about, "level": "ERROR", "statusMessage": "it is not there"})
    (session,) = read_file(json.dumps(trace).encode())
    (result,) = [
        part for each in of_kind(session, MessageRecord) for part in each.message.parts if isinstance(part, ToolResult)
    ]
    assert (result.call_id, result.outcome) == ("c", "failed")
    assert "it is not there" in str(result.parts)
