"""Transcripts that are read while programs write them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from turnlog import importers
from turnlog.importers.known_files import KnownFiles
from turnlog.importers.sync import programs
from turnlog.importers.sync.programs import Sync
from turnlog.stores import MemoryStore


def line(session: str, n: int) -> str:
    """A line of a transcript of Claude Code."""
    entry = {"type": "user", "uuid": f"{session}{n}", "sessionId": session, "timestamp": f"2026-01-01T00:00:{n:02}Z"}
    entry |= {"parentUuid": f"{session}{n - 1}" if n else None, "cwd": "/work", "version": "2.0.1"}
    return json.dumps({**entry, "message": {"role": "user", "content": f"{session} says {n}"}}) + "\n"


@pytest.fixture(name="reads")
def the_reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """What is read, by name of the file; `wait(name)` waits for the next reading of it."""
    monkeypatch.setattr(programs, "LOOK", 0.001)
    monkeypatch.setattr(programs, "FIND", 0.01)
    read, met = importers.read_sessions, threading.Condition()

    class Reads:
        names: list[str] = []

        def wait(self, name: str, times: int) -> None:
            with met:
                assert met.wait_for(lambda: self.names.count(name) >= times, 20)

    def counted(path: Path) -> Iterator[Any]:
        found = list(read(path))
        yield from found
        with met:
            Reads.names.append(path.stem)
            met.notify_all()

    monkeypatch.setattr(importers, "read_sessions", counted)
    return Reads()


def test_what_grows_is_read_and_nothing_else(tmp_path: Path, reads: Any) -> None:
    """A transcript that grows is not seen, one that is new is never found, or all are read again and again."""
    folder = tmp_path / ".claude" / "projects" / "-work"
    folder.mkdir(parents=True)
    for name in ("still", "grows"):
        (folder / f"{name}.jsonl").write_text(line(name, 0), "utf-8")
    store = MemoryStore()
    sync = Sync(store, None, tmp_path, lambda: KnownFiles(store, ":memory:", ()))
    sync.follow()
    try:
        reads.wait("still", 1)
        reads.wait("grows", 1)
        for n in (1, 2, 3):
            before = reads.names.count("grows")
            with (folder / "grows.jsonl").open("a", encoding="utf-8") as file:
                file.write(line("grows", n))
            reads.wait("grows", before + 1)
        (folder / "late.jsonl").write_text(line("late", 0), "utf-8")
        reads.wait("late", 1)
    finally:
        sync.close()
    assert reads.names.count("still") == 1
    assert {info.id: info.messages for info in store.sessions()} == {"still": 1, "grows": 4, "late": 1}


def test_a_transcript_that_fails_stops_no_other(tmp_path: Path, reads: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file that cannot be read ends the reading of all, without a word."""
    folder = tmp_path / ".claude" / "projects" / "-work"
    folder.mkdir(parents=True)
    (folder / "bad.jsonl").write_text(line("bad", 0), "utf-8")
    (folder / "good.jsonl").write_text(line("good", 0), "utf-8")
    store, counted = MemoryStore(), importers.read_sessions

    def fails(path: Path) -> Any:
        if path.stem == "bad":
            raise ZeroDivisionError
        return counted(path)

    monkeypatch.setattr(importers, "read_sessions", fails)
    sync = Sync(store, None, tmp_path, lambda: KnownFiles(store, ":memory:", ()))
    sync.follow()
    try:
        reads.wait("good", 1)
    finally:
        sync.close()
    assert [info.id for info in store.sessions()] == ["good"]
