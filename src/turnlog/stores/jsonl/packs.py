"""Packed logs of a files store: `ID.jsonl.zst` beside an `ID.jsonl` that is empty.

While there is the one, the other does not count: so a crash at any moment leaves one whole log. Both are put in place
by a rename, and who reads goes on reading the file that it opened. The log file itself stays where it is, because
it is what is locked. `zstdcat` and `zstdgrep` read a packed log as well.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any, BinaryIO, cast

from ..folders import write_whole
from ..zstd import compressed, decompressed, size_of_frame

PACKED = "jsonl.zst"
"""What the name of a packed log ends in, after the stem."""

_HEAD_BYTES = 18  # of a frame, at most (RFC 8878, 3.1.1.1)


def packed_path(log: Path) -> Path:
    """Where a log stands while it is packed."""
    return log.with_name(log.name + ".zst")


class PackedLog(io.RawIOBase):
    """A packed log as the file that it was, for reading. It is not unpacked before somebody reads."""

    def __init__(self, handle: int) -> None:
        super().__init__()
        self._handle = handle
        self._lines: io.BytesIO | None = None

    @property
    def size(self) -> int:
        """How many bytes the log has. Raises CorruptRecord."""
        os.lseek(self._handle, 0, os.SEEK_SET)
        return size_of_frame(os.read(self._handle, _HEAD_BYTES))

    def fileno(self) -> int:
        """The open file."""
        return self._handle

    def seekable(self) -> bool:
        """It is."""
        return True

    def readable(self) -> bool:
        """It is."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """As of any file. Raises CorruptRecord."""
        return self._unpacked().seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        """As of any file. Raises CorruptRecord."""
        return self._unpacked().readinto(buffer)

    def close(self) -> None:
        """Let go of the file."""
        if not self.closed:
            os.close(self._handle)
        super().close()

    def _unpacked(self) -> io.BytesIO:
        if self._lines is None:
            os.lseek(self._handle, 0, os.SEEK_SET)
            with open(os.dup(self._handle), "rb") as file:
                self._lines = io.BytesIO(decompressed(file.read()))
        return self._lines


def open_packed(log: Path) -> BinaryIO | None:
    """The packed log in the place of a log; None if it is not packed."""
    try:
        handle = os.open(packed_path(log), os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None
    return cast(BinaryIO, PackedLog(handle))


def size_of(file: BinaryIO) -> int:
    """How many bytes of lines a log has, packed or not. Raises CorruptRecord."""
    return file.size if isinstance(file, PackedLog) else os.fstat(file.fileno()).st_size


def beside(log: Path, file: BinaryIO) -> bytes:
    """What stands in a log though its packed one, `file`, counts alone; nothing where that begins with the same, as
    after a crash, or where the log is not packed. Raises CorruptRecord."""
    if not isinstance(file, PackedLog) or not (held := log.read_bytes()):
        return b""
    file.seek(0)
    return b"" if file.read(len(held)) == held else held


def pack_log(log: Path, lines: bytes) -> int:
    """Put these lines, all that the log has, into a packed log, and empty the log. How many bytes that takes."""
    frame = compressed(lines)
    write_whole(packed_path(log), frame)
    write_whole(log, b"")
    return len(frame)


def thaw_log(log: Path, packed: BinaryIO) -> None:
    """Put the lines of a packed log back into the log."""
    packed.seek(0)
    write_whole(log, packed.read())
    packed_path(log).unlink(missing_ok=True)
