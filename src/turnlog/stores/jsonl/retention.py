"""What a files store holds and what it takes on the disk; deleting sessions, and what killed processes left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from ...log.store import Inventory, Piece
from ..blobs import BlobFolder, named
from ..records import check_expected
from .files import LogFolder
from .lines import lines_forwards, read_line
from .packs import open_packed, size_of
from .reading import segments_of
from .rewrite import clear_half_done


def delete(folder: LogFolder, stem: str, expected: int | None) -> None:
    """See `Store.delete`. For those who hold the store's lock."""
    card = folder.card(stem)
    gone = replace(card, title="", parent="", deleted=True)
    try:
        # An append that is under way ends before; the next one sees another card.
        with folder.opened(stem, write=False) as file:  # alone, a packed log would be unpacked for it
            check_expected(card.session, expected, folder.tail(stem, file, card).records)
            folder.write_card(stem, gone)
    except FileNotFoundError:  # somebody took the log away
        folder.write_card(stem, gone)
    with suppress(FileNotFoundError):  # then there is nothing to leave to forks
        folder.prune(stem)
    clear_half_done(folder)


def inventory(folder: LogFolder, blob_files: BlobFolder, in_use: frozenset[str] | None) -> Inventory:
    """See `Store.inventory`. Reads all logs."""
    blobs = {name: put.size for name, put in blob_files.puts().items()}
    pieces, readers, kept = {}, dict[str, set[str]](), set()
    for stem in folder.stems():
        card = folder.card(stem)
        owner = "" if card.deleted else card.session
        names = set[str]()
        with suppress(FileNotFoundError):  # a killed process did not come to the end of deleting it
            for raw in _records_in(folder.file(stem)):
                names |= named(raw, blobs)
        if owner:
            with folder.reading(stem) as (_, tail):
                pass
            for segment in segments_of(folder, stem, card, tail.records):
                readers.setdefault(segment.key, set()).add(owner)
            if folder.file(stem, "kept").exists():
                kept.add(owner)
        pieces[stem] = Piece(owner, frozenset(), folder.size(stem), frozenset(names))
    found = (replace(piece, readers=frozenset(readers.get(stem, ()))) for stem, piece in pieces.items())
    return Inventory(tuple(found), blobs, frozenset(kept), in_use)


def clear_up(folder: LogFolder) -> None:
    """Take away what killed processes left: logs of sessions that they had deleted, files that they were writing."""
    for stem in folder.stems():
        with suppress(FileNotFoundError):  # went with one that rested on it
            if folder.card(stem).deleted:
                folder.prune(stem)
    clear_half_done(folder)


def records_of(folder: LogFolder) -> Iterator[bytes]:
    """The bytes of every record, damaged or not, those of logs without a card too. Raises CorruptRecord for a damaged
    pack."""
    for path in sorted(folder.sessions.glob("*.jsonl")):
        yield from _records_in(path)


def _records_in(log: Path) -> Iterator[bytes]:
    with open_packed(log) or log.open("rb") as file:
        for held_line in lines_forwards(file, size_of(file)):
            line = read_line(held_line)
            yield held_line if line is None else line.raw
