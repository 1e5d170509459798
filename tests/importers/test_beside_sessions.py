"""Titles and folders that programs keep in a file beside the session."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from sample_copilot_cli import SAMPLE as COPILOT
from sample_kimi import SAMPLE as KIMI
from sample_vscode_chat import SAMPLE as VSCODE
from transcripts import jsonl, of_kind

from turnlog.importers import Imported, read_file
from turnlog.importers.known_files import KnownFiles
from turnlog.log.records import Note
from turnlog.stores import MemoryStore


def _noted(session: Imported, key: str) -> list[str]:
    """The values that notes of a session have for a key."""
    return [note.data[key] for note in of_kind(session, Note) if isinstance(note.data, dict) and key in note.data]


def test_copilot_cli_names_a_session_in_its_workspace(tmp_path: Path) -> None:
    """A list of sessions would have their first words, not the names that the user knows them by."""
    path = COPILOT.written(tmp_path)
    path.with_name("workspace.yaml").write_text("id: s-1\nname: 'All the fjords'\nsummary_count: 0\n", "utf-8")
    path.write_bytes(b"".join(COPILOT.data.splitlines(keepends=True)[:6]))
    (session,) = read_file(path)
    assert session.title == "All the fjords"
    assert str(path.with_name("workspace.yaml")) in session.files


def test_a_run_of_copilot_cli_without_a_bill_has_the_tokens_of_its_answers() -> None:
    """A printed run has no end with figures: it would seem to have cost nothing, and not something unknown."""
    lines = [
        {"type": "user.message", "data": {"content": "Name the fjords"}, "id": "a"},
        {"type": "assistant.message", "data": {"content": "Sogne", "model": "gpt-5", "outputTokens": 40}, "id": "b"},
        {"type": "result", "sessionId": "s-2", "exitCode": 0},
    ]
    (session,) = read_file(jsonl(lines))
    bodies = [draft.body for draft in session.drafts]
    (usage,) = [body.usage for body in bodies if hasattr(body, "usage")]
    assert (usage.output, usage.incomplete, session.session_id) == (40, True, "s-2")


def test_kimi_code_keeps_title_and_folder_in_its_state(tmp_path: Path) -> None:
    """Without its folder, a session is missed among those of a project; its subagents are not found by their parent."""
    path = KIMI.written(tmp_path)
    state = path.parents[2] / "state.json"
    state.write_text(json.dumps({"title": "All the fjords", "workDir": "/w/there"}), "utf-8")
    main, older, child = read_file(path)
    assert (main.session_id, main.title) == ("session_s-1", "All the fjords")
    assert _noted(main, "cwd")[0] == "/w/there"
    assert (older.parent, child.session_id, child.parent) == ("session_s-1", "session_s-1.agent-1", "session_s-1")
    state.write_text("{damaged", "utf-8")
    assert read_file(path)[0].title == "Name the fjords of Norway"


def test_a_chat_of_vs_code_is_in_the_folder_of_its_workspace(tmp_path: Path) -> None:
    """Paths of changed files are told below the folder, which is only in another file."""
    path = VSCODE.written(tmp_path)
    beside = path.parents[1] / "workspace.json"
    for uri, folder in (("file:///w/my%20app", "/w/my app"), ("file:///c%3A/w", "c:/w")):
        beside.write_text(json.dumps({"folder": uri}), "utf-8")
        (session,) = read_file(path)
        assert _noted(session, "cwd") == [folder]
        assert str(beside) in session.files


def test_a_new_subagent_of_kimi_code_is_noticed(tmp_path: Path) -> None:
    """An agent in the background writes a file in another folder: its session was missing until the main one grew."""
    path = KIMI.written(tmp_path)
    for each in (path.parents[1], *path.parents[1].rglob("*")):
        os.utime(each, (1e9, 1e9))
    known = KnownFiles(MemoryStore(), ":memory:", ())
    known.add(path, time.time_ns(), "kimi-code", [], read_file(path)[0].files)
    assert known.find(path) is not None
    (path.parents[1] / "agent-9").mkdir()
    assert known.find(path) is None
