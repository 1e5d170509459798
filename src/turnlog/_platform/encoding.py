"""Byte order marks, which programs on Windows write at the beginning of text."""

from __future__ import annotations

import codecs

_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def plain_utf8(data: bytes) -> bytes:
    """`data` as UTF-8 without a byte order mark; UTF-16 with a mark is converted."""
    if data.startswith(_WIDE):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data.removeprefix(codecs.BOM_UTF8)
