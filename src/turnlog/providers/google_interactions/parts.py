"""Contents of messages and results: texts and media."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import FormatError
from ...log.messages import Media, Opaque, Part, Text
from ..protocol import BlobReader
from .form import FORMS, NAME
from .media import media_content, read_media
from .schema import MEDIA


def text_content(part: Text) -> dict[str, Any]:
    """The default content of a text."""
    return {"type": "text", "text": part.text}


def read_part(content: dict[str, Any], path: str, blobs: dict[str, bytes]) -> Text | Media | Opaque:
    """The part of a content; media bytes are put into `blobs`. A content that cannot be read becomes an opaque part.
    Raises FormatError if it has no type."""
    kind = content.get("type")
    if kind is None:
        raise FormatError("expected a content with a 'type'", path=path)
    if kind == "text" and isinstance(content.get("text"), str):
        return FORMS.formed(Text(content["text"]), text_content, content)
    media = read_media(content, blobs) if kind in MEDIA else None
    return Opaque(NAME, kind, content, FORMS.shaped("part")) if media is None else media


def read_parts(content: Any, path: str, blobs: dict[str, bytes]) -> tuple[Text | Media | Opaque, ...]:
    """The parts of a list of contents, of a string or of a single content. Raises FormatError."""
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, dict):
        return (read_part(content, path, blobs),)
    return tuple(read_part(item, f"{path}[{i}]", blobs) for i, item in enumerate(content))


def write_part(part: Part, blob: BlobReader) -> dict[str, Any] | None:
    """The content of a part; None if the part is not a content."""
    if isinstance(part, Text):
        return FORMS.spelled(text_content(part), part.form)
    if isinstance(part, Media):
        return FORMS.spelled(media_content(part, blob), part.form)
    return dict(part.data) if is_content(part) and isinstance(part, Opaque) else None


def is_content(part: Part) -> bool:
    """Whether a part is sent as a content, not as a step."""
    if isinstance(part, Opaque):
        return part.provider == NAME and FORMS.says(part.form, "part")
    return isinstance(part, (Text, Media))


def is_plain(parts: Sequence[Part]) -> bool:
    """Whether the parts are a single text without a form of this provider, which can be sent as a string."""
    return len(parts) == 1 and isinstance(parts[0], Text) and FORMS.own(parts[0].form) is None
