"""The command line, run in the test's own process and store."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from turnlog.cli import main, progress


class Ended(NamedTuple):
    """How a command ended: its exit code and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[Any]:
        """What it wrote, as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


class _Stdin:
    """A standard input that is no terminal."""

    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)

    def isatty(self) -> bool:
        return False


Command = Callable[..., Ended]


@pytest.fixture
def turnlog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    """`turnlog(*words, stdin=b"")` runs a command on a store in the test's folder, which is also the
    working directory. At a terminal, it shows no seconds of a slow machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "_PATIENCE", 1e9)
    monkeypatch.setenv("TURNLOG_STORE", str(tmp_path / "log.db"))
    monkeypatch.setenv("PAGER", "")

    def run(*words: str, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "stdin", _Stdin(stdin))
        code = main(words)
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        return Ended(code, out.decode("utf-8"), err.decode("utf-8"))

    return run


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    """The transcript that the demo ships, as a file."""
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(resources.files("turnlog.cli").joinpath("data/demo_session.jsonl").read_bytes())
    return path
