"""Find the format of a transcript by its content, and read it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from .._platform.texts import plain_utf8
from ..errors import ImportFailed, InputError
from ..log.origins import PROGRAM
from ..log.records import Body, Configuration, MessageRecord, Note
from .catalog import FORMATS, IMPORTERS
from .drafting import UNREADABLE, as_utc
from .protocol import MARKED, Imported, Importer, Origin, contents, origin_name
from .refusals import refusal
from .unread import is_hollow

_HEAD = 1 << 16
"""The number of bytes by which an importer recognises its format."""

_LOG = 1 << 24
"""In so many first bytes of a log the first JSON object is looked for."""


def detect(origin: str | Path | bytes) -> Importer:
    """The importer that gives this transcript the highest score.

    Raises ImportFailed, with a description of the file, if no importer recognises it.
    """
    source = _given(origin)
    head = plain_utf8(_head(source))
    path = source if isinstance(source, Path) else None
    best, importer = _surest(head, path)
    if not best and b"\0" not in head[:1024] and (after := _behind_text(source)):
        head = after
        best, importer = _surest(head, path)
    if best and importer.module:
        return importer
    name = origin_name(source)
    if best:
        advice = f" (nearest format: {importer.near or 'none'})"
        raise ImportFailed(f"{name}: it is {importer.title}, which turnlog does not read yet{advice}")
    raise ImportFailed(
        f"{name}: not a transcript that can be read: {_looks(head)}. Give the file that the agent wrote itself, or "
        f"export the session as one of the {len(IMPORTERS)} formats that `turnlog import --formats` lists"
    )


def _surest(head: bytes, path: Path | None) -> tuple[int, Importer]:
    """The format that gives a transcript the highest score, and this score. Where data recognises it, the modules of
    the others are not loaded."""
    best, surest = 0, FORMATS[0]
    for importer in sorted(FORMATS, key=lambda each: not each.is_data):
        if not importer.is_data and best >= MARKED:
            break
        if (score := importer.sniff(head, path)) > best:
            best, surest = score, importer
    return best, surest


def _behind_text(source: Origin) -> bytes:
    """The first bytes from the first JSON object on, where lines of text come before it, as in the log of a build; b""
    if there is none."""
    if isinstance(source, Path) and source.is_dir():
        return b""
    text = plain_utf8(contents(source)[:_LOG])
    start = text.find(b'{"')
    return text[start : start + _HEAD] if start > 0 else b""


def read_file(origin: str | Path | bytes) -> list[Imported]:
    """Every session of a transcript (a path, or its bytes), the main one first.

    Damage is in `warnings`. Raises ImportFailed if nothing of the transcript can be read, or if most of its entries
    are not understood.
    """
    return list(read_sessions(origin))


def read_sessions(origin: str | Path | bytes) -> Iterator[Imported]:
    """As `read_file`, one session after the other: those of a database are read while the ones before are used, so that
    a large one takes little memory. What is raised is raised when the sessions that can be read were given."""
    source = _given(origin)
    importer = detect(source)
    sessions = importer.read(source)
    failed: list[ImportFailed] = []
    for batch in [sessions] if isinstance(sessions, list) else ([session] for session in sessions):
        try:
            _check_understood(batch, importer, source)
        except ImportFailed as error:
            failed.append(error)
        else:
            yield from map(_dated, batch) if isinstance(source, Path) else batch
    if failed:
        others = f" ({len(failed) - 1} more sessions likewise)" if len(failed) > 1 else ""
        raise ImportFailed(f"{failed[0]}{others}")


def _check_understood(sessions: Iterable[Imported], importer: Importer, source: Origin) -> None:
    """Raise ImportFailed if most of the entries of these sessions are not understood."""
    lost = [damage for session in sessions for damage in session.warnings if damage.lost == "entry"]
    if not lost:
        return
    left_out = sum(damage.count for damage in lost)
    bodies = (draft.body for session in sessions for draft in session.drafts)
    understood = sum(1 for _ in islice(filter(_is_understood, bodies), left_out))
    if left_out <= understood:
        return
    first = lost[0]
    place = f"line {first.line}: {first.message}" if first.line else first.message
    raise ImportFailed(
        f"{origin_name(source)}: not imported: it resembles the format {importer.name}, but {left_out} of "
        f"{left_out + understood} entries are not understood, the first at {place}. Give the file that the agent "
        "wrote itself, or export the session in another format"
    )


def _dated(session: Imported) -> Imported:
    """The session; if its transcript has no times, with the time when its files were last written."""
    if any(draft.time for draft in session.drafts):
        return session
    moments = []
    for file in session.files:
        with suppress(OSError):
            moments.append(os.stat(file).st_mtime)
    return replace(session, written=as_utc(max(moments, default=None)))


def _is_understood(body: Body) -> bool:
    if isinstance(body, MessageRecord):
        return bool(body.message.parts) and not is_hollow(body.message)
    return not isinstance(body, Configuration) and not (isinstance(body, Note) and body.topic in (UNREADABLE, PROGRAM))


def _given(origin: str | Path | bytes) -> Origin:
    """A path of a file or folder, or bytes. Raises ImportFailed for a device, InputError for anything else."""
    if isinstance(origin, bytes):
        return origin
    try:
        wrong = not isinstance(origin, (str, Path)) or b"\0" in os.fsencode(origin)
    except UnicodeEncodeError:
        wrong = True
    if wrong:
        raise InputError(f"a transcript is a path (str or Path) or its bytes, not {origin!r}")
    path = Path(origin)
    if not (path.is_file() or path.is_dir()) and path.exists():  # it may have no end, and can be read only once
        raise ImportFailed(
            f"{path}: a device or a pipe, not a file; save what it gives, or pipe it to `turnlog import -`"
        )
    return path


def _head(source: Origin) -> bytes:
    if isinstance(source, bytes):
        return source[:_HEAD]
    if source.is_dir():
        return b""
    try:
        with source.open("rb") as file:
            return file.read(_HEAD)
    except OSError:
        return contents(source)[:_HEAD]


def _looks(head: bytes) -> str:
    """A description of an unknown file for the error text."""
    if not head.strip():
        return "it is empty, or a folder without a known transcript"
    if description := refusal(head):
        return f"it is {description}"
    if b"\0" in head[:1024]:
        return f"binary data beginning {head[:16].hex(' ')}"
    start = head.lstrip()[:60].decode("utf-8", "replace")
    kind = "JSON of another kind" if start[:1] in ("{", "[") else "text"
    return f"{kind} beginning {start!r}"
