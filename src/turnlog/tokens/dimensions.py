"""Type, width and height of an image, read from its first bytes, and the number of pages of a PDF.

Sources: PNG (RFC 2083, IHDR), GIF89a, JPEG (ITU T.81, SOFn), WebP (RFC 9649). Nothing is decoded.
"""

from __future__ import annotations

import struct


def image_type(data: bytes) -> str:
    """The MIME type of an image by its first bytes, "" if they are of no known type."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return ""


def dimensions(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels, or None if `data` is not a PNG, JPEG, GIF or WebP image, or ends too early."""
    match image_type(data):
        case "image/png":
            return _sides(data, 16, ">II")
        case "image/gif":
            return _sides(data, 6, "<HH")
        case "image/jpeg":
            return _jpeg(data)
        case "image/webp":
            return _webp(data)
    return None


def _sides(data: bytes, at: int, layout: str) -> tuple[int, int] | None:
    if len(data) < at + struct.calcsize(layout):
        return None
    width, height = struct.unpack_from(layout, data, at)
    return (width, height) if width and height else None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    offset = 2
    while offset + 4 <= len(data):
        if data[offset] != 0xFF:
            return None
        marker = data[offset + 1]
        if marker == 0xFF:  # a fill byte
            offset += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:  # a marker without data
            offset += 2
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # a start of frame
            sides = _sides(data, offset + 5, ">HH")
            return sides and (sides[1], sides[0])
        elif marker in (0xD9, 0xDA):  # the end or the pixels, without a start of frame before them
            return None
        else:
            offset += 2 + max(2, int.from_bytes(data[offset + 2 : offset + 4], "big"))
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        sides = _sides(data, 26, "<HH")
        return sides and (sides[0] & 0x3FFF, sides[1] & 0x3FFF)
    if kind == b"VP8L" and len(data) >= 25:
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X" and len(data) >= 30:
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    return None


def pages(data: bytes) -> int:
    """The number of pages of a PDF, at least 1. Pages in compressed objects are not counted."""
    marks = data.count(b"/Type /Page") + data.count(b"/Type/Page")
    groups = data.count(b"/Type /Pages") + data.count(b"/Type/Pages")
    return max(1, marks - groups)
