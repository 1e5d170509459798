"""Encryption of a store's content with the package `cryptography`: which key, which nonce, which associated data.

AES-256-GCM is used throughout. A store has one random data key. HKDF derives from it a key for each session, with 128
random bits of that session as the salt, and a key for each blob, with the hash of its content as the salt. Therefore:

- Nonces of records are 96 random bits from the operating system. There is no counter that a crash, a copy of the file
  or a second process could set back. A session key encrypts at most 2^32 records, the limit of NIST SP 800-38D (8.3)
  for random nonces; stores number records only up to 2^32, too.
- The key of a blob encrypts only that content, so its nonce is fixed, and equal contents give equal bytes, stored once.

Associated data binds every ciphertext to its place: a record to its number, time, kind and session, a card to its
session, and everything to the store.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from ..._platform.texts import install_extra
from ...errors import CorruptRecord, InputError
from ...log.messages import sha256_hex
from ..blobs import SEALED_HEAD

KEY_BYTES = 32
"""The length of a key in bytes."""

SALT_BYTES = 16
"""The length in bytes of the random salt from which a session's key is derived."""

_NONCE_BYTES = 12
_TAG_BYTES = 16

BLOB_OVERHEAD = len(SEALED_HEAD) + 32 + 32 + _TAG_BYTES
"""How many bytes an encrypted blob is longer than its content."""


class Vault:
    """Encrypts and decrypts for the store named `store`, with its data key."""

    def __init__(self, data_key: bytes, store: bytes) -> None:
        self._data_key = data_key
        self._store = store.hex()
        self._name_key = derived(data_key, store, b"turnlog blob names")
        self._ciphers = lru_cache(maxsize=256)(self._cipher)

    @classmethod
    def drawn(cls) -> Vault:
        """A vault with a random key that is saved nowhere."""
        return cls(os.urandom(KEY_BYTES), os.urandom(SALT_BYTES))

    def seal(self, salt: bytes, bound: Sequence[Any], data: bytes) -> bytes:
        """Encrypt `data` for the session with that salt. Decrypting requires the same JSON values `bound`."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed: bytes = self._ciphers(salt, b"turnlog session").encrypt(nonce, data, _encode([self._store, *bound]))
        return nonce + sealed

    def open(self, salt: bytes, bound: Sequence[Any], sealed: bytes) -> bytes:
        """The data that `seal` encrypted. Raises CorruptRecord unless it was encrypted with this key and the same
        `bound`."""
        bytes_of = self._ciphers(salt, b"turnlog session")
        return _opened(bytes_of, sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], _encode([self._store, *bound]))

    def blob_name(self, sha256: str) -> str:
        """The name under which a blob is kept. Without the key, nobody can tell which content it has."""
        return hmac.digest(self._name_key, sha256.encode(), "sha256").hex()

    def seal_blob(self, data: bytes) -> tuple[str, bytes]:
        """The name under which a blob is kept, and its encrypted bytes."""
        sha256 = sha256_hex(data)
        name = self.blob_name(sha256)
        key = self._ciphers(bytes.fromhex(sha256), b"turnlog blob")
        ciphertext = key.encrypt(bytes(_NONCE_BYTES), data, _encode([self._store, "blob", name]))
        return name, SEALED_HEAD + bytes.fromhex(name) + bytes.fromhex(sha256_hex(ciphertext)) + ciphertext

    def open_blob(self, sha256: str, sealed: bytes) -> bytes:
        """The content with that hash. Raises CorruptRecord if it was changed, or moved from another place."""
        key = self._ciphers(bytes.fromhex(sha256), b"turnlog blob")
        ciphertext = sealed[BLOB_OVERHEAD - _TAG_BYTES :]
        return _opened(key, bytes(_NONCE_BYTES), ciphertext, _encode([self._store, "blob", self.blob_name(sha256)]))

    def _cipher(self, salt: bytes, use: bytes) -> Any:
        return cipher(derived(self._data_key, salt, use))


@contextmanager
def extra() -> Iterator[None]:
    """Wraps imports of the optional package. Raises InputError if it is not installed."""
    try:
        yield
    except ImportError as error:
        raise InputError(f"encryption needs the package cryptography: {install_extra('encryption')}") from error


def cipher(key: bytes) -> Any:
    """AES-256-GCM with this key. Raises InputError if the package is not installed."""
    with extra():
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # 30 ms of import, and an extra
    return AESGCM(key)


def derived(key: bytes, salt: bytes, use: bytes) -> bytes:
    """A key for one use, by HKDF-SHA-256 (RFC 5869)."""
    with extra():
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    return HKDF(SHA256(), KEY_BYTES, salt, use).derive(key)


def new_salt() -> bytes:
    """A random salt for a new session's key."""
    return os.urandom(SALT_BYTES)


def _encode(bound: Sequence[Any]) -> bytes:
    return json.dumps(bound, separators=(",", ":")).encode("ascii")  # accepts lone surrogates, too


def _opened(key: Any, nonce: bytes, sealed: bytes, bound: bytes) -> bytes:
    from cryptography.exceptions import InvalidTag

    try:
        data: bytes = key.decrypt(nonce, sealed, bound)
    except (InvalidTag, ValueError) as error:
        raise CorruptRecord("it cannot be decrypted: it was changed, or moved here from another place") from error
    return data
