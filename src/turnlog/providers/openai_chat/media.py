"""Media and their content parts: images, audio and files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ..._platform.lazy import lazy_pattern
from ...log.messages import Media, media_kind
from ..media_bytes import decode_base64, encode_base64, is_data_url, keep, keep_text, kept_text
from ..protocol import BlobReader
from .form import FORMS, NAME, spelled

_DATA_URL = lazy_pattern(r"data:([^;,]*)(?:;[^;,]*)*;base64,(.*)", re.DOTALL | re.IGNORECASE)
_AUDIO_MIMES = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}
_EXTENSIONS = {"application/pdf": "pdf", "text/plain": "txt"}


def media_wire(media: Media, blob: BlobReader) -> dict[str, Any] | None:
    """The content part of `media`, or None if this API does not accept it: audio and files by URL, files of another
    provider, video."""
    literal = FORMS.value(media.form, "literal")
    text = kept_text(literal, blob) if literal else None
    match media.kind:
        case "image":
            if text and not _declares(text, media.mime):  # the bytes turned out to be of another type
                text = None
            url = media.url or text or _data_url(media, "image/png", blob)
            if not url:
                return None
            return spelled(
                {"type": "image_url", "image_url": url if FORMS.says(media.form, "plain") else {"url": url}}, media.form
            )
        case "audio":
            if not media.sha256:
                return None
            sound = {"data": text or encode_base64(blob(media.sha256)), "format": _audio_format(media.mime)}
            return spelled({"type": "input_audio", "input_audio": sound}, media.form)
        case "document" | "file":
            file = _file(media, text, blob)
            return spelled({"type": "file", "file": file}, media.form) if file else None
    return None


def read_media(part: Mapping[str, Any], blobs: dict[str, bytes]) -> Media | None:
    """The media of a content part; its bytes go to `blobs`. None if it cannot be read."""
    kind = part.get("type")
    box = part.get(str(kind))
    if kind == "image_url":
        url = box.get("url") if isinstance(box, Mapping) else box
        media = _image(url, blobs, plain=not isinstance(box, Mapping))
    elif not isinstance(box, Mapping):
        return None
    elif kind == "input_audio":
        media = _audio(box, blobs)
    elif kind == "file":
        media = _read_file(box, blobs)
    else:
        return None
    if media is None:
        return None
    default = media_wire(media, blobs.__getitem__)
    if default is None:
        return None
    return msgspec.structs.replace(media, form=FORMS.made(default, part, FORMS.shape(media.form)))


def _image(url: Any, blobs: dict[str, bytes], *, plain: bool) -> Media | None:
    if not isinstance(url, str) or not url:
        return None
    shape = "plain" if plain else ""
    if not is_data_url(url):
        return Media(kind="image", url=url, form=FORMS.shaped(shape))
    return _from_data_url("image", url, blobs, shape)


def _audio(box: Mapping[str, Any], blobs: dict[str, bytes]) -> Media | None:
    text, kind = box.get("data"), box.get("format")
    if not isinstance(text, str) or not isinstance(kind, str):
        return None
    data = decode_base64(text)
    if data is None:
        return None
    media = Media(kind="audio", mime=_AUDIO_MIMES.get(kind, f"audio/{kind}"), sha256=keep(data, blobs), size=len(data))
    return _with_literal(media, text, encode_base64(data), blobs)


def _read_file(box: Mapping[str, Any], blobs: dict[str, bytes]) -> Media | None:
    text, file_id, name = box.get("file_data"), box.get("file_id"), box.get("filename")
    name = name if isinstance(name, str) else ""
    if isinstance(file_id, str) and file_id and text is None:
        return Media(kind="document", file_id=file_id, provider=NAME, name=name)
    if not isinstance(text, str) or not text or file_id:
        return None
    media = _from_data_url("file", text, blobs)
    if media is None:
        return None
    kind = "document" if media_kind(media.mime) == "document" else "file"
    return msgspec.structs.replace(media, kind=kind, name="" if name == _default_name(media.mime) else name)


def _file(media: Media, text: str | None, blob: BlobReader) -> dict[str, Any] | None:
    if media.file_id:
        named = {"filename": media.name} if media.name else {}
        return {"file_id": media.file_id, **named} if media.provider == NAME else None
    if not media.sha256:
        return None
    data = text or _data_url(media, "application/octet-stream", blob)
    return {"file_data": data, "filename": media.name or _default_name(media.mime)}


def _from_data_url(kind: Any, url: str, blobs: dict[str, bytes], *words: str) -> Media | None:
    """Media of a data URL, or of bare base64 (which some clients send as file data)."""
    match = _DATA_URL.fullmatch(url)
    mime, payload = (match[1].lower(), match[2]) if match else ("", url)
    data = decode_base64(payload)
    if data is None or (match is None and is_data_url(url)):
        return None
    media = Media(kind=kind, mime=mime, sha256=keep(data, blobs), size=len(data))
    ours = f"data:{mime};base64,{encode_base64(data)}" if mime else ""
    return _with_literal(media, url, ours, blobs, *words)


def _with_literal(media: Media, seen: str, ours: str, blobs: dict[str, bytes], *words: str) -> Media:
    """`media`. If its bytes do not encode to the same text, the text is stored as a blob."""
    literal = "" if seen == ours else f"literal={keep_text(seen, blobs)}"
    return msgspec.structs.replace(media, form=FORMS.shaped(*words, literal))


def _declares(url: str, mime: str) -> bool:
    match = _DATA_URL.fullmatch(url)
    return match is not None and match[1].lower() == mime


def _data_url(media: Media, otherwise: str, blob: BlobReader) -> str:
    return f"data:{media.mime or otherwise};base64,{encode_base64(blob(media.sha256))}" if media.sha256 else ""


def _audio_format(mime: str) -> str:
    return _AUDIO_FORMATS.get(mime, mime.removeprefix("audio/") or "wav")


def _default_name(mime: str) -> str:
    """The name for a file without one: it needs a name with the extension of its type."""
    return f"file.{_EXTENSIONS.get(mime, mime.rpartition('/')[2] or 'bin')}"
