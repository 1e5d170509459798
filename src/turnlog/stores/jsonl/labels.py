"""The index of labels in a JSONL store: the file `labels.json`, which is written when somebody asks for labels.

Its first line is the checksum of the second line, which has for each log its labels at a record, with the sum of that
record. Everything in it is derived from the notes in the logs: a missing, damaged or old file only costs time.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import msgspec
from msgspec import Struct

from ..._platform.msgspec_init import ready
from ...errors import CorruptRecord, SessionNotFound, StoreError
from ...log.messages import sha256_hex
from ..folders import write_whole
from ..labels import encoded_labels, newest_labels
from ..records import kind_finder
from .files import LogFolder, SessionFile
from .lines import Tail
from .reading import read_records, segments_of

FILE = "labels.json"


@ready
class LabelEntry(Struct, frozen=True, array_like=True):
    """The labels of a log, encoded by `encoded_labels`, when it had this many records and this sum. `order` is that of
    the log's card."""

    order: int
    records: int
    sum: str
    labels: str


_DECODER = msgspec.json.Decoder(dict[str, LabelEntry])


def read_entries(folder: LogFolder) -> dict[str, LabelEntry]:
    """The entries by stem; none if the file is missing or damaged."""
    with suppress(OSError, msgspec.MsgspecError, UnicodeError):
        total, _, held = (folder.path / FILE).read_text("ascii").partition("\n")
        if total == sha256_hex(held.encode()):
            return _DECODER.decode(held)
    return {}


def write_entries(folder: LogFolder, entries: Mapping[str, LabelEntry]) -> None:
    """Write the file. Errors are ignored, as its content can be derived again."""
    held = msgspec.json.encode(entries).decode("ascii")
    with suppress(StoreError, OSError):
        write_whole(folder.path / FILE, f"{sha256_hex(held.encode())}\n{held}".encode())


def forget(folder: LogFolder, stem: str = "") -> None:
    """Remove the entry of a deleted session, or the whole file because records are rewritten."""
    entries = read_entries(folder) if stem else {}
    if entries and entries.pop(stem, None) is None:
        return
    (folder.path / FILE).unlink(missing_ok=True)  # first: it must go even if the disk is full
    if entries:
        write_entries(folder, entries)


def entry_now(
    folder: LogFolder, stem: str, card: SessionFile, tail: Tail, stored: LabelEntry | None
) -> LabelEntry | None:
    """The entry of a log with this end: `stored` if it is still valid, otherwise read from the log. None if the log
    cannot be read."""
    if stored is not None and (stored.order, stored.records, stored.sum) == (card.order, tail.records, tail.sum):
        return stored
    first, labels = 1, "{}"
    if stored is not None and stored.order == card.order and card.parent_records <= stored.records < tail.records:
        first, labels = stored.records + 1, stored.labels
    try:
        segments = segments_of(folder, stem, card, tail.records)
        notes = read_records(folder, segments, first, tail.records, reverse=True, may_be=kind_finder(("note",)))
        newer = newest_labels(notes)
    except (SessionNotFound, CorruptRecord, FileNotFoundError):
        return None
    return LabelEntry(card.order, tail.records, tail.sum, labels if newer is None else encoded_labels(newer))
