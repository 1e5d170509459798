"""turnlog's own export in JSON lines: what `turnlog.export` wrote, read back as an equal session.

Records keep their bytes, so that kinds and fields of a newer turnlog survive the way.
"""

from __future__ import annotations

import base64
import binascii
import json
from pathlib import Path
from typing import Any

from ..codec import decode_record
from ..content import sha256_hex
from ..errors import CorruptRecord, ImportFailed
from ..log import Draft
from ..records import Note
from .protocol import Damage, Imported, Origin, contents, origin_name, session_id_of

__all__ = ["IMPORTER", "TurnlogExport"]

# How the header and the lines with media begin, as `turnlog.export` writes them.
_HEADER_START = b'{"turnlog_export":'
_BLOB_START = b'{"blob":'


class TurnlogExport:
    """Reads turnlog's own export. A damaged line leaves a note in its place, so that the numbers by
    which records name each other stay right."""

    name = "turnlog"

    def sniff(self, head: bytes, path: Path | None) -> int:
        """See `Importer.sniff`."""
        return 100 if head.startswith(_HEADER_START) else 0

    def read(self, origin: Origin) -> list[Imported]:
        """See `Importer.read`."""
        file = origin_name(origin)
        first, *rest = contents(origin).split(b"\n")
        session = _session(first, file)
        warnings: list[Damage] = []
        drafts: list[Draft] = []
        blobs: dict[str, bytes] = {}
        for number, line in enumerate(rest, 2):
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
                drafts=tuple(drafts),
                blobs=blobs,
                warnings=tuple(warnings),
                files=(file,) if isinstance(origin, Path) else (),
            )
        ]


def _session(line: bytes, file: str) -> dict[str, Any]:
    try:
        session = json.loads(line)["session"]
        if isinstance(session, dict) and "id" in session:
            return session
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise ImportFailed(f"{file}: its first line is no header of a turnlog export; export the session again")


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
    except CorruptRecord as error:
        warnings.append(Damage(damage.file, damage.line, f"record {n} kept as a note: {error}"))
        return Draft(Note("damaged", "a record that could not be read", line.decode("utf-8", "replace")))
    if record.n != n:
        warnings.append(Damage(damage.file, damage.line, f"record {record.n} became record {n}: others are missing"))
    return Draft(record.body, record.time, record.raw)


IMPORTER = TurnlogExport()
