"""How fast transcripts are imported: MB of the file per second of CPU, for each format.

Measured on the shared transcripts of each format, and on its sample of the tests made large by repeating its lines,
with `read_file`. The floor is `json.loads` of the same lines, or of the whole document: ratios to it do not depend on
the machine. Nothing is written to a store. Garbage is collected before each measurement.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from harness import TESTS, Report, bench, by_turns, module, shared
from turnlog.errors import ImportFailed
from turnlog.importers import detect, read_file

AT_LEAST = 15.0
"""MB per second of CPU that the importer of a JSON format reads."""

_LEAST = 1_000_000
"""Smaller files are read several times, so that what is measured is more than the clock's steps."""

_SKIPPED = {".md", ".py"}


def parsed(data: bytes) -> None:
    """What is least: each line of JSON parsed, or the document. What is no JSON is passed over."""
    try:
        json.loads(data)
    except ValueError:
        for line in data.split(b"\n"):
            try:
                json.loads(line)
            except ValueError:
                continue


def of_shared(only: str) -> dict[str, list[Path]]:
    """The shared transcripts of each format that can be read."""
    files: dict[str, list[Path]] = {}
    for path in sorted(shared("data").rglob("*")):
        if not path.is_file() or path.suffix in _SKIPPED:
            continue
        try:
            name = detect(path).name
            if only in ("", name):
                read_file(path)
                files.setdefault(name, []).append(path)
        except ImportFailed:
            continue
    return files


def made_large(only: str, size: int) -> Iterator[tuple[str, bytes]]:
    """The sample of each format of JSON lines, repeated to that size: short lines, where each record weighs. Without
    those whose lines cannot come twice."""
    for sample in module("samples", TESTS / "importers", TESTS).samples():
        if only in ("", sample.name) and not sample.is_database and _is_lines(sample.data):
            data = sample.data * (size // len(sample.data) + 1)
            with suppress(ImportFailed):
                read_file(data)
                yield sample.name, data


def _is_lines(data: bytes) -> bool:
    """Whether each line is a JSON value of its own, and there are several."""
    try:
        return len([json.loads(line) for line in data.splitlines()]) > 2
    except ValueError:
        return False


def measured(report: Report, name: str, given: Iterable[Path | bytes], rounds: int, *, bar: bool) -> None:
    """One row: what a transcript costs, beside the floor."""
    origins = list(given)
    size = sum(len(each) if isinstance(each, bytes) else each.stat().st_size for each in origins)
    origins *= _LEAST // size + 1
    contents = [each if isinstance(each, bytes) else each.read_bytes() for each in origins]
    megabytes, records = sum(map(len, contents)) / 1e6, 0

    def imports() -> None:
        nonlocal records
        records = sum(len(session.drafts) for each in origins for session in read_file(each))

    def floor() -> None:
        for data in contents:
            parsed(data)

    times = by_turns({"": gc.collect, "import": imports, " ": gc.collect, "json.loads": floor}, rounds)
    fastest = min(times["import"])
    figures = {
        "MB/s": megabytes / fastest,
        "times json.loads": fastest / min(times["json.loads"]),
        "µs a record": 1e6 * fastest / max(records, 1),
        "ms a file": 1e3 * fastest / len(origins),
        "MB": megabytes,
        "records": records,
    }
    report.row(name, figures, at_least={"MB/s": AT_LEAST} if bar else None)


@bench(quick={"rounds": 1, "size": 1})
def imports(report: Report, *, format: str = "", rounds: int = 3, size: int = 2) -> None:
    """What importing a transcript costs, for each format or for one, with samples of `size` MB."""
    for name, files in sorted(of_shared(format).items()):
        measured(report, f"{name}, shared", files, rounds, bar=True)
    for name, data in made_large(format, size * 1_000_000):
        measured(report, f"{name}, short lines", [data], rounds, bar=False)
