"""Crashes of a PostgreSQL server, and of those who write to it: an append that returned is there once, whole.

Four processes append to one session, as fast as they can. Again and again the server crashes and recovers, or a writer
is killed with SIGKILL and another begins. An append whose error says that it may have happened is not repeated.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from draws import draws
from postgres_server import binaries, running_server
from turnlog.log.messages import text_of
from turnlog.stores import open_store

WRITERS, APPENDS = 4, 25
PROGRAM = """
import select, sys
from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft
from turnlog.stores import open_store
place, name = sys.argv[1:]
store, number = None, 0
while True:
    number += 1
    said = [f"{name}.{number}", f"{name}.{number}+"]
    try:
        store = store or open_store(place)
        store.append("s", [Draft(MessageRecord(Message("user", (Text(text),)))) for text in said])
    except Exception as error:
        print("unknown" if "may have happened" in str(error) else "refused", said[0], flush=True)
        select.select([], [], [], 0.02)
    else:
        print("done", said[0], flush=True)
"""
"""Appends pairs of messages, and prints the name of each pair once the call has returned."""


class Writers:
    """The processes that write, and what they said so far."""

    def __init__(self, place: str) -> None:
        self._place, self._names = place, iter(range(10**6))
        self.running: list[subprocess.Popen[str]] = []
        self.told: list[list[str]] = []
        for _ in range(WRITERS):
            self.begin()

    def begin(self) -> None:
        """Start one more."""
        command = [sys.executable, "-c", PROGRAM, self._place, f"w{next(self._names)}"]
        self.running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))

    def go_on(self) -> None:
        """Until each of them has appended so often."""
        for one in self.running:
            assert one.stdout is not None
            done = 0
            while done < APPENDS:
                self.told.append(one.stdout.readline().split())
                done += self.told[-1][0] == "done"

    def kill(self, one: subprocess.Popen[str]) -> None:
        """Kill one, and hear it out."""
        self.running.remove(one)
        one.kill()
        rest, _ = one.communicate()
        self.told += [line.split() for line in rest.splitlines() if line.count(".")]


@pytest.mark.slow
def test_what_crashes_cost(tmp_path: Path, record_property: Any) -> None:
    """An answer that the user saw and that is gone, or that is there twice."""
    pytest.importorskip("psycopg", reason="the package psycopg is absent", exc_type=ImportError)
    if (binary := binaries()) is None:
        pytest.skip("no PostgreSQL server is installed: apt-get install postgresql")
    chance, counts = random.Random(1), Counter[str]()
    with running_server(binary, durable=True) as server:
        place = server.new_place()
        with closing(open_store(place)) as store:
            store.create("s")
        writers = Writers(place)
        for _ in range(draws(1, 8)):
            writers.go_on()
            server.stop("QUIT")
            server.start()
            writers.go_on()
            writers.kill(chance.choice(writers.running))
            writers.begin()
        for one in [*writers.running]:
            writers.kill(one)
        with closing(open_store(place)) as store:
            records = list(store.read("s"))
            problems = store.verify()
    said = [text_of(record.message) for record in records if record.message]
    there = Counter(said)
    counts.update(word for word, _ in writers.told)
    record_property("appends", dict(counts))
    assert problems == [] and [record.n for record in records] == list(range(1, len(records) + 1))
    assert [text for word, text in writers.told if word == "done" and there[text] != 1] == []
    assert [text for word, text in writers.told if word == "refused" and there[text]] == []
    assert max(there.values()) == 1
    assert [first for first, second in zip(said[::2], said[1::2], strict=True) if second != f"{first}+"] == []
