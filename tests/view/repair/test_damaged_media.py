"""Damaged images and PDFs are recognised without a decoder, and never a sound one."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import turnlog
from judging import TARGETS, errors_of
from turnlog.models.target import Target
from turnlog.stores import MemoryStore
from turnlog.tokens.dimensions import image_type
from turnlog.view.repair.damaged_media import damage_of

PDF = b"%PDF-1.4\n1 0 obj\n<</Type /Page>>\nendobj\ntrailer\nstartxref\n9\n%%EOF\n"
FORMATS: dict[str, dict[str, Any]] = {
    "image/gif": {"format": "GIF"},
    "image/jpeg": {"format": "JPEG"},
    "image/png": {"format": "PNG"},
    "image/webp": {"format": "WEBP"},
}


def media(mime: str, side: int = 40) -> bytes:
    """A sound file of this type, with pixels that do not compress to nothing."""
    if mime == "application/pdf":
        return PDF
    out = BytesIO()
    pixels = bytes((7 * n * n) % 251 for n in range(side * side * 3))
    Image.frombytes("RGB", (side, side), pixels).save(out, **FORMATS[mime])
    return out.getvalue()


MIMES = st.sampled_from([*FORMATS, "application/pdf"])


@given(MIMES, st.integers(1, 60), st.binary(max_size=900).filter(lambda junk: b";" not in junk))
def test_sound_media_are_left_alone(mime: str, side: int, junk: bytes) -> None:
    """An image that every decoder reads would not reach the model. Bytes after its end are no damage."""
    assert damage_of(media(mime, side) + junk, mime) == ""


@given(MIMES, st.floats(0, 1, exclude_max=True))
def test_a_cut_file_is_damaged(mime: str, share: float) -> None:
    """A file that arrived in part is refused by the provider, and with it every further request."""
    whole = media(mime)
    cut = whole[: int(share * (len(whole) - 9))]
    assert damage_of(cut, mime) or (mime != "application/pdf" and not image_type(cut))


@given(st.sampled_from(sorted(FORMATS)))
def test_an_image_without_sides_is_damaged(mime: str) -> None:
    """A header alone is no image."""
    head = media(mime)[: 6 if mime == "image/gif" else 12]
    assert damage_of(head + bytes(200), mime) == "it has no width and height"


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: aim.model)
@pytest.mark.parametrize("mime", [*FORMATS, "application/pdf"])
def test_a_damaged_file_becomes_a_line(aim: Target, mime: str, oracle: ModuleType) -> None:
    """The provider answers 400 to every request that holds the file."""
    session = turnlog.open("s", store=MemoryStore(), target=aim)
    whole = media(mime)
    session.user(["Look.", session.media(whole[:-12], mime, name="a")])
    session.assistant("I see.")
    session.user(["And this?", session.media(whole, mime, name="b")])
    made = session.request()
    assert errors_of(oracle, aim, made.body) == []
    assert b"left out (a): its end is missing]" in made.json()
    assert [edit.records for edit in made.edits if edit.kind == "media"] == [made.view[0].records]


def test_check_says_so() -> None:
    """The caller would learn of it from the provider's 400 only."""
    cut = base64.b64encode(media("image/png")[:-12]).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": cut}}
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Look."}, image]}],
    }
    (violation,) = turnlog.check(body, "anthropic")
    assert (violation.kind, violation.messages, violation.detail) == ("media", (1,), "Could not process image")
    assert turnlog.check(turnlog.repair(body, "anthropic").body, "anthropic") == []


@pytest.mark.slow
def test_no_medium_of_real_transcripts_is_called_damaged(shared: Path) -> None:
    """A false alarm takes a sound image from the model."""
    seen = 0
    for path in (shared / "data").rglob("*"):
        for data in _media_in(path) if path.is_file() else ():
            mime = "application/pdf" if data.startswith(b"%PDF-") else image_type(data)
            seen += bool(mime)
            assert damage_of(data, mime) == "", path
    assert seen > 40


_BASE64 = re.compile(rb"(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR|JVBERi0)[A-Za-z0-9+/]{200,}")


def _media_in(path: Path) -> Iterator[bytes]:
    """A file itself if it is media, and the media in base64 inside it if it is a transcript."""
    data = path.read_bytes()
    if path.suffix not in (".json", ".jsonl"):
        yield data
        return
    for found in _BASE64.findall(data.replace(b"\\/", b"/")):
        yield base64.b64decode(found + b"=" * (-len(found) % 4))
