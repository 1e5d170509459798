"""Incomplete appends that were moved out of a log of a JSONL store: one JSON object per line, in a file that only
`verify` reads."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..._platform.files import open_handle
from ...errors import StoreError
from ...log.store import Problem, utc_now
from ..folders import FREE_SOME
from .lines import missing


def add_torn(path: Path, held: bytes, *, records: int | None, acknowledged: int | None) -> None:
    """Save these bytes. `records` is the number of the last record before them, `acknowledged` the number of the last
    record that was ever written completely; None if unknown. Raises StoreError."""
    note = {
        "time": utc_now(),
        "records": records,
        "acknowledged": acknowledged,
        "base64": base64.b64encode(held).decode(),
    }
    handle = open_handle(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        line = json.dumps(note).encode() + b"\n"
        if os.write(handle, line) != len(line):
            raise StoreError(f"{path}: the disk is full{FREE_SOME}")
        os.fsync(handle)
    finally:
        os.close(handle)


def lost_before(path: Path, session: str) -> Iterator[Problem]:
    """A problem for each time that completely written records were lost: moved into this file together with an
    incomplete append, or found beside a packed log. An incomplete append alone is no problem, as nobody was told that
    it was written."""
    with suppress(FileNotFoundError):
        for held in path.read_bytes().splitlines():
            try:
                note = json.loads(held)
                records, written = note["records"], note["acknowledged"]
            except (ValueError, KeyError, TypeError):
                yield Problem(session, 0, f"{path} cannot be read")
                continue
            if isinstance(records, int) and isinstance(written, int) and written > records:
                yield Problem(session, records + 1, f"{missing(records + 1, written)}; {_LEFT.format(path)}")
            elif records is None:
                what = "records that an older turnlog appended to the packed session are not in its log"
                yield Problem(session, 0, f"{what}; {_LEFT.format(path)}")


_LEFT = "what was left of them is in {}, which may be deleted once it has been looked at"
