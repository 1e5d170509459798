"""Incomplete appends that were moved out of a log of a JSONL store: one JSON object per line, in a file that turnlog
never reads."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

from ...errors import StoreError
from ...log.store import utc_now


def add_torn(path: Path, held: bytes, *, records: int | None, acknowledged: int | None) -> None:
    """Save these bytes. `records` is the number of the last record before them, `acknowledged` the number of the last
    record that was ever written completely; None if unknown. Raises StoreError."""
    note = {
        "time": utc_now(),
        "records": records,
        "acknowledged": acknowledged,
        "base64": base64.b64encode(held).decode(),
    }
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        line = json.dumps(note).encode() + b"\n"
        if os.write(handle, line) != len(line):
            raise StoreError(f"{path}: the disk is full")
        os.fsync(handle)
    finally:
        os.close(handle)
