"""What people take for transcripts and is none: the refusal says what it is."""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
from pathlib import Path

import pytest

from turnlog.errors import ImportFailed
from turnlog.importers import read_file

AIDER = b"""
# aider chat started at 2024-05-01 10:00:00

> Aider v0.30

#### add a test

I will add one.
"""


def zipped(name: str) -> bytes:
    """A zip with one file in it."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr(name, "{}")
    return held.getvalue()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (AIDER, "aider chat history"),
        (gzip.compress(AIDER, mtime=0), "compressed with gzip, and inside it is an aider chat history"),
        (gzip.compress(b'{"role": "user"}', mtime=0), "unpack it first"),
        (gzip.compress(gzip.compress(AIDER, mtime=0), mtime=0), "unpack it first"),
        (b"\x1f\x8bbroken", "compressed with gzip"),
        (zipped("_journal/start.json"), "evaluation log of Inspect AI"),
        (zipped("samples/1_epoch_1.json"), "evaluation log of Inspect AI"),
        (zipped("a.txt"), "zip archive"),
        (b"\x28\xb5\x2f\xfd....", "zstd -d"),
        (b"SQLite format 3\0....", "SQLite database"),
        (b"\x89PNG\r\n\x1a\n\0\0", "image"),
        (b"RIFF....WEBP", "image"),
    ],
)
def test_a_known_stranger_is_called_by_its_name(data: bytes, told: str) -> None:
    """ "Binary data beginning 50 4b" tells nobody what to do."""
    with pytest.raises(ImportFailed, match=told):
        read_file(data)


@pytest.mark.parametrize("text", [b"# Notes\n\n> a quote\n\n#### 4. A heading\nwords\n", b"plain words\n"])
def test_other_text_is_no_aider_history(text: bytes) -> None:
    """A name that is wrong sends people the wrong way."""
    with pytest.raises(ImportFailed) as caught:
        read_file(text)
    assert "aider" not in str(caught.value)


def test_a_log_of_hermes_is_refused_by_name() -> None:
    """Read as a body of Chat Completions, it lost its system prompt and tools in silence."""
    messages = [{"role": "user", "content": "Name the fjords of Norway"}]
    log = {"session_id": "s", "model": "m", "session_start": "2026-01-01T00:00:00", "system_prompt": "You are Hermes"}
    with pytest.raises(ImportFailed, match="a session of Hermes Agent"):
        read_file(json.dumps({**log, "tools": [], "messages": messages}).encode())
    assert read_file(json.dumps(messages).encode())


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_a_device_is_no_transcript(tmp_path: Path) -> None:
    """An import of a link to /dev/zero read without end; one of a pipe that nobody writes to waited without end."""
    zero, pipe = tmp_path / "zero.jsonl", tmp_path / "pipe.jsonl"
    zero.symlink_to("/dev/zero")
    os.mkfifo(pipe)
    for path in (zero, pipe):
        with pytest.raises(ImportFailed, match="a device or a pipe"):
            read_file(path)
