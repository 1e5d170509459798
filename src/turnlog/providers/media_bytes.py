"""Media bytes on the wire: base64, and blobs by hash.

If the bytes do not encode to the same base64 text, the text is stored as a separate blob, and its hash in the form, so
that the provider gets the same text back.
"""

from __future__ import annotations

import base64
import binascii

from ..log.messages import sha256_hex
from .protocol import BlobReader

_URLSAFE = str.maketrans("-_", "+/")


def decode_base64(text: str) -> bytes | None:
    """The bytes of a base64 text, or None if it is not base64. Line breaks, the URL alphabet and missing padding are
    accepted."""
    plain = text
    for _ in range(2):
        try:
            return base64.b64decode(plain, validate=True)
        except (binascii.Error, ValueError):
            plain = "".join(text.split()).translate(_URLSAFE).rstrip("=")
            plain += "=" * (-len(plain) % 4)
    return None


def is_data_url(text: str) -> bool:
    """Whether a text is a data URL; its scheme may be in capitals (RFC 3986, 3.1)."""
    return text[:5].lower() == "data:"


def encode_base64(data: bytes) -> str:
    """Bytes as base64, with padding."""
    return base64.b64encode(data).decode("ascii")


def keep(data: bytes, blobs: dict[str, bytes]) -> str:
    """Put bytes into `blobs`; returns their hash."""
    digest = sha256_hex(data)
    blobs[digest] = data
    return digest


def keep_text(text: str, blobs: dict[str, bytes]) -> str:
    """Put a text into `blobs`; returns its hash. `kept_text` reads it back."""
    return keep(text.encode("utf-8", "surrogatepass"), blobs)


def kept_text(digest: str, blob: BlobReader) -> str:
    """The text that `keep_text` stored. Raises BlobMissing."""
    return blob(digest).decode("utf-8", "surrogatepass")
