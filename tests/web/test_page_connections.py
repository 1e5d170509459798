"""Connections that ask for nothing: they end, and keep nobody out."""

from __future__ import annotations

import logging
import socket
import time
from contextlib import ExitStack, suppress

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed: no page is served")

from serving import fetch, served
from turnlog.stores import MemoryStore

HALF = b"GET / HTTP/1.1\r\nHost: "


def connected(port: int, sent: bytes) -> socket.socket:
    """A connection that has sent this."""
    made = socket.create_connection(("127.0.0.1", port), timeout=10)
    made.sendall(sent)
    return made


def ended(connection: socket.socket) -> bool:
    """Whether the server has ended it, after what it answered."""
    try:
        while connection.recv(65_536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize("sent", [b"", HALF, b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"])
def test_half_a_request_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """Whoever begins requests and sends a byte now and then holds connections for ever."""
    monkeypatch.setattr("turnlog.web.connections.PATIENCE", 0.3)
    with served(MemoryStore()) as (_, port), connected(port, sent) as connection:
        connection.settimeout(0.05)
        begun = time.monotonic()
        while not ended(connection) and time.monotonic() < begun + 5:
            with suppress(ConnectionError):
                connection.sendall(b"x" if sent else b"")
        assert time.monotonic() < begun + 5


def test_many_connections_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program without the key opens connections, and the user gets no page."""
    monkeypatch.setattr("turnlog.web.connections._most", lambda: 20)
    with served(MemoryStore()) as (server, port), ExitStack() as stack:
        stream = fetch(port, "/live")
        many = [stack.enter_context(connected(port, HALF)) for _ in range(60)]
        assert fetch(port, "/").status == 200
        assert len(server.server_state.connections) <= 20
        assert ended(many[0])
        assert stream.readline() == b"retry: 1000\n"  # who is answered is not closed
        stream.close()


def test_what_strangers_send_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Any program of this machine fills the terminal."""
    upgrade = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    with caplog.at_level(logging.WARNING), served(MemoryStore()) as (_, port):
        for sent in (b"\x16\x03\x01\r\n\r\n", upgrade):
            with connected(port, sent) as connection:
                assert connection.recv(100).startswith(b"HTTP/1.1 4")
    assert caplog.text == ""
