"""Codex rollouts, one habit of theirs a test."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transcripts import item, jsonl, messages_of, of_kind

import turnlog
from turnlog.importers import Imported, read_file
from turnlog.log.messages import Message, Text, ToolCall, ToolResult, text_of
from turnlog.log.records import (
    Configuration,
    Decision,
    FileChange,
    Note,
    Record,
    ToolFinished,
    TurnClosed,
    TurnOpened,
    UsageRecord,
)
from turnlog.stores import MemoryStore
from turnlog.view.fold import select

META = item({"id": "s-1", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"}, "session_meta")


def event(kind: str, **more: Any) -> dict[str, Any]:
    """An event line."""
    return item({"type": kind, **more}, "event_msg")


def said(role: str, text: str) -> dict[str, Any]:
    """A message item."""
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def imported(*lines: dict[str, Any]) -> Imported:
    """The session of these lines."""
    (session,) = read_file(jsonl([META, *lines]))
    return session


def shown(session: Imported) -> list[str]:
    """The texts that a view would start from."""
    records = [Record(n, draft.time, draft.body) for n, draft in enumerate(session.drafts, 1)]
    return [text_of(one.message) for one in select(records)[0]]


def test_events_do_not_repeat_the_conversation() -> None:
    """Codex writes every message twice, once as an event."""
    session = imported(
        item(said("user", "hello")),
        event("user_message", message="hello", images=[]),
        event("agent_message", message="hi", phase="commentary", memory_citation={"path": "/m"}),
        item(said("assistant", "hi")),
        event("agent_message", message="said nowhere else"),
    )
    assert [text_of(m) for m in messages_of(session)] == ["hello", "hi"]
    notes = [(note.topic, note.data) for note in of_kind(session, Note)][1:]
    assert notes == [
        ("agent_message", {"memory_citation": {"path": "/m"}}),
        ("agent_message", {"message": "said nowhere else"}),
    ]
    assert session.title == "hello"


def test_usage_is_the_last_requests_and_once() -> None:
    """Token counts are repeated when only rate limits changed: sums would not be the bill."""
    last = {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 9, "reasoning_output_tokens": 4}
    info = {"last_token_usage": last, "total_token_usage": {"total_tokens": 109}}
    session = imported(
        event("token_count", info=None, rate_limits={"p": 1}),
        event("token_count", info=info, rate_limits={"p": 2}),
        event("token_count", info=info, rate_limits={"p": 3}),
    )
    (usage,) = of_kind(session, UsageRecord)
    assert (usage.usage.input, usage.usage.cached, usage.usage.output, usage.usage.reasoning) == (100, 60, 9, 4)
    assert [note.data for note in of_kind(session, Note) if note.topic == "rate_limits"] == [
        {"rate_limits": {"p": 1}},
        {"rate_limits": {"p": 3}},
    ]


def test_turns_and_settings_are_records() -> None:
    """Which turn was stopped, and with what model, is what people look for."""
    context = {"turn_id": "t1", "model": "gpt-x", "effort": "high", "summary": "none", "cwd": "/w"}
    session = imported(
        event("task_started", turn_id="t1"),
        item(context, "turn_context"),
        item({**context, "turn_id": "t2"}, "turn_context"),
        event("turn_aborted", turn_id="t1", reason="interrupted"),
        event("task_started", turn_id="t2"),
        event("task_complete", turn_id="t2", last_agent_message=None),
    )
    assert of_kind(session, TurnOpened) == [TurnOpened("t1"), TurnOpened("t2")]
    assert of_kind(session, TurnClosed) == [TurnClosed("t1", "cancelled", "interrupted"), TurnClosed("t2", "completed")]
    assert of_kind(session, Configuration) == [
        Configuration(provider="openai-responses", model="gpt-x", settings={"reasoning": {"effort": "high"}})
    ]


@pytest.mark.parametrize(
    ("output", "outcome"),
    [
        ("Chunk ID: 1\nProcess exited with code 0\nOutput:\nProcess exited with code 1", "ok"),
        ("Chunk ID: 1\nProcess exited with code 2\nOutput:\nno", "failed"),
        (json.dumps({"output": "no", "metadata": {"exit_code": 1}}), "failed"),
        ("command timed out after 1000 milliseconds\nTotal", "timeout"),
        ("aborted by user after 3.2s", "aborted"),
        ("whatever a tool says", "ok"),
    ],
)
def test_results_say_how_the_tool_ended(output: str, outcome: str) -> None:
    """The wire format has no place for it, so another provider's view would call a failure a success."""
    call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"}
    session = imported(item(call), item({"type": "function_call_output", "call_id": "c1", "output": output}))
    call_part, result = (message.parts[0] for message in messages_of(session))
    assert isinstance(call_part, ToolCall)
    assert isinstance(result, ToolResult)
    assert (result.outcome, result.name, result.call_id) == (outcome, "shell", "c1")


def test_a_duration_beyond_all_numbers_is_damage() -> None:
    """One field of one event keeps the whole session from being imported."""
    session = imported(event("exec_command_end", call_id="c1", exit_code=0, duration={"secs": 10**400, "nanos": 0}))
    assert of_kind(session, ToolFinished) == [ToolFinished("c1", 0, "ok")]
    assert [(damage.line, "duration" in damage.message) for damage in session.warnings] == [(2, True)]


def test_tool_ends_and_patches_are_records() -> None:
    """Durations and changed files stand in events only."""
    call = {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin", "call_id": "c1"}
    changes = {
        "/new": {"type": "add", "content": "n"},
        "/old": {"type": "delete", "content": "o"},
        "/same": {"type": "update", "unified_diff": "@@", "move_path": None},
        "/from": {"type": "update", "unified_diff": "@@", "move_path": "/to"},
    }
    session = imported(
        item(call),
        event("patch_apply_end", call_id="c1", success=True, changes=changes),
        event("exec_command_end", call_id="cx", exit_code=1, status="failed", duration={"secs": 1, "nanos": 5 * 10**8}),
    )
    assert of_kind(session, ToolFinished) == [
        ToolFinished("c1", 2, "ok"),
        ToolFinished("cx", 0, "failed", seconds=1.5),
    ]
    assert [(c.path, c.action, c.old_path, c.call_record) for c in of_kind(session, FileChange)] == [
        ("/new", "created", "", 2),
        ("/old", "deleted", "", 2),
        ("/same", "modified", "", 2),
        ("/to", "renamed", "/from", 2),
    ]
    assert set(session.blobs.values()) == {b"n", b"o"}


def test_a_compaction_replaces_what_was_before() -> None:
    """A view that still sent the old messages would not be what the model saw."""
    session = imported(
        item(said("developer", "rules")),
        item(said("user", "first")),
        item(said("assistant", "long work")),
        item({"message": "", "replacement_history": [said("developer", "rules"), said("user", "first")]}, "compacted"),
        item(said("user", "second")),
        item({"message": "a summary"}, "compacted"),
        item(said("user", "third")),
    )
    assert [(d.action, d.first) for d in of_kind(session, Decision)] == [("compact", 1), ("compact", 5)]
    assert shown(session) == ["rules", "a summary", "third"]
    first = Imported(session_id="x", format="x", drafts=session.drafts[:6])
    assert shown(first) == ["rules", "first", "second"]


def test_a_rollback_takes_turns_out_of_the_view() -> None:
    """The user took them back; the model must not see them."""
    context = said("user", "<environment_context>\n</environment_context>")
    session = imported(
        item(context),
        item(said("user", "one")),
        item(said("assistant", "1")),
        item(said("user", "two")),
        item(said("assistant", "2")),
        event("thread_rolled_back", num_turns=1),
        item(said("user", "three")),
    )
    assert shown(session) == [text_of(messages_of(session)[0]), "one", "1", "three"]


PROGRAM = (
    "<skill>\n<name>pdf</name>\nRead it page by page.\n</skill>",
    "<user_shell_command>\n<command>ls</command>\n<result>a.py</result>\n</user_shell_command>",
    '<subagent_notification>\n{"agent_id": "a", "status": "Completed"}\n</subagent_notification>',
    "<turn_aborted>\nThe user interrupted.\n</turn_aborted>",
    '<hook_prompt hook_run_id="1">Check again.</hook_prompt>',
    "# AGENTS.md instructions for /work\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>",
)
"""Texts that Codex writes in the user's name."""


@pytest.mark.parametrize("text", PROGRAM)
def test_what_codex_says_as_the_user_is_no_turn(text: str) -> None:
    """A roll-back of one turn would take back the notification alone, and leave the turn that the user took back."""
    lines = [
        item(said("user", "one")), item(said("assistant", "1")), item(said("user", "two")), item(said("user", text)),
        item(said("assistant", "2")),
    ]  # fmt: skip
    session = imported(*lines, event("thread_rolled_back", num_turns=1), item(said("user", "three")))
    assert shown(session) == ["one", "1", "three"]
    store = MemoryStore()
    store.create("s")
    store.append("s", imported(*lines).drafts)
    live = turnlog.Session(store, store.info("s"))
    assert [turn.input for turn in live.log.turns()] == ["one", "two"]
    live.rewind(turns=1)
    assert [text_of(one.message) for one in live.view()] == ["one", "1"]


def test_rollouts_from_before_0_40_are_read() -> None:
    """Bare items after a header, without payload or time."""
    header: dict[str, Any] = {"id": "old-1", "timestamp": "2025-06-01T10:00:00.000Z", "instructions": None, "git": {}}
    state = {"record_type": "state"}
    (session,) = read_file(jsonl([header, state, said("user", "hello"), said("assistant", "hi")]))
    assert (session.session_id, session.format) == ("old-1", "codex-rollout")
    assert messages_of(session)[0] == Message("user", (Text("hello"),), form=messages_of(session)[0].form)
    assert [note.topic for note in of_kind(session, Note)] == ["session_meta", "state"]
    assert {draft.time for draft in session.drafts} == {"2025-06-01T10:00:00.000Z"}


def test_forks_name_their_parent_and_the_system_prompt_stands_once() -> None:
    """A fork's file repeats the header, prompt and all, of what it was forked from."""
    meta = {"id": "child", "forked_from_id": "parent", "base_instructions": {"text": "You are."}}
    lines = [item(meta, "session_meta"), item({**meta, "id": "parent"}, "session_meta"), item(said("user", "x"))]
    (session,) = read_file(jsonl(lines))
    assert (session.session_id, session.parent) == ("child", "parent")
    assert [(m.role, text_of(m)) for m in messages_of(session)] == [("system", "You are."), ("user", "x")]


def test_unknown_lines_and_items_are_kept() -> None:
    """Codex adds kinds every month; none may vanish."""
    session = imported(
        item({"full": True}, "world_state"),
        item({"type": "ghost_snapshot", "ghost_commit": {"id": "a"}}),
        item({"type": 5}),
        event("brand_new", x=1),
    )
    notes = [(note.topic, note.data) for note in of_kind(session, Note)][1:]
    assert notes == [
        ("world_state", {"full": True}),
        ("ghost_snapshot", {"type": "ghost_snapshot", "ghost_commit": {"id": "a"}}),
        ("unreadable", {"type": 5}),
        ("brand_new", {"x": 1}),
    ]
    assert [warning.line for warning in session.warnings] == [4]


def test_patches_stay_readable_and_are_worked_out_where_the_file_is_known() -> None:
    """Codex tells what changed as patches only; without them a session's diff would be empty."""
    patch = "@@ -1 +1,2 @@\n one\n+two\n"
    session = imported(
        item({"cwd": "/w"}, "session_meta"),
        event("patch_apply_end", call_id="c1", success=True, changes={"/w/new": {"type": "add", "content": "one\n"}}),
        event(
            "patch_apply_end",
            call_id="c2",
            success=True,
            changes={
                "/w/new": {"type": "update", "unified_diff": patch, "move_path": None},
                "/w/other": {"type": "update", "unified_diff": patch, "move_path": "/w/there"},
            },
        ),
    )
    new, same, other = of_kind(session, FileChange)
    contents = [session.blobs.get(name) for name in (new.after, same.before, same.after, same.patch, other.patch)]
    assert contents == [b"one\n", b"one\n", b"one\ntwo\n", None, patch.encode()]
    assert (other.path, other.old_path, other.before, other.root) == ("/w/there", "/w/other", "", "/w")


def test_a_patch_without_an_event_is_read_from_its_call() -> None:
    """Short rollouts leave events out: what a patch did stands in the call alone, failed ones did nothing."""
    patch = (
        "*** Begin Patch\n*** Add File: a.py\n+def f():\n+    return 1\n*** Update File: a.py\n*** Move to: b.py\n"
        "@@ def f():\n-    return 1\n+    return 2\n*** Delete File: c.py\n"
        "*** Update File: d.py\n@@\n-x\n+y\n*** End Patch"
    )
    done = "Success. Updated the following files:\nM a.py\n"
    shell = {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{patch}\nEOF\n"]}
    quoted = {"command": ["cat", patch]}
    session = imported(
        item({"type": "function_call", "name": "shell", "arguments": json.dumps(shell), "call_id": "c1"}),
        item({"type": "function_call_output", "call_id": "c1", "output": done}),
        item({"type": "custom_tool_call", "name": "apply_patch", "input": patch, "call_id": "c2"}),
        item({"type": "custom_tool_call_output", "call_id": "c2", "output": "Exit code: 1\nOutput:\nno"}),
        item({"type": "function_call", "name": "shell", "arguments": json.dumps(quoted), "call_id": "c3"}),
        item({"type": "function_call_output", "call_id": "c3", "output": patch}),
    )
    changes = of_kind(session, FileChange)
    assert [(one.action, one.path, one.old_path, one.call_record) for one in changes] == [
        ("created", "a.py", "", 2),
        ("modified", "a.py", "", 2),
        ("renamed", "b.py", "a.py", 2),
        ("deleted", "c.py", "", 2),
        ("modified", "d.py", "", 2),
    ]
    texts = [session.blobs.get(one.after) for one in changes]
    assert texts == [b"def f():\n    return 1\n", *[b"def f():\n    return 2\n"] * 2, None, None]
