"""From where a session is opened: on record where it was said, and shown where sessions are listed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import turnlog
from agents import CHAT
from turnlog.config.settings import SOURCES
from turnlog.errors import InputError
from turnlog.importers import read_file
from turnlog.log.records import Configuration, SessionOpened
from turnlog.session.reader import source_of, was_resumed
from turnlog.stores import MemoryStore


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    """A store in memory."""
    made = MemoryStore()
    yield made
    made.close()


@pytest.mark.parametrize("source", SOURCES)
def test_the_source_is_the_first_record(store: MemoryStore, source: str) -> None:
    """A listing reads the beginning of a log alone; each later opening is on record too."""
    with turnlog.open("s", target=CHAT, store=store, settings=turnlog.Settings(source=source)) as session:
        assert (session.log.source, was_resumed(store, "s")) == (source, False)
    with turnlog.open("s", store=store, settings=turnlog.Settings(source="non-interactive")) as session:
        opened, configured, again = (record.body for record in session.history())
        assert (opened, again) == (SessionOpened(source), SessionOpened("non-interactive", True, "s"))
        assert isinstance(configured, Configuration)
        assert (session.log.source, was_resumed(store, "s")) == (source, True)
        assert session.fork("t").log.source == source


def test_events_tell_it(store: MemoryStore) -> None:
    """Who follows a session is told from where it was opened, with the record that says so."""
    told = []
    for _ in range(2):
        with turnlog.open("s", store=store, settings=turnlog.Settings(source="interactive")) as session:
            (event,) = session.events().waiting()
            told.append((event.kind, event.text, event.record))
    assert told == [
        ("session_opened", "session opened, interactive", session.history()[0]),
        ("session_resumed", "session s resumed at record 1, interactive", session.history()[1]),
    ]


def test_nothing_is_said_unasked(store: MemoryStore) -> None:
    """A library cannot know who sits before it, so no source is made up."""
    with turnlog.open("s", store=store) as session:
        assert (session.log.source, session.history()) == ("", [])
    with pytest.raises(InputError, match="source: 'cli' is not allowed; allowed: `interactive`"):
        turnlog.open("s", store=store, settings=turnlog.Settings(source="cli"))
    assert source_of(store, "s") == ""


def codex(source: Any) -> list[dict[str, Any]]:
    """A rollout that says where it comes from."""
    meta = {"id": "0199", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/x", "source": source}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    return [
        {"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload}
        for kind, payload in (("session_meta", meta), ("session_meta", meta), ("response_item", said))
    ]


def claude(entrypoint: Any) -> list[dict[str, Any]]:
    """Lines of Claude Code."""
    return [
        {
            "type": "user", "uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None, "sessionId": "abc",
            "timestamp": "2026-01-01T00:00:00Z", "entrypoint": entrypoint, "message": {"role": "user", "content": "hi"},
        }
        for n in range(2)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "said", "source"),
    [
        (codex, "cli", "interactive"),
        (codex, "vscode", "interactive"),
        (codex, "exec", "non-interactive"),
        (codex, "mcp", "mcp"),
        (codex, {"subagent": "review"}, ""),
        (codex, "unheard-of", ""),
        (claude, "cli", "interactive"),
        (claude, "sdk-py", "non-interactive"),
        (claude, "mcp", "mcp"),
        (claude, None, ""),
    ],
)
def test_an_import_keeps_what_the_transcript_says(tmp_path: Path, make: Any, said: Any, source: str) -> None:
    """Agents' own words for it become ours, once; a word that nobody knows is not guessed at."""
    path = tmp_path / "rollout-x.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in make(said)))
    (imported,) = read_file(path)
    opened = [draft.body for draft in imported.drafts if isinstance(draft.body, SessionOpened)]
    assert opened == ([SessionOpened(source)] if source else [])
    if source:
        store = MemoryStore()
        store.create("s")
        store.append("s", imported.drafts)
        assert source_of(store, "s") == source
