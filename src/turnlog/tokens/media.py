"""Tokens of images, documents, audio and video, by their size."""

from __future__ import annotations

from math import ceil

from ..errors import BlobMissing
from ..log.messages import Media, media_kind
from .dimensions import dimensions, pages
from .families import Images
from .protocol import BlobReader

_COMMON = (1024, 768)
"""Assumed sides of an image of unknown size, in pixels."""

_BYTES_A_PAGE = 50_000
_BYTES_A_SECOND = 16_000
"""Bytes of audio at 128 kbit/s: a guess, used if only the number of bytes is known."""

_FRAME = 70
"""Tokens of a second of video without its audio (Gemini 3, low resolution, as billed)."""


def image_tokens(images: Images, width: int, height: int) -> int:
    """Tokens of an image of `width` by `height` pixels."""
    match images.method:
        case "tiles" if images.side:
            pieces = ceil(width / images.side) * ceil(height / images.side)
        case "tiles":
            width, height = _shorter_side(*_inside(width, height, 2048), 768)
            pieces = ceil(width / 512) * ceil(height / 512)
        case "crops":
            pieces = _crops(width, height)
        case "patches":
            pieces = _patches(images, width, height)
        case _:
            pieces = 0
    return images.start + ceil(round(images.each * pieces, 6))  # 300 x 1.62 is 486.00000000000006


def _inside(width: float, height: float, longest: int) -> tuple[int, int]:
    scale = min(1.0, longest / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


def _shorter_side(width: int, height: int, side: int) -> tuple[int, int]:
    scale = min(1.0, side / min(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


def _crops(width: int, height: int) -> int:
    """The number of Google's tiles: one for a small image, else one for the whole image and one for each square with a
    side of 2/3 of the image's shorter side."""
    if max(width, height) <= 384:
        return 1
    unit = min(768, max(256, int(min(width, height) / 1.5)))
    return ceil(width / unit) * ceil(height / unit) + 1


def _patches(images: Images, width: int, height: int) -> int:
    """The number of patches of the image, which is scaled down until there are no more than allowed."""
    longest = images.side * 56 if images.side == 28 else max(width, height)  # Claude's 1,568 pixels
    width, height = _inside(width, height, longest)
    pieces = ceil(width / images.side) * ceil(height / images.side)
    return min(pieces, images.most)


def count_media(media: Media, images: Images, *, page: int, second: int, blob: BlobReader | None) -> int:
    """Tokens of one media part; `blob` reads its bytes. Without bytes, the size in pixels or pages is assumed."""
    data = _bytes(media, blob)
    kind = media_kind(media.mime)
    match media.kind if kind == "file" else kind:  # providers go by the MIME type
        case "image":
            sides = dimensions(data) if data else None
            return image_tokens(images, *(sides or _COMMON))
        case "audio":
            return ceil((media.size or _BYTES_A_SECOND) / _BYTES_A_SECOND) * second
        case "video":
            return ceil((media.size or _BYTES_A_SECOND) / _BYTES_A_SECOND / 4) * (second + _FRAME)
        case _:
            return page * (pages(data) if data else max(1, media.size // _BYTES_A_PAGE))


def media_text(media: Media, blob: BlobReader | None) -> str | None:
    """The text of a text document, which is billed as text; None for other media, or if its bytes are missing."""
    if media.kind in ("document", "file") and media.mime.startswith("text/"):
        data = _bytes(media, blob)
        return None if data is None else data.decode("utf-8", "replace")
    return None


def _bytes(media: Media, blob: BlobReader | None) -> bytes | None:
    if blob is None or not media.sha256:
        return None
    try:
        return blob(media.sha256)
    except BlobMissing:
        return None
