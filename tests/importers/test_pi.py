"""pi sessions, one habit of theirs a test."""

from __future__ import annotations

import base64
from typing import Any

from transcripts import bodies_of, jsonl, messages_of, of_kind

from turnlog.importers import Imported, read_file
from turnlog.log.messages import Media, Message, Reasoning, Text, ToolCall, ToolResult, sha256_hex, text_of
from turnlog.log.records import (
    Configuration,
    Decision,
    FileChange,
    Note,
    PartialAnswer,
    Record,
    TurnClosed,
    UsageRecord,
)
from turnlog.log.usage import Usage
from turnlog.view.fold import select

HEADER = {"type": "session", "version": 3, "id": "p1", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w"}
USAGE = {"input": 3, "output": 5, "cacheRead": 40, "cacheWrite": 7, "cost": {"total": 0.01}}


def entry(own: str, parent: str | None, kind: str = "message", **more: Any) -> dict[str, Any]:
    """An entry of the tree."""
    return {"type": kind, "id": own, "parentId": parent, "timestamp": "2026-01-01T00:00:01.000Z", **more}


def user(own: str, parent: str | None, text: str) -> dict[str, Any]:
    """What the user wrote."""
    return entry(own, parent, message={"role": "user", "content": [{"type": "text", "text": text}]})


def answer(own: str, parent: str, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What a model answered; by default to its end."""
    message = {
        "role": "assistant",
        "content": list(blocks),
        "api": "anthropic-messages",
        "provider": "anthropic",
        "model": "claude-x",
        "usage": USAGE,
        "stopReason": "stop",
        **more,
    }
    return entry(own, parent, message=message)


def said(text: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": text}


def imported(*entries: dict[str, Any]) -> Imported:
    """The session of these entries under a header."""
    (session,) = read_file(jsonl([HEADER, *entries]))
    assert session.warnings == ()
    return session


def shown(session: Imported) -> list[str]:
    """The texts that a view would start from."""
    records = [Record(n, draft.time, draft.body) for n, draft in enumerate(session.drafts, 1)]
    return [text_of(one.message) for one in select(records)[0]]


def test_a_turn_with_a_tool() -> None:
    """A call that does not meet its result, or usage without its cached part, would fail here."""
    session = imported(
        user("a", None, "look"),
        answer("b", "a", said("I look."), {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "x"}}),
        entry("c", "b", message={"role": "toolResult", "toolCallId": "c1", "toolName": "read", "isError": True,
                                 "content": [said("no such file")], "details": {"code": 2}}),
        answer("d", "c", said("There is none.")),
    )  # fmt: skip
    assert messages_of(session) == [
        Message("user", (Text("look"),)),
        Message("assistant", (Text("I look."), ToolCall("c1", "read", {"path": "x"}))),
        Message("user", (ToolResult("c1", "read", (Text("no such file"),), "failed"),)),
        Message("assistant", (Text("There is none."),)),
    ]
    usage = UsageRecord("anthropic", "claude-x", Usage(input=50, output=5, cached=40, cache_write=7), USAGE)
    assert of_kind(session, UsageRecord) == [usage, usage]
    assert Note("tool_result", data={"call_id": "c1", "details": {"code": 2}}) in bodies_of(session)
    assert (session.session_id, session.title) == ("p1", "look")


def test_going_back_is_a_rewind_and_coming_again_undoes_it() -> None:
    """A model that sees the branch that the user left, or misses the one taken up again, acts on the wrong past."""
    trunk = [user("a", None, "one"), answer("b", "a", said("two"))]
    left = [user("c", "b", "left"), answer("d", "c", said("dead end"))]
    right = [user("e", "b", "right"), answer("f", "e", said("good"))]
    assert shown(imported(*trunk, *left, *right)) == ["one", "two", "right", "good"]
    again = user("g", "d", "back on the left")
    assert shown(imported(*trunk, *left, *right, again)) == ["one", "two", "left", "dead end", "back on the left"]
    anew = user("h", None, "all anew")
    assert shown(imported(*trunk, *left, *right, anew)) == ["all anew"]


def test_a_compaction_keeps_the_summary_then_the_kept_entries_of_its_branch() -> None:
    """Kept messages lost, or ones of an abandoned branch kept, would change what the model saw."""
    session = imported(
        user("a", None, "old"),
        answer("b", "a", said("older answer")),
        user("c", "b", "kept"),
        answer("x", "c", said("abandoned")),
        answer("d", "c", said("kept answer")),
        entry("e", "d", "compaction", summary="What was before.", firstKeptEntryId="c", tokensBefore=9000),
        user("f", "e", "next"),
    )
    assert shown(session) == ["What was before.", "kept", "kept answer", "next"]
    (decision,) = [body for body in of_kind(session, Decision) if body.action == "compact"]
    assert decision.detail["tokensBefore"] == 9000


def test_version_one_counts_kept_entries() -> None:
    """Files from before the tree have no ids; their compactions would hide everything."""
    lines = [user("", None, "old"), user("", None, "kept")]
    plain = [{key: value for key, value in line.items() if key not in ("id", "parentId")} for line in lines]
    compaction = {"type": "compaction", "summary": "Before.", "firstKeptEntryIndex": 2, "tokensBefore": 1}
    assert shown(imported(*plain, compaction)) == ["Before.", "kept"]


def test_an_aborted_answer_is_partial_and_half_a_call_is_no_call() -> None:
    """Half a call sent to a provider is refused, or worse, run."""
    half = {"type": "toolCall", "id": "c2", "name": "edit", "arguments": {"path": "x"}, "partialJson": '{"path": "x'}
    whole = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {}}
    session = imported(
        user("a", None, "go"),
        answer("b", "a", said("I"), whole, half, stopReason="aborted", errorMessage="Request was aborted"),
        answer("c", "b", stopReason="aborted", usage={"input": 0, "output": 0}),
    )
    assert of_kind(session, PartialAnswer) == [
        PartialAnswer(
            Message("assistant", (Text("I"), ToolCall("c1", "read", {}))), "Request was aborted",
            (ToolCall("c2", "edit", raw='{"path": "x'),), model="claude-x",
        ),
        PartialAnswer(Message("assistant"), "aborted", model="claude-x"),
    ]  # fmt: skip
    assert [body.status for body in of_kind(session, TurnClosed)] == ["cancelled", "cancelled"]
    assert len(of_kind(session, UsageRecord)) == 1


def test_reasoning_belongs_to_the_provider_that_made_it() -> None:
    """A signature sent to another provider is refused."""
    item = '{"type": "reasoning", "id": "rs_1", "encrypted_content": "e"}'
    session = imported(
        answer("a", "", {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}),
        answer("b", "a", {"type": "thinking", "thinking": "hm", "thinkingSignature": item}, api="openai-responses"),
        answer("c", "b", {"type": "toolCall", "id": "call|fc_1", "name": "f", "arguments": {}}, api="openai-responses"),
        answer("d", "c", {"type": "thinking", "thinking": "", "thinkingSignature": "r", "redacted": True}),
    )
    assert [message.parts for message in messages_of(session)] == [
        (Reasoning("anthropic", text="hm", signature="sig"),),
        (Reasoning("openai-responses", summary=("hm",), encrypted="e", id="rs_1"),),
        (ToolCall("call", "f", {}, provider="openai-responses", item_id="fc_1"),),
        (Reasoning("anthropic", encrypted="r"),),
    ]


def test_what_is_no_message_of_its_own() -> None:
    """Settings, names, commands that the user ran and branch summaries have to be found again."""
    image = {"type": "image", "data": base64.b64encode(b"png").decode(), "mimeType": "image/png"}
    session = imported(
        entry("a", None, "model_change", provider="openai", modelId="gpt-x"),
        entry("b", "a", "session_info", name="My session"),
        entry("c", "b", message={"role": "bashExecution", "command": "ls", "output": "x", "exitCode": 1}),
        entry("d", "c", message={"role": "bashExecution", "command": "env", "output": "y", "excludeFromContext": True}),
        entry("e", "d", "branch_summary", fromId="c", summary="The branch failed."),
        entry("f", "e", "custom_message", customType="t", content=[said("ext"), image], display=True),
        entry("g", "f", "label", targetId="a", label="here"),
    )
    assert session.title == "My session"
    assert of_kind(session, Configuration) == [
        Configuration("openai-responses", "gpt-x", why="the user changed the model")
    ]
    media = Media("image", "image/png", sha256_hex(b"png"), 3)
    assert messages_of(session) == [
        Message("user", (Text("$ ls\nx\n(exit code 1)"),), by_program=True),
        Message("user", (Text("The branch failed."),), by_program=True),
        Message("user", (Text("ext"), media), by_program=True),
    ]
    assert session.blobs == {media.sha256: b"png"}
    topics = [note.topic for note in of_kind(session, Note)]
    assert topics == ["session", "model_change", "session_info", "bash", "branch_summary", "custom_message", "label"]


def test_a_provider_that_there_is_no_request_for_is_a_note() -> None:
    """A configuration that names one would end every attempt to go on with the session."""
    session = imported(entry("a", None, "model_change", provider="openrouter", modelId="m"), user("b", "a", "hi"))
    assert of_kind(session, Configuration) == []
    assert Note("model_change", data={"provider": "openrouter", "modelId": "m"}) in bodies_of(session)


def test_a_fork_names_its_origin() -> None:
    """A fork whose parent is lost looks like a session that repeats another."""
    header = {**HEADER, "parentSession": "/home/u/.pi/agent/sessions/--w--/2026-01-01T00-00-00-000Z_p0.jsonl"}
    (session,) = read_file(jsonl([header, user("a", None, "hi")]))
    assert (session.session_id, session.parent) == ("p1", "p0")


def test_damage_is_a_warning() -> None:
    """A parent that is missing, a message that is none and a strange block must not cost the rest."""
    lines = [HEADER, user("b", "gone", "hi"), entry("c", "b", message=7), answer("d", "c", {"type": "?"}, said("yes"))]
    (session,) = read_file(jsonl(lines))
    assert messages_of(session) == [Message("user", (Text("hi"),)), Message("assistant", (Text("yes"),))]
    assert [warning.line for warning in session.warnings] == [2, 3, 4]


def test_edits_are_file_changes_below_the_folder_of_the_session() -> None:
    """Without them, `diff` shows nothing of a session."""
    wrote = {"type": "toolCall", "id": "c1", "name": "write", "arguments": {"path": "x.py", "content": "a = 1\n"}}
    edit = {"path": "x.py", "oldText": "1", "newText": "2"}
    session = imported(
        answer("a", "", wrote),
        entry("b", "a", message={"role": "toolResult", "toolCallId": "c1", "toolName": "write", "content": "ok"}),
        answer("c", "b", {"type": "toolCall", "id": "c2", "name": "edit", "arguments": edit}),
        entry("d", "c", message={"role": "toolResult", "toolCallId": "c2", "toolName": "edit", "content": "ok"}),
    )
    changes = of_kind(session, FileChange)
    assert [(change.path, change.root) for change in changes] == [("x.py", "/w")] * 2
    assert [session.blobs[change.after] for change in changes] == [b"a = 1\n", b"a = 2\n"]


def test_content_that_is_no_block_is_told() -> None:
    """A text without its block vanished in silence."""
    (session,) = read_file(jsonl([HEADER, entry("a", None, message={"role": "user", "content": [said("hi"), 7]})]))
    assert messages_of(session) == [Message("user", (Text("hi"),))]
    assert [(warning.line, "content[]" in warning.message) for warning in session.warnings] == [(2, True)]
    assert Note("message", data={"message.content[1]": 7}) in bodies_of(session)
