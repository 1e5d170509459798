"""What may go of a files store, and what goes."""

from __future__ import annotations

import os
import threading
from contextlib import nullcontext, suppress
from pathlib import Path

from msgspec.structs import replace

from ...errors import Conflict
from ...log.store import SWEEP_GRACE_SECONDS, Inventory, Piece, Swept
from ..blob_gc import logged, records_in, unused
from ..blobs import BlobFolder, named
from ..locks import Hold, HoldFolder
from .files import LogFolder
from .reading import pieces_of
from .rewrite import clear_half_done


class FilesRetention:
    """The part of `FilesStore` that takes away."""

    path: Path
    _lock: threading.RLock
    _folder: LogFolder
    _blobs: BlobFolder
    _read_only: bool

    def _check_open(self, *, write: bool = False) -> None:
        raise NotImplementedError  # the store's own

    def _stem(self, session_id: str) -> str:
        raise NotImplementedError  # the store's own

    def delete(self, session_id: str, *, expected: int | None = None) -> None:
        """See `SessionIndex.delete`. Records that forks need stay until those are deleted."""
        self._check_open(write=True)
        with self._lock, self._folder.store_lock():
            stem = self._stem(session_id)
            card = self._folder.card(stem)
            gone = replace(card, title="", parent="", deleted=True)
            try:
                # An append that is under way ends before; the next one sees another card.
                with self._folder.opened(stem, write=False) as file:  # alone, a packed log would be unpacked for it
                    records = self._folder.tail(stem, file, card).records
                    if expected is not None and records != expected:
                        raise Conflict(session_id, expected=expected, actual=records)
                    self._folder.write_card(stem, gone)
            except FileNotFoundError:  # somebody took the log away
                self._folder.write_card(stem, gone)
            with suppress(FileNotFoundError):  # then there is nothing to leave to forks
                self._folder.prune(stem)
            clear_half_done(self._folder)

    def sweep(self, *, grace: float = SWEEP_GRACE_SECONDS) -> Swept:
        """See `BlobStore.sweep`. Reads all logs."""
        self._check_open(write=True)
        with self._lock, self._folder.store_lock():
            names, swept = unused(self._blobs.puts(), logged(self._folder.sessions), grace)
            self._blobs.remove(names)
        return swept

    def keep(self, session_id: str, *, kept: bool = True) -> None:
        """See `Retained.keep`. An empty file beside the log says so."""
        self._check_open(write=True)
        with self._lock, self._folder.store_lock():
            mark = self._folder.file(self._stem(session_id), "kept")
            if kept:
                os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            else:
                mark.unlink(missing_ok=True)

    def hold(self, session_id: str, *, alone: bool = False) -> Hold | None:
        """See `Retained.hold`. A file in the folder `open` says so while it lasts."""
        return Hold() if self._read_only else self._holds().take(session_id, alone=alone)

    def inventory(self) -> Inventory:
        """See `Retained.inventory`. Reads all logs."""
        self._check_open()
        blobs = {name: put.size for name, put in self._blobs.puts().items()}
        pieces, readers, kept = {}, dict[str, set[str]](), set()
        with self._lock, nullcontext() if self._read_only else self._folder.store_lock():
            for stem in self._folder.stems():
                card = self._folder.card(stem)
                owner = "" if card.deleted else card.session
                names = set[str]()
                with suppress(FileNotFoundError):  # a killed process did not come to the end of deleting it
                    for raw in records_in(self._folder.file(stem)):
                        names |= named(raw, blobs)
                if owner:
                    with self._folder.reading(stem) as (_, tail):
                        pass
                    for piece in pieces_of(self._folder, stem, card, tail.records):
                        readers.setdefault(piece.stem, set()).add(owner)
                    if self._folder.file(stem, "kept").exists():
                        kept.add(owner)
                pieces[stem] = Piece(owner, frozenset(), self._size(stem), frozenset(names))
        found = (replace(piece, readers=frozenset(readers.get(stem, ()))) for stem, piece in pieces.items())
        return Inventory(tuple(found), blobs, frozenset(kept), self._holds().taken())

    def used(self) -> int:
        """See `Retained.used`: the sizes of the files."""
        self._check_open()
        blobs = sum(put.size for put in self._blobs.puts().values())
        return blobs + sum(self._size(stem) for stem in self._folder.stems())

    def reclaim(self) -> None:
        """See `Retained.reclaim`. Files give their room back when they go; what is left to do is what a killed
        process did not end: taking away the log of a session that it had deleted, and what it was writing."""
        self._check_open(write=True)
        self._holds().clear()
        with self._lock, self._folder.store_lock():
            for stem in self._folder.stems():
                with suppress(FileNotFoundError):  # went with one that rested on it
                    if self._folder.card(stem).deleted:
                        self._folder.prune(stem)
            clear_half_done(self._folder)

    def _size(self, stem: str) -> int:
        size = 0
        for kind in self._folder.KINDS:
            with suppress(FileNotFoundError):
                size += self._folder.file(stem, kind).stat().st_size
        return size

    def _leave_holds(self) -> None:
        """Take away what holds leave in the store, if nobody has one: for whoever closes it."""
        if not self._read_only:
            self._holds().leave()

    def _holds(self) -> HoldFolder:
        return HoldFolder(self.path / "open")
