"""Claude Code sessions, one habit of theirs a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transcripts import SESSION, bodies_of, claude, claude_answer, jsonl, messages_of, of_kind

from turnlog.importers import Imported, read_file
from turnlog.log.messages import Message, Text, ToolCall, ToolResult, sha256_hex, text_of
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
from turnlog.view.fold import select
from turnlog.view.tool_calls import calls_of


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A tool_use block whose id is its name."""
    return {"type": "tool_use", "id": name, "name": "Bash", "input": arguments}


def result(call_id: str, text: str, **more: Any) -> list[dict[str, Any]]:
    """A user's content that answers a call."""
    return [{"type": "tool_result", "tool_use_id": call_id, "content": text, **more}]


def imported(*records: dict[str, Any]) -> Imported:
    """The one session of these records."""
    (session,) = read_file(jsonl(records))
    return session


def topics(session: Imported) -> list[str]:
    """The topics of a session's notes, without the envelope's."""
    return [note.topic for note in of_kind(session, Note) if note.topic != "context"]


def shown(session: Imported) -> list[Message]:
    """What a view would start from."""
    records = [Record(n, draft.time, draft.body) for n, draft in enumerate(session.drafts, 1)]
    return [one.message for one in select(records)[0]]


def test_results_of_one_id_are_those_of_their_own_calls() -> None:
    """Both were named after the last call of the id, so that the first call seemed to have no result."""
    session = imported(
        claude(1, "user", "go"),
        claude_answer(2, "m1", call("t1", command="rm a")),
        claude_answer(3, "m1", {**call("t1", path="b"), "name": "Read"}),
        claude(4, "user", result("t1", "removed")),
        claude(5, "user", result("t1", "text of b")),
        claude(6, "user", result("t1", "text of b, again")),
    )
    records = [Record(n, draft.time, draft.body) for n, draft in enumerate(session.drafts, 1)]
    by_number = {record.n: record.message for record in records}
    calls = {info.call.name: by_number[info.result] for info in calls_of(records)}
    texts = {name: message.parts[0].parts[0] for name, message in calls.items()}  # type: ignore[union-attr]
    assert texts == {"Bash": Text("removed"), "Read": Text("text of b")}


def test_one_answer_is_one_message_however_it_was_split() -> None:
    """Parallel calls torn apart would be refused by every provider; results may stand between them."""
    session = imported(
        claude(1, "user", "go"),
        claude_answer(2, "m1", {"type": "text", "text": "I look."}),
        claude_answer(3, "m1", call("c1", command="ls")),
        claude(4, "user", result("c1", "a")),
        claude(5, "progress", data={"type": "hook_progress"}),
        claude_answer(6, "m1", call("c2", command="pwd")),
        claude(7, "user", result("c2", "b")),
        claude_answer(8, "m2", {"type": "text", "text": "Done."}),
    )
    assert [(m.role, [type(p) for p in m.parts]) for m in messages_of(session)] == [
        ("user", [Text]),
        ("assistant", [Text, ToolCall, ToolCall]),
        ("user", [ToolResult]),
        ("user", [ToolResult]),
        ("assistant", [Text]),
    ]
    records = of_kind(session, MessageRecord)
    assert [record.source for record in records][:2] == ["line 1 uuid u1", "lines 2, 3, 6 uuid u2 u3 u6"]
    assert (records[1].model, records[1].response_id) == ("claude-x", "m1")


def test_usage_counts_once_an_answer() -> None:
    """Each record repeats the usage: sums would be twice and thrice the bill."""
    session = imported(
        claude(1, "user", "go"),
        claude_answer(2, "m1", {"type": "text", "text": "a"}),
        claude_answer(3, "m1", call("c1")),
    )
    (usage,) = of_kind(session, UsageRecord)
    assert (usage.usage.input, usage.usage.cached, usage.usage.cache_write, usage.usage.output) == (50, 40, 7, 3)


def test_a_compaction_starts_the_view_at_its_summary() -> None:
    """Without the decision a view would send what Claude Code had long dropped."""
    boundary = {"subtype": "compact_boundary", "compactMetadata": {"trigger": "auto", "preTokens": 155_000}}
    session = imported(
        claude(1, "user", "old"),
        claude_answer(2, "m1", {"type": "text", "text": "old answer"}),
        claude(3, "system", **boundary),
        claude(4, "user", "summary 1", isCompactSummary=True),
        claude_answer(5, "m2", {"type": "text", "text": "newer"}),
        claude(6, "system", **boundary),
        claude(7, "user", "summary 2", isCompactSummary=True),
        claude(8, "user", "now"),
    )
    decisions = of_kind(session, Decision)
    assert [(d.action, d.detail["preTokens"]) for d in decisions] == [("compact", 155_000)] * 2
    summary = bodies_of(session)[decisions[1].detail["summary"] - 1]
    assert isinstance(summary, MessageRecord)
    assert summary.message == Message("user", (Text("summary 2"),), by_program=True)
    assert [m.parts for m in shown(session)] == [(Text("summary 2"),), (Text("now"),)]
    assert len(messages_of(session)) == 6


def test_an_interrupt_closes_its_turn_and_a_refusal_is_an_approval() -> None:
    """A turn that somebody stopped must not look answered, nor a refused tool like one that failed."""
    refused = "The user doesn't want to proceed with this tool use. STOP"
    session = imported(
        claude(1, "user", "go", promptId="p1"),
        claude_answer(2, "m1", call("c1")),
        claude(3, "user", result("c1", refused, is_error=True), toolUseResult="User rejected tool use"),
        claude(4, "user", [{"type": "text", "text": "[Request interrupted by user for tool use]"}]),
        claude_answer(5, "m2", call("c2")),
        claude(6, "user", result("c2", "half"), toolUseResult={"stdout": "half", "interrupted": True}),
    )
    assert of_kind(session, TurnOpened) == [TurnOpened("p1")]
    assert of_kind(session, TurnClosed) == [TurnClosed("p1", "cancelled", "[Request interrupted by user for tool use]")]
    (approval,) = of_kind(session, Approval)
    assert (approval.call_id, approval.state, approval.by) == ("c1", "denied", "user")
    outcomes = [p.outcome for m in messages_of(session) for p in m.parts if isinstance(p, ToolResult)]
    assert outcomes == ["failed", "aborted"]


def test_edits_are_file_changes_with_both_texts() -> None:
    """What a session did to a file could not be shown again."""
    edit = {"filePath": "/a", "oldString": "x", "newString": "y", "originalFile": "x x", "structuredPatch": [1]}
    session = imported(
        claude_answer(1, "m1", call("c1")),
        claude(2, "user", result("c1", "updated"), toolUseResult=edit),
        claude_answer(3, "m2", call("c2")),
        claude(4, "user", result("c2", "made"), toolUseResult={"type": "create", "filePath": "/b", "content": "new"}),
    )
    before, after, new = (sha256_hex(text) for text in (b"x x", b"y x", b"new"))
    assert of_kind(session, FileChange) == [
        FileChange("/a", "modified", before=before, after=after, call_record=1),
        FileChange("/b", "created", after=new, call_record=7),
    ]
    assert set(session.blobs) == {before, after, new}
    calls = [(done.call_id, done.call_record) for done in of_kind(session, ToolFinished)]
    assert calls == [("c1", 1), ("c2", 7)]


def test_another_prompt_at_the_same_place_rewinds() -> None:
    """The branch that the user left would be sent along with the one taken."""
    session = imported(
        claude(1, "user", "hello"),
        claude_answer(2, "m1", {"type": "text", "text": "hi"}),
        claude(3, "user", "wrong"),
        claude_answer(4, "m2", {"type": "text", "text": "wrong answer"}),
        claude(5, "user", "right", parentUuid="u2"),
    )
    assert [m.parts for m in shown(session)] == [(Text("hello"),), (Text("hi"),), (Text("right"),)]
    assert len(messages_of(session)) == 5


def test_what_is_no_conversation_is_kept_as_notes() -> None:
    """Records that are silently dropped are found missing years later."""
    session = imported(
        claude(1, "user", "go"),
        {"type": "summary", "summary": "Named", "leafUuid": "u1"},
        {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}},
        claude(2, "system", subtype="stop_hook_summary", hookCount=1),
        claude(3, "attachment", attachment={"type": "skill_listing", "content": "s"}),
        claude_answer(4, "m1", {"type": "text", "text": "API Error: 500"}, isApiErrorMessage=True),
        {"type": "brand-new-kind", "sessionId": SESSION, "x": 1},
    )
    expected = ["summary", "file-history-snapshot", "system/stop_hook_summary", "attachment/skill_listing"]
    assert topics(session) == [*expected, "api_error", "brand-new-kind"]
    assert session.title == "Named"
    assert len(messages_of(session)) == 1


def test_records_written_twice_count_once() -> None:
    """A resumed session repeats its history; the copy would double the conversation."""
    one = claude(1, "user", "go")
    session = imported(one, one, {**one, "message": {"role": "user", "content": "other"}})
    assert [m.parts for m in messages_of(session)] == [(Text("go"),), (Text("other"),)]
    assert [warning.line for warning in session.warnings] == [2, 3]


def test_inline_sidechains_are_sessions_of_their_own() -> None:
    """A subagent's messages in the main line would break its alternation."""
    side = {"isSidechain": True}
    found = read_file(
        jsonl(
            [
                claude(1, "user", "main"),
                claude(2, "user", "task", **side, parentUuid=None),
                claude_answer(3, "m9", {"type": "text", "text": "did"}, **side),
                claude_answer(4, "m1", {"type": "text", "text": "ok"}, parentUuid="u1"),
            ]
        )
    )
    assert [(s.session_id, s.parent, len(messages_of(s))) for s in found] == [
        (SESSION, "", 2),
        (f"{SESSION}.agent-u2", SESSION, 2),
    ]


def test_subagent_files_are_read_with_their_session(tmp_path: Path) -> None:
    """They lie in a folder that nobody picks in a file dialog."""
    main = tmp_path / f"{SESSION}.jsonl"
    main.write_bytes(jsonl([claude(1, "user", "main")]))
    folder = tmp_path / SESSION / "subagents"
    folder.mkdir(parents=True)
    agent = folder / "agent-a1.jsonl"
    agent.write_bytes(jsonl([claude(1, "user", "task", isSidechain=True, agentId="a1")]))
    (folder / "agent-a1.meta.json").write_text(json.dumps({"description": "Look around"}), "utf-8")
    (folder / "agent-a2.jsonl").write_bytes(b"garbage")
    found = read_file(main)
    assert [(s.session_id, s.parent, s.title) for s in found] == [
        (SESSION, "", "main"),
        (f"{SESSION}.agent-a1", SESSION, "Look around"),
    ]
    assert found[0].files == (str(main), str(agent), str(folder / "agent-a2.jsonl"))
    assert [warning.file for warning in found[0].warnings] == [str(folder / "agent-a2.jsonl")]
    assert read_file(agent) == [found[1]]


def test_content_of_another_kind_is_kept_as_a_note() -> None:
    """An empty message in its place would hide that something was there."""
    said = [claude_answer(n, f"m{n}", {"type": "text", "text": "on it"}) for n in (4, 5)]
    session = imported(claude(1, "user", "go"), claude(2, "user", 5), claude(3, "assistant", {"a": 1}), *said)
    assert len(messages_of(session)) == 3
    assert [warning.line for warning in session.warnings] == [2, 3]
    unreadable = [note.data["content"] for note in of_kind(session, Note) if note.topic == "unreadable"]
    assert unreadable == [5, {"a": 1}]


def test_an_unreadable_block_costs_itself_only() -> None:
    """One block of a shape nobody knows must not take its answer along."""
    session = imported(
        claude(1, "user", "go"),
        claude_answer(2, "m1", {"type": "text", "text": "fine"}),
        claude_answer(3, "m1", {"type": "text", "text": 5}),
    )
    assert [m.parts for m in messages_of(session)][1] == (Text("fine"),)
    assert [(w.line, "note" in w.message) for w in session.warnings] == [(3, True)]
    assert [note.data for note in of_kind(session, Note) if note.topic == "unreadable"] == [{"type": "text", "text": 5}]


@pytest.mark.parametrize(
    ("old", "line", "kept"), [("x", "  x", False), ("\tx", "  x", False), ("  x", "  x", True), ("x", "\t  x", True)]
)
def test_a_patch_with_blanks_that_may_be_tabs_is_not_taken_for_the_file(old: str, line: str, kept: bool) -> None:
    """Claude Code writes tabs in it as blanks: such a patch does not apply to the file that it came from."""
    hunk = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": [f"-{line}", f"+{line}y"]}
    edit = {"filePath": "/a", "oldString": old, "newString": f"{old}y", "originalFile": None, "structuredPatch": [hunk]}
    session = imported(
        claude_answer(1, "m1", call("c1")), claude(2, "user", result("c1", "updated"), toolUseResult=edit)
    )
    (change,) = of_kind(session, FileChange)
    assert (change.action, bool(change.patch)) == ("modified", kept)
    assert (
        any(note.topic == "tool_result" and "structuredPatch" in str(note.data) for note in of_kind(session, Note))
        != kept
    )


def test_an_edit_of_a_file_that_is_not_told_keeps_its_patch() -> None:
    """Newer files leave out what was in a file before; the patch is all that tells what an edit did."""
    hunk = {"oldStart": 5, "oldLines": 2, "newStart": 5, "newLines": 2, "lines": [" a", "-b", "+c"]}
    last = {**hunk, "lines": [*hunk["lines"], "\\ No newline at end of file"]}
    edit = {"filePath": "/p/a", "oldString": "b", "newString": "c", "originalFile": None, "structuredPatch": [hunk]}
    write = {"type": "update", "filePath": "/p/b", "content": "1\n2\n3\n4\na\nc", "structuredPatch": [last]}
    session = imported(
        claude_answer(1, "m1", call("c1"), cwd="/p"),
        claude(2, "user", result("c1", "updated"), toolUseResult=edit, cwd="/p"),
        claude_answer(3, "m2", call("c2"), cwd="/p"),
        claude(4, "user", result("c2", "written"), toolUseResult=write, cwd="/p"),
    )
    first, second = of_kind(session, FileChange)
    assert (first.before, first.after, session.blobs[first.patch]) == ("", "", b"@@ -5,2 +5,2 @@\n a\n-b\n+c\n")
    assert session.blobs[second.after] == b"1\n2\n3\n4\na\nc"
    assert session.blobs.get(second.before) == b"1\n2\n3\n4\na\nb\n"
    assert {first.root, second.root} == {"/p"}


def test_a_result_whose_id_is_no_text_ends_nothing() -> None:
    """A file with one such id could not be read at all."""
    call = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}
    odd = [{"type": "tool_result", "tool_use_id": ["c1"], "content": "a"}]
    (session,) = read_file(jsonl([claude_answer(1, "m1", call), claude(2, "user", odd), claude(3, "user", "next")]))
    assert [text_of(message) for message in messages_of(session)][-1] == "next"
