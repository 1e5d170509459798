"""Databases of programs: read while the program writes, damaged, and in little memory."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from samples import database_of
from transcripts import messages_of

from turnlog.errors import ImportFailed
from turnlog.importers import Imported
from turnlog.importers.databases import SqliteTranscript, is_database, read_database
from turnlog.log.messages import text_of
from turnlog.providers.openai_chat import PROVIDER

SCRIPT = "CREATE TABLE session (id TEXT); CREATE TABLE message (session_id TEXT, data TEXT);"


def sessions(file: SqliteTranscript) -> Iterator[Imported]:
    """The sessions of a small database."""
    from turnlog.importers.writing import SessionWriter

    for row in file.rows("SELECT id FROM session ORDER BY id"):
        writer = SessionWriter(file, "small", PROVIDER)
        writer.id = str(row["id"])
        for message in file.rows("SELECT data FROM message WHERE session_id = ?", row["id"]):
            if (wire := file.json(message["data"], "a message")) is not None:
                writer.message(wire)
        yield writer.done()


def fill(db: sqlite3.Connection, number: int = 3, size: int = 1) -> None:
    """Some sessions, each of two messages."""
    for n in range(number):
        db.execute("INSERT INTO session VALUES (?)", (f"s{n}",))
        for role in ("user", "assistant"):
            data = json.dumps({"role": role, "content": f"{role} of {n} " * size})
            db.execute("INSERT INTO message VALUES (?, ?)", (f"s{n}", data))


def read(origin: Path | bytes) -> list[Imported]:
    """What is imported."""
    return list(read_database(origin, ("session", "message"), sessions))


def test_a_database_is_read_while_its_program_writes(tmp_path: Path) -> None:
    """What stands only in the write-ahead log of a running program would be missing, or the program be locked out."""
    path = tmp_path / "a b.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(f"PRAGMA journal_mode = WAL; {SCRIPT}")
        fill(db)
        before = path.read_bytes()
        db.execute("BEGIN IMMEDIATE")
        assert [text_of(m) for m in messages_of(read(path)[2])] == ["user of 2 ", "assistant of 2 "]
        db.execute("INSERT INTO session VALUES ('later')")
        db.execute("COMMIT")
        assert path.read_bytes() == before
    assert is_database(path) and is_database(path.read_bytes())
    assert len(read(path)) == len(read(path.read_bytes())) == 4


def test_other_files_are_refused(tmp_path: Path) -> None:
    """An error of SQLite would end the import of a whole home."""
    for data in (b"", b"SQLite format 3\0", database_of("CREATE TABLE other (id TEXT)"), database_of(SCRIPT)):
        (tmp_path / "x.db").write_bytes(data)
        for origin in (data, tmp_path / "x.db"):
            with pytest.raises(ImportFailed, match=r"give the database|cannot be read"):
                read(origin)
    with pytest.raises(ImportFailed, match="cannot be read"):
        read(tmp_path / "absent.db")


@pytest.mark.parametrize("seed", range(100))
def test_damage_is_told(seed: int) -> None:
    """Rows that cannot be read are a warning: the sessions around them are what people have left."""
    data, rng = bytearray(database_of(SCRIPT, lambda db: fill(db, 40, 60))), random.Random(seed)
    for _ in range(rng.choice([1, 40])):
        data[rng.randrange(100 if seed % 2 else 4096, len(data))] = rng.randrange(256)
    try:
        found = read(bytes(data))
    except ImportFailed:
        return
    said = [text_of(message) for each in found for message in messages_of(each)]
    if len([text for text in said if " of " in text]) < 80:
        assert any(each.warnings for each in found)


@pytest.mark.slow
def test_a_large_database_takes_little_memory(tmp_path: Path) -> None:
    """A program keeps years of sessions in one file; all of them in memory at once would be gigabytes."""
    with closing(sqlite3.connect(tmp_path / "x.db")) as db:
        db.executescript(SCRIPT)
        fill(db, 300, 15_000)
        db.commit()
    assert (tmp_path / "x.db").stat().st_size > 100_000_000
    code = (
        "import resource, sys; from pathlib import Path; import test_databases as t\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "n = sum(1 for _ in t.read_database(Path(sys.argv[1]), ('session', 'message'), t.sessions))\n"
        "print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {folders!r}\n{code}", str(tmp_path / "x.db")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    number, grown = map(int, done.stdout.split())
    assert number == 300 and grown < 60_000, grown
