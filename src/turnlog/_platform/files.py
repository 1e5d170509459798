"""Writing a file completely or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ..errors import InputError
from .stdlib import tempfile

# -- handles ---------------------------------------------------------------------------------------
#
# Opening files without buffers, on every system.

_BINARY = getattr(os, "O_BINARY", 0)  # without it, Windows changes line ends
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)  # Windows: links are followed

CAN_REPLACE_OPEN = os.name != "nt"
"""Whether a file that is open can be replaced or removed; whoever has it open goes on reading what it was."""


def open_handle(path: Path, flags: int, *, follow: bool = True) -> int:
    """A handle of the file at `path`, which programs started from here do not inherit. A new file can only be read by
    its owner. Unless `follow`, a link is an error, on systems that can tell. Raises OSError."""
    return os.open(path, flags | _BINARY | (0 if follow else _NO_LINKS), 0o600)


def write_whole(place: Path, pieces: Iterable[bytes]) -> None:
    """Write a file that only the user can read (mode 0600). If anything fails, the file stays as it was. Raises
    InputError for a path that is not a file, and OSError."""
    _check_file(place)
    try:
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    except OSError as error:
        error.filename = str(place)  # not a name that nobody has heard of
        raise
    try:
        with open(handle, "wb") as file:
            file.writelines(pieces)
        os.replace(name, place)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(place)  # the error of a full disk has no file name; this shows which disk is full
        raise


def _check_file(place: Path) -> None:
    """Raises InputError if the path is something other than a file (a device, a pipe or a link), which would be
    replaced."""
    try:
        os.fsencode(place)
    except UnicodeEncodeError:
        raise InputError(f"{str(place)!r} has characters that file names cannot have") from None
    with suppress(FileNotFoundError, NotADirectoryError):
        mode = place.lstat().st_mode
        if stat.S_ISLNK(mode):
            raise InputError(f"{place} is a link, which would be replaced; name the file that it leads to")
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "a device or a pipe"
            raise InputError(f"{place} is {kind}; name a file, or send standard output there")
