"""Sizes of media from their bytes, and what they cost."""

from __future__ import annotations

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from turnlog.errors import BlobMissing
from turnlog.log.messages import Media, sha256_hex
from turnlog.tokens.dimensions import dimensions, pages
from turnlog.tokens.families import claude_family, gemini_family, openai_family
from turnlog.tokens.media import count_media, image_tokens, media_text

SIDES = st.integers(1, 700)
WAYS = {
    "png": {"format": "PNG"},
    "gif": {"format": "GIF"},
    "jpeg": {"format": "JPEG"},
    "progressive jpeg": {"format": "JPEG", "progressive": True},
    "jpeg with a comment": {"format": "JPEG", "comment": b"x" * 300},
    "webp": {"format": "WEBP"},
    "lossless webp": {"format": "WEBP", "lossless": True},
    "webp with an extra chunk": {"format": "WEBP", "exif": b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0"},
}


def picture(width: int, height: int, way: str) -> bytes:
    """An image file of this size."""
    out = BytesIO()
    Image.new("RGB", (width, height), (9, 99, 199)).save(out, **WAYS[way])
    return out.getvalue()


@given(SIDES, SIDES, st.sampled_from(sorted(WAYS)))
def test_sizes_are_read(width: int, height: int, way: str) -> None:
    """A format whose header is read wrongly, or the sides swapped, fails here."""
    assert dimensions(picture(width, height, way)) == (width, height)


@given(st.sampled_from(sorted(WAYS)), st.integers(0, 400), st.binary(max_size=8))
def test_damaged_images_raise_nothing(way: str, cut: int, noise: bytes) -> None:
    """A cut or overwritten image gives a size or None, and never an exception."""
    data = picture(30, 20, way)
    for damaged in (data[:cut], data[:cut] + noise + data[cut + len(noise) :], noise):
        found = dimensions(damaged)
        assert found is None or (len(found) == 2 and min(found) > 0)


@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [  # as billed in recorded requests (docs/counting.md)
        ("gpt-4o", 640, 480, 425),
        ("gpt-4o", 2560, 1669, 1105),
        ("gpt-4o-mini", 640, 480, 14167),
        ("gpt-5", 640, 480, 350),
        ("gpt-4.1-mini", 640, 480, 486),
        ("gpt-5-mini", 640, 480, 360),
        ("gpt-5.4-nano", 512, 512, 384),
        ("o4-mini", 640, 480, 516),
    ],
)
def test_openai_images(model: str, width: int, height: int, tokens: int) -> None:
    """A changed formula or a model in the wrong family fails here."""
    family = openai_family(model)
    assert family is not None
    assert image_tokens(family.images, width, height) == tokens


def test_other_images() -> None:
    """Claude's patches and Gemini's tiles, as billed."""
    claude, two, later = (
        claude_family("claude-sonnet-4-5"),
        gemini_family("gemini-2.0-flash"),
        gemini_family("gemini-2.5-pro"),
    )
    assert [image_tokens(claude.images, *sides) for sides in ((60, 30), (228, 148), (1001, 1001))] == [9, 57, 1299]
    assert [image_tokens(two.images, *sides) for sides in ((640, 480), (540, 360), (3008, 2000))] == [1290, 1806, 3354]
    assert image_tokens(later.images, 640, 480) == 258


@given(SIDES, SIDES, st.sampled_from(["gpt-4o", "gpt-4.1-mini", "gpt-5-nano", "claude-opus-4-5", "gemini-2.0-flash"]))
def test_a_larger_image_costs_no_less(width: int, height: int, model: str) -> None:
    """A formula that goes down as an image grows in both sides (crops apart) fails here."""
    family = openai_family(model) or (gemini_family(model) if "gemini" in model else claude_family(model))
    small, large = (image_tokens(family.images, width * times, height * times) for times in (1, 40))
    assert 0 < small <= large


def test_media_without_their_bytes() -> None:
    """A URL, a missing blob and no reader at all are taken to be of common size."""
    images = claude_family("claude-sonnet-4-5").images
    data = picture(60, 30, "png")
    held = Media(kind="image", mime="image/png", sha256=sha256_hex(data), size=len(data))

    def missing(sha256: str) -> bytes:
        raise BlobMissing(sha256)

    counted = [
        count_media(media, images, page=1, second=1, blob=blob)
        for media, blob in (
            (held, {sha256_hex(data): data}.__getitem__),
            (held, missing),
            (held, None),
            (Media(kind="image", url="https://example.org/a.png"), missing),
        )
    ]
    common = image_tokens(images, 1024, 768)
    assert counted == [9, common, common, common]


def test_documents() -> None:
    """Pages of a PDF are counted, and a text document is text."""
    pdf = b"%PDF-1.4 <</Type /Pages>> <</Type /Page>> <</Type/Page>>"
    images = claude_family("claude-sonnet-4-5").images
    blobs = {sha256_hex(pdf): pdf, sha256_hex(b"words"): b"words"}
    document = Media(kind="document", mime="application/pdf", sha256=sha256_hex(pdf), size=len(pdf))
    words = Media(kind="document", mime="text/plain", sha256=sha256_hex(b"words"), size=5)
    assert (pages(pdf), pages(b"")) == (2, 1)
    assert count_media(document, images, page=1560, second=1, blob=blobs.__getitem__) == 3120
    assert [media_text(media, blobs.__getitem__) for media in (document, words)] == [None, "words"]
