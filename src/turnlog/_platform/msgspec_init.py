"""Types made ready before their first use, which two threads may come to at once."""

from __future__ import annotations

from threading import Lock
from typing import TypeVar

import msgspec

_T = TypeVar("_T")

_ALONE = Lock()


def ready(kind: _T) -> _T:
    """The type itself, ready to be read. msgspec looks at a type's fields when it first reads a value as one, and the
    process dies where two threads have it do so at once. Types that are part of another's fields are ready with it."""
    with _ALONE:
        msgspec.json.Decoder(kind)
    return kind
