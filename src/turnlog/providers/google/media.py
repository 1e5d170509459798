"""Media as Google spells them: inline base64 in two alphabets, and files by URI."""

from __future__ import annotations

import re

from ...log.messages import Media, media_kind
from ..media_bytes import encode_base64, keep_text, kept_text
from ..protocol import BlobReader
from .form import FORMS, NAME

_EXTENSIONS = {
    "aac": "audio/aac",
    "csv": "text/csv",
    "flac": "audio/flac",
    "gif": "image/gif",
    "heic": "image/heic",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "json": "application/json",
    "md": "text/markdown",
    "mov": "video/mov",
    "mp3": "audio/mp3",
    "mp4": "video/mp4",
    "ogg": "audio/ogg",
    "pdf": "application/pdf",
    "png": "image/png",
    "txt": "text/plain",
    "wav": "audio/wav",
    "webm": "video/webm",
    "webp": "image/webp",
}
# The MIME type to declare if it is unknown; a request without one is refused.
_OF_KIND: dict[str, str] = {
    "image": "image/jpeg",
    "document": "application/pdf",
    "audio": "audio/mp3",
    "video": "video/mp4",
    "file": "application/octet-stream",
}
_FILES_API = ("https://generativelanguage.googleapis.com/", "gs://")
_FILE_NAME = re.compile(r"files/[A-Za-z0-9_-]+")
_URLSAFE = str.maketrans("+/", "-_")


def plain_mime(mime: str) -> str:
    """A MIME type without parameters, in lower case: `audio/L16;rate=24000` is `audio/l16`."""
    return mime.partition(";")[0].strip().lower()


def mime_of(media: Media) -> str:
    """The MIME type to declare: the media's own, else by the extension of its name or URL, else the commonest of its
    kind."""
    if media.mime:
        return media.mime
    path = (media.name or media.url or media.file_id).split("?", 1)[0].rsplit("/", 1)[-1]
    extension = path.rsplit(".", 1)[-1].lower() if "." in path else ""
    return _EXTENSIONS.get(extension, _OF_KIND[media.kind])


def file_media(uri: str, mime: str) -> Media:
    """The media of a `fileUri`: an id of the Files API or Cloud Storage, else a public URL."""
    if uri.startswith(_FILES_API):
        media = Media(kind="file", mime=mime, file_id=uri, provider=NAME)
    else:
        media = Media(kind="file", mime=mime, url=uri)
    guessed = "video/mp4" if "youtube.com/" in uri or "youtu.be/" in uri else mime_of(media)
    kind = media_kind(mime or guessed)
    if media.url:
        return Media(kind=kind, mime=mime, url=uri)
    return Media(kind=kind, mime=mime, file_id=uri, provider=NAME)


def file_uri(file_id: str) -> str:
    """The `fileUri` of a file id, which is a URI or a name in the Files API (`files/abc`); empty for anything else.
    "Invalid or unsupported file uri: files/abc"."""
    if _FILE_NAME.fullmatch(file_id):
        return f"https://generativelanguage.googleapis.com/v1beta/{file_id}"
    return file_id if file_id.startswith(("https://", "http://", "gs://")) else ""


def base64_words(text: str, data: bytes, blobs: dict[str, bytes]) -> list[str]:
    """How `text` spells `data` in base64, as form words; a text that no encoder writes is put into `blobs`."""
    for words in ([], ["urlsafe"], ["unpadded"], ["urlsafe", "unpadded"]):
        if _encode(data, words) == text:
            return words
    return [f"literal={keep_text(text, blobs)}"]


def base64_text(media: Media, blob: BlobReader) -> str:
    """The base64 text of the media's bytes, in the spelling of its form. Raises BlobMissing."""
    literal = FORMS.value(media.form, "literal")
    return kept_text(literal, blob) if literal else _encode(blob(media.sha256), FORMS.words(media.form))


def _encode(data: bytes, words: list[str]) -> str:
    text = encode_base64(data)
    if "urlsafe" in words:
        text = text.translate(_URLSAFE)
    return text.rstrip("=") if "unpadded" in words else text
