"""Prepares types for msgspec before their first use, which two threads might begin at the same time."""

from __future__ import annotations

from threading import Lock
from typing import TypeVar

import msgspec

_T = TypeVar("_T")


_ALONE = Lock()


def ready(kind: _T) -> _T:
    """`kind` itself, prepared for decoding. msgspec examines a type's fields when it first decodes that type, and the
    process crashes if two threads do so at once. The types of its fields are prepared as well."""
    with _ALONE:
        msgspec.json.Decoder(kind)
    return kind
