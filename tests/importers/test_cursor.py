"""What is special about Cursor's transcripts: text files, times in the user's words, subagents by their folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from transcripts import jsonl, messages_of, of_kind

from turnlog.importers import read_file
from turnlog.log.messages import Message, Reasoning, Text, ToolCall, ToolResult, text_of
from turnlog.log.origins import origin_of
from turnlog.log.records import FileChange, Note, Record, TurnClosed
from turnlog.session.titles import title_from

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
    assert user.parts == (Text("Name the fjords"),)
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


def test_a_notebook_is_a_changed_file() -> None:
    """Its path has another name than those of other files: what was done to it was missing in the diff."""
    call = {"type": "tool_use", "name": "EditNotebook", "input": {"target_notebook": "a.ipynb", "new_string": "b"}}
    (session,) = read_file(jsonl([said("go"), {"role": "assistant", "message": {"content": [call]}}, said("on")]))
    assert [(change.path, change.action) for change in of_kind(session, FileChange)] == [("a.ipynb", "modified")]


@pytest.mark.parametrize(
    ("sent", "messages"),
    [
        ("<user_query>\ngo on\n</user_query>", [("go on", False)]),
        ("<timestamp>Tuesday, Sep 15, 2026, 3:44 PM (UTC+8)</timestamp>\ngo on", [("go on", False)]),
        ("--- Cursor Command: plan ---\n<user_query>go on</user_query>",
         [("--- Cursor Command: plan ---", True), ("go on", False)]),
        ("<attached_files>a\nb</attached_files>\n<user_query>go on</user_query>\n<rules>c</rules>",
         [("<attached_files>a\nb</attached_files>\n\n\n<rules>c</rules>", True), ("go on", False)]),
        ("<user_info>\nOS: Linux\n</user_info>\n\n<rules>x</rules>",
         [("<user_info>\nOS: Linux\n</user_info>\n\n<rules>x</rules>", True)]),
        ("<system_notification>done</system_notification>\n<user_query>Say so</user_query>",
         [("<system_notification>done</system_notification>\nSay so", True)]),
        ("<attached_files>\n<system_notification>\n<user_query>\nno\n</user_query>\n</attached_files>\n"
         "<user_query>\ngo on\n</user_query>",
         [("<attached_files>\n<system_notification>\n<user_query>\nno\n</user_query>\n</attached_files>", True),
          ("go on", False)]),
        ("<user_query>\nwhy <user_query>a</user_query>\nand </user_query> <b>?\n</user_query>",
         [("why <user_query>a</user_query>\nand </user_query> <b>?", False)]),
        ("what are <user_query> and </user_query>?", [("what are <user_query> and </user_query>?", False)]),
        ("<user_query>a</user_query>\n<user_query>b</user_query>", [("a\nb", False)]),
        ("<my_config>\na\n</my_config>", [("<my_config>\na\n</my_config>", False)]),
        ("<p>why is it empty?</p>", [("<p>why is it empty?</p>", False)]),
        ("<user_query>what was cut o", [("what was cut o", False)]),
        ("<timestamp>Tuesday, Sep 15, 2026, 3:44 PM (UTC+8)</timestamp>\n<user_query>\n</user_query>", []),
    ],
)  # fmt: skip
def test_a_prompt_reads_as_it_was_typed(sent: str, messages: list[tuple[str, bool]]) -> None:
    """The title, digests and what is handed over would be of what Cursor tells the model in the user's name."""
    (session,) = read_file(jsonl([said(sent), {"type": "turn_ended", "status": "success"}]))
    assert [(text_of(message), message.by_program) for message in messages_of(session)] == messages
    assert session.title == title_from(next((text for text, by_program in messages if not by_program), ""))
    notes = [note.data["timestamp"] for note in of_kind(session, Note) if note.topic == "sent"]
    assert notes == (["Tuesday, Sep 15, 2026, 3:44 PM (UTC+8)"] if "<timestamp>" in sent else [])


@pytest.mark.parametrize("text", ["<event><timestamp>1</timestamp></event>", "<timestamp>1</timestamp> is odd"])
def test_a_time_in_the_words_of_the_user_stays_there(text: str) -> None:
    """A line of a log that the user pasted lost its time."""
    (session,) = read_file(jsonl([said(text)]))
    assert [text_of(message) for message in messages_of(session)] == [text]


def test_elements_alone_are_cursor_s_once_a_query_was_seen() -> None:
    """Where each prompt is within a query, what is without one was not typed, whatever it is called."""
    alone = "<later_block>a</later_block>"
    (session,) = read_file(jsonl([said(alone), said("<user_query>go</user_query>"), said(alone)]))
    assert [message.by_program for message in messages_of(session)] == [False, False, True]


@pytest.mark.parametrize(
    ("project", "path", "folder"),
    [
        ("home-me-my-app", "/home/me/my-app/src/a.py", "/home/me/my-app"),
        ("home-me-my-app", "/home/me/my/app/a.py", "/home/me/my/app"),
        ("home-me-my-app", "/home/me/my-app", "/home/me/my-app"),
        ("c-Users-me-Desktop-x", "c:\\Users\\me\\Desktop\\x\\a.py", "c:\\Users\\me\\Desktop\\x"),
        ("home-me-my-app", "/home/me/my-apple/a.py", ""),
        ("home-me-my-app", "src/a.py", ""),
        ("home-me-my-app", "/etc/hosts", ""),
        ("home-me-my-app", "/home/me/my-app-old/a.py /home/me/my-app/a.py", "/home/me/my-app"),
    ],
)
def test_the_folder_is_that_of_which_a_call_names_a_file(project: str, path: str, folder: str, tmp_path: Path) -> None:
    """The name of the project has a dash for each sign, so that it alone does not tell `my-app` from `my/app`."""
    file = tmp_path / ".cursor/projects" / project / "agent-transcripts/5f2b.jsonl"
    file.parent.mkdir(parents=True)
    call = {"type": "tool_use", "name": "Read", "input": {"paths": path.split(" "), "n": 3}}
    file.write_bytes(jsonl([said("go"), {"role": "assistant", "message": {"content": [call, call]}}]))
    (session,) = read_file(file)
    records = [Record(number, "", draft.body) for number, draft in enumerate(session.drafts, 1)]
    assert origin_of(records) == ("cursor", folder)


def test_many_blocks_around_a_prompt_take_no_longer() -> None:
    """With thirty blocks of a program and a word behind them, each way to divide them was tried: reading had no end."""
    blocks = "<open_files>a</open_files>\n" * 30
    text = f"{blocks}and then?{' ' * 100_000}x"
    (session,) = read_file(jsonl([said(text), said(f"<user_query>{' ' * 100_000}y</user_query>")]))
    assert [message.parts for message in messages_of(session)] == [(Text(text),), (Text("y"),)]


def test_tags_that_the_user_typed_stay_the_users() -> None:
    """Where no prompt is wrapped, a prompt that is nothing but a piece of XML would become the program's words."""
    (session,) = read_file(jsonl([said("<my_config>a</my_config>"), said("And now?")]))
    assert [message.by_program for message in messages_of(session)] == [False, False]


TAGS = [
    "<user_query>",
    "</user_query>",
    "\n</user_query> ",
    "<a_b>",
    "<a_",
    "<timestamp>",
    "\n<user_query>\n</user_query>",
]


@pytest.mark.parametrize("piece", [*TAGS, "<a_b>\n</a_b>", " ", "\n", ">", "\n "])
def test_hostile_prompts_take_no_longer(piece: str) -> None:
    """A prompt of 300 KB of tags, as in a file that the user attached, would hold up an import."""
    befores = ("", "<user_query>\n", "<a_b>")
    (session,) = read_file(jsonl([said(before + piece * (300_000 // len(piece)) + "x") for before in befores]))
    assert "x" in text_of(messages_of(session)[0])[-9:]
