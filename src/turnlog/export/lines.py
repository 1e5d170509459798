"""A session as JSON and as JSON lines; `turnlog import` reads both back.

The lines are a header, then every record in order with its bytes from the store. Media bytes, in base64, have a
separate line before the first record that names them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import msgspec

from ..errors import BlobMissing
from ..log.codec import encode_record
from ..log.records import Record
from ..log.store import Problem, Store
from ..redaction.store import as_kept
from ..stores.records import blob_names

# The first bytes of the header and of the lines with media; `turnlog.importers.turnlog_export` recognises them by
# these.
_HEADER_START = b'{"turnlog_export":'
_BLOB_START = b'{"blob":'

_VERSION = 1


def record_json(record: Record) -> bytes:
    """The bytes of a record on one line. In JSON, line ends occur only between tokens."""
    return encode_record(record).replace(b"\n", b" ").replace(b"\r", b" ")


def as_json(store: Store, session_id: str, problems: list[Problem]) -> Iterator[bytes]:
    """One JSON object: `session` (its listing), `records`, and `blobs` (the bytes of media and files in base64, by
    hash).

    Raises SessionNotFound, CorruptRecord. Media that cannot be read are left out, and each is a problem.
    """
    store = as_kept(store)
    info = store.info(session_id)
    yield _HEADER_START + b'%d,"session":%b,\n"records":[' % (_VERSION, _plain(info))
    named: dict[str, int] = {}
    between = b"\n"
    for record in store.read(session_id, last=info.records):
        named = dict.fromkeys(sorted(blob_names(record)), record.n) | named
        yield between + record_json(record)
        between = b",\n"
    yield b'\n],\n"blobs":{'
    between = b"\n"
    for name, n in named.items():
        if (data := _blob(store, session_id, name, n, problems)) is not None:
            yield between + b'"%b":"%b"' % (name.encode(), data)
            between = b",\n"
    yield b"\n}}\n"


def as_jsonl(store: Store, session_id: str, problems: list[Problem]) -> Iterator[bytes]:
    """turnlog's own export format, line by line, with everything that the log has of the session.

    Raises SessionNotFound, CorruptRecord. Media that cannot be read are left out, and each is a problem.
    """
    store = as_kept(store)
    info = store.info(session_id)
    yield _HEADER_START + b'%d,"session":%b}\n' % (_VERSION, _plain(info))
    sent: set[str] = set()
    for record in store.read(session_id, last=info.records):
        for name in sorted(blob_names(record) - sent):
            sent.add(name)
            if (data := _blob(store, session_id, name, record.n, problems)) is not None:
                yield _BLOB_START + b'"%b","base64":"%b"}\n' % (name.encode(), data)
        yield record_json(record) + b"\n"


def _blob(store: Store, session_id: str, name: str, n: int, problems: list[Problem]) -> bytes | None:
    """The bytes of a blob of record `n`, in base64; None, with a problem added, if they cannot be read."""
    try:
        return base64.b64encode(store.get_blob(name))
    except BlobMissing as error:
        problems.append(Problem(session_id, n, f"left out of the export: {error}"))
        return None


def _plain(value: object) -> bytes:
    """A struct as ASCII JSON; titles may contain any characters."""
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode("ascii")
