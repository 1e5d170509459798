"""Images as agents hand them over: read, checked, and made smaller when that is asked for."""

from __future__ import annotations

import base64
import binascii
import io
from pathlib import Path
from types import ModuleType
from typing import Any

from .._platform.texts import install_extra
from ..errors import InputError
from ..tokens.dimensions import dimensions, image_type

MAX_BYTES = 50_000_000
"""No provider takes a request with an image as large as this."""

MAX_PIXELS = 89_478_485
"""Pillow warns of images with more pixels: a few kilobytes can claim to be a picture that fills all memory."""

_TYPES = "PNG, JPEG, GIF or WebP"


def image_given(image: Any, what: str) -> bytes:
    """The bytes of an image that is given as bytes, as base64 (also as a `data:` URL) or as a Path, checked. `what`
    names it in errors. Raises InputError."""
    if isinstance(image, Path):
        try:
            data = image.read_bytes()
        except OSError as error:
            raise InputError(f"{what}: {image} cannot be read: {error.strerror}") from error
    elif isinstance(image, (bytes, bytearray, memoryview)):
        data = bytes(image)
    elif isinstance(image, str):
        try:
            data = from_base64(image.encode("utf-8", "replace"))
        except ValueError as error:
            raise InputError(f"{what}: {error}; give the bytes, base64 or a pathlib.Path") from error
    else:
        raise InputError(f"{what} must be bytes, base64 or a pathlib.Path, not {type(image).__name__}")
    if wrong := misfit(data):
        raise InputError(f"{what}: {wrong}")
    return data


def from_base64(text: bytes) -> bytes:
    """The bytes that base64 text stands for; it may be a `data:` URL and have line breaks. Raises ValueError."""
    if text[:5].lower() == b"data:":
        text = text.partition(b",")[2]
    if b"\n" in text or b"\r" in text or b" " in text:
        text = b"".join(text.split())
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"not base64 ({error})") from error


def misfit(data: bytes) -> str:
    """What is wrong with the bytes of an image, "" if nothing is. Only its first bytes are looked at."""
    sides = dimensions(data)
    if not image_type(data) or sides is None:
        return f"not an image: {_TYPES} expected, the bytes begin {data[:8]!r}" if data else "the image is empty"
    if len(data) > MAX_BYTES:
        return f"the image has {len(data):,} bytes; crop it, or make it smaller than {MAX_BYTES:,}"
    if sides[0] * sides[1] > MAX_PIXELS:
        return f"the image has {sides[0]:,} x {sides[1]:,} pixels; crop it, or scale it to at most {MAX_PIXELS:,}"
    return ""


def pillow(use: str) -> ModuleType:
    """The package Pillow's `PIL.Image`. Raises InputError, with the command that installs it, if it is missing; `use`
    is what it is needed for."""
    try:
        from PIL import Image
    except ImportError as error:
        raise InputError(f"{use} needs Pillow: {install_extra('images')}") from error
    return Image


def smaller(data: bytes, side: int, use: str) -> bytes:
    """The image with no side longer than `side` pixels: the same bytes if it is small enough, else a PNG of a PNG and a
    JPEG of any other. Raises InputError if Pillow is missing or cannot read the image."""
    sides = dimensions(data)
    if sides is None or max(sides) <= side:
        return data
    image = opened(data, use)
    image.thumbnail((side, side))
    return encoded(image, "PNG" if image_type(data) == "image/png" else "JPEG", 90)


def opened(data: bytes, use: str) -> Any:
    """The image as Pillow has it, decoded. Raises InputError if it cannot be decoded or would fill the memory."""
    module = pillow(use)
    if wrong := misfit(data):
        raise InputError(wrong)
    try:
        image = module.open(io.BytesIO(data))
        image.load()
    except (OSError, ValueError, SyntaxError, EOFError, MemoryError, module.DecompressionBombError) as error:
        raise InputError(f"the image is damaged: {error}") from error
    return image


def encoded(image: Any, form: str, quality: int) -> bytes:
    """A picture of Pillow's as bytes of a format (JPEG, PNG)."""
    if form == "JPEG" and image.mode not in ("RGB", "L"):
        image = image.convert("RGB")
    out = io.BytesIO()
    image.save(out, form, **({"quality": quality} if form == "JPEG" else {"optimize": False}))
    return out.getvalue()
