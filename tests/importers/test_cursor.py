"""What is special about Cursor's transcripts: text files, times in the user's words, subagents by their folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from transcripts import jsonl, messages_of, of_kind

from turnlog.importers import read_file
from turnlog.log.messages import Message, Reasoning, Text, ToolCall, ToolResult
from turnlog.log.records import FileChange, TurnClosed

TEXT = """user:
<user_query>
Name the fjords
</user_query>

assistant:
[Thinking] I have to look
  at the files
I look.
[Tool call] Shell
  command: ls -la
  cwd=/w
[Tool result] Shell
  Hardanger

  Sogne
[Tool call] ApplyPatch
  *** Begin Patch
  *** End Patch

assistant:
Two of them.
"""


def said(text: str) -> dict[str, object]:
    """A line of the user."""
    return {"role": "user", "message": {"content": [{"type": "text", "text": text}]}}


def test_a_text_transcript_is_read(tmp_path: Path) -> None:
    """Older versions wrote text; calls in it would be the model's own words."""
    path = tmp_path / "agent-transcripts/5f2b.txt"
    path.parent.mkdir()
    path.write_text(TEXT, "utf-8")
    (session,) = read_file(path)
    assert (session.session_id, session.title, session.warnings) == ("5f2b", "Name the fjords", ())
    user, answer, result, last = messages_of(session)
    assert user.parts == (Text("<user_query>\nName the fjords\n</user_query>"),)
    assert answer.parts[0] == Reasoning("anthropic", text="I have to look\n  at the files", form=answer.parts[0].form)  # type: ignore[union-attr]
    assert [part for part in answer.parts if isinstance(part, ToolCall)] == [
        ToolCall("call-1", "Shell", {"command": "ls -la", "cwd": "/w"}),
        ToolCall("call-2", "ApplyPatch", {"input": "*** Begin Patch\n  *** End Patch"}),
    ]
    assert Text("I look.") in answer.parts
    assert [part.call_id for part in result.parts if isinstance(part, ToolResult)] == ["call-1"]
    assert last == Message("assistant", (Text("Two of them."),), form=last.form)


@pytest.mark.parametrize(
    ("sent", "time"),
    [
        ("Wednesday, Oct 7, 2026, 1:20 PM (UTC+3)", "2026-10-07T10:20:00.000Z"),
        ("Wednesday, Oct 7, 2026, 12:05 AM (UTC)", "2026-10-07T00:05:00.000Z"),
        ("Wednesday, Oct 7, 2026, 12:05 PM (UTC-3:30)", "2026-10-07T15:35:00.000Z"),
        ("Wednesday, Feb 31, 2026, 1:20 PM (UTC+3)", ""),
        ("Mittwoch, Okt 7, 2026, 1:20 PM (UTC+3)", ""),
        ("Wednesday, Oct 7, 2026, 1:20 PM (UTC+300)", ""),
    ],
)
def test_the_time_is_in_the_words_of_the_user(sent: str, time: str) -> None:
    """A session without times is sorted by when its file was written."""
    (session,) = read_file(jsonl([said(f"<timestamp>{sent}</timestamp>\n<user_query>go</user_query>")]))
    assert {draft.time for draft in session.drafts} == {time}


def test_subagents_and_edits(tmp_path: Path) -> None:
    """A subagent is a child by its folder alone; a call that is followed by a message has run."""
    folder = tmp_path / "5f2b"
    (folder / "subagents").mkdir(parents=True)
    write = {"type": "tool_use", "name": "Write", "input": {"path": "a.txt", "contents": "x"}}
    lines = [said("go"), {"role": "assistant", "message": {"content": [write]}}]
    ended = {"type": "turn_ended", "status": "aborted"}
    (folder / "5f2b.jsonl").write_bytes(jsonl([*lines, said("on"), ended]))
    (folder / "subagents/one.jsonl").write_bytes(jsonl([said("look")]))
    (folder / "subagents/two.jsonl").write_bytes(b"{")
    main, child = read_file(folder / "5f2b.jsonl")
    assert (main.session_id, child.session_id, child.parent) == ("5f2b", "one", "5f2b")
    assert [change.path for change in of_kind(main, FileChange)] == ["a.txt"]
    assert [end.status for end in of_kind(main, TurnClosed)] == ["cancelled"]
    assert ["two.jsonl" in warning.file for warning in main.warnings] == [True]
    assert of_kind(read_file(jsonl(lines))[0], FileChange) == []
