"""Databases as other versions of a program, other programs and other users leave them."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from samples import database_of, samples

from turnlog.errors import ImportFailed
from turnlog.importers import detect, read_file

DATABASES = [sample for sample in samples() if sample.data.startswith(b"SQLite") and sample.name in ("goose", "crush")]


def changed(folder: Path, data: bytes, *statements: str) -> Path:
    """The database with these statements carried out."""
    path = folder / "changed.db"
    path.write_bytes(data)
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()
    return path


@pytest.mark.parametrize("sample", DATABASES, ids=lambda sample: sample.name)
def test_a_number_in_place_of_json_takes_no_memory(sample: object, tmp_path: Path) -> None:
    """As many zeros as the number says were made: gigabytes for a database of 40 kB."""
    column = {"goose": "content_json", "crush": "parts"}[sample.name]  # type: ignore[attr-defined]
    update = f"UPDATE messages SET {column} = 9000000000000000000 WHERE rowid = 1"
    path = changed(tmp_path, sample.data, update)  # type: ignore[attr-defined]
    warnings = [each.message for session in read_file(path) for each in session.warnings]
    assert any("is not JSON (it is a number)" in each or "no list" in each for each in warnings)


def test_an_older_goose_without_a_ledger_gives_no_warning(tmp_path: Path) -> None:
    """Each import of an older goose told of rows that were lost, though none was."""
    goose = next(sample for sample in DATABASES if sample.name == "goose")
    (before, *_), (after, *_) = (
        read_file(path)
        for path in (changed(tmp_path, goose.data), changed(tmp_path, goose.data, "DROP TABLE usage_ledger"))
    )
    assert after.warnings == before.warnings


@pytest.mark.parametrize("sample", DATABASES, ids=lambda sample: sample.name)
def test_a_column_that_is_not_there_is_no_fault_of_turnlog(sample: object, tmp_path: Path) -> None:
    """A version of the program that named a column otherwise ended the import with an error in turnlog itself."""
    column = {"goose": "role", "crush": "parts"}[sample.name]  # type: ignore[attr-defined]
    path = changed(tmp_path, sample.data, f"ALTER TABLE messages RENAME COLUMN {column} TO other")  # type: ignore[attr-defined]
    told = ""
    try:
        told = "".join(warning.message for session in read_file(path) for warning in session.warnings)
    except ImportFailed as error:
        told = str(error)
    assert told


@pytest.mark.skipif(os.name == "nt", reason="folders are not read-only on Windows")
def test_a_database_is_left_alone(tmp_path: Path) -> None:
    """An import left files beside a program's database, and could not read one in a folder that is read-only."""
    goose = next(sample for sample in DATABASES if sample.name == "goose")
    path = changed(tmp_path, goose.data, "PRAGMA journal_mode = WAL")
    assert sorted(each.name for each in tmp_path.iterdir()) == [path.name]
    assert read_file(path)
    assert sorted(each.name for each in tmp_path.iterdir()) == [path.name]


def test_a_stream_of_cursor_is_refused_by_name() -> None:
    """Read as Claude Code's, it had no call and no thinking, in silence."""
    lines = [
        '{"type":"system","subtype":"init","session_id":"s","model":"m","cwd":"/w"}',
        '{"type":"user","message":{"role":"user","content":[{"type":"text","text":"hi"}]},"session_id":"s"}',
        '{"type":"tool_call","subtype":"started","call_id":"c","tool_call":{"readToolCall":{}},"session_id":"s"}',
        '{"type":"result","subtype":"success","result":"done","session_id":"s"}',
    ]
    with pytest.raises(ImportFailed, match="cursor-agent"):
        read_file("\n".join(lines).encode())


@pytest.mark.parametrize("is_file", [False, True])
@pytest.mark.parametrize(
    ("script", "told"),
    [
        (
            "CREATE TABLE session (id INTEGER, user TEXT, data TEXT);"
            "CREATE TABLE message (id INTEGER, session_id INTEGER, data TEXT);"
            "CREATE TABLE part (id INTEGER, name TEXT)",
            "a SQLite database",
        ),
        (
            "CREATE TABLE schema_version (v INTEGER); CREATE TABLE sessions (id TEXT, user TEXT);"
            "CREATE TABLE messages (id TEXT, content TEXT)",
            "a SQLite database",
        ),
        ("CREATE TABLE threads (id TEXT, title TEXT)", "a SQLite database"),
        (
            "CREATE TABLE schema_version (version INTEGER); CREATE TABLE sessions (id TEXT, system_prompt TEXT);"
            "CREATE TABLE messages (id INTEGER, session_id TEXT, role TEXT, content TEXT, tool_calls TEXT)",
            "Hermes",
        ),
        ("CREATE TABLE IF NOT EXISTS threads (id TEXT, data_type TEXT NOT NULL, data BLOB NOT NULL)", "threads of Zed"),
        ("CREATE TABLE `conversations_v2` (key TEXT, value TEXT)", "Kiro"),
    ],
)
def test_a_database_of_another_program_is_no_agent_s(script: str, told: str, is_file: bool, tmp_path: Path) -> None:
    """Tables of the same names are in many apps: rows of an invoice became the messages of an agent."""
    data = database_of(script)
    path = tmp_path / "app.db"
    path.write_bytes(data)
    with pytest.raises(ImportFailed, match=told):
        read_file(path if is_file else data)


def test_columns_behind_the_first_bytes_are_found(tmp_path: Path) -> None:
    """A database of many tables is recognised by all of them; the first pages do not hold their list."""
    opencode = next(sample for sample in samples() if sample.name == "opencode" and sample.is_database)
    tables = [f"CREATE TABLE other{n} (id TEXT, {', '.join(f'column{m} TEXT' for m in range(99))})" for n in range(99)]
    path = changed(tmp_path, opencode.data, *tables, "ALTER TABLE part RENAME COLUMN data TO data2")
    with pytest.raises(ImportFailed):
        detect(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("ALTER TABLE part ADD COLUMN data TEXT")
    assert detect(path).name == "opencode"


@pytest.mark.parametrize("is_file", [False, True])
def test_a_statement_in_a_row_makes_no_table(is_file: bool, tmp_path: Path) -> None:
    """Notes on how to make a database of goose were taken for one, and the user was told that it lacks a table."""
    goose = "CREATE TABLE sessions (id TEXT); CREATE TABLE messages (content_json TEXT)"
    data = database_of(f"CREATE TABLE notes (said TEXT); INSERT INTO notes VALUES ('{goose}')")
    path = tmp_path / "app.db"
    path.write_bytes(data)
    with pytest.raises(ImportFailed, match="a SQLite database"):
        read_file(path if is_file else data)


@pytest.mark.parametrize("is_file", [False, True])
def test_a_comment_in_a_statement_hides_no_column(is_file: bool, tmp_path: Path) -> None:
    """Each `create` was taken for the next statement, so that the columns behind such a comment were not seen."""
    data = database_of("CREATE TABLE threads (id TEXT, -- when we create it\n data_type TEXT, data BLOB)")
    path = tmp_path / "app.db"
    path.write_bytes(data)
    with pytest.raises(ImportFailed, match="threads of Zed"):
        read_file(path if is_file else data)
