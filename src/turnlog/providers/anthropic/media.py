"""Images and documents, and their sources."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Any

import msgspec

from ...log.messages import Media
from ..media_bytes import decode_base64, encode_base64, keep, keep_text, kept_text
from ..protocol import BlobReader
from .form import FORMS, NAME


def read_media(block: Mapping[str, Any], blobs: dict[str, bytes]) -> Media | None:
    """The media of an image or document block; its bytes go to `blobs`. None if the source is of an unknown kind."""
    source = block.get("source")
    if not isinstance(source, Mapping):
        return None
    kind = str(source.get("type"))
    payload = "content" if kind == "content" else "data"
    media, literal = _sourced(str(block["type"]), source, source.get(payload), blobs)
    if media is None:
        return None
    title = block.get("title")
    if media.kind == "document" and isinstance(title, str) and title:
        media = msgspec.structs.replace(media, name=title)
    default = media_block(media, "")
    shape = kind if literal or default is None or default["source"]["type"] != kind else ""
    default = media_block(msgspec.structs.replace(media, form=FORMS.shaped(shape)), "") or {}
    # The payload is not compared: it is in the blobs.
    seen = {**block, "source": {**source, payload: ""}} if payload in source else block
    return msgspec.structs.replace(media, form=FORMS.made(default, seen, shape, literal))


def _sourced(kind: Any, source: Mapping[str, Any], payload: Any, blobs: dict[str, bytes]) -> tuple[Media | None, str]:
    """The media without a form, and the form word for a base64 text that must be stored unchanged."""
    mime = source.get("media_type", "")
    match source.get("type"):
        case "url" if isinstance(source.get("url"), str) and source["url"]:
            return Media(kind=kind, mime="application/pdf" if kind == "document" else "", url=source["url"]), ""
        case "file" if isinstance(source.get("file_id"), str) and source["file_id"]:
            return Media(kind=kind, file_id=source["file_id"], provider=NAME), ""
        case "base64" if isinstance(payload, str) and isinstance(mime, str):
            raw = decoded(payload)
            literal = "" if encode_base64(raw) == payload else f"literal={keep_text(payload, blobs)}"
            return Media(kind=kind, mime=mime, sha256=keep(raw, blobs), size=len(raw)), literal
        case "text" | "content" if kind == "document" and isinstance(payload, str) and isinstance(mime, str):
            raw = payload.encode("utf-8", "surrogatepass")
            return Media(kind=kind, mime=mime or "text/plain", sha256=keep(raw, blobs), size=len(raw)), ""
    return None, ""


def media_block(part: Media, data: str) -> dict[str, Any] | None:
    """An image or document, or None if there is no block for the media.

    `data` is the payload of the source: base64, or the text of a plain-text document.
    """
    if part.kind in ("audio", "video"):
        return None
    kind = "image" if part.kind == "image" or part.mime.startswith("image/") else "document"
    source = _source(part, kind, data)
    if source is None:
        return None
    titled = {"title": part.name} if part.name and kind == "document" else {}
    return {"type": kind, "source": source, **titled}


def _source(part: Media, kind: str, data: str) -> dict[str, Any] | None:
    if part.file_id:
        return {"type": "file", "file_id": part.file_id} if part.provider in ("", NAME) else None
    if part.url:
        # A document by URL is a PDF (BetaURLPDFSourceParam).
        readable = kind == "image" or part.mime in ("", "application/pdf")
        return {"type": "url", "url": part.url} if readable else None
    usual = "base64" if kind == "image" or part.mime == "application/pdf" else ""
    match next(iter(FORMS.words(part.form)), usual or part.mime.partition("/")[0]):
        case "base64":
            return {"type": "base64", "media_type": part.mime, "data": data}
        case "text":
            return {"type": "text", "media_type": "text/plain", "data": data}
        case "content":
            return {"type": "content", "content": data}
    return None


def payload_of(part: Media, blob: BlobReader) -> str:
    """The payload of a source: text, base64, or the stored base64 text. Raises BlobMissing, and UnicodeDecodeError for
    a text in an unknown encoding."""
    block = media_block(part, "")
    if not part.sha256 or block is None:
        return ""
    literal = FORMS.value(part.form, "literal")
    if literal:
        return kept_text(literal, blob)
    data = blob(part.sha256)
    return document_text(data) if block["source"]["type"] in ("text", "content") else encode_base64(data)


def decoded(text: str) -> bytes:
    """The bytes of a base64 text or of a data URL; empty if it is not base64."""
    return decode_base64(text.partition(",")[2] if text.startswith("data:") else text) or b""


# UTF-32 first: its mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def document_text(data: bytes) -> str:
    """The text of a plain-text document, in UTF-8 or in the encoding of its byte-order mark. Raises
    UnicodeDecodeError."""
    encoding = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "")
    return data.decode(encoding) if encoding else data.decode("utf-8", "surrogatepass")
