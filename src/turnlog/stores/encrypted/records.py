"""Records of an encrypted store: each encrypted by itself, or in a packed session many together.

The plaintext is one byte for the form, and the data: a record (`r`), or a frame of compressed records (`z`). Records
are compressed before they are encrypted, because ciphertext cannot be compressed.
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
from ..records import damage_named, row_kind
from ..zstd import compressed, decompressed, groups, joined, parted
from .cards import Card
from .vault import Vault


def sealed_draft(vault: Vault, card: Card, record: Record) -> Draft:
    """A record, encrypted, as a draft for the inner store."""
    body = _sealed(vault, card, record, b"r" + (record.raw or b""))
    return Draft(body, record.time, _encoded(record, body))  # encoded here, so that an empty time stays empty


def sealed_bytes(vault: Vault, card: Card, raw: bytes) -> bytes:
    """The bytes of a record as the inner store has them."""
    record = decode_record(raw)
    return _encoded(record, _sealed(vault, card, record, b"r" + raw))


def packed_bytes(vault: Vault, card: Card, records: Iterable[Record]) -> Iterator[tuple[int, bytes]]:
    """Packed records as the inner store has them, by number. All must have the same salt."""
    for group in groups((record.n, record.raw or b"") for record in records):
        frame = b"z" + compressed(joined([raw for _, raw in group]))
        head = group[0][0]
        for n, raw in group:
            record = decode_record(raw)
            yield n, _encoded(record, _sealed(vault, card, record, frame if n == head else b"", within=head))


def pack_of(record: Record) -> int:
    """The number of the first record in the pack of a sealed record; 0 if it is in no pack."""
    return record.body.within if isinstance(record.body, SealedRecord) else 0


def pack_from(head: int, records: Iterable[Record]) -> Iterator[Record]:
    """The records in the pack that begins with record `head`. `records` must begin with that record."""
    return takewhile(lambda record: pack_of(record) == head, records)


def is_loose(record: Record) -> bool:
    """Whether a record is sealed and in no pack."""
    return isinstance(record.body, SealedRecord) and not record.body.within


class Opener:
    """Decrypts records of one session, in any order. The most recently decrypted pack is cached."""

    def __init__(self, store: RecordStore, vault: Vault, card: Card, session_id: str) -> None:
        self._store = store
        self._vault = vault
        self._card = card
        self._session_id = session_id
        self._pack: tuple[int, list[bytes]] = 0, []

    def open(self, sealed: Record) -> Record:
        """The record inside a sealed record. Raises CorruptRecord."""
        try:
            return self._opened(sealed)
        except CorruptRecord:  # perhaps it was packed, or its pack was split, since it was read
            now = next(self._store.read(self._session_id, first=sealed.n, last=sealed.n), None)
            if now is None or now.raw == sealed.raw:
                raise
            self._pack = 0, []
            return self._opened(now)

    def _opened(self, sealed: Record) -> Record:
        try:
            record = decode_record(self._raw(sealed))
        except CorruptRecord as error:
            raise CorruptRecord(f"record {sealed.n} cannot be read: {error}", record=sealed.n) from error
        body = sealed.body
        if (record.n, record.time, row_kind(record.body)) != (sealed.n, sealed.time, getattr(body, "of", "")):
            differs = "has a number, time or kind inside its encryption that differs from the one stored beside it"
            raise CorruptRecord(f"record {sealed.n} {differs}", record=sealed.n)
        return record

    def all_of(self, records: Iterable[Record]) -> Iterator[Record]:
        """The records inside these sealed records. Raises CorruptRecord, which names the session and the remedy."""
        with damage_named(self._session_id):
            for record in records:
                yield self.open(record)

    def _raw(self, sealed: Record) -> bytes:
        if not isinstance(body := sealed.body, SealedRecord):
            raise CorruptRecord("the record is not encrypted, though the store is")
        head = body.within or sealed.n
        if self._pack[0] != head:
            data = self._data(sealed if head == sealed.n else self._head(head))
            if data[:1] == b"r" and not body.within:
                return data[1:]
            if data[:1] != b"z":
                raise _not_in_pack(head)
            self._pack = head, parted(decompressed(data[1:]))
        if not 0 <= sealed.n - head < len(self._pack[1]):
            raise _not_in_pack(head)
        return self._pack[1][sealed.n - head]

    def _head(self, n: int) -> Record:
        found = next(self._store.read(self._session_id, first=n, last=n), None)
        if found is None or not isinstance(found.body, SealedRecord):
            raise _not_in_pack(n)
        return found

    def _data(self, sealed: Record) -> bytes:
        body = sealed.body
        assert isinstance(body, SealedRecord)  # checked by the callers
        return self._vault.open(
            self._card.salt(sealed.n), _bound(sealed.n, sealed.time, body.of, body.blobs), body.data
        )


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
    """The associated data of a sealed record, without its session and its store."""
    return "record", n, time, of, list(blobs)


def _encoded(record: Record, body: SealedRecord) -> bytes:
    return encode_record(Record(record.n, record.time, body))
