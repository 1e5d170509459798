"""The address of a server: its URL as connection options, and as text that may be shown."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import quote

from ..._platform.lazy import lazy_pattern
from ..._platform.texts import install_extra, without_password
from ...errors import InputError

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError as error:
    raise ImportError(f"a PostgreSQL store needs psycopg ({error}): {install_extra('postgres')}") from error

CONNECT_SECONDS = 10
"""Seconds that a server may take to accept a connection, unless the URL or PGCONNECT_TIMEOUT gives another number."""

IDLE_SECONDS, PROBE_SECONDS, PROBES = 15, 5, 3
"""TCP keepalives: a probe is sent after so many idle seconds, then one every `PROBE_SECONDS`. After `PROBES` without an
answer the other machine counts as dead: within 30 seconds."""

DEAD_MS = (IDLE_SECONDS + PROBE_SECONDS * PROBES) * 1000

_AUTHORITY = lazy_pattern(r"\w+://([^/?#@]*@)?[^/?#@]*(/[^?#@]*)?([?#]|$)")
"""A URL whose only @ comes before the host. With more, part of a password would be taken for the host, and shown."""


class Address:
    """A server and a database on it. Its text names host, port, database and user, and no password."""

    def __init__(self, url: str) -> None:
        try:
            parameters = conninfo_to_dict(url)
            is_url = (
                _AUTHORITY.match(url) is not None and str(parameters.get("port") or "0").replace(",", "").isdecimal()
            )
        except psycopg.Error:  # its text may quote a part of the password
            is_url = False
        if not is_url:
            raise InputError(
                f"store: {without_password(url)!r} is not a URL of a PostgreSQL database; write postgresql://USER@HOST:PORT/NAME,"
                " with %40 for @, %2F for / and %3A for : in a name or password"
            )
        self._secrets = [str(parameters[name]) for name in ("password", "sslpassword") if parameters.get(name)]
        self.options: dict[str, Any] = {
            "application_name": "turnlog",
            "keepalives_idle": IDLE_SECONDS,
            "keepalives_interval": PROBE_SECONDS,
            "keepalives_count": PROBES,
            "tcp_user_timeout": DEAD_MS,
            **({} if "PGCONNECT_TIMEOUT" in os.environ else {"connect_timeout": CONNECT_SECONDS}),
            **parameters,
            "client_encoding": "UTF8",
        }
        user, host, port, name = (str(parameters.get(key) or "") for key in ("user", "host", "port", "dbname"))
        host = host or str(parameters.get("hostaddr") or os.environ.get("PGHOST") or "")
        where = f"{host}:{port}" if port and host else host
        options = quote(str(parameters.get("options") or ""), safe=",_")
        self._text = f"postgresql://{user and user + '@'}{where}/{name}{options and '?options=' + options}"

    def __str__(self) -> str:
        return self._text

    def clean(self, text: str) -> str:
        """A text of the server or of the driver on one line, without the password."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return "; ".join(line.strip() for line in text.splitlines() if line.strip())
