"""Transcripts without times: their records have the time when the file was written, however often it is imported."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from turnlog.importers import Imported, read_file
from turnlog.importers.sync.session import sync_session
from turnlog.log.store import Store
from turnlog.stores import MemoryStore, open_store

WRITTEN = 1_700_000_000
"""2023-11-14T22:13:20Z."""


def body(*texts: str) -> bytes:
    """Messages of a user and a model by turns."""
    roles = ("user", "assistant") * len(texts)
    return json.dumps([{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]).encode()


def read(path: Path, data: bytes, written: int) -> Imported:
    """The session of a file with this content, written at this time."""
    path.write_bytes(data)
    os.utime(path, (written, written))
    return read_file(path)[0]


def times(store: Store, session_id: str) -> list[str]:
    """The time of each record."""
    return [record.time for record in store.read(session_id)]


@pytest.mark.parametrize("place", [":memory:", "s.db", "sessions/"])
def test_the_time_of_the_file_counts(tmp_path: Path, place: str) -> None:
    """2,000 benchmark bodies stood above everything real, as if they had been said at the moment of their import."""
    store = open_store(place if place == ":memory:" else str(tmp_path / place))
    made = read(tmp_path / "a.json", body("hi", "hello"), WRITTEN)
    assert sync_session(store, made).status == "new"
    (info,) = store.sessions()
    assert (info.created, info.updated) == ("2023-11-14T22:13:20.000Z", "2023-11-14T22:13:20.000Z")
    assert set(times(store, info.id)) == {info.created}
    store.close()


def test_a_file_that_was_touched_is_unchanged_and_one_that_grew_goes_on(tmp_path: Path) -> None:
    """A copy of the same file made a second session of each body."""
    store, path = MemoryStore(), tmp_path / "a.json"
    synced = sync_session(store, read(path, body("hi", "hello"), WRITTEN))
    before = times(store, synced.session)
    touched = read(path, body("hi", "hello"), WRITTEN + 60)
    assert sync_session(store, touched) == replace(synced, status="unchanged", added=0)
    assert times(store, synced.session) == before
    grown = read(path, body("hi", "hello", "more"), WRITTEN + 120)
    assert sync_session(store, grown) == replace(synced, status="continued", added=1)
    assert times(store, synced.session) == [*before, "2023-11-14T22:15:20.000Z"]


def test_what_an_older_version_imported_is_unchanged(tmp_path: Path) -> None:
    """Older versions stored the time of the import."""
    store = MemoryStore()
    made = read(tmp_path / "a.json", body("hi", "hello"), WRITTEN)
    synced = sync_session(store, replace(made, written=""))
    assert not any(time.startswith("2023") for time in times(store, synced.session))
    assert sync_session(store, made) == replace(synced, status="unchanged", added=0)


def test_bytes_have_no_time_and_times_of_a_transcript_stay(tmp_path: Path, transcript: Path) -> None:
    """Standard input was written by nobody knows whom; a transcript's own times say more than those of its file."""
    assert read_file(body("hi"))[0].written == ""
    assert read_file(transcript)[0].written == ""
