"""cline sessions, one habit of theirs a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transcripts import bodies_of, messages_of, of_kind

from turnlog.errors import ImportFailed
from turnlog.importers import Imported, detect, read_file
from turnlog.log.messages import Form, Message, Text, ToolCall, ToolResult
from turnlog.log.records import FileChange, MessageRecord, Note, SessionOpened, UsageRecord
from turnlog.log.usage import Usage

OWN = "1784000000000_abcde"
USER = {"id": "m1", "role": "user", "ts": 1_783_376_868_634, "content": [{"type": "text", "text": "Fix it"}]}
ANSWER = {
    "id": "m2",
    "role": "assistant",
    "ts": 1_783_376_873_493,
    "modelInfo": {"id": "vendor/model", "provider": "cline", "family": "f"},
    "metrics": {"inputTokens": 30, "outputTokens": 4, "cacheReadTokens": 20, "cacheWriteTokens": 1, "cost": 0.5},
    "content": [{"type": "tool_use", "id": "c1", "name": "run", "input": {"commands": ["ls"]}}],
}


def result(content: Any, **more: Any) -> dict[str, Any]:
    """A message with the result of the call of `ANSWER`."""
    block = {"type": "tool_result", "tool_use_id": "c1", "name": "run", "content": content, **more}
    return {"id": "m3", "role": "user", "ts": 1_783_376_873_501, "content": [block]}


def document(*messages: Any, **more: Any) -> dict[str, Any]:
    """A messages file."""
    around = {"version": 1, "updated_at": "2026-07-15T05:42:04.818Z", "agent": "lead", "sessionId": OWN}
    return {**around, "messages": list(messages), "system_prompt": "You are an agent.", **more}


def imported(*messages: Any, **more: Any) -> Imported:
    """The session of a messages file."""
    (session,) = read_file(json.dumps(document(*messages, **more)).encode())
    return session


def test_a_turn_with_a_tool() -> None:
    """Keys of cline's own inside a message would be refused by every provider."""
    done = [{"query": "ls", "result": "a.txt", "success": True}]
    session = imported(USER, ANSWER, result(done))
    assert messages_of(session) == [
        Message("system", (Text("You are an agent."),), form=Form("anthropic", "inline")),
        Message("user", (Text("Fix it"),), form=messages_of(session)[1].form),
        Message("assistant", (ToolCall("c1", "run", {"commands": ["ls"]}),)),
        Message("user", (ToolResult("c1", "run", (Text('[{"query":"ls","result":"a.txt","success":true}]'),)),)),
    ]
    records = of_kind(session, MessageRecord)
    assert [(record.model, record.source) for record in records[1:3]] == [
        ("", "messages[0] id m1"),
        ("vendor/model", "messages[1] id m2"),
    ]
    usage = Usage(input=30, output=4, cached=20, cache_write=1)
    assert of_kind(session, UsageRecord) == [UsageRecord("cline", "vendor/model", usage, ANSWER["metrics"])]
    assert session.drafts[1].time == "2026-07-06T22:27:48.634Z"
    assert (session.session_id, session.title, session.warnings) == (OWN, "Fix it", ())


@pytest.mark.parametrize(
    ("block", "outcome"),
    [
        (result([{"success": False}, {"success": False}]), "failed"),
        (result([{"success": False}, {"success": True}]), "ok"),
        (result("no", is_error=True), "failed"),
    ],
)
def test_a_tool_failed_if_all_of_it_did(block: Any, outcome: str) -> None:
    """A failure taken for success is gone from every view that looks for failures."""
    (part,) = messages_of(imported(USER, ANSWER, block))[-1].parts
    assert isinstance(part, ToolResult) and part.outcome == outcome


def test_an_attached_file_is_text_with_its_path() -> None:
    """The file's text is what the user's question is about."""
    block = {"type": "file", "path": "/w/a.py", "content": "x = 1"}
    (part,) = messages_of(imported({**USER, "content": [block]}))[-1].parts
    assert isinstance(part, Text) and part.text == '<file_content path="/w/a.py">\nx = 1\n</file_content>'


def test_facts_and_messages_are_one_session_from_either_side(tmp_path: Path) -> None:
    """Imported one after the other, the two files must not become two sessions."""
    facts = tmp_path / f"{OWN}.json"
    messages = tmp_path / f"{OWN}.messages.json"
    metadata = {"title": "Named", "fork": {"forkedFromSessionId": "origin"}}
    told = {"session_id": OWN, "workspace_root": "/w", "enable_tools": True, "started_at": "2026-07-15T05:42:04Z"}
    path = "/Users/x/.cline/data/sessions/s/" + messages.name
    facts.write_text(json.dumps({**told, "status": "completed", "metadata": metadata, "messages_path": path}))
    messages.write_text(json.dumps(document(USER)))
    assert read_file(facts) == read_file(messages)
    (session,) = read_file(facts)
    assert (session.title, session.parent, session.files) == ("Named", "origin", (str(messages), str(facts)))
    assert not any(isinstance(draft.body, SessionOpened) for draft in session.drafts)
    for asks, source in ((True, "interactive"), (False, "non-interactive")):
        facts.write_text(json.dumps({**told, "interactive": asks, "messages_path": path}))
        assert SessionOpened(source) in [draft.body for draft in read_file(facts)[0].drafts[:2]]
    messages.unlink()
    (alone,) = read_file(facts)
    assert (alone.session_id, messages_of(alone), len(alone.warnings)) == (OWN, [], 1)


def test_a_compacted_conversation_is_a_session_under_the_one_it_came_from() -> None:
    """Under the same id it would be taken for another version of the whole session."""
    metadata = {"kind": "compaction_summary", "tokensBefore": 9}
    summary = {"role": "user", "id": "s", "metadata": metadata, "content": [{"type": "text", "text": "Summary"}]}
    session = imported(summary, USER)
    grown = imported(summary, USER, ANSWER)
    assert session.session_id.startswith(f"{OWN}.compaction-") and session.parent == OWN
    assert grown.session_id == session.session_id
    assert Note("compaction", data={"metadata": metadata}) in bodies_of(session)


def test_the_old_list_is_named_after_its_folder(tmp_path: Path) -> None:
    """Named after its bytes, the list would be a new session each time it grew."""
    path = tmp_path / "tasks/1712345678901/api_conversation_history.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps([{"role": "user", "content": "hi"}]))
    assert (detect(path).name, read_file(path)[0].session_id) == ("cline", "1712345678901")


def test_a_session_that_went_on_begins_as_before() -> None:
    """Else the next import would keep a copy instead of what is new."""
    earlier, later = imported(USER, ANSWER), imported(USER, ANSWER, result("x"), updated_at="later")
    assert later.drafts[: len(earlier.drafts)] == earlier.drafts


def test_of_a_broken_file_the_messages_before_the_damage_are_read() -> None:
    """A file that was cut while it was written holds the whole session but its end."""
    data = json.dumps(document(USER, ANSWER, result("x")), indent=1).encode()
    whole = read_file(data)[0]
    (cut,) = read_file(data[: data.index(b'"m3"')])
    assert cut.session_id == whole.session_id
    assert messages_of(cut) == messages_of(whole)[1:3]
    assert len(cut.warnings) == 1 and "2 entries" in cut.warnings[0].message
    with pytest.raises(ImportFailed):
        detect(data).read(data[:40])


def test_edits_are_file_changes() -> None:
    """Without them, `diff` shows nothing of a session."""
    made = {"path": "a.py", "content": "x = 1\n"}
    call = {"type": "tool_use", "id": "c1", "name": "write_to_file", "input": made}
    said = [{"type": "tool_result", "tool_use_id": "c1", "content": "The file was created: new file."}]
    session = imported({"role": "assistant", "content": [call]}, {"role": "user", "content": said})
    (change,) = of_kind(session, FileChange)
    assert (change.path, change.action, session.blobs[change.after]) == ("a.py", "created", b"x = 1\n")


def test_damage_before_the_messages_does_not_hide_what_it_is() -> None:
    """A file that is damaged where its text is has the same words before it, and is to be copied again."""
    data = json.dumps(document({"role": "user", "content": "hi there"}), indent=1).encode()
    for damaged in (data.replace(b"hi there", b"hi \x01, {there"), data.replace(b"hi there", b'hi" there')):
        assert detect(damaged).name == "cline"
