"""`turnlog serve`: records on their way to a page, and pages over large stores.

The server is the command in a process of its own; its CPU and memory are those that the system tells of it. Where the
time is the server's, the store is a SQLite file.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from harness import Report, bench, quantile
from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord, UsageRecord
from turnlog.log.store import Draft
from turnlog.log.usage import Usage
from turnlog.stores import open_store
from turnlog.web.guard import root_of

_TICKS = os.sysconf("SC_CLK_TCK")
_RECORD = re.compile(r'id=\\"r(\d+)\\"')
_SENT = re.compile(r"sent (\d+\.\d+)")


class Server(NamedTuple):
    """A running server."""

    process: subprocess.Popen[str]
    port: int
    cookie: str
    root: str

    def get(self, path: str) -> HTTPResponse:
        """An answer; its body can be read on."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("GET", self.root + path, headers={"Cookie": self.cookie})
        return connection.getresponse()

    @property
    def cpu(self) -> float:
        """Seconds of CPU so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def memory(self) -> float:
        """The most memory so far, in MB."""
        [line] = [each for each in Path(f"/proc/{self.process.pid}/status").read_text().splitlines() if "VmHWM" in each]
        return int(line.split()[1]) / 1000


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server of the store in this folder."""
    variables = {**os.environ, "XDG_STATE_HOME": str(folder)}
    words = [sys.executable, "-m", "turnlog", "--store", str(folder / "log.db"), "serve", "--port", "0"]
    pipe: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(words, env=variables, **pipe) as process:
        try:
            assert process.stdout is not None
            url = urlsplit(process.stdout.readline().strip())
            token = url.query.removeprefix("token=")
            yield Server(process, url.port or 0, f"turnlog-{url.port}={token}", root_of(token))
        finally:
            process.kill()


def said(text: str, role: Any = "assistant") -> Draft:
    """A message as a record."""
    return Draft(MessageRecord(Message(role, (Text(text),))))


def write(path: Path, session: str, many: int, each: float) -> None:
    """Append so many records, one after the other, each with the time at which it is sent."""
    store = open_store(path)
    begun = time.monotonic()
    for n in range(many):
        time.sleep(max(0.0, begun + n * each - time.monotonic()))
        store.append(session, [said(f"Record {n}, sent {time.time():.6f} to {session}.")])
    store.close()


def read(stream: HTTPResponse, many: int, late: list[float], seen: list[int]) -> None:
    """Take so many records from a stream, with the seconds that each was on its way."""
    while len(seen) < many and (line := stream.readline().decode("utf-8")):
        if line.startswith("data: ") and '"html"' in line:
            now, marks = time.time(), list(_RECORD.finditer(line))
            for mark, end in zip(marks, [*(each.start() for each in marks[1:]), len(line)], strict=False):
                if int(mark[1]) > (seen[-1] if seen else 0):  # the last one is sent again: something may follow it now
                    seen.append(int(mark[1]))
                    late.append(now - float(_SENT.search(line, mark.start(), end)[1]))  # type: ignore[index]


@bench(quick={"seconds": 5})
def live(report: Report, *, writers: int = 10, rate: int = 20, seconds: int = 60) -> None:
    """Ten sessions that grow, each on a page: whether each record comes once and in order, and how late."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.db"
        store = open_store(path)
        names = [f"s{n}" for n in range(writers)]
        for name in names:
            store.create(name)
        with serving(Path(folder)) as server:
            many, late = rate * seconds, [list[float]() for _ in names]
            seen = [list[int]() for _ in names]
            tasks = [
                *(threading.Thread(target=read, args=(server.get(f"/s/{name}/live?after=0"), many, late[n], seen[n]))
                  for n, name in enumerate(names)),
                *(threading.Thread(target=write, args=(path, name, many, 1 / rate)) for name in names),
            ]  # fmt: skip
            for task in tasks:
                task.start()
            for task in tasks:
                task.join()
            cpu, memory = server.cpu, server.memory
        store.close()
    wrong = [f"{name}: {len(numbers)} of {many}" for name, numbers in zip(names, seen, strict=True)
             if numbers != list(range(1, many + 1))]  # fmt: skip
    report.findings("sessions with records lost, twice or out of order", wrong)
    times = [each for one in late for each in one]
    figures = {"ms": 1000 * median(times), "ms at the 99th of 100": 1000 * quantile(times, 0.99)}
    report.row(f"{len(times):,} records on their way", figures, at_most={"ms": 300})
    report.row("server", {"s of CPU": cpu, "MB": memory}, at_most={"MB": 150})


def fill(path: Path, sessions: int, records: int) -> None:
    """A store of so many short sessions, and one long session."""
    store = open_store(path)
    for n in range(sessions):
        store.create(f"s{n}", title=f"session {n}")
        usage = UsageRecord("anthropic", f"claude-sonnet-4-{n % 5}", Usage(1_000 + n, 100))
        store.append(f"s{n}", [said(f"Question {n}?", "user"), said(f"Answer about thing{n % 97}."), Draft(usage)])
    store.create("long", title="the long one")
    for first in range(0, records, 5_000):
        many = range(first, min(first + 5_000, records))
        store.append("long", [said(f"Record {n} of **many**, about `thing{n % 97}`.\n\n- one\n- two",
                                   "assistant" if n % 40 else "user") for n in many])  # fmt: skip
    store.close()


@bench(quick={"sessions": 200, "records": 2_000, "rounds": 2})
def pages(report: Report, *, sessions: int = 10_000, records: int = 100_000, rounds: int = 5) -> None:
    """Pages over a store of many sessions, one of them long: the first time and later, and the server's memory."""
    middle = records // 2
    asked = {
        "short session": ("/s/s1", 0), "list": ("/", 200), "session": ("/s/long", 200),
        "any record": (f"/s/long?at={middle}", 200),
        "window": (f"/s/long/talk?from={middle}", 200), "prompts": (f"/s/long/rail?at={middle}", 0),
        "one record": (f"/s/long/r/{middle}", 200), "search": ("/hits?q=thing12", 0), "figures": ("/figures", 0),
        "window use": ("/s/long/window", 0), "requests": ("/s/s1/requests", 0),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder) / "log.db", sessions, records)
        with serving(Path(folder)) as server:
            for when, times in (("first", 1), ("later", rounds)):
                for name, (path, bar) in asked.items():
                    taken, size = list[float](), 0
                    for _ in range(times):
                        before, answer = server.cpu, server.get(path)
                        size = len(answer.read())
                        taken.append(1000 * (server.cpu - before))
                        if answer.status != 200:
                            report.missed.append(f"{path}: {answer.status}")
                    figures = {"ms of CPU": median(taken), "KB": size / 1000, "MB held": server.memory}
                    report.row(f"{name}, {when}", figures, at_most={"ms of CPU": bar} if bar else {})
            report.row("server", {"MB": server.memory}, at_most={"MB": 150})
