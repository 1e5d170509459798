"""Recognise images and PDFs that are damaged, which every provider refuses ("Could not process image").

Nothing is decoded. Only the header, the dimensions and the end marker are read, so damage in between is not found.
Anything that decoders tolerate, such as bytes after the end, does not count as damage. Sources: PNG (RFC 2083), JPEG
(ITU T.81), GIF89a, WebP (RFC 9649), PDF (ISO 32000).
"""

from __future__ import annotations

from ...tokens.dimensions import dimensions, image_type

_GIF_END = 1024
"""The number of last bytes of a GIF in which its end marker is sought: compressed data may contain the same bytes."""

_PDF_HEADER = 1024
"""The number of first bytes of a PDF in which its header must be (readers accept some bytes before it)."""


def damage_of(data: bytes, mime: str) -> str:
    """What is wrong with the bytes of an image or a PDF; "" if nothing is found or the type is unknown."""
    if mime == "application/pdf":
        if b"%PDF-" not in data[:_PDF_HEADER]:
            return "it is no PDF"
        return "" if b"%%EOF" in data else "its end is missing"
    actual_mime = image_type(data)
    if not actual_mime:
        return ""
    if dimensions(data) is None:
        return "it has no width and height"
    return "" if _is_whole(data, actual_mime) else "its end is missing"


def _is_whole(data: bytes, mime: str) -> bool:
    """Whether an image has its end marker."""
    if mime == "image/png":
        return b"IEND" in data
    if mime == "image/jpeg":
        return b"\xff\xd9" in data
    if mime == "image/gif":
        return b"\x00;" in data[-_GIF_END:]
    return len(data) >= 8 + int.from_bytes(data[4:8], "little")  # WebP says its length
