"""Contents of messages and results: texts and media."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from ...errors import FormatError
from ...log.messages import Media, Opaque, Part, Text, media_kind
from ...tokens.dimensions import image_type
from ..gemini import base64_text, base64_words, file_media, file_uri, mime_of, plain_mime
from ..media_bytes import decode_base64, keep
from ..protocol import BlobReader
from ..schema.walk import fits
from ..spelling import string
from .form import FORMS, NAME
from .schema import MEDIA, OWN_CALLS, OWN_RESULTS, STEP, TOOL

# -- known -----------------------------------------------------------------------------------------
#
# Which steps and tool declarations belong to the Interactions API.

_ELSEWHERE = ("file_search", "function", "tool_search")
"""Types of tools that the Responses API has too."""
_STORES = "file_search_store_names"


def knows(part: Opaque) -> bool:
    """Whether an opaque part is a step that may be sent: of a tool that Google runs, or a thought with an image, with
    all required keys. Opaque contents may not be sent: they are contents that could not be read."""
    is_step = part.kind in OWN_CALLS or part.kind in OWN_RESULTS or part.kind == "thought"
    return is_step and not FORMS.says(part.form, "part") and fits(part.data, STEP)


def unread_media(part: Opaque) -> str:
    """The kind of media that a content is, by its type; "" for other contents and for steps."""
    return part.kind if part.kind in MEDIA and FORMS.says(part.form, "part") else ""


def declares(tool: Mapping[str, Any]) -> bool:
    """Whether a declaration is of a tool that Google runs, by its type. Functions do not count: the Responses API
    declares them in the same way."""
    kind = tool.get("type")
    return isinstance(kind, str) and kind in TOOL.shapes and (kind not in _ELSEWHERE or _STORES in tool)


# -- media -----------------------------------------------------------------------------------------
#
# Media as contents: base64 or a URI, with their MIME type beside it.

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
    """Whether a part is sent as a content rather than as a step."""
    if isinstance(part, Opaque):
        return part.provider == NAME and FORMS.says(part.form, "part")
    return isinstance(part, (Text, Media))


def is_plain(parts: Sequence[Part]) -> bool:
    """Whether the parts are a single text without a form of this provider, which can be sent as a string."""
    return len(parts) == 1 and isinstance(parts[0], Text) and FORMS.own(parts[0].form) is None
