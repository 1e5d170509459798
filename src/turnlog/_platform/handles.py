"""Opening files without buffers, on every system."""

from __future__ import annotations

import os
from pathlib import Path

_BINARY = getattr(os, "O_BINARY", 0)  # without it, Windows changes line ends
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)  # Windows: links are followed

CAN_REPLACE_OPEN = os.name != "nt"
"""Whether a file that is open can be replaced or removed; whoever has it open goes on reading what it was."""


def open_handle(path: Path, flags: int, *, follow: bool = True) -> int:
    """A handle of the file at `path`, which programs started from here do not inherit. A new file can only be read by
    its owner. Unless `follow`, a link is an error, on systems that can tell. Raises OSError."""
    return os.open(path, flags | _BINARY | (0 if follow else _NO_LINKS), 0o600)
