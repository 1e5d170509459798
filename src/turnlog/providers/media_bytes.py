"""Media bytes on the wire: base64, and texts that no encoder writes.

Bytes are kept once by their hash. A base64 text that encoding the bytes does not give again is kept beside them, as
bytes of its own, and named in a form: the provider gets it back as it was.
"""

from __future__ import annotations

import base64
import binascii

from ..log.messages import sha256_hex
from .protocol import BlobReader

_URLSAFE = str.maketrans("-_", "+/")


def decode_base64(text: str) -> bytes | None:
    """The bytes of a base64 text; line breaks, the URL alphabet and missing padding are forgiven. None if it is no
    base64."""
    plain = text
    for _ in range(2):
        try:
            return base64.b64decode(plain, validate=True)
        except (binascii.Error, ValueError):
            plain = "".join(text.split()).translate(_URLSAFE).rstrip("=")
            plain += "=" * (-len(plain) % 4)
    return None


def encode_base64(data: bytes) -> str:
    """Bytes as base64, with padding."""
    return base64.b64encode(data).decode("ascii")


def keep(data: bytes, blobs: dict[str, bytes]) -> str:
    """The hash under which bytes were put into `blobs`."""
    digest = sha256_hex(data)
    blobs[digest] = data
    return digest


def keep_text(text: str, blobs: dict[str, bytes]) -> str:
    """The hash under which a text was put into `blobs`; `kept_text` reads it back."""
    return keep(text.encode("utf-8", "surrogatepass"), blobs)


def kept_text(digest: str, blob: BlobReader) -> str:
    """A text that was kept as bytes. Raises BlobMissing."""
    return blob(digest).decode("utf-8", "surrogatepass")
