"""`turnlog serve`: what it prints, how it ends, and transcripts that grow while it runs."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from commands import Command
from serving import events
from turnlog.stores import open_store


@contextmanager
def running(tmp_path: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command in a process of its own, and the address that it printed. It ends as with Ctrl-C."""
    variables = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    variables |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    command = [sys.executable, "-m", "turnlog", "--store", str(tmp_path / "log.db"), "serve", *words]
    # A shell that started the tests behind it may have told them to ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    pipe: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=variables, **pipe) as process:
        signal.signal(signal.SIGINT, before)
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(30)
            finally:
                process.kill()


def got(url: str, path: str = "", cookie: str = "") -> Any:
    """The answer at an address; with the token in it, without a path."""
    parts = urlsplit(url)
    path = path and parts.path.rstrip("/") + path
    connection = HTTPConnection(parts.netloc, timeout=30)
    connection.request("GET", path or f"{parts.path}?{parts.query}", headers={"Cookie": cookie} if cookie else {})
    return connection.getresponse()


def log_in(url: str) -> str:
    """The cookie for the printed address."""
    cookie: str = got(url).headers["Set-Cookie"].partition(";")[0]
    return cookie


@pytest.mark.slow
def test_it_prints_an_address_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    """The printed address does not open, or Ctrl-C shows a traceback or hangs while a page is open."""
    make_store(tmp_path)
    with running(tmp_path, "--port", "0") as (process, url):
        assert url.startswith("http://127.0.0.1:") and "/?token=" in url
        cookie = log_in(url)
        assert "a title" in got(url, "/", cookie).read().decode()
        stream = got(url, "/s/s/live", cookie)
    assert process.returncode == 130
    assert stream.read().endswith(b"\n")


def make_store(tmp_path: Path) -> None:
    """A store with one session."""
    store = open_store(tmp_path / "log.db")
    store.create("s", title="a title")
    store.close()


@pytest.mark.slow
def test_the_token_outlives_the_server(tmp_path: Path) -> None:
    """Open pages and kept addresses end with each restart, or `--new-token` leaves the old key valid."""
    make_store(tmp_path)
    tokens, cookies = [], []
    for words in ((), (), ("--new-token",)):
        with running(tmp_path, "--port", "0", *words) as (_, url):
            tokens.append(urlsplit(url).query)
            cookies.append(log_in(url).partition("=")[2])
            name = f"turnlog-{urlsplit(url).port}"
            assert got(url, "/", f"{name}={cookies[0]}").status == (403 if words else 200)
    assert tokens[0] == tokens[1] != tokens[2]


@pytest.mark.slow
def test_a_taken_port_is_told(tmp_path: Path) -> None:
    """The usual port is taken, and the command fails, or says nothing of the other one."""
    make_store(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with running(tmp_path, "--port", str(taken.getsockname()[1])) as (process, url):
            assert url == ""
            process.wait(30)
            assert process.stderr is not None and "--port 0 takes any" in process.stderr.read()
        assert process.returncode == 2


CLAUDE = {"sessionId": "grown", "cwd": "/work", "version": "2.0.1"}


def line(n: int, text: str) -> str:
    """A line of a transcript of Claude Code."""
    content = {"role": "user", "content": text}
    return json.dumps({**CLAUDE, "type": "user", "uuid": f"u{n}", "timestamp": f"2026-01-01T00:00:{n:02}Z",
                       "parentUuid": f"u{n - 1}" if n else None, "message": content}) + "\n"  # fmt: skip


@pytest.mark.slow
def test_a_transcript_grows_on_the_page(tmp_path: Path) -> None:
    """With --discover, what an agent writes is not seen until the server starts again."""
    place = tmp_path / ".claude" / "projects" / "-work" / "grown.jsonl"
    place.parent.mkdir(parents=True)
    place.write_text(line(0, "the beginning"), "utf-8")
    with running(tmp_path, "--discover", str(tmp_path), "--port", "0") as (_, url):
        cookie = log_in(url)
        listed = events(got(url, "/live", cookie))
        if "grown" not in got(url, "/", cookie).read().decode():
            next(listed)
        stream = events(got(url, "/s/grown/live?after=0", cookie))
        _, last, data = next(stream)
        assert "the beginning" in data
        with place.open("a", encoding="utf-8") as file:
            file.write(line(1, "the continuation"))
        while "the continuation" not in data:
            _, last, data = next(stream)
        assert int(last) >= 2


def test_without_the_extra_it_says_what_to_install(turnlog: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A traceback, where one word of advice is enough."""

    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("turnlog.cli.serve.import_module", absent)
    ended = turnlog("serve")
    assert ended.code == 2 and "serve: the extra web is missing" in ended.err and "[web]" in ended.err


def test_a_store_that_is_not_there_is_not_made(turnlog: Command, tmp_path: Path) -> None:
    """A mistyped name makes an empty store."""
    assert turnlog("serve", "--port", "0").code == 3
    assert not (tmp_path / "log.db").exists()


@pytest.mark.parametrize("port", ["-1", "65536", "x", "٣", ""])
def test_what_is_no_port_is_refused(turnlog: Command, port: str) -> None:
    """A mistyped port is another one."""
    assert turnlog("serve", f"--port={port}").code == 2
