"""The shared real gemini-cli sessions: what the manifest counted, every text, and any damage."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from test_real_transcripts import damaged
from transcript_stats import stats_of
from transcripts import messages_of, of_kind

from turnlog.errors import ImportFailed
from turnlog.importers import Imported, detect, read_file
from turnlog.log.codec import encode_record
from turnlog.log.messages import ToolResult
from turnlog.log.records import Note, Record

FOLDERS = ("gemini-entire", "gemini-cli-sessions", "agentcmd/gemini")


def real_files(shared: Path) -> list[Path]:
    """The shared gemini-cli sessions."""
    found = [path for folder in FOLDERS for path in sorted((shared / "data" / folder).glob("*.json"))]
    return [*found, shared / "data/vibe-tracker/gemini.jsonl"]


def counts_of(session: Imported) -> dict[str, int]:
    """Counts as the manifest counts: entries of the file, answers inside their message; calls that
    were cancelled are interrupts and no errors."""
    found = stats_of(session)
    messages = messages_of(session)
    results = [part for message in messages for part in message.parts if isinstance(part, ToolResult)]
    cancelled = sum(part.outcome in ("aborted", "canceled") for part in results)
    answers = sum(any(isinstance(part, ToolResult) for part in message.parts) for message in messages)
    notices = sum(note.topic in ("info", "warning", "error") for note in of_kind(session, Note))
    own = {"messages": len(messages) - answers + notices, "interrupted": cancelled}
    return {**found, **own, "errors": found["errors"] - cancelled}


def test_counts_agree_with_the_manifest(shared: Path) -> None:
    """A message, call or thought lost on import would not be missed by any other test."""
    wanted = {entry["file"]: entry["stats"] for entry in json.loads((shared / "data/manifest.json").read_text("utf-8"))}
    # The new format writes a message again when its calls end: the manifest counts each write.
    wanted["vibe-tracker/gemini.jsonl"] |= {"messages": 11, "thinking": 7}
    paths = real_files(shared)
    for path in paths:
        (session,) = read_file(path)
        found, stats = counts_of(session), wanted[str(path.relative_to(shared / "data"))]
        assert (path.name, {key: found[key] for key in stats}) == (path.name, stats)
        assert session.warnings == ()
        assert detect(path).name == "gemini-cli"
    assert len(paths) == 10


def texts_in(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text inside a JSON value, with the key that it stands at."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from texts_in(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item, key)


@pytest.mark.slow
def test_every_text_of_a_session_is_in_its_log(shared: Path) -> None:
    """Nothing is lost on the way in: what is not kept follows from what is."""
    lost: Counter[str] = Counter()
    for path in real_files(shared):
        (session,) = read_file(path)
        kept = json.dumps(msgspec.to_builtins([(draft.time, draft.body) for draft in session.drafts]))
        held = {text for _, text in texts_in(json.loads(kept))} | {blob.decode() for blob in session.blobs.values()}
        for line in [path.read_text("utf-8")] if path.suffix == ".json" else path.read_text("utf-8").splitlines():
            for key, text in texts_in(json.loads(line)):
                # Ids stand in sources, thoughts in one text with their subject, what was shown in the result.
                inside = key in ("id", "subject", "description", "resultDisplay") and any(text in one for one in held)
                if text and text not in held and not inside and text != session.title:
                    lost[key] += 1
    # Kinds and statuses are records and outcomes, a patch follows from both ends of the file.
    assert set(lost) <= {"type", "status", "lastUpdated", "fileDiff"}


@pytest.mark.parametrize("seed", range(30))
def test_damage_is_a_warning_and_never_a_crash(shared: Path, seed: int) -> None:
    """People import what they have left; an exception keeps all of it from them."""
    rng = random.Random(seed)
    path = rng.choice([path for path in real_files(shared) if path.stat().st_size < 250_000])
    data = damaged(path.read_bytes(), rng)
    try:
        found = read_file(data)
    except ImportFailed:
        return
    for session in found:
        for n, draft in enumerate(session.drafts, 1):
            encode_record(Record(n, draft.time, draft.body))
    assert found == read_file(data)
