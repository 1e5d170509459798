"""URLs of stores on a server, and how to show them."""

from __future__ import annotations

import re

_SERVERS = ("postgresql://", "postgres://")
_SECRET = re.compile(r"(?i)([?&][^=&]*passw[^=&]*)=[^&\s]*")
_USER = re.compile(r"^(\w+://[^:/?#@]*):.*@", re.DOTALL)


def is_server(place: str) -> bool:
    """Whether a store's place is a database on a server."""
    return place.startswith(_SERVERS)


def without_password(place: str) -> str:
    """A store's place as it may be shown: of a URL on a server the password is left out, also if the URL is wrong."""
    return _SECRET.sub(r"\1=***", _USER.sub(r"\1:***@", place)) if "://" in place else place
