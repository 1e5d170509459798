"""SQLite databases of programs, opened read-only, also while the program runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

from ..errors import ImportFailed
from .marks import SQLITE
from .protocol import Imported, Origin, contents, origin_name, with_damage
from .transcript import Transcript, json_document

_WAITING = 5.0
"""Seconds to wait for a program that is writing."""


_DAMAGED = (sqlite3.Error, OverflowError, UnicodeDecodeError)
"""What a damaged database raises; the last is raised for messages of SQLite that quote damaged names."""


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
                yield from ({key: row[key] for key in row.keys()} for row in cursor)  # noqa: SIM118 - rows have no items
        except _DAMAGED as error:
            self.warn(0, f"left out: rows of the database cannot be read ({error})", "entry")

    def columns(self, table: str) -> frozenset[str]:
        """The columns of a table, which differ between versions of a program; none if there is no such table."""
        return frozenset(str(row["name"]) for row in self.rows("SELECT name FROM pragma_table_info(?)", table))

    def json(self, text: Any, what: str) -> Any:
        """The JSON value in a column; None, and a warning, if it is damaged."""
        try:
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
        advice = "copy it again, with its -wal file"
        raise ImportFailed(f"{origin_name(origin)}: the database cannot be read ({error}); {advice}") from error


def _opened(origin: Origin) -> sqlite3.Connection:
    if isinstance(origin, bytes):
        db = sqlite3.connect(":memory:")
        # A write-ahead log is a file of its own: without it, the database is as its last checkpoint left it.
        db.deserialize(origin[:18] + b"\1\1" + origin[20:] if origin[18:20] == b"\2\2" else origin)
        return db
    if not origin.is_file():
        contents(origin)
    return sqlite3.connect(f"{origin.absolute().as_uri()}?mode=ro", uri=True, timeout=_WAITING)
