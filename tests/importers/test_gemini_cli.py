"""gemini-cli sessions, one habit of theirs a test; the real ones are in `test_real_gemini`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transcripts import jsonl, messages_of, of_kind

from turnlog.importers import Imported, read_file
from turnlog.log.messages import Media, Message, Reasoning, Text, ToolCall, ToolResult, text_of
from turnlog.log.records import (
    Approval,
    Decision,
    FileChange,
    MessageRecord,
    Note,
    Record,
    ToolFinished,
    TurnClosed,
    TurnOpened,
    UsageRecord,
)
from turnlog.log.usage import Usage
from turnlog.view.fold import select

SESSION = "0ab84937-9fe7-4284-986a-33c832af0b6a"
HEADER = {"sessionId": SESSION, "projectHash": "9da8", "startTime": "2026-01-01T00:00:00.000Z", "kind": "main"}


def said(n: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    """A message record, number `n` of its session."""
    return {"id": f"m{n}", "timestamp": f"2026-01-01T00:00:{n:02}.000Z", "type": kind, "content": content, **more}


def call(call_id: str, output: Any, status: str = "success", **more: Any) -> dict[str, Any]:
    """A tool call with its result."""
    key = "output" if status == "success" else "error"
    response = {"functionResponse": {"id": call_id, "name": "shell", "response": {key: output}}}
    at = "2026-01-01T00:01:00.000Z"
    return {"id": call_id, "name": "shell", "args": {"c": call_id}, "result": [response], "status": status,
            "timestamp": at, **more}  # fmt: skip


def old(*messages: dict[str, Any], **more: Any) -> Imported:
    """A session in the old format."""
    (session,) = read_file(json.dumps({**HEADER, "messages": messages, **more}, indent=2).encode())
    return session


def new(*lines: dict[str, Any]) -> Imported:
    """A session in the new format."""
    (session,) = read_file(jsonl([HEADER, *lines]))
    return session


def shown(session: Imported) -> list[str]:
    """The texts that a view would start from."""
    records = [Record(n, draft.time, draft.body) for n, draft in enumerate(session.drafts, 1)]
    return [text_of(one.message) for one in select(records)[0]]


def outcomes(session: Imported) -> list[tuple[str, str]]:
    """Results with their outcomes."""
    parts = [part for message in messages_of(session) for part in message.parts]
    return [(part.call_id, part.outcome) for part in parts if isinstance(part, ToolResult)]


def test_an_answer_is_thoughts_text_calls_and_then_their_results() -> None:
    """In the file all of it is one object; sent like that, no API would take it."""
    thought = {"subject": "Plan", "description": "Look.", "timestamp": "2026-01-01T00:00:01.500Z"}
    tokens = {"input": 100, "output": 9, "cached": 60, "thoughts": 4, "tool": 2, "total": 115}
    calls = [call("c1", "one"), call("c2", "no", "error")]
    answer = said(2, "gemini", "I will.", thoughts=[thought], tokens=tokens, model="gemini-x", toolCalls=calls)
    session = old(said(1, "user", "Do it"), answer)
    assert messages_of(session) == [
        Message("user", (Text("Do it"),)),
        Message(
            "assistant",
            (
                Reasoning("google", text="**Plan** Look."),
                Text("I will."),
                ToolCall("c1", "shell", {"c": "c1"}, provider="google"),
                ToolCall("c2", "shell", {"c": "c2"}, provider="google"),
            ),
        ),
        Message(
            "user",
            (
                ToolResult("c1", "shell", (Text("one"),)),
                ToolResult("c2", "shell", (Text("no"),), outcome="failed"),
            ),
        ),
    ]
    assert of_kind(session, MessageRecord)[1].model == "gemini-x"
    assert of_kind(session, MessageRecord)[1].source == "messages[1] id m2"
    usage = Usage(input=102, output=13, cached=60, reasoning=4)
    assert of_kind(session, UsageRecord) == [UsageRecord("google", "gemini-x", usage, raw=tokens)]
    notes = {note.topic: note.data for note in of_kind(session, Note)}
    assert notes["message"] == {"id": "m2", "thoughts": [{"timestamp": "2026-01-01T00:00:01.500Z"}]}
    assert (session.session_id, session.format, session.title) == (SESSION, "gemini-cli-json", "Do it")
    assert [draft.time for draft in session.drafts if isinstance(draft.body, ToolFinished)] == [
        "2026-01-01T00:01:00.000Z"
    ] * 2


def test_notices_are_notes_and_a_cancelled_request_ends_the_turn() -> None:
    """gemini-cli's words to the user, sent to a model, would be taken for its own."""
    session = old(
        said(1, "user", "go"),
        said(2, "gemini", "on it"),
        said(3, "info", "Request cancelled."),
        said(4, "error", "quota"),
        said(5, "warning", "old"),
    )
    assert [text_of(message) for message in messages_of(session)] == ["go", "on it"]
    assert [(note.topic, note.text, note.data) for note in of_kind(session, Note)][1:] == [
        ("info", "Request cancelled.", {"id": "m3"}),
        ("error", "quota", {"id": "m4"}),
        ("warning", "old", {"id": "m5"}),
    ]
    assert of_kind(session, TurnClosed) == [TurnClosed("m1", "cancelled", "Request cancelled.")]


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("[Operation Cancelled] Reason: User cancelled the operation.", "aborted"),
        ("[Operation Cancelled] Reason: Operation cancelled by user", "aborted"),
        ("[Operation Cancelled] User cancelled tool execution.", "aborted"),
        ("[Operation Cancelled] Reason: User denied execution.", "canceled"),
        ("[Operation Cancelled] Reason: User cancelled operation", "canceled"),
    ],
)
def test_cancelled_calls_say_whether_they_may_have_run(reason: str, outcome: str) -> None:
    """What may have run must not be run again unasked; what did not run, can."""
    session = old(said(1, "user", "go"), said(2, "gemini", "", toolCalls=[call("c1", reason, "cancelled")]))
    assert outcomes(session) == [("c1", outcome)]
    denied = [Approval("c1", "denied", 4, "user", reason)] if "denied" in reason else []
    assert of_kind(session, Approval) == denied
    assert of_kind(session, TurnClosed) == [TurnClosed("m1", "cancelled", "all tool calls were cancelled")]


def test_a_call_that_never_ended_has_no_result() -> None:
    """A made-up answer would hide that nobody knows whether it ran."""
    running = {**call("c1", ""), "status": "executing", "result": None}
    session = old(said(1, "user", "go"), said(2, "gemini", "", toolCalls=[running]))
    assert outcomes(session) == []
    assert of_kind(session, ToolFinished) == []
    assert of_kind(session, Note)[-1].data == {"call_id": "c1", "status": "executing"}


def test_results_of_any_shape_answer_their_call() -> None:
    """A result is a part list, a part or a text; media stand beside the response."""
    image = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    calls = [
        call("c1", "whole"),
        {**call("c2", ""), "result": "text"},
        {**call("c3", ""), "result": "text"},
        {**call("c4", ""), "result": [*call("c4", "read")["result"], image]},
        {**call("c5", ""), "result": {"functionResponse": {"name": "shell", "response": {"output": "no id"}}}},
    ]
    session = old(said(1, "gemini", "", toolCalls=calls))
    results = messages_of(session)[1].parts
    texts = [(part.call_id, part.parts) for part in results if isinstance(part, ToolResult)]
    assert texts == [
        ("c1", (Text("whole"),)),
        ("c2", (Text("text"),)),
        ("c3", (Text("text"),)),
        ("c4", (Text("read"),)),
        ("c5", (Text("no id"),)),
    ]
    assert [part.size for part in results if isinstance(part, Media)] == [3]
    assert list(session.blobs.values()) == [b"\0\0\0"]


def test_two_calls_of_one_id_keep_both_results() -> None:
    """Ids repeat in real logs; taken once, a tool's run would vanish."""
    session = old(said(1, "gemini", "", toolCalls=[call("c1", "one"), call("c1", "two")]))
    results = [part for part in messages_of(session)[1].parts if isinstance(part, ToolResult)]
    assert [(part.call_id, part.parts) for part in results] == [("c1", (Text("one"),)), ("c1", (Text("two"),))]


def test_file_diffs_are_file_changes_with_both_ends() -> None:
    """Which file changed, from what to what, stands nowhere else."""
    diff = {"fileDiff": "@@", "fileName": "a", "filePath": "/w/a", "originalContent": "1", "newContent": "2"}
    written = {**diff, "filePath": "/w/b", "originalContent": "", "newContent": "n" * 99, "isNewFile": True}
    calls = [
        call("c1", "ok", resultDisplay=diff),
        call("c2", "ok", resultDisplay=written),
        call("c3", "no", "error", resultDisplay=diff),
    ]
    session = old(said(1, "gemini", "", toolCalls=calls))
    changes = of_kind(session, FileChange)
    assert [(one.path, one.action, one.call_record) for one in changes] == [
        ("/w/a", "modified", 2),
        ("/w/b", "created", 2),
    ]
    assert [session.blobs.get(name) for one in changes for name in (one.before, one.after)] == [
        b"1",
        b"2",
        None,
        b"n" * 99,
    ]
    assert of_kind(session, Note)[-1].data == {"call_id": "c3", "display": diff}


def test_the_last_write_of_a_message_counts_and_nothing_is_lost() -> None:
    """A message is written when it comes and again with its results; twice in the view it would be
    two answers."""
    first = said(2, "gemini", "hm", tokens=None)
    session = new(
        said(1, "user", [{"text": "long instructions"}], displayContent=[{"text": "/init"}]),
        {"$set": {"lastUpdated": "2026-01-01T00:00:02.000Z"}},
        first,
        {**first, "content": "well", "toolCalls": [call("c1", "one")]},
        {"$set": {"summary": "All about it"}},
    )
    assert [text_of(message) for message in messages_of(session)] == ["long instructions", "well", ""]
    assert outcomes(session) == [("c1", "ok")]
    assert of_kind(session, MessageRecord)[1].source == "lines 4, 5 id m2"
    notes = {note.topic: note.data for note in of_kind(session, Note)}
    assert notes["superseded"] == {"id": "m2", "earlier": [{"content": "hm"}]}
    assert notes["message"] == {"id": "m1", "displayContent": [{"text": "/init"}]}
    assert (session.title, session.format) == ("All about it", "gemini-cli-jsonl")
    assert session.warnings == ()


def test_answers_that_stand_in_a_message_of_their_own_are_not_doubled() -> None:
    """Since 2026 the turn with the results is written, too: two answers of one call are refused."""
    answer = call("c1", "one")
    session = new(
        said(1, "user", "go"),
        said(2, "gemini", "", toolCalls=[answer, call("c2", "late")]),
        said(3, "user", answer["result"]),
        said(4, "gemini", "done"),
    )
    assert outcomes(session) == [("c2", "ok"), ("c1", "ok")]
    assert len(of_kind(session, TurnOpened)) == 1


def test_a_rewind_takes_back_a_message_and_all_after_it() -> None:
    """The user took them back; the model must not see them, the log keeps them."""
    session = new(
        said(1, "user", "one"),
        said(2, "gemini", "1"),
        said(3, "user", "two"),
        said(4, "gemini", "2", toolCalls=[call("c1", "x")]),
        {"$rewindTo": "m3"},
        said(5, "user", "three"),
        {"$rewindTo": "m5"},
        said(3, "user", "two again"),
    )
    assert shown(session) == ["one", "1", "two again"]
    assert [text_of(one) for one in messages_of(session)] == ["one", "1", "two", "2", "", "three", "two again"]
    assert [(one.action, one.first) for one in of_kind(session, Decision)] == [("rewind", 5), ("rewind", 11)]
    assert session.warnings == ()


def test_a_rewind_to_nowhere_takes_nothing_back() -> None:
    """gemini-cli clears the whole conversation then: one unreadable line would cost all of it."""
    session = new(said(1, "user", "one"), said(2, "gemini", "1"), {"$rewindTo": "gone"})
    assert shown(session) == ["one", "1"]
    assert [(one.line, "'gone'" in one.message) for one in session.warnings] == [(4, True)]
    assert of_kind(session, Note)[-1].data == {"$rewindTo": "gone"}


def test_a_rewritten_history_replaces_the_old_one() -> None:
    """After a compression gemini-cli writes the whole new history; what was billed is not billed
    again, and a later rewind finds its target there."""
    tokens = {"input": 5, "output": 1}
    calls = [call("c1", "long output"), call("c2", "more")]
    turn = [
        *call("c1", "[masked]")["result"],
        *call("c2", "more")["result"],
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
    ]
    masked = [{**one, "result": turn} for one in calls]
    wire_call = {"functionCall": {"id": "c1", "name": "shell", "args": {}}, "thoughtSignature": "AAAA"}
    session = new(
        said(1, "user", "one"),
        said(2, "gemini", "", tokens=tokens, toolCalls=calls),
        {"$set": {"messages": [
            said(7, "user", "summary"),
            said(2, "gemini", [{"text": "hm", "thought": True}, wire_call], tokens=tokens, toolCalls=masked),
            said(8, "user", "two"),
        ]}},
        said(9, "gemini", "2"),
        {"$rewindTo": "m8"},
    )  # fmt: skip
    assert shown(session) == ["summary", "", ""]
    assert [(one.action, one.first) for one in of_kind(session, Decision)] == [("compact", 2), ("rewind", 14)]
    assert len(of_kind(session, UsageRecord)) == 1
    assert outcomes(session) == [("c1", "ok"), ("c2", "ok"), ("c1", "ok"), ("c2", "ok")]
    rewritten = messages_of(session)[4]
    assert rewritten.parts == (
        Reasoning("google", text="hm"),
        ToolCall("c1", "shell", {}, signature="AAAA", provider="google"),
        ToolCall("c2", "shell", {"c": "c2"}, provider="google"),
    )
    assert [type(part) for part in messages_of(session)[5].parts] == [ToolResult, ToolResult, Media]


def test_subagents_are_sessions_of_their_own(tmp_path: Path) -> None:
    """They are in a folder that bears the session's id; alone, nobody would find them."""
    chats = tmp_path / "chats"
    (chats / SESSION).mkdir(parents=True)
    main, child = chats / "session-2026-01-01T00-00-0ab84937.jsonl", chats / SESSION / "sub-1.jsonl"
    main.write_bytes(jsonl([HEADER, said(1, "user", "go")]))
    child.write_bytes(jsonl([{**HEADER, "sessionId": "sub-1", "kind": "subagent"}, said(1, "user", "sub")]))
    (chats / SESSION / "sub-2.jsonl").write_bytes(b"nothing\n")
    found = read_file(main)
    assert [(one.session_id, one.parent) for one in found] == [(SESSION, ""), ("sub-1", SESSION)]
    assert found[0].files == (str(main), str(child))
    assert ["subagent left out" in warning.message for warning in found[0].warnings] == [True]
    assert [(one.session_id, one.parent) for one in read_file(child)] == [("sub-1", SESSION)]


def test_a_cut_document_keeps_the_messages_that_are_whole() -> None:
    """The old format is one object: one lost byte would cost the session."""
    document = {**HEADER, "messages": [said(n, "user", f"t{n}") for n in (1, 2, 3)]}
    data = json.dumps(document, indent=2).encode()
    (cut,) = read_file(data[: data.index(b't3"')])
    assert ([text_of(one) for one in messages_of(cut)], cut.session_id) == (["t1", "t2"], SESSION)
    (broken,) = read_file(data.replace(b'"t2"', b'"t2'))
    assert [text_of(one) for one in messages_of(broken)] == ["t1", "t3"]
    assert [warning.line for warning in (*cut.warnings, *broken.warnings)] == [0, 0]


def test_unreadable_lines_and_parts_are_kept() -> None:
    """New kinds come with every version; none may vanish."""
    session = new(
        said(1, "user", ["a", {"text": "b"}, 7]),
        said(2, "checkpoint", {"x": 1}),
        {"what": 1},
        {"$set": 5},
    )
    assert [text_of(one) for one in messages_of(session)] == ["a\nb"]
    assert [(note.topic, note.data) for note in of_kind(session, Note)][1:] == [
        ("unreadable", 7),
        ("checkpoint", {"id": "m2", "content": {"x": 1}}),
        ("unreadable", {"what": 1}),
        ("unreadable", {"$set": 5}),
    ]
    assert [warning.line for warning in session.warnings] == [4, 5, 2, 3]


def test_files_are_told_by_arguments_where_no_diff_is() -> None:
    """Saved chats leave out what was shown: without the arguments no change of theirs would be on record."""
    made = "Successfully created and wrote to new file: /w/a.txt. Here is more."
    calls = [
        {**call("c1", made), "name": "write_file", "args": {"file_path": "a.txt", "content": "x\ny\n"}},
        {
            **call("c2", "Successfully modified file: /w/a.txt (1 replacements)."),
            "name": "replace",
            "args": {"file_path": "/w/a.txt", "old_string": "y", "new_string": "z"},
        },
        {
            **call("c3", "Successfully overwrote file: /w/b.txt."),
            "name": "write_file",
            "args": {"file_path": "/w/b.txt", "content": "new"},
        },
        {**call("c4", "Successfully read /w/b.txt."), "name": "read_file", "args": {"file_path": "/w/b.txt"}},
    ]
    session = old(said(1, "gemini", "", toolCalls=calls))
    assert [
        (one.action, one.path, session.blobs.get(one.before), session.blobs.get(one.after), one.root)
        for one in of_kind(session, FileChange)
    ] == [
        ("created", "/w/a.txt", None, b"x\ny\n", "/w"),
        ("modified", "/w/a.txt", b"x\ny\n", b"x\nz\n", "/w"),
        ("modified", "/w/b.txt", None, b"new", "/w"),
    ]
