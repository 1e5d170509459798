"""Media as contents: base64 or a URI, with their MIME type beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec.structs import replace

from ...log.messages import Media, media_kind
from ...tokens.dimensions import image_type
from ..gemini import base64_text, base64_words, file_media, file_uri, mime_of, plain_mime
from ..media_bytes import decode_base64, keep
from ..protocol import BlobReader
from ..reading import string
from .form import FORMS

_Kind = Literal["image", "document", "audio", "video", "file"]


def read_media(content: Mapping[str, Any], blobs: dict[str, bytes]) -> Media | None:
    """The media of a content whose type is in `MEDIA`; its bytes are put into `blobs`. None if it has neither base64
    nor a URI."""
    kind: _Kind = content["type"]
    mime = plain_mime(string(content, "mime_type"))
    if kind == "document" and mime and media_kind(mime) == "file":
        kind = "file"
    data, uri = content.get("data"), string(content, "uri")
    raw = decode_base64(data) if isinstance(data, str) else None
    words: list[str] = []
    if isinstance(data, str) and raw is not None:
        media = Media(kind, mime, keep(raw, blobs), len(raw))
        if not mime:  # optional
            media = replace(media, mime=(image_type(raw) if kind == "image" else "") or mime_of(media))
        words = base64_words(data, raw, blobs)
    elif uri and not uri.startswith("data:"):
        media = replace(file_media(uri, mime), kind=kind)
    else:
        return None
    return FORMS.formed(media, lambda media: media_content(media, blobs.__getitem__), content, *words)


def media_content(media: Media, blob: BlobReader) -> dict[str, Any]:
    """The default content of media. Raises BlobMissing."""
    content: dict[str, Any] = {"type": "document" if media.kind == "file" else media.kind}
    if media.sha256:
        content["data"] = base64_text(media, FORMS, blob)
    else:
        content["uri"] = file_uri(media.file_id) or media.url
    return {**content, "mime_type": mime_of(media)}
