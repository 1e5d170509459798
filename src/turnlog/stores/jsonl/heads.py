"""Heads: where a log of a JSONL store ended after the last append. One line of fixed length in a separate file."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path

from ..._platform.handles import open_handle
from ..folders import refusals
from .lines import Tail

_HEAD = re.compile(rb"([0-9]{12}) ([0-9]{15}) ([0-9]{12}) ([0-9a-f]{64}) ([!-~]{1,40} *) ([0-9a-f]{16})\n")
_TIME = re.compile("[!-~]{1,40}")


def read_head(path: Path) -> Tail | None:
    """The end of the log according to its head; None if there is no head or it cannot be read. Raises StoreError."""
    with suppress(FileNotFoundError):
        with refusals(path):
            held = path.read_bytes()
        found = _HEAD.fullmatch(held)
        if found and _check(held[:-18]) == found[6]:
            n, size, messages, total, time, _ = (group.decode().rstrip() for group in found.groups())
            return Tail(int(size), int(n), int(messages), total, time)
    return None


def write_head(path: Path, tail: Tail, *, sync: bool) -> None:
    """Write where a log ends, with one write in place: all heads have the same length.

    If that fails, the head is removed: the end can also be found from the lines. An error here must not make a complete
    append look like a failed one, which would then be repeated.
    """
    time = tail.updated if _TIME.fullmatch(tail.updated) else ""
    held = f"{tail.records:012} {tail.size:015} {tail.messages:012} {tail.sum} {time or '-':<40}".encode()
    try:
        handle = open_handle(path, os.O_WRONLY | os.O_CREAT)
        try:
            os.write(handle, held + b" " + _check(held) + b"\n")
            if sync:
                os.fsync(handle)
        finally:
            os.close(handle)
    except OSError:
        with suppress(OSError):
            path.unlink()


def _check(held: bytes) -> bytes:
    return hashlib.sha256(held).hexdigest()[:16].encode()
