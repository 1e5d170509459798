"""Appends to a log of a JSONL store, with one write of whole lines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import BinaryIO

from ...errors import StoreError
from ...log.records import Record
from ..folders import FREE_SOME, advice
from ..records import is_said
from .files import LogFolder
from .lines import Tail, digest, write_line


def write_records(folder: LogFolder, stem: str, file: BinaryIO, tail: Tail, records: Sequence[Record]) -> None:
    """Append records to a log in one write, all or none. The caller must hold the log's lock. Raises StoreError."""
    total, messages, lines = tail.sum, tail.messages, []
    for left, record in zip(range(len(records) - 1, -1, -1), records, strict=True):
        raw = record.raw or b""
        messages += is_said(record.body)
        total = digest(total, messages, left, raw)
        lines.append(write_line(total, messages, left, raw))
    data = b"".join(lines)
    try:
        done = os.write(file.fileno(), data)
        if done == len(data) and folder.sync:
            os.fsync(file.fileno())
    except OSError as error:
        os.ftruncate(file.fileno(), tail.size)
        raise StoreError(f"{folder.file(stem)}: {error.strerror}{advice(error)}") from error
    if done != len(data):
        os.ftruncate(file.fileno(), tail.size)
        raise StoreError(f"{folder.file(stem)}: the disk is full{FREE_SOME}")
    updated = max(tail.updated, records[-1].time)  # a clock may be set back
    end = Tail(tail.size + done, records[-1].n, messages, total, updated)
    folder.write_head(stem, end)
