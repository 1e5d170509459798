"""Small things about texts: their beginnings, URLs without passwords, byte order marks, how to install an extra."""

from __future__ import annotations

import codecs
import re

from .lazy import lazy_pattern

# -- urls ------------------------------------------------------------------------------------------
#
# URLs of stores and of models' servers, and how to show them.

_SERVERS = ("postgresql://", "postgres://")
_SECRET = lazy_pattern(r"(?i)([?&][^=&]*(?:passw|api[_-]?key|token|secret)[^=&]*)=[^&\s]*")
_USER = lazy_pattern(r"^(\w+://[^:/?#@]*):.*@", re.DOTALL)


def is_server(place: str) -> bool:
    """Whether a store's place is a database on a server."""
    return place.startswith(_SERVERS)


def without_password(place: str) -> str:
    """A URL or the place of a store as it may be shown: passwords are left out, also if the URL is wrong, and so are
    keys and tokens in its query."""
    return _SECRET.sub(r"\1=***", _USER.sub(r"\1:***@", place)) if "://" in place else place


# -- encoding --------------------------------------------------------------------------------------
#
# Byte order marks, which programs on Windows write at the beginning of text.

_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def plain_utf8(data: bytes) -> bytes:
    """`data` as UTF-8 without a byte order mark; UTF-16 with a mark is converted."""
    if data.startswith(_WIDE):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data.removeprefix(codecs.BOM_UTF8)


def clip(text: str, room: int) -> str:
    """`text` on one line of at most `room` characters. A mark in the middle shows where text is left out."""
    if len(text) > room * 4:
        text = f"{text[: room * 2]} … {text[-room:]}"
    text = " ".join(text.split())
    if len(text) <= room:
        return text
    tail = max(0, room // 3 - 3)
    return f"{text[: room - tail - 3]} … {text[len(text) - tail :]}" if tail else text[:room]


def on_one_line(text: str) -> str:
    """The first 500 characters in one line, so that text from outside cannot pass for another line of a log file."""
    return " ".join("".join(char if char.isprintable() else " " for char in text[:500]).split())


def install_extra(extra: str) -> str:
    """How to install an optional dependency of turnlog, for the end of a sentence. No index of packages has turnlog, so
    it is installed from a clone, as README.md says."""
    return f"pip install '.[{extra}]' in your clone of turnlog"


def shorten(text: str, *, characters: int = 400, lines: int = 6) -> str:
    """`text`, or its beginning and the number of characters left out."""
    short = "\n".join(text[:characters].splitlines()[:lines])
    left = len(text) - len(short)
    return short if not text[len(short) :].strip() else f"{short} … [{left:,} more characters]"
