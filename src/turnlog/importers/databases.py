"""SQLite databases of programs, opened read-only, also while the program runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from typing import Any

from ..errors import ImportFailed
from .marks import SQLITE, connected
from .protocol import Imported, Origin, contents, origin_name, with_damage
from .transcript import Transcript, json_document

_WAITING = 1.0
"""Seconds to wait for a program that is writing."""


_DAMAGED = (sqlite3.Error, OverflowError, UnicodeDecodeError)
"""What a damaged database raises; the last is raised for messages of SQLite that quote damaged names."""


class Row(dict[str, Any]):
    """A row by column. A column that this version of the program does not have is None."""

    def __missing__(self, key: str) -> None:
        return None


class SqliteTranscript(Transcript):
    """A transcript in a database. Its rows are read one after the other, so that a large one takes little memory."""

    def __init__(self, origin: Origin, db: sqlite3.Connection) -> None:
        super().__init__(origin)
        self.db = db
        db.row_factory = sqlite3.Row
        db.text_factory = lambda data: data.decode("utf-8", "replace")

    def rows(self, query: str, *values: Any) -> Iterator[dict[str, Any]]:
        """The rows of a query, as objects by column. Pages that are damaged end them with a warning."""
        try:
            with closing(self.db.execute(query, values)) as cursor:
                yield from (Row((key, row[key]) for key in row.keys()) for row in cursor)  # noqa: SIM118 - no items
        except _DAMAGED as error:
            self.warn(0, f"left out: rows of the database cannot be read ({error})", "entry")

    def columns(self, table: str) -> frozenset[str]:
        """The columns of a table, which differ between versions of a program; none if there is no such table."""
        return frozenset(str(row["name"]) for row in self.rows("SELECT name FROM pragma_table_info(?)", table))

    def owners(self, table: str, owned: str, key: str = "session_id") -> Iterator[dict[str, Any]]:
        """The rows of `table`, the oldest first, then an object with only an `id` for each owner that rows of `owned`
        name by `key` and that `table` does not have."""
        columns = self.columns(table)
        order = ", ".join(each for each in ("time_created", "created_at", "id") if each in columns)
        alone = f"SELECT DISTINCT {key} AS id FROM {owned} WHERE {key} NOT IN (SELECT id FROM {table})"
        for row in chain(self.rows(f"SELECT * FROM {table} ORDER BY {order}"), self.rows(alone)):
            if isinstance(row.get("id"), str):
                yield row
            else:
                self.warn(0, f"left out: a row of {table} whose id is no text", "entry")

    def json(self, text: Any, what: str) -> Any:
        """The JSON value in a column; None, and a warning, if it is damaged."""
        try:
            if isinstance(text, (int, float)):  # not what a program wrote; `bytes` would make as many zeros
                raise ValueError("it is a number")
            return json_document(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text or b""))
        except (ValueError, TypeError) as error:
            self.warn(0, f"left out: {what} is not JSON ({error})", "entry")
            return None


def is_database(origin: Origin) -> bool:
    """Whether a transcript is a SQLite database: programs of which newer versions write one also wrote files before."""
    if isinstance(origin, bytes):
        return origin.startswith(SQLITE)
    try:
        with origin.open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError:
        return False


def read_database(
    origin: Origin, tables: Sequence[str], sessions: Callable[[SqliteTranscript], Iterator[Imported]]
) -> Iterator[Imported]:
    """The sessions that `sessions` makes of a database with these tables, one after the other. Raises ImportFailed if
    it cannot be read."""
    last: Imported | None = None
    try:
        with closing(_opened(origin)) as db:
            file = SqliteTranscript(origin, db)
            missing = [f"table {table!r}" for table in tables if not file.columns(table)]
            for session in sessions(file) if not missing else ():
                if last is not None:
                    yield last
                last = session
                file.warnings.clear()  # they are the session's
            if last is None:
                needed = missing[0] if missing else "session"
                raise file.refused(needed, "give the database that the program wrote, with its -wal file")
            yield with_damage(last, *file.warnings)
    except (*_DAMAGED, MemoryError) as error:  # the latter for no bytes at all
        is_locked = "is locked" in str(error)
        advice = "another program is writing to it: try again" if is_locked else "copy it again, with its -wal file"
        raise ImportFailed(f"{origin_name(origin)}: the database cannot be read ({error}); {advice}") from error


def _opened(origin: Origin) -> sqlite3.Connection:
    if isinstance(origin, bytes):
        db = sqlite3.connect(":memory:")
        # A write-ahead log is a file of its own: without it, the database is as its last checkpoint left it.
        db.deserialize(origin[:18] + b"\1\1" + origin[20:] if origin[18:20] == b"\2\2" else origin)
        return db
    if not origin.is_file():
        contents(origin)
    return connected(origin, _WAITING)
