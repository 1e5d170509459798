"""`turnlog count`: tokens of bodies, transcripts and sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

BODY = {
    "model": "gpt-4o",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}],
}


def test_a_body_by_kind(turnlog: Any, tmp_path: Path) -> None:
    """A line for the whole, a line for each kind that has tokens, from a file or standard input."""
    (tmp_path / "body.json").write_text(json.dumps(BODY), "utf-8")
    ended = turnlog("count", "body.json")
    assert ended == (0, "15 tokens, exact (gpt-4o:5)\n        3  system\n        1  user\n       11  framing\n", "")
    assert turnlog("count", "-", stdin=json.dumps(BODY).encode()) == ended


def test_a_session_and_a_transcript(turnlog: Any, transcript: Path) -> None:
    """A session counts as its transcript does, and as JSON says all that is known."""
    turnlog("import", "transcript.jsonl")
    (session,) = turnlog("count", "demo-invoice-rounding", "--json").rows
    (file,) = turnlog("count", "transcript.jsonl", "--json").rows
    assert session == file
    assert session["tokens"] == sum(session["parts"].values()) > 500
    assert set(session) == {"tokens", "certainty", "parts", "counter"}


def test_another_model(turnlog: Any, transcript: Path) -> None:
    """A newer tokenizer takes more tokens for the same conversation."""
    (old,) = turnlog("count", "transcript.jsonl", "--model", "claude-opus-4-6", "--json").rows
    (new,) = turnlog("count", "transcript.jsonl", "--model", "claude-opus-4-8", "--json").rows
    assert (old["counter"], new["counter"]) == ("claude-3-497:5", "claude-4.8:5")
    assert old["tokens"] < new["tokens"] < old["tokens"] * 1.5


@pytest.mark.parametrize(
    ("words", "stdin", "code"),
    [
        (("-",), b"[1]", 2),
        (("-",), b"{", 2),
        (("-",), b'{"messages": []}', 2),
        (("nowhere",), b"", 4),
    ],
)
def test_what_cannot_be_counted_is_said(turnlog: Any, words: tuple[str, ...], stdin: bytes, code: int) -> None:
    """Input that is no request, names no model or is not there ends with its own exit code and a sentence."""
    ended = turnlog("count", *words, stdin=stdin)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("turnlog: ")
