"""A server of pages, asked without a network or over one."""

from __future__ import annotations

import asyncio
import http.client
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import unquote

from turnlog.log.store import Store
from turnlog.web.guard import root_of

PORT, TOKEN = 7333, "a-token-of-tests-that-is-long-enough-000"
ROOT = root_of(TOKEN)
COOKIE = f"turnlog-{PORT}={TOKEN}"
OURS = {"host": f"127.0.0.1:{PORT}", "cookie": COOKIE}
"""What a browser sends that is logged in."""


class Answered(NamedTuple):
    """An answer: status, headers, body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8")


def ask(
    app: Any, target: str, headers: Mapping[str, str] | None = None, method: str = "GET", root: str = ROOT
) -> Answered:
    """What an ASGI application answers to a request whose target is sent byte for byte below its root."""
    path, _, query = (root + target).partition("?")
    given = OURS if headers is None else headers
    scope = {
        "type": "http", "method": method, "raw_path": path.encode("latin-1"), "query_string": query.encode("latin-1"),
        "path": unquote(path), "http_version": "1.1", "scheme": "http",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()],
    }  # fmt: skip
    sent: list[Any] = []
    asked = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Any:
        return next(asked, None) or await asyncio.Event().wait()  # a browser that stays

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    fields = {name.decode().lower(): value.decode("latin-1") for name, value in sent[0]["headers"]}
    return Answered(sent[0]["status"], fields, b"".join(message.get("body", b"") for message in sent[1:]))


@contextmanager
def served(store: Store, port: int = 0) -> Iterator[tuple[Any, int]]:
    """A server of this store in a thread, and its port."""
    from turnlog.web.app import PageServer, listening

    with listening(port) as at:
        server = PageServer(store, TOKEN, at)
        thread = threading.Thread(target=server.serve_pages)
        thread.start()
        try:
            yield server, at.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()


def fetch(port: int, target: str, **headers: str) -> http.client.HTTPResponse:
    """The answer of a server to a browser that is logged in; its body can be read on."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", ROOT + target, headers={"Cookie": f"turnlog-{port}={TOKEN}", **headers})
    return connection.getresponse()


def events(stream: http.client.HTTPResponse) -> Iterator[tuple[str, str, str]]:
    """The events of a stream: name, id, data."""
    fields: dict[str, str] = {}
    while line := stream.readline().decode("utf-8"):
        name, _, value = line.rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        elif fields.get("event"):
            yield fields["event"], fields.get("id", ""), fields["data"]
        if not line.strip():
            fields = {}
