"""A small transcript of each format, with every kind of record that it has, for the laws of `test_every_format.py`.

Each is `SAMPLE` in a module `sample_NAME.py`, which is found by its name.
"""

from __future__ import annotations

import importlib
import json
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from transcript_stats import stats_of
from transcripts import of_kind

from turnlog.importers import Imported
from turnlog.log.records import UsageRecord

__all__ = ["Sample", "counts_of", "database_of", "samples"]

COUNTED = ("messages", "calls", "results", "input", "output")


@dataclass(frozen=True)
class Sample:
    """`data` are the bytes of a file of the format `name`. `path` is a place below a home at which its program keeps
    it, "" if it has none. `query` counts what is in it: a program for `jq --slurp`, or SQL for a database, that gives
    the numbers of messages, calls and results and the tokens of input and output that were billed. `warned` are words
    of the warnings that reading it gives, in order. If `grows`, the file is only appended to, line by line. `silent`
    are texts in it that say nothing and are left out."""

    name: str
    data: bytes
    query: str
    path: str = ""
    warned: tuple[str, ...] = ()
    grows: bool = True
    silent: tuple[str, ...] = ()
    is_log: bool = False
    """Whether there are lines of other programs between; the query gets the objects of the others."""
    is_export: bool = False
    """Whether the user saves such files anywhere; the program keeps sessions at home in other ones."""
    others: Mapping[str, bytes] = field(default_factory=dict)
    """Files beside it, by their paths from its folder; their sessions are counted too, by `query` on all lines."""

    def written(self, folder: Path) -> Path:
        """The path of the file, written below `folder` with those beside it."""
        path = folder / (self.path or f"sample.{'db' if self.is_database else 'json'}")
        for place, data in ((path, self.data), *((path.parent / name, data) for name, data in self.others.items())):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        return path

    @property
    def is_database(self) -> bool:
        """Whether it is SQLite."""
        return self.data.startswith(b"SQLite format 3")

    def counted(self, folder: Path) -> dict[str, int]:
        """What the query counts. Skips where its program is absent."""
        program = "sqlite3" if self.is_database else "jq"
        if shutil.which(program) is None:
            pytest.skip(f"{program} is absent: nothing else counts what is in the file")
        path = self.written(folder)
        if self.is_database:
            command = [program, "-readonly", "-json", str(path), self.query]
        else:
            others = [path.parent / name for name in self.others]
            objects = r'[inputs | match("\\{\".*").string | fromjson?] | '
            how = ["-n", "-R", objects + self.query] if self.is_log else ["--slurp", self.query]
            command = [program, "--compact-output", *how, *map(str, (path, *others))]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        numbers: dict[str, int] = found[0] if isinstance(found, list) else found
        return {name: numbers.get(name, 0) for name in COUNTED}


def counts_of(sessions: list[Imported]) -> dict[str, int]:
    """What was imported, counted as a sample's query does."""
    stats = [stats_of(session) for session in sessions]
    usages = [record.usage for session in sessions for record in of_kind(session, UsageRecord)]
    return {
        "messages": sum(each["canonical"] for each in stats),
        "calls": sum(each["calls"] for each in stats),
        "results": sum(each["results"] for each in stats),
        "input": sum(usage.input for usage in usages),
        "output": sum(usage.output for usage in usages),
    }


def samples() -> list[Sample]:
    """All samples, by the names of their modules."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("sample_*.py"))
    return [importlib.import_module(name).SAMPLE for name in names]


def database_of(script: str, fill: Callable[[sqlite3.Connection], Any] | None = None) -> bytes:
    """The bytes of a database that this script makes, and `fill` fills."""
    db = sqlite3.connect(":memory:")
    db.executescript(script)
    if fill is not None:
        fill(db)
    db.commit()
    return bytes(db.serialize())
