"""The inventory of a JSONL store, the deletion of sessions, and the removal of what killed processes left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from ...errors import StoreError
from ...log.store import Inventory, StoredPiece
from ..blobs import BlobFolder, named
from ..folders import is_full
from ..records import check_expected
from . import labels
from .files import LogFolder, SessionFile
from .lines import lines_forwards, read_line
from .packs import open_packed, size_of
from .reading import segments_of
from .rewrite import clear_half_done


def delete(folder: LogFolder, stem: str, expected: int | None) -> None:
    """See `Store.delete`. The caller must hold the store's lock."""
    card = folder.card(stem)
    gone = replace(card, title="", parent="", deleted=True)
    try:
        # The lock waits for an append that is under way; the next append reads the new card.
        with folder.opened(stem, write=False) as file:  # with write=True, a packed log would be unpacked
            check_expected(card.session, expected, folder.tail(stem, file, card).records)
            _mark(folder, stem, gone)
    except FileNotFoundError:  # the log file was removed by hand
        folder.write_card(stem, gone)
    labels.forget(folder, stem)
    with suppress(FileNotFoundError):  # then there is nothing that forks could need
        folder.prune(stem)
    clear_half_done(folder)


def _mark(folder: LogFolder, stem: str, gone: SessionFile) -> None:
    """Write the card of a deleted session. On a full disk, room is made by removing its other files that the forks do
    not need."""
    try:
        folder.write_card(stem, gone)
    except StoreError as error:
        if not is_full(error.__cause__):
            raise
        for kind in ("torn", "head"):
            folder.file(stem, kind).unlink(missing_ok=True)
        folder.write_card(stem, gone)


def inventory(folder: LogFolder, blob_files: BlobFolder, in_use: frozenset[str] | None) -> Inventory:
    """See `Store.inventory`. Reads all logs."""
    blobs = {name: put.size for name, put in blob_files.puts().items()}
    pieces, readers, protected = {}, dict[str, set[str]](), set()
    for stem in folder.stems():
        card = folder.card(stem)
        owner = "" if card.deleted else card.session
        names = set[str]()
        with suppress(FileNotFoundError):  # a killed process has deleted it only in part
            for raw in _records_in(folder.file(stem)):
                names |= named(raw, blobs)
        if owner:
            with folder.reading(stem) as (_, tail):
                pass
            for segment in segments_of(folder, stem, card, tail.records):
                readers.setdefault(segment.key, set()).add(owner)
            if folder.file(stem, "kept").exists():
                protected.add(owner)
        pieces[stem] = StoredPiece(owner, frozenset(), folder.size(stem), frozenset(names))
    with_readers = (replace(piece, readers=frozenset(readers.get(stem, ()))) for stem, piece in pieces.items())
    return Inventory(tuple(with_readers), blobs, frozenset(protected), in_use)


def clear_up(folder: LogFolder) -> None:
    """Remove what killed processes left: logs of sessions that were being deleted, and files that were being
    written."""
    for stem in folder.stems():
        with suppress(FileNotFoundError):  # removed together with a log that was based on it
            if folder.card(stem).deleted:
                folder.prune(stem)
    clear_half_done(folder)


def records_of(folder: LogFolder) -> Iterator[bytes]:
    """The bytes of every record, including damaged ones and those in logs without a card. Raises CorruptRecord for a
    damaged pack."""
    for path in sorted(folder.sessions.glob("*.jsonl")):
        yield from _records_in(path)


def _records_in(log: Path) -> Iterator[bytes]:
    with open_packed(log) or log.open("rb") as file:
        for held_line in lines_forwards(file, size_of(file)):
            line = read_line(held_line)
            yield held_line if line is None else line.raw
