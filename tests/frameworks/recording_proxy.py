"""A proxy that keeps every byte of every exchange, and can answer again as it saw the server answer."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

__all__ = ["EXCEPTED", "Exchange", "RecordingProxy", "differences"]

EXCEPTED: frozenset[str] = frozenset()
"""Headers of requests that are not compared, in small letters."""


@dataclass
class Exchange:
    """A request and its answer, as they were on the wire; an answer in chunks with the lines between these."""

    head: bytes
    body: bytes
    answer_head: bytes = b""
    answer: bytes = b""

    @property
    def line(self) -> str:
        """The first line of the request."""
        return self.head.split(b"\r\n", 1)[0].decode()

    def headers(self) -> list[tuple[str, str]]:
        """The headers of the request in their order, without the excepted ones."""
        pairs = [line.split(":", 1) for line in self.head.decode("latin-1").split("\r\n")[1:] if line]
        return [(name.lower(), value.strip()) for name, value in pairs if name.lower() not in EXCEPTED]


class RecordingProxy(socketserver.ThreadingTCPServer):
    """Listens on `url` and asks the server at the port of `forward`. From `replay(exchanges)` on it asks nobody, and
    gives each request the answer that the same request had before; one that was not seen gets the next answer."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.port = 0
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.exchanges: list[Exchange] = []
        self.unused: list[Exchange] | None = None
        self.lock = threading.Lock()

    def start(self) -> RecordingProxy:
        """Listen, in a thread."""
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def stop(self) -> None:
        """Listen no more."""
        self.shutdown()
        self.server_close()

    def taken(self) -> list[Exchange]:
        """What was recorded since the last time."""
        with self.lock:
            taken, self.exchanges = self.exchanges, []
        return taken

    def replay(self, exchanges: list[Exchange]) -> None:
        """Answer from these."""
        self.unused = list(exchanges)

    def forward(self, port: int) -> None:
        """Ask a server, from now on."""
        self.unused, self.port = None, port

    def kept_answer(self, exchange: Exchange) -> Exchange:
        """The answer from what is replayed."""
        with self.lock:
            assert self.unused, f"no answer is left for {exchange.line}"
            same = [each for each in self.unused if each.body == exchange.body and each.line == exchange.line]
            found = (same or self.unused)[0]
            self.unused.remove(found)
        return found


class _Handler(socketserver.StreamRequestHandler):
    server: RecordingProxy
    disable_nagle_algorithm = True
    wbufsize = 0

    def handle(self) -> None:
        """Each request of a connection."""
        while head := _head(self.rfile):
            exchange = Exchange(head, b"".join(_body(self.rfile, head, is_request=True)))
            with self.server.lock:
                self.server.exchanges.append(exchange)
            if self.server.unused is None:
                self._forward(exchange)
            else:
                found = self.server.kept_answer(exchange)
                exchange.answer_head, exchange.answer = found.answer_head, found.answer
                self.wfile.write(found.answer_head + found.answer)

    def _forward(self, exchange: Exchange) -> None:
        with socket.create_connection(("127.0.0.1", self.server.port)) as upstream:
            upstream.sendall(exchange.head + exchange.body)
            with upstream.makefile("rb") as source:
                exchange.answer_head = _head(source)
                self.wfile.write(exchange.answer_head)
                for piece in _body(source, exchange.answer_head, is_request=False):
                    exchange.answer += piece
                    self.wfile.write(piece)


def _head(source: IO[bytes]) -> bytes:
    """The lines up to the empty one; nothing where the connection ended."""
    head = b""
    while line := source.readline():
        head += line
        if line == b"\r\n":
            return head
    return b""


def _body(source: IO[bytes], head: bytes, *, is_request: bool) -> Iterator[bytes]:
    """The pieces of a body, as they come."""
    fields = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])
    }
    if b"chunked" in fields.get(b"transfer-encoding", b""):
        while size := source.readline():
            piece = size + source.read(int(size, 16) + 2)
            yield piece
            if int(size, 16) == 0:
                return
    elif b"content-length" in fields:
        yield source.read(int(fields[b"content-length"]))
    elif not is_request:
        while piece := source.read(65_536):
            yield piece


def differences(one: list[Exchange], other: list[Exchange]) -> list[str]:
    """Where the requests of two runs differ, in words. Requests may be sent beside each other, so they are compared in
    the order of their bodies."""
    one, other = (sorted(run, key=lambda each: (each.line, each.body)) for run in (one, other))
    found = [] if len(one) == len(other) else [f"{len(one)} requests, and {len(other)}"]
    for n, (a, b) in enumerate(zip(one, other, strict=False), 1):
        if a.line != b.line:
            found.append(f"request {n}: {a.line!r}, and {b.line!r}")
        if a.headers() != b.headers():
            found.append(f"request {n}: headers {sorted(set(a.headers()) ^ set(b.headers()))} or their order")
        if a.body != b.body:
            at = next((i for i, (x, y) in enumerate(zip(a.body, b.body, strict=False)) if x != y), len(a.body))
            found.append(f"request {n}: body from byte {at}: {a.body[at : at + 60]!r}, and {b.body[at : at + 60]!r}")
        if (a.answer_head, a.answer) != (b.answer_head, b.answer):
            found.append(f"request {n}: the answer")
    return found
