"""A PostgreSQL server of the tests' own, in a temporary folder, and databases on it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

__all__ = ["PostgresServer", "binaries", "running_server"]

_PATIENCE_SECONDS = 60
_SCRIPT = '"$@" & read how; kill -${how:-INT} $!; wait $!'
"""Ends the server when the tests end, however they end: then nobody has the other end of its standard input."""


def binaries() -> Path | None:
    """The folder of `initdb` and `postgres`; None if no server is installed."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if found := shutil.which("initdb"):
        places.append(Path(found).resolve().parent)
    return next((place for place in places if (place / "postgres").exists()), None)


class PostgresServer:
    """A running server. Its user `turnlog` may do everything, and needs no password; a user `guarded`, if there is
    one, needs a password."""

    def __init__(self, folder: Path, home: Path, user: str | None, *, durable: bool) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        settings = f"listen_addresses=127.0.0.1 unix_socket_directories= port={self.port} max_connections=60"
        settings += "" if durable else " fsync=off"
        options = [word for setting in settings.split() for word in ("-c", setting)]
        self._command = ["sh", "-c", _SCRIPT, "sh", str(folder / "postgres"), "-D", str(home / "data"), *options]
        self._ready = [folder / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        self._home = home
        self._user = user
        self._names = count(1)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with open(self._home / "log", "ab") as log:
            self._running = subprocess.Popen(
                self._command, user=self._user, cwd=self._home, stdin=subprocess.PIPE, stdout=log, stderr=log
            )
        end = time.monotonic() + _PATIENCE_SECONDS
        while subprocess.run(self._ready, check=False).returncode:
            in_time = self._running.poll() is None and time.monotonic() < end
            assert in_time, (self._home / "log").read_text()

    def stop(self, how: str = "INT") -> None:
        """Stop it by a signal; `QUIT` is a crash, after which it has to recover."""
        self._running.communicate(f"{how}\n".encode(), timeout=_PATIENCE_SECONDS)

    def url(self, database: str = "postgres", *, user: str = "turnlog", schema: str = "", password: str = "") -> str:
        """The URL of a database, or of a schema in it."""
        options = f"?options=-csearch_path%3D{schema}" if schema else ""
        return f"postgresql://{user}{password and ':' + password}@127.0.0.1:{self.port}/{database}{options}"

    def run(self, *statements: str, url: str = "") -> list[tuple[object, ...]]:
        """Run statements; returns the rows of the last one."""
        import psycopg

        with psycopg.connect(url or self.url(), autocommit=True) as db:
            for statement in statements:
                found = db.execute(statement)
            return found.fetchall() if found.description else []

    def new_place(self) -> str:
        """The URL of a place for a new store: a schema of its own."""
        name = f"s{next(self._names)}"
        self.run(f"create schema {name}")
        return self.url(schema=name)


@contextmanager
def running_server(folder: Path, *, durable: bool = False) -> Iterator[PostgresServer]:
    """A server with its programs in `folder`, until the end of the block. As root it runs as the user `postgres`, since
    it refuses to be root. Unless `durable`, it does not wait for the disk."""
    home = Path(tempfile.mkdtemp(prefix="turnlog-postgres-"))  # pytest's folders are closed to other users
    user = "postgres" if os.geteuid() == 0 else None
    if user:
        shutil.chown(home, user)
    data = home / "data"
    try:
        made = [folder / "initdb", "-D", data, "-U", "turnlog", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run(made, user=user, cwd=home, check=True, capture_output=True, timeout=_PATIENCE_SECONDS)
        rules = data / "pg_hba.conf"
        rules.write_text(f"host all guarded 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        server = PostgresServer(folder, home, user, durable=durable)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)
