"""Every byte of the records of a session, flipped one at a time: only the record that it belongs to is lost.

After each flip, reading forwards and backwards, `show`, `export`, `search`, `copy`, `scan` and `verify` must go on past
it, each report must name the record, opening to write must be refused with the session, the record and the remedy, and
`salvage` must keep all other records, of this session and of a healthy one beside it. Reading, copying, opening and
salvaging are tried after each flip, exports, searches and `scan` after every tenth, the command line after every
hundredth. (`search` in SQLite, which has an index, need not report damage to records that it does not find.)
"""

from __future__ import annotations

import contextlib
import io
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import turnlog
from draws import draws
from turnlog.cli import main as command
from turnlog.errors import CorruptRecord, TurnlogError
from turnlog.export import FORMATS
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import MessageRecord, Note
from turnlog.log.store import Draft, Problem, Store
from turnlog.redaction.scrub import scan
from turnlog.stores import PastDamage, copy_store, open_store, salvage

KEY = bytes(range(32))
WORD = "kestrel"
"""A word of every message, to search for."""


def build(url: str, key: bytes | None, records: int) -> None:
    """A store with the session `s` of so many records, and a healthy session `t`."""
    with closing(open_store(url, key=key)) as store:
        for session in ("s", "t"):
            store.create(session, title=f"Title of {session}")
        for n in range(1, records + 1):
            store.append("s", [Draft(body(n))])
        store.append("t", [Draft(body(n)) for n in range(1, 4)])


def body(n: int) -> MessageRecord | Note:
    """Records of several kinds and sizes."""
    if n % 10 == 4:
        return Note("remark", f"{WORD} note {n}", {"n": n})
    if n % 10 == 5:
        return MessageRecord(Message("assistant", (ToolCall(f"c{n}", "read", {"path": f"{WORD}/{n}"}),)))
    if n % 10 == 6:
        return MessageRecord(Message("user", (ToolResult(f"c{n - 1}", "read", (Text(f"{WORD} {n} wörd\n" * 9),)),)))
    role: Any = "user" if n % 2 else "assistant"
    return MessageRecord(Message(role, (Text(f"{WORD} says {n}: " + "some text " * (n % 5 * (400 if n == 7 else 1))),)))


def places_of(url: str, kind: str, records: int) -> Iterator[tuple[Path, int, int]]:
    """Each byte of the records of session `s`: its file, its place, and the record that it belongs to."""
    if kind == "jsonl":
        path = Path(url.removeprefix("files:"), "sessions", "s.jsonl")
        at = 0
        for n, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
            yield from ((path, place, n) for place in range(at, at + len(line)))
            at += len(line)
        return
    path = Path(url)
    with closing(sqlite3.connect(path)) as db:
        page = db.execute("pragma page_size").fetchone()[0]
    data = path.read_bytes()
    for n, *values in rows_of(data):
        for value in values:
            yield from ((path, place, n) for place in where(data, value, page))


def rows_of(data: bytes) -> list[tuple[int, bytes, bytes]]:
    """The records of `s` in an SQLite file: number, checksum, body. None if SQLite cannot read them."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(data[:18] + b"\1\1" + data[20:])  # 1: no write-ahead log, which a database in memory cannot have
        query = "select id & 0xffffffff, cast(checksum as blob), cast(record as blob) from records where id < 2 << 32"
        try:
            return db.execute(query).fetchall()
        except sqlite3.DatabaseError:
            return []


def where(data: bytes, value: bytes, page: int) -> Iterator[int]:
    """The places of a value in an SQLite file; the end of a long one is in pages of its own, each after a pointer."""
    size = len(value)
    while (at := found(data, value[:size])) is None:
        size -= 1
    yield from range(at, at + size)
    while size < len(value):
        piece = value[size : size + page - 4]
        at = found(data, piece)
        assert at is not None
        yield from range(at, at + len(piece))
        size += len(piece)


def found(data: bytes, piece: bytes) -> int | None:
    """Where a piece of a record is read from: pages that SQLite split have old copies in the room that became free."""
    at = data.find(piece)
    while at >= 0:
        if rows_of(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]) != rows_of(data):
            return at
        at = data.find(piece, at + 1)
    return None


class Check:
    """One flip after another, and what failed."""

    def __init__(self, url: str, key: bytes | None, records: int, spare: Path) -> None:
        self.url, self.key, self.records, self.spare = url, key, records, spare
        self.failed: Counter[str] = Counter()
        self.shown: list[str] = []
        self.whole = 0
        with closing(self.open()) as store:
            self.raw = {record.n: record.raw for record in store.read("s")}
            self.other = {record.n: record.raw for record in store.read("t")}

    def open(self, *, write: bool = False) -> Store:
        """The store."""
        return open_store(self.url, key=self.key, read_only=not write)

    def fail(self, what: str, n: int, place: int) -> None:
        """Count a failure, and remember the first of each kind."""
        if what not in self.failed:
            self.shown.append(f"{what} (record {n}, byte {place})")
        self.failed[what] += 1

    def run(self, n: int, place: int, *, thorough: bool) -> None:
        """Check everything after a flip in record `n`; what takes long only if `thorough`."""
        problems: list[Problem] = []
        with closing(self.open()) as home:
            store = PastDamage(home, problems.append)
            good = {m for m in self.raw if m != n}
            for reverse in (False, True):
                read = {record.n: record.raw for record in store.read("s", reverse=reverse)}
                if not good <= read.keys() or any(read[m] != self.raw[m] for m in read):
                    self.fail("read", n, place)
            self.whole += n in read
            if {problem.record for problem in problems} != {n} or any(p.session != "s" for p in problems):
                self.fail("report of read", n, place)
            if {record.n: record.raw for record in store.read("t")} != self.other:
                self.fail("read of another session", n, place)
            if {record.n for record in store.of_kinds("s", ("note",))} < {m for m in good if m % 10 == 4}:
                self.fail("of_kinds", n, place)
            if thorough:
                self.looked_through(store, good, n, place)
            if n not in {problem.record for problem in home.verify("s")}:
                self.fail("verify", n, place)
        self.copied(n, place)
        self.written(n, place)

    def looked_through(self, store: Store, good: set[int], n: int, place: int) -> None:
        """Search, scan and export."""
        if not good <= {hit.record for hit in store.search(WORD, limit=None) if hit.session == "s"}:
            self.fail("search", n, place)
        list(scan(store))
        for form in ("jsonl", "markdown", "html"):
            text = b"".join(FORMATS[form](store, "s", []))
            if text.count(WORD.encode()) < len(good):
                self.fail(f"export {form}", n, place)

    def copied(self, n: int, place: int) -> None:
        """Copy the store, into memory."""
        met: list[Problem] = []
        with closing(self.open()) as home, closing(open_store(":memory:")) as target:
            copy_store(home, target, tell=met.append)
            copied = {record.n: record.raw for record in target.read("s")}
            if len(copied) != self.records or any(copied[m] != self.raw[m] for m in copied if m != n):
                self.fail("copy", n, place)
            if {record.n: record.raw for record in target.read("t")} != self.other:
                self.fail("copy of another session", n, place)
        if {problem.record for problem in met} != {n}:
            self.fail("report of copy", n, place)

    def written(self, n: int, place: int) -> None:
        """Open the session to write, and salvage it."""
        settings = turnlog.Settings()
        with closing(self.open(write=True)) as home:
            try:
                turnlog.open("s", store=home, settings=settings).close()
                self.fail("open was not refused", n, place)
            except CorruptRecord as error:
                if not all(word in str(error) for word in ("'s'", f"record {n}", "turnlog salvage")):
                    self.fail(f"refusal: {error}", n, place)
            done = salvage(home, "s", "new")
            kept = {record.n: record.raw for record in home.read("new")}
            if len(kept) != self.records or any(kept[m] != self.raw[m] for m in kept if m != n):
                self.fail("salvage", n, place)
            if {problem.record for problem in done.damaged} != {n}:
                self.fail("report of salvage", n, place)

    def commands(self, n: int, place: int, key: Path) -> None:
        """The same by the command line."""
        where = ["--store", self.url, *(["--key", f"file:{key}"] if self.key else [])]
        for words in (
            ["show", "s"],
            ["show", "s", "--turns"],
            ["export", "s", "--format", "jsonl"],
            ["search", WORD, "--session", "s"],
            ["scan", "s"],
            ["copy", str(self.spare)],
            ["doctor", "s"],
            ["verify"],
        ):
            out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = command([*words, *where])
            out.flush()
            text = out.buffer.getvalue().decode() + err.getvalue()  # type: ignore[attr-defined]
            if words[0] == "copy":
                shutil.rmtree(self.spare, ignore_errors=True)
                self.spare.unlink(missing_ok=True)
            silent = words[0] == "search" and code == 0  # an index says nothing of records that it does not find
            if not silent and (f"record {n}" not in text or code not in (1, 5)):
                self.fail(f"turnlog {words[0]}: code {code}: {text[-120:]!r}", n, place)


def saved(folder: Path) -> dict[Path, bytes]:
    """The bytes of all files."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def restore(folder: Path, before: dict[Path, bytes]) -> None:
    """Put all files back."""
    for path in folder.rglob("*"):
        if path.is_file() and path not in before:
            path.unlink()
    for path, data in before.items():
        path.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "jsonl", "encrypted"])
def test_a_flipped_byte_costs_no_other_record(kind: str, tmp_path: Path, record_property: Any) -> None:
    """One bad sector would take a whole conversation, or a listing of all of them, with it."""
    records, step, commands = draws(12, 20), draws(401, 1), draws(16, 100)
    url = f"files:{tmp_path}/store" if kind == "jsonl" else f"{tmp_path}/store.db"
    key, key_file = KEY if kind == "encrypted" else None, tmp_path / "key"
    key_file.write_text(KEY.hex())
    key_file.chmod(0o600)
    build(url, key, records)
    check = Check(url, key, records, tmp_path / "copy")
    places = [*places_of(url, kind, records)][::step]
    before = saved(tmp_path)
    for number, (file, place, n) in enumerate(places):
        data = bytearray(file.read_bytes())
        data[place] ^= 1 << number % 8
        file.write_bytes(data)
        try:
            check.run(n, place, thorough=number % 10 == 0)
            if number % commands == 0:
                check.commands(n, place, key_file)
        except TurnlogError as error:
            check.fail(f"{type(error).__name__}: {error}", n, place)
        restore(tmp_path, before)
    record_property("flips", {"flips": len(places), "of them harmless": check.whole})
    assert check.shown == []
    assert len(places) > 10
