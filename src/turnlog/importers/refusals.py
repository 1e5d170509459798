"""Recognise files that users mistake for transcripts and that no importer reads."""

from __future__ import annotations

import re
import zlib

from .._platform.lazy import lazy_pattern

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x28\xb5\x2f\xfd", "data compressed with Zstandard; unpack it first (zstd -d) and give the file that was in it"),
    (b"SQLite format 3\0", "a SQLite database; export its sessions with the program that wrote it"),
    (b"\x89PNG\r\n\x1a\n", "an image (PNG)"),
    (b"\xff\xd8\xff", "an image (JPEG)"),
    (b"GIF8", "an image (GIF)"),
    (b"%PDF-", "a PDF document"),
)
_GZIP = b"\x1f\x8b"
_ZIP = b"PK\x03\x04"
_INSPECT = lazy_pattern(rb"_journal/|samples/[^\0]{1,200}_epoch_\d+\.json|summaries\.json")
_AIDER = lazy_pattern(
    rb"^# aider chat started at |^#### .*\n(?:#### .*\n)*(?:\n|> )|^> (?:Aider|Tokens:|Applied edit to )", re.M
)


_COMPRESSED = "data compressed with gzip; unpack it first (gunzip) and give the file that was in it"


def refusal(head: bytes) -> str:
    """What a file that begins with `head` is, and the reason why it is not read; "" if it is not recognised."""
    for magic, reason in _MAGIC:
        if head.startswith(magic):
            return reason
    if head.startswith(_GZIP):
        inside = refusal(_unpacked(head))
        return f"compressed with gzip, and inside it is {inside}" if inside else _COMPRESSED
    if head[8:12] == b"WEBP" and head.startswith(b"RIFF"):
        return "an image (WebP)"
    if head.startswith(_ZIP):
        if _INSPECT.search(head):
            return (
                "an evaluation log of Inspect AI (.eval, a zip of many samples' JSON); turnlog reads no evaluations: "
                "take a sample's messages out of `inspect log dump FILE` and give them as a JSON list"
            )
        return "a zip archive; unpack it and give the transcripts that were in it"
    if head.lstrip()[:1] not in (b"{", b"[") and _AIDER.search(head):
        return (
            "an aider chat history (Markdown), which does not say for sure where a message ends nor who wrote it; "
            "turnlog does not guess"
        )
    return ""


def _unpacked(head: bytes) -> bytes:
    """The beginning of the unpacked data of a gzip file, as far as it can be read; empty for gzip inside gzip."""
    try:
        inside = zlib.decompressobj(wbits=31).decompress(head, _LOOK)
    except zlib.error:
        return b""
    return b"" if inside.startswith(_GZIP) else inside


_LOOK = 1 << 16
"""At most this many bytes of a compressed file are unpacked to recognise its contents."""
