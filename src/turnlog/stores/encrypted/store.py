"""A store in front of another store, the inner store: it encrypts what is written and decrypts what is read.

The inner store has records of kind `sealed` (see `SealedRecord`), and cards instead of titles. So its guarantees hold
for the encrypted data on disk: checksums, appends that are all or nothing, forks that share records, locks between
processes. It can see ids, times, sizes, how many records of each kind there are, and which records need the same blob.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any, Protocol

from msgspec.structs import replace

from ...errors import BlobMissing, Conflict, CorruptRecord, StoreKeyError
from ...log.codec import decode_record, encode_record
from ...log.messages import sha256_hex
from ...log.records import Record, SealedRecord
from ...log.store import (
    SWEEP_GRACE_SECONDS,
    Draft,
    Inventory,
    Packed,
    Problem,
    RecordStore,
    SessionFacts,
    SessionInfo,
    Store,
    Swept,
)
from ..base import BaseStore, KeySlot
from ..blobs import is_blob_name, names_in
from ..damaged import number_of
from ..labels import KnownLabels, where_given
from ..records import (
    Segment,
    blob_names,
    check_expected,
    check_unchanged,
    damage_in,
    damage_named,
    fork_point,
    no_such_record,
    number_drafts,
    of_any,
    row_kind,
    unshared,
)
from ..wrapper import StoreWrapper
from ..zstd import compressed, decompressed, groups, joined, parted
from .cards import Card, forked_card, new_card, read_card, spans, titled, written_card
from .keys import KeySource, new_lock, unlocked
from .vault import BLOB_OVERHEAD, Vault

# -- records ---------------------------------------------------------------------------------------
#
# Records of an encrypted store: each encrypted by itself, or in a packed session many together.
#
# The plaintext is one byte for the form, and the data: a record (`r`), or a frame of compressed records (`z`).
# Records are compressed before they are encrypted, because ciphertext cannot be compressed.


def sealed_draft(vault: Vault, card: Card, record: Record) -> Draft:
    """A record, encrypted, as a draft for the inner store."""
    body = _sealed(vault, card, record, b"r" + (record.raw or b""))
    return Draft(body, record.time, _encoded(record, body))  # encoded here, so that an empty time stays empty


def sealed_bytes(vault: Vault, card: Card, raw: bytes) -> bytes:
    """The bytes of a record as the inner store keeps them."""
    record = decode_record(raw)
    return _encoded(record, _sealed(vault, card, record, b"r" + raw))


def packed_bytes(vault: Vault, card: Card, records: Iterable[Record]) -> Iterator[tuple[int, bytes]]:
    """Packed records as the inner store keeps them, by number. All must have the same salt."""
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
            current = next(self._store.read(self._session_id, first=sealed.n, last=sealed.n), None)
            if current is None or current.raw == sealed.raw:
                raise
            self._pack = 0, []
            return self._opened(current)

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
        head = next(self._store.read(self._session_id, first=n, last=n), None)
        if head is None or not isinstance(head.body, SealedRecord):
            raise _not_in_pack(n)
        return head

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
    names = {name.decode() for name in names_in(record.raw or b"")}
    blobs = tuple(sorted(map(vault.blob_name, names)))
    if within in (0, record.n):
        data = vault.seal(card.salt(record.n), _bound(record.n, record.time, of, blobs), data)
    return SealedRecord(of, data, within, blobs)


def _bound(n: int, time: str, of: str, blobs: Sequence[str]) -> tuple[Any, ...]:
    """The associated data of a sealed record, without its session and its store."""
    return "record", n, time, of, list(blobs)


def _encoded(record: Record, body: SealedRecord) -> bytes:
    return encode_record(Record(record.n, record.time, body))


class Locked(Store, Protocol):
    """A store that can also keep a lock."""

    @property
    def key_slot(self) -> KeySlot:
        """The place of the lock."""

    @property
    def path(self) -> object:
        """The path of the store."""


class SealedStore(StoreWrapper):
    """Encrypts appended records, blobs and titles, and writes them to `store`. Nothing else may write to `store`."""

    def __init__(self, store: Store, vault: Vault) -> None:
        super().__init__(store)
        self._vault = vault
        self._cards: dict[str, tuple[str, Card]] = {}
        self._labels = KnownLabels()  # in memory alone: an index on disk would reveal them

    @classmethod
    def opened(cls, store: Locked, key: KeySource, *, read_only: bool = False) -> SealedStore:
        """The store, opened with `key`; an empty store becomes encrypted. Raises StoreKeyError, InputError."""
        lock = store.key_slot.read()
        if lock is None:
            if read_only:
                raise StoreKeyError(f"{store.path} is not encrypted: open it without a key")
            lock = new_lock(key)
            if not store.key_slot.write(lock, was=None):  # another process was faster
                lock = store.key_slot.read() or lock
        return cls(store, Vault(*unlocked(lock, key, store.path)))

    @staticmethod
    def rekey(store: Locked, key: KeySource, new: KeySource) -> None:
        """Change the key of `store` from `key` to `new`. The records are not encrypted again, so the old key still
        opens earlier copies of the store or of its lock. Raises StoreKeyError, InputError."""
        lock = store.key_slot.read()
        if lock is None:
            raise StoreKeyError(f"{store.path} is not encrypted")
        if not store.key_slot.write(new_lock(new, *unlocked(lock, key, store.path)), was=lock):
            raise StoreKeyError(
                f"another process changed the key of {store.path} at the same time; your new key was not set: run "
                "rekey again with the present key"
            )

    @property
    def encrypted(self) -> bool:
        return True

    @property
    def torn(self) -> list[Problem]:
        """Damage found at the ends of logs, if the inner store is a JSONL store."""
        return getattr(self.store, "torn", [])

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        """See `Store.append`. A record is encrypted for its number, and again if another process takes that number
        first."""
        while True:
            info = self.store.info(session_id)
            check_expected(session_id, expected, info.records)
            card = self._card(info)
            records = number_drafts(drafts, after=info.records)
            sealed = [sealed_draft(self._vault, card, record) for record in records]
            try:
                self.store.append(session_id, sealed, expected=info.records)
            except Conflict:
                if expected is not None:
                    raise
            else:
                return records

    def read(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record]:
        opener = self._opener(session_id)
        return opener.all_of(self.store.read(session_id, first=first, last=last, reverse=reverse))

    def of_kinds(
        self, session_id: str, kinds: Collection[str], *, first: int = 1, reverse: bool = False
    ) -> Iterator[Record]:
        sealed = self.store.of_kinds(session_id, kinds, first=first, reverse=reverse)
        return filter(of_any(kinds), self._opener(session_id).all_of(sealed))

    def readable(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record | Problem]:
        """See `Store.readable`. A damaged pack damages all records in it."""
        opener = self._opener(session_id)
        for item in self.store.readable(session_id, first=first, last=last, reverse=reverse):
            try:
                yield item if isinstance(item, Problem) else opener.open(item)
            except CorruptRecord as error:
                yield Problem(session_id, number_of(item), damage_in(error, number_of(item)))

    # The inner store's index would contain sums and words unencrypted, so these methods read the records.
    usage = BaseStore.usage
    usages = BaseStore.usages
    search = BaseStore.search
    _search = BaseStore._search

    def create(self, session_id: str, *, title: str = "", created: str = "", parent: str = "") -> SessionInfo:
        card = new_card(title)
        sealed_title = written_card(card, self._vault, session_id)
        return replace(
            self.store.create(session_id, title=sealed_title, created=created, parent=parent), title=card.title
        )

    def info(self, session_id: str) -> SessionInfo:
        info = self.store.info(session_id)
        return replace(info, title=self._card(info).title)

    def sessions(self, *, limit: int | None = None, where: Mapping[str, str] | None = None) -> list[SessionInfo]:
        """See `Store.sessions`. A session whose encrypted title cannot be read is listed without a title; `verify`
        reports it."""
        asked = where_given(where)
        if not asked:
            return [replace(info, title=self._title(info)) for info in self.store.sessions(limit=limit)]
        by_key = self._by_key()
        keys = self._labels.matching(self, by_key.items(), asked)
        return [replace(info, title=self._title(info)) for info in map(by_key.__getitem__, keys[:limit])]

    def _by_key(self) -> dict[tuple[str, int], SessionInfo]:
        """The sessions that can be read, by an id that no other session gets again."""
        return {(info.id, card.made): info for info, card in self._readable_cards()}

    def facts(self) -> dict[str, SessionFacts]:
        return {name: facts for (name, _), facts in self._labels.facts(self, self._by_key().items()).items()}

    def rename(self, session_id: str, title: str) -> None:
        card = titled(self._card(self.store.info(session_id)), title)
        self.store.rename(session_id, written_card(card, self._vault, session_id))

    def delete(self, session_id: str, *, expected: int | None = None, missing_ok: bool = False) -> None:
        self.store.delete(session_id, expected=expected, missing_ok=missing_ok)
        self._cards.pop(session_id, None)

    def fork(self, session_id: str, new_id: str, *, at: int | None = None, title: str = "") -> SessionInfo:
        """See `Store.fork`. The shared records are not copied or encrypted again: the new session gets the salts that
        decrypt them."""
        info = self.store.info(session_id)
        shared = fork_point(session_id, info.records, at)
        card = forked_card(self._card(info), shared, title)
        self._split_pack(session_id, shared)
        new_info = self.store.fork(session_id, new_id, at=shared, title=written_card(card, self._vault, new_id))
        self._split_pack(session_id, shared)  # another process may have packed before it could see the fork
        return replace(new_info, title=card.title)

    def put_blob(self, data: bytes, *, name: str = "") -> str:
        """See `Store.put_blob`. Returns the hash of `data`; the inner store keeps it under another name."""
        sealed_name, sealed = self._vault.seal_blob(data)
        self.store.put_blob(sealed, name=sealed_name)
        return sha256_hex(data)

    def get_blob(self, sha256: str) -> bytes:
        if not is_blob_name(sha256):
            return self.store.get_blob(sha256)  # raises BlobMissing
        sealed = self.store.get_blob(self._vault.blob_name(sha256))
        try:
            return self._vault.open_blob(sha256, sealed)
        except CorruptRecord as error:
            raise BlobMissing(f"blob {sha256} is damaged: {error}") from error

    def sweep(self, *, grace: float = SWEEP_GRACE_SECONDS) -> Swept:
        swept = self.store.sweep(grace=grace)
        return replace(swept, size=swept.size - swept.removed * BLOB_OVERHEAD)

    def inventory(self) -> Inventory:
        """See `Store.inventory`. Blobs have the names of the inner store. Nothing is decrypted."""
        inner = self.store.inventory()
        return replace(inner, blobs={name: max(size - BLOB_OVERHEAD, 0) for name, size in inner.blobs.items()})

    def _searchable(self) -> Iterator[tuple[str, list[Segment]]]:
        for info, card in sorted(self._readable_cards(), key=lambda pair: pair[1].made):
            yield info.id, spans(card, info.records)

    def _readable_cards(self) -> Iterator[tuple[SessionInfo, Card]]:
        for info in self.store.sessions():
            with suppress(CorruptRecord):
                yield info, self._card(info)

    def rewrite(
        self,
        session_id: str,
        records: Mapping[int, bytes],
        *,
        blobs: Sequence[str] = (),
        was: Mapping[int, bytes] | None = None,
    ) -> None:
        """See `Store.rewrite`. Packs that contain one of the records are split into single records."""
        info = self.store.info(session_id)
        for n, raw in records.items():
            if decode_record(raw).n != n or not 1 <= n <= info.records:
                raise no_such_record(session_id, n)
        names = [self._vault.blob_name(name) for name in blobs]
        check_unchanged(self.read, session_id, was)
        while True:
            was_sealed, opened = self._with_packs(session_id, records)
            try:
                new = self._seal_all(info, {**opened, **records})
                self.store.rewrite(session_id, new, blobs=names, was=was_sealed)
                self._labels.clear()
                return
            except Conflict:
                continue  # packed or split meanwhile

    def pack(self, session_id: str, **_: Any) -> Packed:
        """See `Store.pack`. The records are compressed together and encrypted again, with the same keys."""
        while True:
            info = self.store.info(session_id)
            card = self._card(info)
            was = dict(_bytes_of(filter(is_loose, self.store.read(session_id, first=info.parent_records + 1))))
            sealed: dict[int, bytes] = {}
            for first, last in _parts(info.parent_records, info.records, self._forks_of(card)):
                records = (record for record in self.read(session_id, first=first, last=last) if record.n in was)
                sealed.update(packed_bytes(self._vault, card, records))
            was = {n: raw for n, raw in was.items() if n in sealed}
            try:
                outer = self.store.pack(session_id, instead=sealed, was=was)
            except Conflict:
                continue
            for n in self._forks_of(card):  # created meanwhile
                self._split_pack(session_id, n)
            if not was:
                return outer
            new = sum(map(len, sealed.values()))  # the inner store packs the other records again, too
            return Packed(len(was), sum(map(len, was.values())), outer.after * new // max(1, outer.before))

    def verify(self, session_id: str | None = None) -> list[Problem]:
        """See `Store.verify`. Reports damage found by the inner store, records that cannot be decrypted, and missing
        blobs."""
        problems = self.store.verify(session_id)
        infos = self.store.sessions() if session_id is None else [self.store.info(session_id)]
        cards: list[tuple[SessionInfo, Card]] = []
        for info in infos:
            try:
                cards.append((info, self._card(info)))
            except CorruptRecord as error:
                problems.append(Problem(info.id, 0, str(error)))
        cards.sort(key=lambda pair: pair[1].made)
        begins = unshared((info.id, spans(card, info.records)) for info, card in cards)
        reported = {(problem.session, problem.record) for problem in problems}
        for info, _ in cards:
            first = 1 if session_id is not None else begins.get(info.id, info.records + 1)
            bad = self._bad(info.id, first, info.records)
            problems += [problem for problem in bad if (info.id, problem.record) not in reported]
        return problems

    def _bad(self, session_id: str, first: int, last: int) -> Iterator[Problem]:
        """A problem for each record that cannot be decrypted, or needs blobs that are missing or damaged."""
        try:
            for item in self.readable(session_id, first=first, last=last):
                if isinstance(item, Problem):
                    yield item
                elif lost := sorted(name for name in blob_names(item) if not self._has(name)):
                    what = f"it needs blobs that are missing or damaged: {', '.join(lost)}"
                    yield Problem(session_id, item.n, what, tuple(lost))
        except CorruptRecord as error:  # of the session as a whole
            yield Problem(session_id, error.record or 0, str(error))

    def _has(self, sha256: str) -> bool:
        try:
            self.get_blob(sha256)
        except BlobMissing:
            return False
        return True

    def _seal_all(self, info: SessionInfo, records: Mapping[int, bytes]) -> dict[int, bytes]:
        card = self._card(info)
        return {n: sealed_bytes(self._vault, card, raw) for n, raw in records.items()}

    def _with_packs(self, session_id: str, numbers: Iterable[int]) -> tuple[dict[int, bytes], dict[int, bytes]]:
        """The present sealed bytes of these records and of all records in their packs, which must not change before the
        rewrite; and the packed records, decrypted. The sealed bytes of unpacked records are included, because another
        process may pack them meanwhile, together with later records."""
        was: dict[int, bytes] = {}
        opened: dict[int, bytes] = {}
        opener = self._opener(session_id)
        for n in numbers:
            for record in self.store.read(session_id, first=n, last=n):
                if (head := pack_of(record)) and n not in opened:
                    pack = list(pack_from(head, self.store.read(session_id, first=head)))
                    was.update(_bytes_of(pack))
                    opened.update(_bytes_of(opener.all_of(pack)))
                was.update(_bytes_of([record]))
        return was, opened

    def _forks_of(self, card: Card) -> set[int]:
        """The numbers of the last shared records of all forks of the session with this card."""
        own_salt = card.pieces[-1].salt
        cards = (self._card(info) for info in self.store.sessions())
        return {piece.last for other in cards for piece in other.pieces if piece.salt == own_salt and piece.last}

    def _split_pack(self, session_id: str, n: int) -> None:
        """Put record `n` and the next record into different packs. A fork shares only the first of them, so each may be
        deleted or rewritten without the other."""
        while n > 0:
            was, opened = self._with_packs(session_id, [n])
            if max(opened, default=0) <= n:
                return
            with suppress(Conflict):  # packed, split or scrubbed meanwhile
                self.store.rewrite(session_id, self._seal_all(self.store.info(session_id), opened), was=was)
                return

    def _opener(self, session_id: str) -> Opener:
        card = self._card(self.store.info(session_id))
        return Opener(self.store, self._vault, card, session_id)

    def _title(self, info: SessionInfo) -> str:
        try:
            return self._card(info).title
        except CorruptRecord:
            return ""

    def _card(self, info: SessionInfo) -> Card:
        """The card of a session; cached, because every append needs it. Raises CorruptRecord."""
        cached = self._cards.get(info.id)
        if cached is None or cached[0] != info.title:
            self._cards[info.id] = cached = info.title, read_card(self._vault, info)
        return cached[1]


def _bytes_of(records: Iterable[Record]) -> Iterator[tuple[int, bytes]]:
    return ((record.n, record.raw or b"") for record in records)


def _parts(after: int, last: int, cuts: Collection[int]) -> Iterator[tuple[int, int]]:
    """The records `after` + 1 to `last`, divided after each record in `cuts`, as the first and last number of each
    part."""
    for end in sorted({cut for cut in cuts if after < cut < last} | {last}):
        if after < end:
            yield after + 1, end
        after = end
