"""turnlog's own export, as JSON lines or as JSON, read back as an equal session.

Kinds and fields of a newer turnlog are preserved; records from JSON lines keep their bytes. A damaged or missing record
is replaced by a note, so that references to record numbers stay right.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from .._platform.lazy import lazy_pattern
from .._platform.texts import plain_utf8
from ..errors import CorruptRecord, ImportFailed, SessionIdError
from ..log.codec import decode_record
from ..log.messages import sha256_hex
from ..log.records import Decision, Note
from ..log.store import Draft, check_session_id
from ..stores.records import blob_names
from ..view.decisions import misfit
from .drafting import as_utc
from .protocol import Damage, Imported, Origin, contents, origin_name, session_id_of

# The first bytes of an export, and of its lines with media, as `turnlog.export` writes them; other programs may format
# the JSON differently.
_HEADER_START = lazy_pattern(rb'\s*\{\s*"turnlog_export"\s*:')
_BLOB_START = b'{"blob":'

# The first bytes of a JSON export that another program wrote with its keys in alphabetical order.
_BLOBS_FIRST = lazy_pattern(rb'\s*\{\s*"blobs"\s*:\s*\{\s*(\}|"[0-9a-f]{64}"\s*:)')


def sniff(head: bytes, path: Path | None) -> int:
    """Recognised by its header."""
    return 100 if _HEADER_START.match(head) else 60 if _BLOBS_FIRST.match(head) else 0


def read(origin: Origin) -> list[Imported]:
    """Every session of the export."""
    file = origin_name(origin)
    files = (file,) if isinstance(origin, Path) else ()
    first, *others = _exports(plain_utf8(contents(origin)), file)
    sessions = [_Export(first, file).read(files)]
    for lines in others:
        try:
            sessions.append(_Export(lines, file).read(files))
        except ImportFailed as error:
            warnings = (*sessions[0].warnings, Damage(file, lines[0][0], f"a session was left out: {error}"))
            sessions[0] = replace(sessions[0], warnings=warnings)
    return sessions


class _Export:
    """The lines of one session, and what has been read from them."""

    def __init__(self, lines: list[tuple[int, bytes]], file: str) -> None:
        (_, header), *self._rest = lines
        self._file = file
        self._session = _session(header, file)
        self._drafts: list[Draft] = []
        self._blobs: dict[str, bytes] = {}
        self._needed: dict[str, tuple[int, int]] = {}  # for each blob, the first line and record that name it
        self._damaged: set[str] = set()
        self._warnings: list[Damage] = []

    def read(self, files: tuple[str, ...]) -> Imported:
        """The session of these lines."""
        for number, line in self._rest:
            if line.startswith(_BLOB_START):
                self._blob(number, line)
            elif line.strip():
                self._record(number, line)
        for name, (number, n) in self._needed.items():
            if name not in self._blobs and name not in self._damaged:
                self._warn(number, f"record {n} refers to media that are not in the file: {name}")
        if self._announced > len(self._drafts):
            self._warn(0, f"cut off: the file contains {len(self._drafts)} of {self._announced} records")
        session = self._session
        return Imported(
            session_id=_id_of(str(session["id"])),
            format="turnlog",
            title=str(session.get("title") or ""),
            parent=_id_of(str(session["parent"])) if session.get("parent") else "",
            created=as_utc(session.get("created")),
            drafts=tuple(self._drafts),
            blobs=self._blobs,
            warnings=tuple(self._warnings),
            files=files,
        )

    @property
    def _announced(self) -> int:
        """The number of records that the header announces, 0 if it has no number."""
        announced = self._session.get("records")
        return announced if isinstance(announced, int) else 0

    def _warn(self, number: int, message: str) -> None:
        self._warnings.append(Damage(self._file, number, message))

    def _blob(self, number: int, line: bytes) -> None:
        name = ""
        try:
            entry = json.loads(line)
            name = entry["blob"]
            data = base64.b64decode(entry["base64"], validate=True)
        except (ValueError, TypeError, KeyError, RecursionError, binascii.Error):
            data = None
        if data is not None and sha256_hex(data) == name:
            self._blobs[name] = data
        else:
            self._damaged.add(str(name))
            self._warn(number, "media left out: the bytes are damaged")

    def _record(self, number: int, line: bytes) -> None:
        n = len(self._drafts) + 1
        try:
            record = decode_record(line)
            if isinstance(record.body, Decision) and (wrong := misfit(record.body)):
                raise CorruptRecord(f"the field `detail` of this decision is invalid: {wrong}", record=n)
        except CorruptRecord as error:
            self._warn(number, f"record {n} kept as a note: {error}")
            note = Note("damaged", "a record that could not be read", line.decode("utf-8", "replace"))
            self._drafts.append(Draft(note))
            return
        if n < record.n <= self._announced:
            self._warn(number, f"records {n} to {record.n - 1} are missing; each was replaced by a note")
            self._drafts += [Draft(Note("damaged", "a record that is missing"))] * (record.n - n)
        elif record.n != n:
            self._warn(number, f"record {record.n} became record {n}")
        self._drafts.append(Draft.of(record))
        for name in sorted(blob_names(record)):
            self._needed.setdefault(name, (number, len(self._drafts)))


def _id_of(name: str) -> str:
    """The id, changed only if no session can have it."""
    try:
        return check_session_id(name)
    except SessionIdError:
        return session_id_of(name)


def _exports(data: bytes, file: str) -> list[list[tuple[int, bytes]]]:
    """The lines of each export; a header begins a new export. Raises ImportFailed."""
    exports: list[list[tuple[int, bytes]]] = []
    for number, line in _lines(data, file):
        if not exports or _HEADER_START.match(line):
            exports.append([])
        exports[-1].append((number, line))
    return exports


def _lines(data: bytes, file: str) -> Iterator[tuple[int, bytes]]:
    """The lines of an export, each with its number in the file. An export that is one JSON object is converted into the
    same lines, all with number 0. Raises ImportFailed."""
    first, *rest = data.split(b"\n")
    header = _object(first)
    if header is not None and "records" not in header:
        yield from enumerate((first, *rest), start=1)
        return
    whole = _object(data) or {}
    records, blobs = whole.get("records"), whole.get("blobs", {})
    if not isinstance(records, list) or not isinstance(blobs, dict) or "turnlog_export" not in whole:
        raise ImportFailed(f"{file}: the turnlog export is incomplete, it may be cut off; export the session again")
    yield 0, _line({"session": whole.get("session")})
    yield from ((0, _line({"blob": name, "base64": encoded})) for name, encoded in blobs.items())
    yield from ((0, _line(record)) for record in records)


def _line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _session(line: bytes, file: str) -> dict[str, Any]:
    try:
        session = json.loads(line)["session"]
        if isinstance(session, dict) and "id" in session:
            return session
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise ImportFailed(f"{file}: the header has no session id; export the session again")
