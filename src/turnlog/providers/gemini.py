"""The common parts of Google's two APIs, generateContent and Interactions: models, media, files, base64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._platform.lazy import lazy_pattern
from .._platform.units import an
from ..log.messages import Media, ToolCall, media_kind
from .media_bytes import encode_base64, keep_text, kept_text
from .protocol import BlobReader
from .spelling import Forms

FILES = "google"
"""The provider that file ids belong to. Both APIs accept files of the Files API and of Cloud Storage."""

# https://ai.google.dev/gemini-api/docs/{image-understanding,audio,video-understanding,document-processing};
# aliases as in recorded requests. Other types are refused: "Unsupported MIME type: ...".
INLINE_MAX = 100 * 1024 * 1024
"""Most inline data of one request, in characters of base64 (Gemini API)."""
IMAGES_MAX = 3_600
"""Most images of one request (image-understanding guide)."""
MIMES = frozenset(
    """
    image/png image/jpeg image/jpg image/webp image/heic image/heif image/gif
    audio/wav audio/x-wav audio/wave audio/mp3 audio/mpeg audio/mpga audio/aiff audio/aac audio/ogg
    audio/opus audio/flac audio/m4a audio/mp4 audio/webm audio/pcm audio/l16
    video/mp4 video/mpeg video/mov video/quicktime video/avi video/x-flv video/mpg video/mpegps
    video/webm video/wmv video/3gpp
    application/pdf application/json application/xml application/rtf application/javascript
    application/x-javascript application/x-python text/plain text/html text/css text/csv text/xml
    text/rtf text/markdown text/md text/javascript text/x-python
    """.split()
)
"""MIME types of inline data that the models read."""
NAME_PATTERN = r"[A-Za-z_][A-Za-z0-9_.:-]*"
"""Names of functions, at most `NAME_MAX` characters (google-genai, `FunctionDeclaration.name`)."""
NAME_MAX = 128


def input_media(kinds: frozenset[str]) -> frozenset[str]:
    """The media kinds that may be sent to a model that reads `kinds`: if it reads documents, also `file`."""
    return kinds | {"file"} if "document" in kinds else kinds


def arguments_of(call: ToolCall, *, bare: bool) -> object:
    """The arguments as an object: free text and other values become `{"input": ...}`. With `bare`, other values are not
    wrapped."""
    if isinstance(call.arguments, dict) or bare:
        return call.arguments
    if call.raw is not None and (call.arguments is None or call.kind == "custom"):
        return {"input": call.raw}
    return {} if call.arguments is None else {"input": call.arguments}


def choice_of(mode: Any, allowed: Any, words: Mapping[str, str]) -> str | None:
    """A tool choice in common words; `words` gives the common word of each mode. A required call names the function if
    it is the only one allowed."""
    word = words.get(mode) if isinstance(mode, str) else None
    only = allowed[0] if word == "required" and isinstance(allowed, list) and len(allowed) == 1 else None
    return f"tool:{only}" if isinstance(only, str) and only else word


# -- files ---------------------------------------------------------------------------------------

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
# The MIME type to declare if it is unknown: a request without a MIME type is refused.
_OF_KIND: dict[str, str] = {
    "image": "image/jpeg",
    "document": "application/pdf",
    "audio": "audio/mp3",
    "video": "video/mp4",
    "file": "application/octet-stream",
}
_FILES_API = ("https://generativelanguage.googleapis.com/", "gs://")
_FILE_NAME = lazy_pattern(r"files/[A-Za-z0-9_-]+")


def plain_mime(mime: str) -> str:
    """A MIME type without parameters, in lower case: `audio/L16;rate=24000` is `audio/l16`."""
    return mime.partition(";")[0].strip().lower()


def mime_of(media: Media) -> str:
    """The MIME type to declare: the media's own, else that of its name's or URL's extension, else the most common one
    of its kind."""
    if media.mime:
        return media.mime
    path = (media.name or media.url or media.file_id).split("?", 1)[0].rsplit("/", 1)[-1]
    extension = path.rsplit(".", 1)[-1].lower() if "." in path else ""
    return _EXTENSIONS.get(extension, _OF_KIND[media.kind])


def file_media(uri: str, mime: str) -> Media:
    """The media of a URI: an id of the Files API or Cloud Storage, else a public URL."""
    if uri.startswith(_FILES_API):
        media = Media(kind="file", mime=mime, file_id=uri, provider=FILES)
    else:
        media = Media(kind="file", mime=mime, url=uri)
    guessed = "video/mp4" if "youtube.com/" in uri or "youtu.be/" in uri else mime_of(media)
    kind = media_kind(mime or guessed)
    if media.url:
        return Media(kind=kind, mime=mime, url=uri)
    return Media(kind=kind, mime=mime, file_id=uri, provider=FILES)


def file_uri(file_id: str) -> str:
    """The URI of a file id, which is a URI or a name in the Files API (`files/abc`); empty for anything else. A name by
    itself is refused: "Invalid or unsupported file uri: files/abc"."""
    if _FILE_NAME.fullmatch(file_id):
        return f"https://generativelanguage.googleapis.com/v1beta/{file_id}"
    return file_id if file_id.startswith(("https://", "http://", "gs://")) else ""


def unsendable(media: Media) -> str:
    """Why a media part cannot be sent to Google, as a sentence; empty if it can be sent."""
    if media.file_id and media.provider != FILES:
        return f"a file of {media.provider or 'another provider'} cannot be sent to Google"
    if media.file_id and not file_uri(media.file_id):
        return f"file {media.file_id!r} left out: it is neither a URI nor the name of a file"
    if not (media.sha256 or media.url or media.file_id):
        return f"{an(media.kind)} without bytes, URL or file id left out"
    return ""


# -- base64 --------------------------------------------------------------------------------------

_URLSAFE = str.maketrans("+/", "-_")
_STANDARD = str.maketrans("-_", "+/")
_BASE64 = lazy_pattern(r"[A-Za-z0-9+/_-]*={0,2}")
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def is_base64(text: str) -> bool:
    """Whether `text` is base64 in either alphabet, padded or not, without stray bits at its end."""
    body = text.rstrip("=")
    unused = {0: 0, 2: 15, 3: 3}.get(len(body) % 4)
    if unused is None or not _BASE64.fullmatch(text):
        return False
    return not unused or not _DIGITS.index(body[-1].translate(_STANDARD)) & unused


def base64_words(text: str, data: bytes, blobs: dict[str, bytes]) -> list[str]:
    """The form words for how `text` spells `data` in base64. A text that no encoder produces is put into `blobs`."""
    for words in ([], ["urlsafe"], ["unpadded"], ["urlsafe", "unpadded"]):
        if _encode(data, words) == text:
            return words
    return [f"literal={keep_text(text, blobs)}"]


def base64_text(media: Media, forms: Forms, blob: BlobReader) -> str:
    """The base64 text of the media's bytes, in the spelling of its form. Raises BlobMissing."""
    literal = forms.value(media.form, "literal")
    return kept_text(literal, blob) if literal else _encode(blob(media.sha256), forms.words(media.form))


def _encode(data: bytes, words: list[str]) -> str:
    text = encode_base64(data)
    if "urlsafe" in words:
        text = text.translate(_URLSAFE)
    return text.rstrip("=") if "unpadded" in words else text
