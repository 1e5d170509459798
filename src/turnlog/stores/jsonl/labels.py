"""The index of labels in a JSONL store: the file `labels.json`, which is written when somebody asks for labels.

Its first line is the checksum of the second line, which has for each log its facts (see `labels.encoded_facts`) at a
record, with the sum of that record. Everything in it is derived from the notes in the logs: a missing, damaged or old
file only costs time.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..._platform.msgspec_init import ready
from ...errors import CorruptRecord, SessionNotFound, StoreError
from ...log.messages import sha256_hex
from ...log.origins import BEGINNING, origin_of
from ..folders import write_whole
from ..labels import FACTS, encoded_facts, facts_from, newest_labels
from ..records import kind_finder
from .files import LogFolder, SessionFile
from .lines import Tail
from .reading import read_records, segments_of

FILE = "labels.json"

_NOTES = kind_finder(("note",))


@ready
class LabelEntry(Struct, frozen=True, array_like=True):
    """The facts of a log, encoded by `encoded_facts`, when it had this many records and this sum. `order` is that of
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
    now = (card.order, tail.records, tail.sum)
    if stored is not None and (stored.order, stored.records, stored.sum) == now and stored.labels.startswith(FACTS):
        return stored
    origin = "", ""
    try:
        segments = segments_of(folder, stem, card, tail.records)
        if stored is not None and _goes_on(stored, card, tail):
            notes = read_records(folder, segments, stored.records + 1, tail.records, reverse=True, may_be=_NOTES)
            if newest_labels(notes) is None:
                return replace(stored, records=tail.records, sum=tail.sum)
        notes = read_records(folder, segments, 1, tail.records, reverse=True, may_be=_NOTES)
        labels = newest_labels(notes) or {}
        with suppress(CorruptRecord):  # the labels may be in records that can be read
            origin = origin_of(read_records(folder, segments, 1, min(BEGINNING, tail.records)))
        facts = facts_from(labels, origin)
    except (SessionNotFound, CorruptRecord, FileNotFoundError):
        return None
    return LabelEntry(card.order, tail.records, tail.sum, encoded_facts(facts))


def _goes_on(stored: LabelEntry, card: SessionFile, tail: Tail) -> bool:
    """Whether the log may only have got more records since, behind those that tell where it comes from."""
    begins = max(card.parent_records, BEGINNING)
    return stored.order == card.order and begins <= stored.records < tail.records and stored.labels.startswith(FACTS)
