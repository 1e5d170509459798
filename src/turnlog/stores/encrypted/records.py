"""Records of an encrypted store: sealed one by one, or where a session is packed many in one.

What is sealed is one byte that says how, and the data: a record (`r`), or a frame of compressed records (`z`), which
is compressed before it is encrypted because afterwards nothing could be gained.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from ...errors import CorruptRecord
from ...log.codec import decode_record, encode_record
from ...log.records import Record, SealedRecord
from ...log.store import Draft, RecordStore
from ..blobs import names_in
from ..records import damaged_session, row_kind
from ..zstd import compressed, decompressed, groups, joined, parted
from .cards import Card
from .vault import Vault


def sealed_draft(vault: Vault, card: Card, record: Record) -> Draft:
    """A record as it is appended to the store behind."""
    body = _sealed(vault, card, record, b"r" + (record.raw or b""))
    return Draft(body, record.time, _encoded(record, body))  # encoded: a time that is empty stays so


def sealed_bytes(vault: Vault, card: Card, raw: bytes) -> bytes:
    """The bytes of a record as they stand in the store behind."""
    record = decode_record(raw)
    return _encoded(record, _sealed(vault, card, record, b"r" + raw))


def packed_bytes(vault: Vault, card: Card, records: Iterable[Record]) -> Iterator[tuple[int, bytes]]:
    """Records with the same salt, as they stand in the store behind when they are packed, by number."""
    for group in groups((record.n, record.raw or b"") for record in records):
        frame = b"z" + compressed(joined([raw for _, raw in group]))
        head = group[0][0]
        for n, raw in group:
            record = decode_record(raw)
            yield n, _encoded(record, _sealed(vault, card, record, frame if n == head else b"", within=head))


def pack_of(record: Record) -> int:
    """The number of the first record of the pack that a sealed record is in; 0: none."""
    return record.body.within if isinstance(record.body, SealedRecord) else 0


def pack_from(head: int, records: Iterable[Record]) -> Iterator[Record]:
    """Those of `records`, which begin with record `head`, that are in the pack of that."""
    return takewhile(lambda record: pack_of(record) == head, records)


def is_loose(record: Record) -> bool:
    """Whether it is a sealed record by itself, in no pack."""
    return isinstance(record.body, SealedRecord) and not record.body.within


class Opener:
    """Opens records of one session, in any order; the last pack that it met it keeps."""

    def __init__(self, store: RecordStore, vault: Vault, card: Card, session_id: str) -> None:
        self._store = store
        self._vault = vault
        self._card = card
        self._session_id = session_id
        self._pack: tuple[int, list[bytes]] = 0, []

    def open(self, held: Record) -> Record:
        """The record that was sealed. Raises CorruptRecord."""
        try:
            return self._opened(held)
        except CorruptRecord:  # or somebody packed it, or took its pack apart, since it was read
            now = next(self._store.read(self._session_id, first=held.n, last=held.n), None)
            if now is None or now.raw == held.raw:
                raise
            self._pack = 0, []
            return self._opened(now)

    def _opened(self, held: Record) -> Record:
        try:
            record = decode_record(self._raw(held))
        except CorruptRecord as error:
            wrong = CorruptRecord(f"record {held.n}: {error}", record=held.n)
            raise damaged_session(self._session_id, wrong) from error
        body = held.body
        if (record.n, record.time, row_kind(record.body)) != (held.n, held.time, getattr(body, "of", "")):
            differs = "the number, time or kind inside the encrypted record differs from the one stored beside it"
            raise CorruptRecord(f"record {held.n} of session {self._session_id!r}: {differs}", record=held.n)
        return record

    def all_of(self, records: Iterable[Record]) -> Iterator[Record]:
        """Each of these records, opened."""
        return map(self.open, records)

    def _raw(self, held: Record) -> bytes:
        if not isinstance(body := held.body, SealedRecord):
            raise CorruptRecord("the record is not encrypted, though the store is")
        head = body.within or held.n
        if self._pack[0] != head:
            data = self._data(held if head == held.n else self._head(head))
            if data[:1] == b"r" and not body.within:
                return data[1:]
            if data[:1] != b"z":
                raise _not_in_pack(head)
            self._pack = head, parted(decompressed(data[1:]))
        if not 0 <= held.n - head < len(self._pack[1]):
            raise _not_in_pack(head)
        return self._pack[1][held.n - head]

    def _head(self, n: int) -> Record:
        found = next(self._store.read(self._session_id, first=n, last=n), None)
        if found is None or not isinstance(found.body, SealedRecord):
            raise _not_in_pack(n)
        return found

    def _data(self, held: Record) -> bytes:
        body = held.body
        assert isinstance(body, SealedRecord)  # looked at before
        return self._vault.open(self._card.salt(held.n), _bound(held.n, held.time, body.of, body.blobs), body.data)


def _not_in_pack(head: int) -> CorruptRecord:
    return CorruptRecord(f"it is stored in the pack of record {head}, which does not contain it")


def _sealed(vault: Vault, card: Card, record: Record, data: bytes, *, within: int = 0) -> SealedRecord:
    of = row_kind(record.body)
    names = {found.decode() for found in names_in(record.raw or b"")}
    blobs = tuple(sorted(map(vault.blob_name, names)))
    if within in (0, record.n):
        data = vault.seal(card.salt(record.n), _bound(record.n, record.time, of, blobs), data)
    return SealedRecord(of, data, within, blobs)


def _bound(n: int, time: str, of: str, blobs: Sequence[str]) -> tuple[Any, ...]:
    """What a sealed record is bound to, besides its session and its store."""
    return "record", n, time, of, list(blobs)


def _encoded(record: Record, body: SealedRecord) -> bytes:
    return encode_record(Record(record.n, record.time, body))
