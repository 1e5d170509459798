"""A session as JSON and as JSON lines; `turnlog import` reads both back.

The lines are a header, then every record in order with its bytes from the store. Media bytes, in base64, have a
separate line before the first record that names them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from .._platform.files import write_whole
from ..errors import BlobMissing, InputError, kind_given
from ..log.codec import encode_record
from ..log.records import Configuration, Record
from ..log.store import Problem, Store
from ..providers import PROVIDERS
from ..providers.protocol import Parsed
from ..redaction import as_kept
from ..requests.build import build
from ..requests.standalone import aimed
from ..requests.translate import plan
from ..stores import PastDamage, store_given
from ..stores.records import blob_names
from ..view.fold import as_left
from ..view.tool_calls import fate_of
from ..view.types import Edit, Loss
from .markdown import as_markdown
from .page import as_html

# -- a session as a request body for a provider: the whole conversation, in that provider's JSO ----


def as_body(provider: str, store: Store, session_id: str, problems: list[Problem]) -> Iterator[bytes]:
    """The whole conversation as the user left it, valid for `provider`: no budget applies, and compacted messages are
    included.

    Each edit and each loss is a problem with its record number. Raises SessionNotFound, CorruptRecord, UnknownProvider.
    """
    records = list(as_kept(store).read(store.info(session_id).id))
    bodies = (record.body for record in reversed(records))
    configuration = next((body for body in bodies if isinstance(body, Configuration)), Configuration())
    target = aimed(Parsed(messages=(), configuration=configuration), provider, "")
    prepared = build(plan(configuration, target), as_left(records), store.get_blob, fate_of(records))
    changes: list[Edit | Loss] = [*prepared.edits, *prepared.losses]
    for change in changes:
        problems.append(Problem(session_id, change.records[0] if change.records else 0, str(change)))
    yield json.dumps(prepared.body, ensure_ascii=True, indent=1).encode("ascii") + b"\n"


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


# -- the formats in which a session can be written, by name ----------------------------------------

_Format = Callable[[Store, str, list[Problem]], Iterator[bytes]]


def _past_damage(write: _Format, store: Store, session_id: str, problems: list[Problem]) -> Iterator[bytes]:
    """Write a session without its damaged records, each of which is a problem."""
    past = store if isinstance(store, PastDamage) else PastDamage(as_kept(store), problems.append)
    return write(past, session_id, problems)


_FORMATS: dict[str, _Format] = {
    "html": as_html,
    "markdown": as_markdown,
    "json": as_json,
    "jsonl": as_jsonl,
    **{name: partial(as_body, name) for name in PROVIDERS},
}
FORMATS: dict[str, _Format] = {name: partial(_past_damage, write) for name, write in _FORMATS.items()}
"""Each function takes a store, a session id and a list to which it adds what it leaves out, and yields chunks of
UTF-8."""


def save(store: Store, session_id: str, form: str, path: str | Path) -> list[Problem]:
    """Write a session to a file, in one of `FORMATS`; returns what was left out or changed.

    Only the user can read the file (mode 0600), and it is written completely or not at all. Raises InputError for an
    unknown format and for a path that is not a file, SessionNotFound, OSError.
    """
    if not isinstance(form, str) or form not in FORMATS:
        raise InputError(f"unknown format {form!r}; use one of {', '.join(FORMATS)}")
    store_given(store, opened=True)
    kind_given("path", path, (str, Path), "the path of a file (str or Path)")
    problems: list[Problem] = []
    write_whole(Path(path), FORMATS[form](store, session_id, problems))
    return problems
