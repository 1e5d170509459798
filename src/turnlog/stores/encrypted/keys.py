"""Keys of encrypted stores: where they come from, and the lock that contains a store's own key.

A store is encrypted with a random data key, created together with the store. The store's *lock* contains the data key,
encrypted with the user's key. So changing the user's key means writing another lock; records need not be encrypted
again.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..._platform.lazy import lazy_pattern
from ..._platform.msgspec_init import ready
from ...errors import CorruptRecord, InputError, NewerStore, StoreKeyError
from .vault import KEY_BYTES, SALT_BYTES, cipher, derived, extra

ASK = "ask"
"""The place of a key with which the command line asks for a passphrase; only the command line accepts it."""

KEY_PLACES = "`file:PATH`, `env:NAME`, `passphrase-file:PATH`, `passphrase-env:NAME`; on the command line `ask`"
"""The allowed places of a key, in words."""

LOCK_VERSION = 1
"""Version of the format of locks."""

_SCRYPT_COST = 1 << 17
_MAX_SCRYPT_COST = 1 << 21
_KINDS = ("file", "env", "passphrase-file", "passphrase-env")
_HEX_KEY = lazy_pattern(r"[0-9a-fA-F]{64}")


class Passphrase:
    """Words from which a key is derived with scrypt (RFC 7914), slowly on purpose: in about half a second and 128
    MB."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str) or not text:
            raise InputError("a passphrase must be a text that is not empty")
        self.text = text

    def __repr__(self) -> str:
        return "Passphrase(...)"


KeySource = bytes | str | Passphrase | Callable[[], "bytes | Passphrase"]
"""The key of a store, or where it is: 32 bytes; `"file:PATH"` or `"env:NAME"`, which contain the key (as 64 hex digits,
as base64, or a file of 32 bytes); `"passphrase-file:PATH"` or `"passphrase-env:NAME"`; a Passphrase; or a function that
returns the bytes or a Passphrase, for example from a keyring."""


class _Scrypt(Struct, frozen=True):
    salt: str
    n: int
    r: int
    p: int


@ready
class _Lock(Struct, frozen=True):
    v: int
    store: str
    cipher: str
    scrypt: _Scrypt | None
    wrapped: str


def is_key_place(text: str) -> bool:
    """Whether a text names the place of a key, rather than being a key."""
    kind, _, where = text.partition(":")
    return text == ASK or (kind in _KINDS and where != "")


def placed_key(text: str, folder: Path) -> str:
    """The place of a key, as a file in `folder` names it: relative paths start there, `~` is the home folder. Raises
    InputError if the user of `~user` does not exist."""
    kind, _, where = text.partition(":")
    try:
        return f"{kind}:{folder / Path(where).expanduser()}" if kind.endswith("file") else text
    except RuntimeError as error:
        raise InputError(f"key: {text!r} names the home folder of a user that does not exist") from error


def new_key() -> str:
    """A new random key as text, for a file or an environment variable."""
    return os.urandom(KEY_BYTES).hex()


def new_lock(source: KeySource, vault_key: bytes | None = None, store: bytes | None = None) -> bytes:
    """A lock that `source` opens, with a new data key or the given one. Raises InputError."""
    secret = _key_of(source)
    scrypt = _Scrypt(os.urandom(SALT_BYTES).hex(), _SCRYPT_COST, 8, 1) if isinstance(secret, Passphrase) else None
    name = os.urandom(SALT_BYTES) if store is None else store
    lock = _Lock(LOCK_VERSION, name.hex(), "AES-256-GCM", scrypt, "")
    nonce = os.urandom(12)
    inside = os.urandom(KEY_BYTES) if vault_key is None else vault_key
    wrapped = cipher(_wrapping_key(secret, lock)).encrypt(nonce, inside, msgspec.json.encode(lock))
    return msgspec.json.encode(replace(lock, wrapped=(nonce + wrapped).hex()))


def unlocked(lock: bytes, source: KeySource, place: object) -> tuple[bytes, bytes]:
    """The data key in a lock, and the store's name. Raises StoreKeyError, InputError, CorruptRecord, NewerStore."""
    try:
        lock_data = msgspec.json.decode(lock, type=_Lock)
        store, wrapped = bytes.fromhex(lock_data.store), bytes.fromhex(lock_data.wrapped)
    except (msgspec.MsgspecError, ValueError) as error:
        raise CorruptRecord(
            f"the encrypted key stored in {place} cannot be read: {error}; restore the store from a copy"
        ) from error
    if lock_data.v > LOCK_VERSION or lock_data.cipher != "AES-256-GCM":
        raise NewerStore(
            f"{place} was encrypted by a newer turnlog ({lock_data.cipher}, version {lock_data.v}); upgrade turnlog"
        )
    with extra():
        from cryptography.exceptions import InvalidTag

    key = _wrapping_key(_key_of(source), lock_data, place)
    try:
        inside: bytes = cipher(key).decrypt(
            wrapped[:12], wrapped[12:], msgspec.json.encode(replace(lock_data, wrapped=""))
        )
    except (InvalidTag, ValueError) as error:
        what = "passphrase" if lock_data.scrypt else "key"
        raise StoreKeyError(
            f"the {what} does not open {place}, because it is the wrong one; nothing was read or written"
        ) from (error)
    return inside, store


def _wrapping_key(secret: bytes | Passphrase, lock: _Lock, place: object = "the store") -> bytes:
    wanted = lock.scrypt
    if isinstance(secret, bytes) and wanted is not None:
        raise StoreKeyError(
            f"{place} was encrypted with a passphrase: give passphrase-file:PATH or passphrase-env:NAME, or in a "
            "program turnlog.stores.Passphrase(...)"
        )
    if isinstance(secret, Passphrase):
        if wanted is None:
            raise StoreKeyError(
                f"{place} was encrypted with a key, not with a passphrase: give file:PATH or env:NAME, or in a program "
                "the key as bytes"
            )
        if not 1 < wanted.n <= _MAX_SCRYPT_COST or wanted.r != 8 or wanted.p != 1:
            raise CorruptRecord(
                f"the key data of {place} is damaged: it names scrypt parameters that turnlog does not use "
                f"(n={wanted.n}); restore the store from a copy"
            )
        with extra():
            from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

        scrypt = Scrypt(bytes.fromhex(wanted.salt), KEY_BYTES, wanted.n, wanted.r, wanted.p)
        secret = scrypt.derive(secret.text.encode("utf-8", "surrogatepass"))
    return derived(secret, bytes.fromhex(lock.store), b"turnlog lock")


def _key_of(source: KeySource) -> bytes | Passphrase:
    if callable(source):
        source = source()
    if isinstance(source, Passphrase):
        return source
    if isinstance(source, str):
        return _key_at(source)
    if not isinstance(source, bytes) or len(source) != KEY_BYTES:
        length = f"{len(source)} bytes" if isinstance(source, bytes) else type(source).__name__
        raise InputError(
            f"key: a key must be {KEY_BYTES} bytes, not {length}; for a passphrase give turnlog.stores.Passphrase(...)"
        )
    return source


def _key_at(place: str) -> bytes | Passphrase:
    kind, _, where = place.partition(":")
    if place == ASK:
        raise InputError("key: 'ask' works only on the command line; in a program, give turnlog.stores.Passphrase(...)")
    if not is_key_place(place):
        raise InputError(
            "key: a string must name the place of the key: file:PATH, env:NAME, passphrase-file:PATH or "
            "passphrase-env:NAME; to pass the key itself, use bytes (the value given is not shown)"
        )
    if kind.endswith("file"):
        try:
            data = Path(where).expanduser().read_bytes()
        except (OSError, ValueError, RuntimeError) as error:  # a NUL in the name; an unknown home folder
            why = error.strerror if isinstance(error, OSError) else error
            raise InputError(f"key: the file {where!r} cannot be read: {why}") from error
    else:
        value = os.environ.get(where)
        if not value:
            raise InputError(f"key: the environment variable {where} is not set")
        data = os.fsencode(value)
    if kind.startswith("passphrase"):
        return Passphrase(data.decode("utf-8", "surrogateescape").rstrip("\r\n"))
    return _decoded(data, place)


def _decoded(data: bytes, place: str) -> bytes:
    """The 32 bytes of a key from a file or variable."""
    if len(data) == KEY_BYTES:
        return data
    text = data.decode("ascii", "replace").strip()
    if _HEX_KEY.fullmatch(text):
        return bytes.fromhex(text)
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise InputError(
            f"key: {place} does not contain a key: it must be 64 hex digits, or the base64 of {KEY_BYTES} bytes"
        )
    return key
