"""Laws of all formats, over a small transcript of each (`sample_*.py`): recognised, counted, nothing is lost."""

from __future__ import annotations

import json
import random
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from mangling import mangled
from samples import Sample, counts_of, samples

import turnlog
from draws import LONG, batches
from judging import TARGETS, errors_of
from turnlog.errors import ImportFailed
from turnlog.importers import Imported, detect, read_file
from turnlog.importers.catalog import FORMATS, IMPORTERS, NAMED
from turnlog.importers.discovery import discover
from turnlog.importers.marks import SQLITE, has_marks
from turnlog.importers.sync.session import sync_session
from turnlog.log.codec import encode_record
from turnlog.log.records import Record
from turnlog.log.texts import strings_in
from turnlog.stores.memory import MemoryStore

EVERY = pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.name)

OLDER = {
    *("turnlog", "claude-code", "codex", "gemini-cli", "gemini-responses", "pi", "cline", "claude-stream-json"),
    *("webvoyager", "tarko-events", "trajectory", "openhands", "mini-swe-agent", "swe-agent", "bodies"),
}
"""Formats with real files in the shared data, whose tests are in files of their own."""


def told(sessions: list[Imported]) -> str:
    """Everything that was imported, as text."""
    bodies = [encode_record(Record(1, "", draft.body)) for session in sessions for draft in session.drafts]
    facts = [text for each in sessions for text in (each.title, each.session_id, each.parent)]
    values = [json.loads(body) for body in bodies]
    texts = [text for value in values for text in _inside(value)]
    return "\n".join([*facts, *texts])


def _inside(value: Any) -> Iterator[str]:
    """Every text in a value, those in JSON text included, and every key."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _inside(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _inside(inner)
    elif isinstance(value, str):
        yield value
        if value[:1] in ("{", "["):
            try:
                yield from _inside(json.loads(value))
            except (ValueError, RecursionError):
                return


def said_in(data: bytes) -> list[str]:
    """The texts of several words in a file, as far as it is JSON, or in the rows of a database."""
    pieces: list[Any] = [data, *data.splitlines()]
    if data.startswith(SQLITE):
        pieces = [value for _, _, _, value in cells(data) if isinstance(value, str)]
    texts: list[str] = []
    for piece in pieces:
        try:
            value = json.loads(piece)
        except (ValueError, RecursionError):
            value = piece if isinstance(piece, str) else ""
        said = [inner for text in strings_in(value) for inner in _texts_of(text)]
        texts += [text for text in said if len(text.split()) > 2 and "\ud800" not in text]
        if piece is data and value:
            break
    return texts


def _texts_of(text: str) -> list[str]:
    """The texts in a text that is JSON of messages or blocks; else the text itself, in pieces where Cursor wraps it."""
    try:
        value = json.loads(text) if text.startswith(('{"', "[{")) else None
    except (ValueError, RecursionError):
        value = None
    wrapped = re.split("</?(?:timestamp|user_query)>", text)
    return wrapped if value is None else [each for inner in strings_in(value) for each in _texts_of(inner)]


def cells(data: bytes) -> list[tuple[str, int, str, Any]]:
    """Every value in a database: its table, the number of its row, its column, and the value itself."""
    found: list[tuple[str, int, str, Any]] = []
    with closing(sqlite3.connect(":memory:")) as db, suppress(sqlite3.Error, UnicodeDecodeError):
        db.deserialize(data)
        db.text_factory = lambda value: value.decode("utf-8", "replace")
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
            for row in db.execute(f'SELECT rowid, * FROM "{table}"'):
                found += [(table, row[0], column, value) for column, value in zip(columns, row[1:], strict=True)]
    return found


@EVERY
def test_it_is_recognised_and_found(sample: Sample, tmp_path: Path) -> None:
    """A file that another importer takes, or that discovery passes over, is a session that nobody sees."""
    path = sample.written(tmp_path)
    assert detect(path).name == sample.name
    if not any(path.match(each) for each in NAMED[sample.name].named):
        assert detect(sample.data).name == sample.name
    found = list(discover(tmp_path, lambda error: pytest.fail(str(error))))
    if sample.path:
        assert path in [each.path for each in found]
    else:
        assert sample.is_export or not NAMED[sample.name].where


@EVERY
def test_the_counts_are_those_of_another_program(sample: Sample, tmp_path: Path) -> None:
    """A message, call, result or token that is lost or doubled on import would not be missed by any other test."""
    assert counts_of(read_file(sample.written(tmp_path))) == sample.counted(tmp_path)


@EVERY
def test_a_power_cut_behind_the_end_costs_nothing(sample: Sample, tmp_path: Path) -> None:
    """NUL bytes behind a whole file made another session of it, without its id, title and folder."""
    if sample.data.startswith(SQLITE) or any("txt" in each for each in NAMED[sample.name].named):
        pytest.skip("no JSON")
    path = sample.written(tmp_path)
    before = read_file(path)
    path.write_bytes(path.read_bytes().rstrip() + bytes(4096))
    after = read_file(path)
    assert [(each.session_id, each.title, each.drafts) for each in after] == [
        (each.session_id, each.title, each.drafts) for each in before
    ]


@EVERY
def test_what_is_said_is_there(sample: Sample, tmp_path: Path) -> None:
    """A text that is in no record, and in no warning, was lost in silence."""
    sessions = read_file(sample.written(tmp_path))
    warnings = [warning.message for session in sessions for warning in session.warnings]
    assert len(warnings) == len(sample.warned), warnings
    assert all(words in warning for words, warning in zip(sample.warned, warnings, strict=True)), warnings
    everything = told(sessions)
    assert [text for text in said_in(sample.data) if text.strip() not in everything and text not in sample.silent] == []


@pytest.mark.slow
@EVERY
@pytest.mark.parametrize("seeds", batches(200, 2000, 100), ids=lambda seeds: f"{seeds.start}")
def test_damage_is_told(sample: Sample, seeds: range) -> None:
    """A damaged file gives records that can be written, the same each time, or is refused; and what is not in them is
    told by a warning."""
    for seed in seeds:
        damaged = _damaged(sample, seed)
        try:
            sessions = list(NAMED[sample.name].read(damaged))
        except ImportFailed:
            continue
        assert sessions, seed
        if seed % 4 == 0 and b"NaN" not in damaged and b"Infinity" not in damaged:
            assert sessions == list(NAMED[sample.name].read(damaged)), seed
        everything = told(sessions)
        lost = [text for text in said_in(damaged) if text.strip() not in everything and text not in sample.silent]
        assert not lost or any(session.warnings for session in sessions), (seed, lost)
        if seed % 4 == 1:
            with suppress(ImportFailed):
                read_file(damaged)


def _damaged(sample: Sample, seed: int) -> bytes:
    """The sample, mangled; of a database, the JSON in its rows, or its bytes."""
    rng = random.Random(seed)
    if not sample.is_database:
        pieces = [line[line.find(b'{"') :] for line in sample.data.splitlines(keepends=True) if b'{"' in line]
        return mangled(b"".join(pieces) if sample.is_log else sample.data, rng)
    if rng.random() < 0.7:
        return _with_other_rows(sample.data, rng)
    changed = bytearray(sample.data)
    for _ in range(rng.choice([1, 5, 200])):
        changed[rng.randrange(100, len(changed))] = rng.randrange(256)
    return bytes(changed[: rng.randrange(len(changed))]) if rng.random() < 0.3 else bytes(changed)


def _with_other_rows(data: bytes, rng: random.Random) -> bytes:
    every = cells(data)
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(data)
        for table, row, column, value in rng.sample(every, min(len(every), rng.choice([1, 3, 20]))):
            other: Any = rng.choice([None, "", "x", 7, -1, 1e300, b"\xff"])
            if isinstance(value, str) and value[:1] in ("{", "["):
                other = mangled(value.encode(), rng).decode("utf-8", "replace")
            with suppress(sqlite3.Error):
                db.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (other, row))
        db.commit()
        return bytes(db.serialize())


@pytest.mark.slow
@EVERY
def test_its_requests_are_valid(sample: Sample, oracle: ModuleType) -> None:
    """A session that no model takes cannot be continued, whatever its file looked like. In a normal run, two models by
    turns are asked about each damaged file, and all about the whole one."""
    for seed in range(-1, 12):
        try:
            sessions = list(NAMED[sample.name].read(sample.data if seed < 0 else _damaged(sample, seed)))
        except ImportFailed:
            continue
        targets = TARGETS if LONG or seed < 0 else [TARGETS[(2 * seed + n) % len(TARGETS)] for n in range(2)]
        for imported, aim in product(sessions, targets):
            store = MemoryStore()
            sync_session(store, imported, None)
            with turnlog.open(imported.session_id, store=store, target=aim) as session:
                session.user("And now?")
                assert errors_of(oracle, aim, session.request().body) == [], (seed, aim.provider, aim.model)


@EVERY
def test_a_file_that_grew_continues_its_session(sample: Sample) -> None:
    """The next import of a file that is still written would make a second copy of its session."""
    if not sample.grows or sample.is_database:
        pytest.skip("the program writes the whole file again")
    lines = sample.data.splitlines(keepends=True)
    store = MemoryStore()
    statuses = []
    for end in range(1, len(lines) + 1):
        try:
            sessions = read_file(b"".join(lines[:end]))
        except ImportFailed:
            continue
        statuses += [sync_session(store, session, None).status for session in sessions]
    assert "diverged" not in statuses
    whole = read_file(sample.data)
    assert {each.id for each in store.sessions()} == {each.session_id for each in whole}
    for each in whole:
        assert len(list(store.read(each.session_id))) == len(each.drafts)


@EVERY
def test_a_database_that_grew_continues_its_sessions(sample: Sample) -> None:
    """A program writes on in its database: a second copy of each session at each import would bury the first."""
    if not sample.is_database:
        pytest.skip("a file")
    store, statuses = MemoryStore(), list[str]()
    for number in range(1, 20):
        sessions = read_file(_first_rows(sample.data, number))
        statuses += [sync_session(store, session, None).status for session in sessions]
    assert "diverged" not in statuses
    assert {each.id for each in store.sessions()} == {each.session_id for each in read_file(sample.data)}


def _first_rows(data: bytes, number: int) -> bytes:
    """The database with the first messages of each session only."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(data)
        for table in ("message", "messages", "session_message"):
            rows = f"SELECT rowid, row_number() OVER (PARTITION BY session_id ORDER BY rowid) AS n FROM {table}"
            with suppress(sqlite3.OperationalError):
                db.execute(f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM ({rows}) WHERE n > ?)", (number,))
        with suppress(sqlite3.OperationalError):
            alone = "message_id != 'y' AND message_id NOT IN (SELECT id FROM message)"  # one has no message at all
            db.execute(f"DELETE FROM part WHERE {alone}")
        db.commit()
        return bytes(db.serialize())


def test_a_long_log_before_the_first_event_hides_nothing(tmp_path: Path) -> None:
    """The log of a build begins with what other programs printed: a run behind it would be refused as text."""
    (sample,) = [sample for sample in samples() if sample.name == "codex-exec"]
    path = tmp_path / "build.log"
    path.write_bytes(b"2026-11-29T10:00:00Z downloading [ok] a {package}\n" * 4000 + sample.data)
    assert path.stat().st_size > 1 << 17
    assert counts_of(read_file(path)) == counts_of(read_file(sample.data))
    binary = tmp_path / "x.bin"
    binary.write_bytes(b"\0\1" * 4000 + sample.data)
    with pytest.raises(ImportFailed, match="binary data"):
        read_file(binary)


def test_every_format_has_a_sample() -> None:
    """A format without one is held by no law."""
    assert {sample.name for sample in samples()} | OLDER == {importer.name for importer in IMPORTERS}


def test_every_format_says_when_it_was_checked() -> None:
    """Formats change with each version of a program: a reader has to know how old the knowledge is."""
    assert [importer.name for importer in IMPORTERS if not importer.checked] == []
    assert len(NAMED) == len(FORMATS)


@pytest.mark.parametrize("said", ["one, {two], three", "an end \\", 'a quote \\" and, [more'])
def test_marks_are_found_where_the_first_bytes_end_inside_a_text(said: str) -> None:
    """A document whose 65,536th byte lies in the output of a tool would be unknown: its commas and brackets were taken
    for those of the document."""
    head = '{"a": [{"b": {"c": 1}}, {"x": "' + said
    assert has_marks(head.encode(), ("a[].b.c",))
    assert not has_marks(head.encode(), ("a[].two",))
