"""turnlog's own export, as JSON lines or as JSON: what `turnlog.export` wrote, read back as an equal session.

Kinds and fields of a newer turnlog survive the way; out of JSON lines, records keep their very bytes.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..byte_marks import plain_utf8
from ..codec import decode_record
from ..content import sha256_hex
from ..errors import CorruptRecord, ImportFailed
from ..log import Draft
from ..records import Decision, Note
from ..view.effects import misfit
from .drafting import as_utc
from .protocol import Damage, Imported, Origin, contents, origin_name, session_id_of

__all__ = ["IMPORTER", "TurnlogExport"]

# How an export and the lines with media begin, as `turnlog.export` writes them; other programs may lay JSON out anew.
_HEADER_START = re.compile(rb'\s*\{\s*"turnlog_export"\s*:')
_BLOB_START = b'{"blob":'


class TurnlogExport:
    """Reads turnlog's own export. A damaged line leaves a note in its place, so that the numbers by
    which records name each other stay right."""

    name = "turnlog"

    def sniff(self, head: bytes, path: Path | None) -> int:
        """See `Importer.sniff`."""
        return 100 if _HEADER_START.match(head) else 0

    def read(self, origin: Origin) -> list[Imported]:
        """See `Importer.read`."""
        file = origin_name(origin)
        data = plain_utf8(contents(origin))
        lines, warnings = _lines(data, file), list[Damage]()
        session = _session(next(lines)[1], file)
        drafts: list[Draft] = []
        blobs: dict[str, bytes] = {}
        for number, line in lines:
            if line.startswith(_BLOB_START):
                _read_blob(line, blobs, Damage(file, number, "bytes of a medium left out: damaged"), warnings)
            elif line.strip():
                drafts.append(_draft(line, len(drafts) + 1, Damage(file, number, ""), warnings))
        promised = session.get("records")
        if isinstance(promised, int) and promised > len(drafts):
            warnings.append(Damage(file, 0, f"cut off: it holds {len(drafts)} of {promised} records"))
        return [
            Imported(
                session_id=session_id_of(str(session["id"])),
                format=self.name,
                title=str(session.get("title") or ""),
                parent=session_id_of(str(session["parent"])) if session.get("parent") else "",
                created=as_utc(session.get("created")),
                drafts=tuple(drafts),
                blobs=blobs,
                warnings=tuple(warnings),
                files=(file,) if isinstance(origin, Path) else (),
            )
        ]


def _lines(data: bytes, file: str) -> Iterator[tuple[int, bytes]]:
    """The lines of an export, each with its number in the file; those of one JSON object as if it had been lines, with
    number 0. Raises ImportFailed."""
    first, *rest = data.split(b"\n")
    header = _object(first)
    if header is not None and "records" not in header:
        yield from enumerate((first, *rest), start=1)
        return
    whole = _object(data) or {}
    records, blobs = whole.get("records"), whole.get("blobs", {})
    if not isinstance(records, list) or not isinstance(blobs, dict):
        raise ImportFailed(f"{file}: no whole turnlog export, it may be cut off; export the session again")
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
    raise ImportFailed(f"{file}: it does not say which session it is; export the session again")


def _read_blob(line: bytes, blobs: dict[str, bytes], damage: Damage, warnings: list[Damage]) -> None:
    try:
        entry = json.loads(line)
        data = base64.b64decode(entry["base64"], validate=True)
    except (ValueError, TypeError, KeyError, RecursionError, binascii.Error):
        warnings.append(damage)
        return
    if sha256_hex(data) == entry["blob"]:
        blobs[entry["blob"]] = data
    else:
        warnings.append(damage)


def _draft(line: bytes, n: int, damage: Damage, warnings: list[Damage]) -> Draft:
    try:
        record = decode_record(line)
        if isinstance(record.body, Decision) and (wrong := misfit(record.body)):
            raise CorruptRecord(f"its detail cannot be used: {wrong}", record=n)
    except CorruptRecord as error:
        warnings.append(Damage(damage.file, damage.line, f"record {n} kept as a note: {error}"))
        return Draft(Note("damaged", "a record that could not be read", line.decode("utf-8", "replace")))
    if record.n != n:
        warnings.append(Damage(damage.file, damage.line, f"record {record.n} became record {n}: others are missing"))
    return Draft(record.body, record.time, record.raw, record.redacted)


IMPORTER = TurnlogExport()
