"""Secrets in encoded texts: files in encodings other than UTF-8, and Base64 in `data:` URLs."""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable
from urllib.parse import quote_from_bytes, unquote_to_bytes

from .._platform.lazy import lazy_pattern

Replace = Callable[[str], tuple[str, Counter[str]]]
"""Replaces secrets in a text; returns the text and what was replaced."""

_BYTE_ORDERS = {
    b"\xff\xfe\0\0": "utf-32-le",
    b"\0\0\xfe\xff": "utf-32-be",
    b"\xff\xfe": "utf-16-le",
    b"\xfe\xff": "utf-16-be",
}
_SAMPLE = 4096
_CONTROL = bytes(code for code in range(32) if code not in b"\t\n\f\r\x1b")
_FEW = 0.01
"""The largest share of control characters in a text; compressed data has a tenth."""

DATA = "data:"
_DATA_URL = lazy_pattern(
    r"data:(?:[\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+=[^;,\s\"'<>]*)*"
    r"(?:;base64,(?P<base64>[A-Za-z0-9+/_-]+={0,2})|,(?P<escaped>[^\s\"'<>%]*%[^\s\"'<>]*))"
)
MEDIA_TYPES = ("media_type", "mimeType", "mime_type")
"""Keys of an object that has encoded bytes under one of `BYTES`."""
BYTES = ("data", "blob")


def in_bytes(data: bytes, replace: Replace) -> tuple[bytes, Counter[str]]:
    """The bytes of a file with the secrets in its text replaced; `data` itself if it is not text, or has no secrets.
    The text may be UTF-8, UTF-16, UTF-32, or an encoding of one byte for each character, such as Latin-1. Texts
    separated by NULs, as `env -0` writes them, count as one text."""
    for encoding, unit in _encodings(data):
        whole = len(data) - len(data) % unit  # a file may break off inside a character
        try:
            text = data[:whole].decode(encoding, "surrogatepass")
        except UnicodeDecodeError:
            continue
        clean, counts = replace(text)
        return (clean.encode(encoding, "surrogatepass") + data[whole:], counts) if counts else (data, counts)
    return data, Counter()


def in_base64(text: str, replace: Replace) -> tuple[str, Counter[str]]:
    """The Base64 of a file with the secrets in its text replaced; `text` itself if it is not Base64, or has no
    secrets."""
    letters = b"-_" if "-" in text or "_" in text else b"+/"
    unpadded = len(text) % 4 and not text.endswith("=")
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), letters, validate=True)
    except (binascii.Error, ValueError):
        return text, Counter()
    clean, counts = in_bytes(data, replace)
    if not counts:
        return text, counts
    encoded = base64.b64encode(clean, letters).decode("ascii")
    return encoded.rstrip("=") if unpadded else encoded, counts


def in_data_urls(text: str, replace: Replace) -> tuple[str, Counter[str]]:
    """`text` with the secrets in its `data:` URLs replaced; `text` itself if they have none."""
    total: Counter[str] = Counter()

    def replaced(url: re.Match[str]) -> str:
        if url["base64"] is not None:
            encoded, counts = in_base64(url["base64"], replace)
            total.update(counts)
            return url[0].removesuffix(url["base64"]) + encoded
        clean, counts = in_bytes(unquote_to_bytes(url["escaped"]), replace)
        total.update(counts)
        return url[0].removesuffix(url["escaped"]) + quote_from_bytes(clean) if counts else url[0]

    if DATA not in text:
        return text, total
    clean_text = _DATA_URL.sub(replaced, text)
    return (clean_text, total) if total else (text, total)


def _encodings(data: bytes) -> tuple[tuple[str, int], ...]:
    """The encodings that the bytes of a text file may have, the likely one first, each with the bytes of its units."""
    for order, encoding in _BYTE_ORDERS.items():
        if data.startswith(order):
            return ((encoding, 4 if "32" in encoding else 2),)
    if b"\0" in data:
        if (wide := _wide(data[:_SAMPLE])) is not None:
            return ((wide, 2),)
        return () if b"\0\0" in data else (("utf-8", 1),)
    few = len(data) - len(data.translate(None, _CONTROL)) <= len(data) * _FEW
    return (("utf-8", 1), ("latin-1", 1)) if few else (("utf-8", 1),)


def _wide(sample: bytes) -> str | None:
    """The encoding of UTF-16 text that has no byte order mark; None if these bytes are not UTF-16. In most UTF-16
    texts, every second byte is 0."""
    first, second = sample[::2].count(0), sample[1::2].count(0)
    most = len(sample) // 2 * 0.8
    if second >= most and not first:
        return "utf-16-le"
    return "utf-16-be" if first >= most and not second else None
