"""What may go of an SQLite store, what goes, and giving back the room that it took."""

from __future__ import annotations

from pathlib import Path

from ...errors import Conflict
from ...log.store import SWEEP_GRACE_SECONDS, Inventory, Piece, Swept
from ..blob_gc import records_of, sweep_database
from ..blobs import BlobFolder, named
from ..fork_segments import segments_of
from ..locks import Hold, HoldFolder
from .database import Database
from .rows import find, prune, write
from .schema import COLUMNS, KEPT_VERSION, SessionRow, version_of

_FREED_PAGES = 1_000
_INCREMENTAL = 2
_ROOTS = "select count(*) from sqlite_master where rootpage > 0"  # each has a page of its own
_BLOBS = "select sha256, length(data) from blobs"
_KEPT = "select id from sessions where id is not null and no in (select no from kept)"


class SqliteRetention:
    """The part of `SqliteStore` that takes away."""

    path: Path
    _database: Database
    _files: BlobFolder

    def delete(self, session_id: str, *, expected: int | None = None) -> None:
        """See `SessionIndex.delete`. Records that forks need stay until those are deleted."""
        with self._database.writing() as db:
            row = find(db, session_id)
            if expected is not None and row.records != expected:
                raise Conflict(session_id, expected=expected, actual=row.records)
            db.execute("pragma secure_delete = on")
            db.execute("update sessions set id = null, parent = '' where no = ?", (row.no,))
            db.execute("delete from kept where no = ?", (row.no,))
            write(db, row._replace(id=None, title="", parent=""))
            prune(db, row.no)
        self._database.fold_log()

    def sweep(self, *, grace: float = SWEEP_GRACE_SECONDS) -> Swept:
        """See `BlobStore.sweep`. Reads all records, and keeps others from writing meanwhile."""
        with self._database.writing() as db:
            swept = sweep_database(db, self._files, grace)
        if swept.removed:
            self._database.fold_log()
        return swept

    def keep(self, session_id: str, *, kept: bool = True) -> None:
        """See `Retained.keep`."""
        with self._database.writing() as db:
            no = find(db, session_id).no
            db.execute("insert or ignore into kept values (?)" if kept else "delete from kept where no = ?", (no,))

    def hold(self, session_id: str, *, alone: bool = False) -> Hold | None:
        """See `Retained.hold`. A file beside the store's says so while it lasts."""
        return Hold() if self._database.read_only else self._holds().take(session_id, alone=alone)

    def inventory(self) -> Inventory:
        """See `Retained.inventory`. Reads all records."""
        with self._database.reading() as db:
            rows = [SessionRow(*found) for found in db.execute(f"select {COLUMNS} from sessions order by no")]
            blobs = {**dict(db.execute(_BLOBS)), **{name: put.size for name, put in self._files.puts().items()}}
            sizes = {row.no: 0 for row in rows}
            names: dict[int, set[str]] = {row.no: set() for row in rows}
            for no, raw in records_of(db):
                sizes[no] = sizes.get(no, 0) + len(raw)
                names.setdefault(no, set()).update(named(raw, blobs))
            readers: dict[int, set[str]] = {row.no: set() for row in rows}
            for row in rows:
                for segment in segments_of(db, row) if row.id is not None else ():
                    readers[segment.no].add(row.id or "")
            base = db.execute(_ROOTS).fetchone()[0] * db.execute("pragma page_size").fetchone()[0]
            kept = {found for (found,) in db.execute(_KEPT)} if version_of(db) >= KEPT_VERSION else set()
        pieces = (
            Piece(row.id or "", frozenset(readers[row.no]), sizes[row.no], frozenset(names[row.no])) for row in rows
        )
        return Inventory(tuple(pieces), blobs, frozenset(kept), self._holds().taken(), base)

    def used(self) -> int:
        """See `Retained.used`. Free pages in the file are none of it, nor is the write-ahead log."""
        with self._database.reading() as db:
            pages, free, size = (
                db.execute(f"pragma {what}").fetchone()[0] for what in ("page_count", "freelist_count", "page_size")
            )
        return int((pages - free) * size) + sum(put.size for put in self._files.puts().values())

    def reclaim(self) -> None:
        """See `Retained.reclaim`: an incremental vacuum, a thousand pages at a time. A store that an older turnlog
        made is written anew as a whole, once, which takes as much free room on the disk as it has bytes."""
        self._database.check_writable()
        self._holds().clear()
        with self._database.reading() as db:
            free = db.execute("pragma freelist_count").fetchone()[0]
            if free and db.execute("pragma auto_vacuum").fetchone()[0] != _INCREMENTAL:
                db.execute(f"pragma auto_vacuum = {_INCREMENTAL}")
                db.execute("vacuum")
                free = 0
        for done in range(0, free, _FREED_PAGES):
            with self._database.writing() as db:
                for _ in range(min(_FREED_PAGES, free - done)):
                    db.execute("pragma incremental_vacuum(1)")  # Python takes one step of a statement without rows
        self._database.fold_log()

    def _leave_holds(self) -> None:
        """Take away what holds leave beside the store, if nobody has one: for whoever closes it."""
        if not self._database.read_only:
            self._holds().leave()

    def _holds(self) -> HoldFolder:
        real = self._database.path
        return HoldFolder(real.with_name(f"{real.name}-open"))
