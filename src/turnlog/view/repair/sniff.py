"""Declare media as the type that their bytes have: providers compare an image's bytes with its declared type.

Tools mislabel screenshots, redaction leaves bytes that are not an image, and files get lost. The log keeps the type
that was recorded for an image; the view shows the true one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ...errors import StoreError
from ...log.messages import Media, Part, Text, ToolResult, media_parts, unchanged
from ...tokens.dimensions import image_type
from ..types import Edit, Loss, Shown, without_extras
from .arrange import with_parts
from .damaged_media import damage_of

_CHECKED = frozenset({"", "image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"})
_NO_IMAGE = "application/octet-stream"
_MOST_TEXT = 256 << 10
"""Bytes. The largest text file that is put into a message: about 80,000 tokens. A larger text might make every request
too large, while a file left out of a request is reported as a loss."""


def sniff(
    view: Sequence[Shown],
    blob: Callable[[str], bytes],
    edits: list[Edit],
    losses: list[Loss],
    *,
    text_documents: bool = True,
) -> list[Shown]:
    """The view with images under their true type, and placeholders for media whose bytes are missing or damaged.
    Without `text_documents`, plain-text files of users and tools are replaced by their text."""
    return [_sniffed(shown, blob, edits, losses, text_documents=text_documents) for shown in view]


def _sniffed(
    shown: Shown, blob: Callable[[str], bytes], edits: list[Edit], losses: list[Loss], *, text_documents: bool
) -> Shown:
    if next(media_parts(shown.message), None) is None:
        return shown

    def checked(part: Part) -> Part:
        if isinstance(part, Media) and part.sha256:
            true_part = _true_media(part, blob, shown, edits, losses)
            if text_documents or shown.message.role != "user" or not isinstance(true_part, Media):
                return true_part
            return _as_text(true_part, blob(part.sha256), shown, losses)
        if isinstance(part, ToolResult):
            inner = tuple(map(checked, part.parts))
            same = unchanged(inner, part.parts)
            return part if same else msgspec.structs.replace(part, parts=inner)
        return part

    return with_parts(shown, tuple(map(checked, shown.message.parts)))


def _as_text(media: Media, data: bytes, shown: Shown, losses: list[Loss]) -> Media | Text:
    """The text of a plain-text file; the file itself if it is of another type or too large."""
    if media.kind not in ("document", "file") or not media.mime.startswith("text/") or len(data) > _MOST_TEXT:
        return media
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return media
    if not text:
        return media
    label = media.name or media.mime
    bare = f"{media.kind} {label} shown as its text{without_extras(media.form)}"
    losses.append(Loss("media", bare, shown.records))
    return Text(f"[{media.kind} {label}]\n{text}")


def _true_media(
    media: Media, blob: Callable[[str], bytes], shown: Shown, edits: list[Edit], losses: list[Loss]
) -> Media | Text:
    try:
        data = blob(media.sha256)
    except StoreError as error:
        bare = f"{media.kind} shown as a placeholder{without_extras(media.form)}"
        losses.append(Loss("media", f"{bare}: {error}", shown.records))
        return Text(f"[{media.kind} left out ({media.name or media.mime or media.kind}): its bytes are missing]")
    if data and (damage := damage_of(data, media.mime)):
        bare = f"{media.kind} shown as a placeholder{without_extras(media.form)}"
        edits.append(Edit("media", f"{bare}: {damage}", shown.records, rule="Could not process image"))
        return Text(f"[{media.kind} left out ({media.name or media.mime or media.kind}): {damage}]")
    if not data or media.kind != "image" or media.mime not in _CHECKED:
        return media
    actual_mime = image_type(data) or _NO_IMAGE
    if actual_mime == media.mime:
        return media
    if actual_mime != _NO_IMAGE:
        losses.append(
            Loss("media_type", f"image declared as {media.mime or 'nothing'} sent as {actual_mime}", shown.records)
        )
    return msgspec.structs.replace(media, mime=actual_mime)
