"""Images and files: data URLs, URLs and file ids on the wire, bytes by hash in the log."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

from msgspec.structs import replace

from ..._platform.lazy import lazy_pattern
from ...log.messages import Media, media_kind
from ..media_bytes import encode_base64, keep, keep_text, kept_text
from ..protocol import BlobReader
from .form import FORMS, NAME

MEDIA_TYPES = frozenset({"input_image", "input_file", "computer_screenshot"})

DOCUMENT_ENDINGS = {
    "application/pdf": "pdf",
    "text/plain": "txt",
    "text/markdown": "md",
    "text/csv": "csv",
    "text/html": "html",
    "application/json": "json",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
}
"""File types that models read as documents (OpenAI's guide to file inputs), with their extensions."""

_DATA_URL = lazy_pattern(r"data:([^,]*),", re.IGNORECASE)

_Kind = Literal["image", "document", "audio", "video", "file"]


def read_media(part: Mapping[str, Any], blobs: dict[str, bytes]) -> Media | None:
    """The media of a part whose type is in `MEDIA_TYPES`; its bytes go to `blobs`. None if it cannot be read."""
    is_file = part["type"] == "input_file"
    key, url_key = ("file_data", "file_url") if is_file else ("image_url", "image_url")
    name = part["filename"] if is_file and isinstance(part.get("filename"), str) else ""
    words = ["screenshot" if part["type"] == "computer_screenshot" else ""]
    source = part.get(key)
    if isinstance(source, str) and (is_file or _DATA_URL.match(source)):
        read = _read_data(source, name, is_file, blobs)
        if read is None:
            return None
        media, words = read[0], [*words, *read[1]]
    elif isinstance(part.get(url_key), str):
        media = Media(_kind("", is_file), url=part[url_key], name=name)
    elif isinstance(part.get("file_id"), str):
        media = Media(_kind("", is_file), file_id=part["file_id"], provider=NAME, name=name)
    else:
        return None
    if is_file and media.kind in ("image", "audio", "video"):
        words = ["file", *words]
    if name == _derived_name(media):
        media = replace(media, name="")
    return FORMS.formed(media, lambda media: write_media(media, blobs.__getitem__), part, *words)


def write_media(media: Media, blob: BlobReader) -> dict[str, Any] | None:
    """The default rendering of media, given the words of its form; None for audio, video and another provider's files,
    which no input item accepts."""
    if media.kind in ("audio", "video") and not FORMS.says(media.form, "file"):
        return None
    if media.file_id and media.provider != NAME:
        return None
    is_file = media.kind != "image" or FORMS.says(media.form, "file")
    part_type = "input_file" if is_file else "input_image"
    result: dict[str, Any] = {"type": "computer_screenshot" if FORMS.says(media.form, "screenshot") else part_type}
    if media.sha256:
        result["file_data" if is_file else "image_url"] = _data_text(media, blob)
    elif media.file_id:
        result["file_id"] = media.file_id
    else:
        result["file_url" if is_file else "image_url"] = media.url
    name = media.name or _derived_name(media)
    if is_file and name:
        result["filename"] = name
    return result


def _read_data(source: str, name: str, is_file: bool, blobs: dict[str, bytes]) -> tuple[Media, list[str]] | None:
    """The media and form words of a data URL, or of plain base64 (the older `file_data`); None for a file that is not
    base64."""
    match = _DATA_URL.match(source)
    header = match[1] if match else ";base64"
    data = _decode(source[match.end() :] if match else source, header)
    mime = header.split(";")[0].lower() if match else _mime_of(name)
    words = [] if match else ["bare"]
    if data is None and is_file:
        return None
    if data is None:  # not an image: checking the bytes will show that
        data = source.encode("utf-8", "surrogatepass")
    media = Media(_kind(mime, is_file), mime, keep(data, blobs), len(data), name=name)
    if source != _data_text(replace(media, form=FORMS.shaped(*words)), blobs.__getitem__):
        words.append(f"literal={keep_text(source, blobs)}")
    return media, words


def _decode(payload: str, header: str) -> bytes | None:
    if not header.lower().endswith(";base64"):
        return unquote_to_bytes(payload.encode("utf-8", "surrogatepass"))
    try:
        return base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        return None


def _data_text(media: Media, blob: BlobReader) -> str:
    literal = FORMS.value(media.form, "literal")
    if literal:
        seen = kept_text(literal, blob)
        declared = _DATA_URL.match(seen)
        # Bytes that turned out to be of another type are not sent under the declared one.
        if declared is None or declared[1].split(";")[0].lower() == media.mime:
            return seen
    text = encode_base64(blob(media.sha256))
    return text if FORMS.says(media.form, "bare") else f"data:{media.mime};base64,{text}"


def _mime_of(name: str) -> str:
    return next((mime for mime, ending in DOCUMENT_ENDINGS.items() if name.lower().endswith("." + ending)), "")


def _kind(mime: str, is_file: bool) -> _Kind:
    if not is_file:
        return "image"
    return media_kind(mime) if mime else "document"


def _derived_name(media: Media) -> str:
    """The file name for bytes without one, derived from their hash."""
    return f"{media.sha256[:12]}.{DOCUMENT_ENDINGS.get(media.mime, 'bin')}" if media.sha256 else ""
