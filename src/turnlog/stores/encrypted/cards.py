"""Cards of sessions in an encrypted store, which are stored instead of titles.

A card is a salt and a ciphertext, encrypted with the key derived from that salt. The ciphertext contains the title, and
the salts of the sessions whose records the session shares. So each record can be decrypted with the salt of the session
that it was appended to, however often that session was forked since, and even if it was deleted.
"""

from __future__ import annotations

import base64
import binascii
import time

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..._platform.msgspec_init import ready
from ...errors import CorruptRecord
from ...log.store import SessionInfo
from ..records import Segment, storable
from .vault import SALT_BYTES, Vault, new_salt

_MARK = "sealed:"


class KeyedPiece(Struct, frozen=True, array_like=True):
    """Records up to number `last` (0: the end) that are in no earlier piece are encrypted with this salt, in hex."""

    salt: str
    last: int


@ready
class Card(Struct, frozen=True, array_like=True):
    """The content of a card. `made` is when it was created, in nanoseconds since 1970; the last piece is the session's
    own."""

    title: str
    made: int
    pieces: tuple[KeyedPiece, ...]

    def salt(self, n: int) -> bytes:
        """The salt of the session that record `n` was appended to."""
        return bytes.fromhex(next(piece.salt for piece in self.pieces if not piece.last or n <= piece.last))


def new_card(title: str) -> Card:
    """The card of a new session."""
    return Card(storable(title), time.time_ns(), (KeyedPiece(new_salt().hex(), 0),))


def forked_card(card: Card, shared: int, title: str) -> Card:
    """The card of a session that begins with the first `shared` records of a session with this card."""
    pieces: list[KeyedPiece] = []
    for piece in card.pieces if shared > 0 else ():
        pieces.append(KeyedPiece(piece.salt, min(piece.last or shared, shared)))
        if pieces[-1].last >= shared:
            break
    new = new_card(title)
    return replace(new, pieces=(*pieces, *new.pieces))


def titled(card: Card, title: str) -> Card:
    """The card with another title."""
    return replace(card, title=storable(title))


def spans(card: Card, records: int) -> list[Segment]:
    """The segments of a session with this many records; the key of a segment is the salt of its records."""
    segments, first = [], 1
    for piece in card.pieces:
        last = piece.last or records
        if first <= last:
            segments.append(Segment(piece.salt, first, last))
        first = last + 1
    return segments


def written_card(card: Card, vault: Vault, session_id: str) -> str:
    """A card, encrypted and encoded as a title."""
    salt = bytes.fromhex(card.pieces[-1].salt)
    sealed = vault.seal(salt, ("card", session_id), msgspec.json.encode(card))
    return _MARK + base64.b64encode(salt + sealed).decode()


def read_card(vault: Vault, info: SessionInfo) -> Card:
    """The card that is stored as a session's title. Raises CorruptRecord."""
    try:
        if not info.title.startswith(_MARK):
            raise CorruptRecord("the title is not encrypted, though the store is")
        data = base64.b64decode(info.title.removeprefix(_MARK), validate=True)
        opened = vault.open(data[:SALT_BYTES], ("card", info.id), data[SALT_BYTES:])
        return msgspec.json.decode(opened, type=Card)
    except (binascii.Error, ValueError, CorruptRecord) as error:
        raise CorruptRecord(f"the title of session {info.id!r} cannot be read: {error}") from error
