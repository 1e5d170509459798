"""URLs of stores and of models' servers, and how to show them."""

from __future__ import annotations

import re

_SERVERS = ("postgresql://", "postgres://")
_SECRET = re.compile(r"(?i)([?&][^=&]*(?:passw|api[_-]?key|token|secret)[^=&]*)=[^&\s]*")
_USER = re.compile(r"^(\w+://[^:/?#@]*):.*@", re.DOTALL)


def is_server(place: str) -> bool:
    """Whether a store's place is a database on a server."""
    return place.startswith(_SERVERS)


def without_password(place: str) -> str:
    """A URL or the place of a store as it may be shown: passwords are left out, also if the URL is wrong, and so are
    keys and tokens in its query."""
    return _SECRET.sub(r"\1=***", _USER.sub(r"\1:***@", place)) if "://" in place else place
