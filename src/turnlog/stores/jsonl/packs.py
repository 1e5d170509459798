"""Packed logs of a JSONL store: `ID.jsonl.zst`, next to an `ID.jsonl` that is empty.

While the packed log exists, the plain log is ignored; so after a crash at any moment there is one complete log. Both
files are put in place by a rename, and readers go on reading the file that they have opened. The plain log file stays,
because it is the file that processes lock. `zstdcat` and `zstdgrep` can read a packed log, too.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any, BinaryIO, cast

from ..._platform.files import open_handle
from ..folders import write_whole
from ..zstd import compressed, decompressed, size_of_frame

PACKED = "jsonl.zst"
"""The ending of the name of a packed log, after the stem."""

_HEAD_BYTES = 18  # of a frame, at most (RFC 8878, 3.1.1.1)


def packed_path(log: Path) -> Path:
    """The path of a packed log."""
    return log.with_name(log.name + ".zst")


class PackedLog(io.RawIOBase):
    """A packed log as a read-only file with the content of the plain log. It is decompressed when it is first read."""

    def __init__(self, handle: int) -> None:
        super().__init__()
        self._handle = handle
        self._lines: io.BytesIO | None = None

    @property
    def size(self) -> int:
        """The number of bytes of the log, decompressed. Raises CorruptRecord."""
        os.lseek(self._handle, 0, os.SEEK_SET)
        return size_of_frame(os.read(self._handle, _HEAD_BYTES))

    def fileno(self) -> int:
        """The descriptor of the packed file."""
        return self._handle

    def seekable(self) -> bool:
        """Always True."""
        return True

    def readable(self) -> bool:
        """Always True."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """As for any file. Raises CorruptRecord."""
        return self._unpacked().seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        """As for any file. Raises CorruptRecord."""
        return self._unpacked().readinto(buffer)

    def close(self) -> None:
        """Close the packed file."""
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
    """The packed log for the log at this path; None if it is not packed."""
    try:
        handle = open_handle(packed_path(log), os.O_RDONLY)
    except FileNotFoundError:
        return None
    return cast(BinaryIO, PackedLog(handle))


def size_of(file: BinaryIO) -> int:
    """The bytes of lines in a log, packed or not. Raises CorruptRecord."""
    return file.size if isinstance(file, PackedLog) else os.fstat(file.fileno()).st_size


def beside(log: Path, file: BinaryIO) -> bytes:
    """The content of the plain log, which is ignored because the packed log `file` exists. Empty if it is only the
    beginning of the packed log, as after a crash, or if the log is not packed. Raises CorruptRecord."""
    if not isinstance(file, PackedLog) or not (held := log.read_bytes()):
        return b""
    file.seek(0)
    return b"" if file.read(len(held)) == held else held


def pack_log(log: Path, lines: bytes) -> int:
    """Write these lines, all lines of the log, to a packed log, and empty the log. Returns the size of the packed
    log."""
    frame = compressed(lines)
    write_whole(packed_path(log), frame)
    write_whole(log, b"")
    return len(frame)


def thaw_log(log: Path, lines: bytes) -> None:
    """Write the lines of a packed log back to the plain log."""
    write_whole(log, lines)
    packed_path(log).unlink(missing_ok=True)
