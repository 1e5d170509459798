"""OpenHands conversations in all three forms: real ones against the manifest, and one habit a test."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from mangling import check_damage, stats_in_manifest
from transcript_stats import stats_of
from transcripts import jsonl, messages_of, of_kind

from turnlog.errors import ImportFailed
from turnlog.importers import Imported, detect, read_file
from turnlog.importers.catalog import NAMED
from turnlog.importers.repeats import result_text
from turnlog.log.messages import Message, Reasoning, Text, Tool, ToolCall, ToolResult, text_of
from turnlog.log.records import Approval, Configuration, Decision, FileChange, MessageRecord, Note, Record, UsageRecord
from turnlog.log.usage import Usage
from turnlog.view.fold import select

FORMS = ("openhands-events", "openhands-eval-jsonl", "openhands-sdk-events")
EVENTS = {
    "basic.json": (4, 0, 2, 1),
    "basic_gui_mode.json": (18, 8, 4, 0),
    "basic_interactions.json": (6, 0, 1, 1),
    "wrong_initial_state.json": (8, 0, 4, 1),
    "multi_swe_bench.output.jsonl": (119, 4, 56, 2),
    "sdk_goal_events.jsonl": (10, 5, 2, 0),
}
"""Of each file: events (the manifest's `messages`), those around the conversation, calls, and calls
without a result: `finish` ends a run and has none."""


LATE = {"exit_code": -1, "suffix": "[The command timed out after 9 seconds."}


def response(*calls: tuple[str, str, str], content: str | None = None, own: str = "gen-1") -> dict[str, Any]:
    """A recorded answer; calls as id, name and arguments."""
    made = [
        {"id": call_id, "index": 1, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    message = {"role": "assistant", "content": content, "tool_calls": made, "function_call": None}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "cache_creation_input_tokens": 3}
    return {"id": own, "model": "m-1", "object": "chat.completion", "choices": [choice], "usage": usage}


def behind(call_id: str, of: dict[str, Any] | None) -> dict[str, Any]:
    """What an event says of the call behind it."""
    more = {} if of is None else {"model_response": of}
    return {"tool_call_metadata": {"function_name": "execute_bash", "tool_call_id": call_id, **more}}


def event(own: int, source: str = "agent", **more: Any) -> dict[str, Any]:
    """An event."""
    return {"id": own, "timestamp": f"2025-01-01T00:00:{own:02}.000001", "source": source, "message": "", **more}


def asked(own: int, text: str) -> dict[str, Any]:
    """What the user wrote."""
    return event(own, "user", action="message", args={"content": text, "image_urls": None})


def imported(*events: Any) -> Imported:
    """The session of a list of events."""
    (session,) = read_file(json.dumps(events).encode())
    return session


def notes(session: Imported, topic: str) -> list[Any]:
    """What the notes of a topic hold."""
    return [note.data for note in of_kind(session, Note) if note.topic == topic]


def shown(session: Imported) -> list[str]:
    """The texts that a view would start from."""
    records = [Record(n, draft.time, draft.body) for n, draft in enumerate(session.drafts, 1)]
    return [result_text(one.message.parts) for one in select(records)[0]]


def results(session: Imported) -> list[tuple[str, str, str]]:
    """Call id, text and outcome of every result."""
    parts = [part for message in messages_of(session) for part in message.parts if isinstance(part, ToolResult)]
    return [(part.call_id, result_text(part.parts), part.outcome) for part in parts]


@pytest.mark.parametrize("form", FORMS)
def test_counts_agree_with_the_manifest(shared: Path, form: str) -> None:
    """An event or call lost on import would not be missed by any other test."""
    for path, wanted in stats_in_manifest(shared, form):
        sessions = read_file(path)
        stats = [stats_of(session) for session in sessions]
        told, around, calls, unanswered = EVENTS[path.name]
        assert wanted["messages"] == told
        assert wanted["calls"] in (calls, 0 if form == "openhands-sdk-events" else calls)
        assert sum(one["canonical"] for one in stats) == told - around
        assert sum(one["calls"] for one in stats) == calls
        assert sum(one["unanswered"] for one in stats) == unanswered
        assert sum(one["orphans"] for one in stats) == (1 if form == "openhands-sdk-events" else 0)
        assert {(session.format, session.warnings) for session in sessions} == {(form, ())}


def test_the_bill_is_that_of_the_requests(shared: Path) -> None:
    """Responses and the run's own rows tell of the same requests, once each."""
    (path, wanted), *_ = stats_in_manifest(shared, "openhands-eval-jsonl")
    sessions = read_file(path)
    rows = [json.loads(line)["metrics"]["token_usages"] for line in path.read_bytes().splitlines()]
    found = [[record.usage.input for record in of_kind(session, UsageRecord)] for session in sessions]
    assert found == [[row["prompt_tokens"] for row in of_run] for of_run in rows]
    assert sum(map(len, found)) == wanted["usage_rows"]


def test_calls_and_results_are_those_of_the_responses(shared: Path) -> None:
    """Arguments are what the model wrote, not what OpenHands made of them."""
    for path, _ in stats_in_manifest(shared, "openhands-events"):
        responses = {
            each["tool_call_metadata"]["tool_call_id"]: each["tool_call_metadata"]["model_response"]
            for each in json.loads(path.read_bytes())
            if "tool_call_metadata" in each
        }
        made = {
            part.id: part.raw_arguments
            for message in messages_of(read_file(path)[0])
            for part in message.parts
            if isinstance(part, ToolCall)
        }
        assert made == {
            call["id"]: call["function"]["arguments"]
            for each in responses.values()
            for call in each["choices"][0]["message"]["tool_calls"]
        }


def test_one_answer_with_two_calls_is_one_message() -> None:
    """Each call's action and observation repeat the whole response."""
    both = response(
        ("c1", "execute_bash", '{"command":"ls"}'), ("c2", "execute_bash", '{"command":"pwd"}'), content="I"
    )
    ran: dict[str, Any] = {"observation": "run", "extras": {"metadata": {"exit_code": 0}}}
    session = imported(
        asked(0, "do"),
        event(1, action="run", args={"command": "ls", "thought": "I"}, **behind("c1", both)),
        event(2, action="run", args={"command": "pwd", "cwd": "/w"}, **behind("c2", both)),
        event(3, cause=1, content="a.txt", **ran, **behind("c1", both)),
        event(4, cause=2, content="/w", **ran, **behind("c2", both)),
    )
    assert messages_of(session) == [
        Message("user", (Text("do"),)),
        Message(
            "assistant",
            (
                Text("I"),
                ToolCall("c1", "execute_bash", {"command": "ls"}),
                ToolCall("c2", "execute_bash", {"command": "pwd"}),
            ),
        ),
        Message("user", (ToolResult("c1", "execute_bash", (Text("a.txt"),)),)),
        Message("user", (ToolResult("c2", "execute_bash", (Text("/w"),)),)),
    ]
    assert of_kind(session, UsageRecord)[0].usage == Usage(input=9, output=4, cache_write=3)
    assert len(of_kind(session, UsageRecord)) == 1
    assert [record.source for record in of_kind(session, MessageRecord)] == ["event 0", "event 1", "event 3", "event 4"]
    assert {"event": 2, "cwd": "/w"} in notes(session, "run")


def test_actions_without_a_call_behind_them() -> None:
    """Older files keep no responses: ids then derive from the events, the same on every import."""
    session = imported(
        event(1, action="run", args={"command": "ls", "thought": "I look"}),
        event(2, cause=1, observation="run", content="a.txt", extras={"exit_code": 1}),
        event(3, action="finish", args={"thought": "done", "outputs": {}}),
    )
    assert messages_of(session) == [
        Message("assistant", (Text("I look"), ToolCall("event-1", "run", {"command": "ls"}))),
        Message("user", (ToolResult("event-1", "run", (Text("a.txt"),), "failed"),)),
        Message("assistant", (Text("done"),)),
    ]


def test_what_the_user_did_by_hand_is_the_users() -> None:
    """A command that the user ran is no call of the model; an error about a bad answer has no call either."""
    session = imported(
        event(1, "user", action="run", args={"command": "ls"}),
        event(2, "user", cause=1, observation="run", content="a.txt", extras={}),
        event(3, observation="error", content="Parameter 'command' is wrong", extras={"error_id": ""}),
    )
    assert [(one.role, text_of(one)) for one in messages_of(session)] == [
        ("user", "ls"),
        ("user", "a.txt"),
        ("user", "Parameter 'command' is wrong"),
    ]


@pytest.mark.parametrize(
    ("observed", "outcome"),
    [
        ({"observation": "run", "extras": {"metadata": {"exit_code": 0}}, "success": True}, "ok"),
        ({"observation": "run", "extras": {"metadata": {"exit_code": 2}}}, "failed"),
        ({"observation": "run", "extras": {"metadata": LATE}}, "timeout"),
        ({"observation": "error", "extras": {}}, "failed"),
        ({"observation": "edit", "content": "ERROR:\nNo replacement", "extras": {}}, "failed"),
        ({"observation": "run", "content": "ERROR: is what the file says", "extras": {}}, "ok"),
        ({"observation": "user_rejected", "extras": {}}, "canceled"),
    ],
)  # fmt: skip
def test_results_say_how_the_tool_ended(observed: dict[str, Any], outcome: str) -> None:
    """The wire format has no place for it, so another provider's view would call a failure a success."""
    action = event(1, action="run", args={}, **behind("c1", response(("c1", "execute_bash", "{}"))))
    session = imported(action, event(2, cause=1, **{"content": "x", **observed}))
    assert results(session) == [("c1", observed.get("content", "x"), outcome)]
    denied = [Approval("c1", "denied", 1, "user")] if outcome == "canceled" else []
    assert of_kind(session, Approval) == denied


def test_tools_that_no_request_could_have_are_kept_as_a_note() -> None:
    """A schema that is none keeps the whole session from being imported."""
    tool = {"type": "function", "function": {"name": "run", "parameters": 1}}
    system = event(0, action="system", args={"content": "You are", "tools": [tool]})
    (session,) = read_file(json.dumps([system]).encode())
    assert [text_of(message) for message in messages_of(session)] == ["You are"]
    assert "'parameters': 1" in str(of_kind(session, Note))


def test_system_prompt_tools_and_state() -> None:
    """What the model was given is configuration; what happened around is a note, without repeats."""
    tool = {"type": "function", "function": {"name": "ls", "description": "d", "parameters": {"type": "object"}}}
    long = "please list everything that is in the folder, and more"
    session = imported(
        event(0, action="system", args={"content": "You are", "tools": [tool], "openhands_version": "0.35"}),
        asked(1, long),
        event(2, "user", action="recall", args={"query": long, "recall_type": "knowledge"}),
        event(3, "environment", observation="agent_state_changed", content="", extras={"agent_state": "running"}),
    )
    parameters = Tool("ls", "d", {"type": "object"})
    assert of_kind(session, Configuration) == [Configuration("openai-chat", tools=(parameters,))]
    assert [one.role for one in messages_of(session)] == ["system", "user"]
    assert notes(session, "system") == [{"event": 0, "openhands_version": "0.35"}]
    assert notes(session, "recall")[0]["args"] == {"recall_type": "knowledge"}
    assert notes(session, "agent_state_changed")[0]["extras"] == {"agent_state": "running"}


def test_pictures_are_media() -> None:
    """A screenshot as text is a thousand tokens of noise, and the model cannot see it."""
    url = "data:image/png;base64,iVBORw0KGgo="
    session = imported(
        event(0, "user", action="message", args={"content": "look", "image_urls": [url]}),
        event(1, action="browse", args={}, **behind("c1", response(("c1", "browser", "{}")))),
        event(2, cause=1, observation="browse", content="page", extras={"screenshot": url, "url": "http://a"}),
    )
    assert stats_of(session)["images"] == 2
    assert len(session.blobs) == 1
    assert [list(note) for note in notes(session, "browse")] == [["event", "cause", "url"]]


def condensed(own: int, first: int, last: int, summary: str | None) -> dict[str, Any]:
    """A condensation of a range of events."""
    args = {"forgotten_events_start_id": first, "forgotten_events_end_id": last, "summary": summary}
    return event(own, action="condensation", args=args)


def test_condensations_hide_the_middle() -> None:
    """The summary stands where the forgotten events stood, ahead of what is kept after them; the
    next one replaces it. The log keeps everything."""
    said = [asked(n, f"m{n}") for n in range(5)]
    once = imported(*said, condensed(5, 1, 2, "S1"), asked(6, "m6"))
    assert shown(once) == ["m0", "S1", "m3", "m4", "m6"]
    twice = imported(*said, condensed(5, 1, 2, "S1"), asked(6, "m6"), condensed(7, 3, 4, "S2"), asked(8, "m8"))
    assert shown(twice) == ["m0", "S2", "m6", "m8"]
    assert [text_of(one) for one in messages_of(twice)] == ["m0", "m1", "m2", "m3", "m4", "m6", "m8"]
    assert [(made.action, made.first) for made in of_kind(twice, Decision)] == [("compact", 2), ("compact", 2)]
    unsaid = imported(*said, condensed(5, 1, 2, "S1"), condensed(6, 3, 3, None))
    assert shown(unsaid) == ["m0", "S1", "m4"]
    nothing = imported(*said, condensed(5, 70, 80, "S1"))
    assert shown(nothing) == ["m0", "m1", "m2", "m3", "m4"]
    assert len(notes(nothing, "condensation")) == 1


def test_an_evaluation_holds_a_session_a_line() -> None:
    """Instances are told apart, each with its result and bill; old ones pair actions with observations."""
    action = event(1, action="run", args={"command": "ls"})
    seen = event(2, cause=1, observation="run", content="a.txt", extras={})
    row = {"model": "m-1", "prompt_tokens": 7, "completion_tokens": 2, "cache_read_tokens": 3, "response_id": "gen-9"}
    instance: dict[str, Any] = {
        "instance_id": "i-1",
        "instruction": "do it",
        "test_result": {"git_patch": "diff"},
        "metadata": {"llm_config": {"model": "m-1", "temperature": 0.0, "api_key": "***"}},
        "history": [[asked(0, "do it"), {}], [action, seen]],
        "metrics": {"accumulated_cost": 0.5, "token_usages": [row]},
        "error": None,
    }
    broken = {**instance, "history": None, "error": "crashed"}
    first, second = read_file(jsonl([instance, broken]))
    assert (first.session_id, second.session_id) == ("i-1", "i-1-2")
    assert [result_text(one.parts) for one in messages_of(first)] == ["do it", "", "a.txt"]
    assert of_kind(first, Configuration) == [Configuration("openai-chat", "m-1", {"temperature": 0.0})]
    assert of_kind(first, UsageRecord) == [UsageRecord("openai-chat", "m-1", Usage(7, 2, 3), row)]
    assert notes(first, "metrics") == [{"accumulated_cost": 0.5}]
    assert [list(note) for note in notes(first, "instance")] == [["instance_id", "test_result", "metadata", "error"]]
    assert messages_of(second) == []
    assert notes(second, "instance")[0]["error"] == "crashed"
    assert [warning.message for warning in first.warnings] == [
        "an entry of the history is not an event; it is kept as a note"
    ]


def sdk(own: str, kind: str, source: str = "agent", **more: Any) -> dict[str, Any]:
    """An event of the SDK."""
    return {"id": own, "timestamp": "2026-01-01T00:00:00.000001", "source": source, "kind": kind, **more}


def sdk_action(own: str, call_id: str, thought: str = "", answer: str = "r1", **more: Any) -> dict[str, Any]:
    """An action of the SDK, with its call."""
    call = {"id": call_id, "name": "terminal", "arguments": '{"command":"ls"}', "origin": "completion"}
    said = [{"type": "text", "text": thought, "cache_prompt": False}] if thought else []
    known = {"tool_name": "terminal", "tool_call_id": call_id, "llm_response_id": answer}
    return sdk(own, "ActionEvent", thought=said, tool_call=call, **known, **more)


def sdk_said(own: str, text: str, **message: Any) -> dict[str, Any]:
    """A user message of the SDK."""
    content = [{"type": "text", "text": text}]
    return sdk(own, "MessageEvent", "user", llm_message={"role": "user", "content": content, **message})


def sdk_imported(*events: Any) -> Imported:
    """The session of SDK events."""
    (session,) = read_file(jsonl(events))
    return session


def test_sdk_answers_are_put_together() -> None:
    """The SDK writes each call of an answer as an event; two calls must not become two answers."""
    session = sdk_imported(
        sdk("e0", "SystemPromptEvent", system_prompt={"type": "text", "text": "You are"}, tools=[]),
        sdk_said("e1", "do"),
        sdk_action("e2", "c1", "I look", reasoning_content="hm"),
        sdk_action("e3", "c2"),
        sdk("e4", "ObservationEvent", "environment", tool_call_id="c1", tool_name="terminal", action_id="e2",
            observation={"content": [{"type": "text", "text": "a.txt"}], "is_error": False, "exit_code": 0}),
        sdk("e5", "AgentErrorEvent", tool_call_id="c2", tool_name="terminal", error="no such tool"),
        sdk_action("e6", "c3", answer="r2"),
        sdk("e7", "UserRejectObservation", "user", tool_call_id="c3", tool_name="terminal", rejection_reason="no"),
    )  # fmt: skip
    calls = [ToolCall(call_id, "terminal", {"command": "ls"}) for call_id in ("c1", "c2", "c3")]
    said = messages_of(session)
    assert [one.role for one in said] == ["system", "user", "assistant", "user", "user", "assistant", "user"]
    assert said[2].parts == (Reasoning("openai-chat", "hm"), Text("I look"), *calls[:2])
    assert said[5].parts == (calls[2],)
    assert results(session) == [("c1", "a.txt", "ok"), ("c2", "no such tool", "failed"), ("c3", "no", "canceled")]
    assert [record.source for record in of_kind(session, MessageRecord)][2] == "line 3 event e2"
    assert session.session_id == "openhands-e0"


def test_sdk_thinking_is_of_its_provider() -> None:
    """Signed and encrypted thinking goes back to those who made it only."""
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "sig"}]
    item = {"id": "rs_1", "summary": ["hm"], "encrypted_content": "AAAA", "content": None, "status": None}
    session = sdk_imported(
        sdk_action("e1", "c1", answer="r1", thinking_blocks=blocks, reasoning_content="hm"),
        sdk_action("e2", "c2", answer="r2", responses_reasoning_item=item),
    )
    first, second = (message.parts[0] for message in messages_of(session))
    assert first == Reasoning("anthropic", "hm", signature="sig")
    assert isinstance(second, Reasoning)
    assert (second.provider, second.summary, second.encrypted, second.id) == (
        "openai-responses",
        ("hm",),
        "AAAA",
        "rs_1",
    )


def test_sdk_condensations_name_their_events() -> None:
    """A summary is forgotten by an id of its own."""
    said = [sdk_said(f"e{n}", f"m{n}") for n in range(4)]
    one = sdk("c1", "Condensation", "environment", forgotten_event_ids=["e1"], summary="S1", summary_offset=1)
    two = sdk("c2", "Condensation", "environment", forgotten_event_ids=["c1-summary", "e2"], summary="S2")
    assert shown(sdk_imported(*said, one)) == ["m0", "S1", "m2", "m3"]
    assert shown(sdk_imported(*said, one, two, sdk_said("e9", "m9"))) == ["m0", "S2", "m3", "m9"]


def test_sdk_statistics_are_running_totals() -> None:
    """The SDK tells what all requests have cost so far; added up as they stand they cost a multiple."""

    def stats(own: str, tokens: int) -> dict[str, Any]:
        total = {"model": "m-1", "prompt_tokens": tokens, "completion_tokens": 1, "cache_read_tokens": 0}
        value = {"usage_to_metrics": {"default": {"accumulated_token_usage": total}}}
        return sdk(own, "ConversationStateUpdateEvent", "environment", key="stats", value=value)

    session = sdk_imported(stats("e1", 10), stats("e2", 10), stats("e3", 25))
    assert [record.usage for record in of_kind(session, UsageRecord)] == [Usage(10, 1), Usage(15, 0)]
    assert len(notes(session, "ConversationStateUpdateEvent")) == 3


def test_a_conversation_that_went_on_begins_as_before(shared: Path) -> None:
    """Importing it again can then append what is new."""
    for name in ("basic_gui_mode.json", "wrong_initial_state.json"):
        events = json.loads((shared / "data/openhands" / name).read_bytes())
        whole = imported(*events)
        for n in range(1, len(events)):
            begun = imported(*events[:n])
            assert begun.session_id == whole.session_id
            assert whole.drafts[: len(begun.drafts)] == begun.drafts


def test_files_without_events_are_refused() -> None:
    """Somebody who picked the wrong file has to see which."""
    for data in (b"", b"[]", b'{"a": 1}', b'[{"id": 1, "source": "agent"'):
        with pytest.raises(ImportFailed, match="no event of OpenHands"):
            NAMED["openhands"].read(data)


def test_lines_that_are_no_events_are_named() -> None:
    """A line left out without a word is a lost line."""
    (session,) = read_file(jsonl([sdk_said("e1", "do"), {"a": 1}]) + b'{"id": "e2", "kind')
    assert [(warning.line, warning.message[:16]) for warning in session.warnings] == [
        (3, "left out: not JS"),
        (2, "left out: not an"),
    ]


def _files(shared: Path) -> Iterable[Path]:
    return [path for form in FORMS for path, _ in stats_in_manifest(shared, form)]


@pytest.mark.parametrize("seed", range(40))
def test_damage_never_crashes(shared: Path, seed: int) -> None:
    """People import what they have left; an exception keeps all of it from them."""
    files = sorted(_files(shared))
    path = files[seed % len(files)]
    assert detect(path) is NAMED["openhands"]
    check_damage(NAMED["openhands"], path.read_bytes(), seed)


def test_edits_are_file_changes() -> None:
    """Without them, `diff` shows nothing of a run, and one that failed would show what never was."""
    made = {"command": "create", "path": "/w/a.py", "file_text": "x = 1\n"}
    both = response(
        ("c1", "str_replace_editor", json.dumps(made)),
        ("c2", "str_replace_editor", json.dumps({**made, "path": "/w/b.py"})),
    )
    session = imported(
        event(1, action="edit", args=made, **behind("c1", both)),
        event(2, action="edit", args={**made, "path": "/w/b.py"}, **behind("c2", both)),
        event(3, cause=1, observation="edit", content="File created successfully at: /w/a.py", **behind("c1", both)),
        event(4, cause=2, observation="edit", content="ERROR:\nFile already exists", **behind("c2", both)),
    )
    (change,) = of_kind(session, FileChange)
    assert (change.path, change.action, session.blobs[change.after]) == ("/w/a.py", "created", b"x = 1\n")
    assert session.drafts[change.call_record - 1].body.message.role == "assistant"  # type: ignore[union-attr]
