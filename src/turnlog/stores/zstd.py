"""Compression with the package `zstandard`, an optional extra that only packing and reading packed sessions need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .._platform.texts import install_extra
from ..errors import CorruptRecord, InputError

FRAME_BYTES = 1 << 18
"""About how many bytes of records go into one frame. Larger frames save little more, and reading one record means
reading its whole frame."""

_LEVEL = 9
_MOST_BYTES = 1 << 31


def compressed(data: bytes) -> bytes:
    """`data` as one frame. Raises InputError if the package is not installed."""
    packed: bytes = library().ZstdCompressor(level=_LEVEL, write_checksum=True).compress(data)
    return packed


def decompressed(frame: bytes) -> bytes:
    """The data in a frame. Raises CorruptRecord, and InputError if the package is not installed."""
    zstandard = library()
    try:
        data: bytes = zstandard.ZstdDecompressor().decompress(frame, max_output_size=_MOST_BYTES)
    except zstandard.ZstdError as error:
        raise CorruptRecord(f"a compressed pack is damaged: {error}") from error
    return data


def size_of_frame(head: bytes) -> int:
    """The number of bytes in the frame that begins with `head`, after decompression. Raises CorruptRecord,
    InputError."""
    zstandard = library()
    try:
        size: int = zstandard.frame_content_size(head)
    except zstandard.ZstdError as error:
        raise CorruptRecord(f"a compressed pack is damaged: {error}") from error
    if size < 0:
        raise CorruptRecord("a compressed pack is damaged: its size is missing")
    return size


def groups(records: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    """Numbered records in groups of consecutive ones, each group for one frame."""
    group: list[tuple[int, bytes]] = []
    size = 0
    for n, raw in records:
        if group and n != group[-1][0] + 1:
            yield group
            group, size = [], 0
        group.append((n, raw))
        size += len(raw)
        if size >= FRAME_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def joined(raws: Sequence[bytes]) -> bytes:
    """Records joined to one byte string, each after its length."""
    return b"".join(b"%d:%b" % (len(raw), raw) for raw in raws)


def parted(data: bytes) -> list[bytes]:
    """The records in a byte string made by `joined`. Raises CorruptRecord."""
    raws, place = [], 0
    while place < len(data):
        colon = data.find(b":", place, place + 12)
        length = data[place:colon] if colon > 0 else b""
        if not length.isdigit() or colon + 1 + int(length) > len(data):
            raise CorruptRecord("a compressed pack is damaged: its content is cut off")
        place = colon + 1 + int(length)
        raws.append(data[colon + 1 : place])
    return raws


def library() -> Any:
    """The package `zstandard`. Raises InputError if it is not installed."""
    try:
        import zstandard
    except ImportError as error:
        raise InputError(f"packed sessions need the package zstandard: {install_extra('zstd')}") from error
    return zstandard
