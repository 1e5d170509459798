"""A process that follows a session by its log while others work in it, and are killed."""

from __future__ import annotations

import json
import os
import select
from typing import Any

import turnlog
from turnlog.session.answer import RUNNER

__all__ = ["PATIENCE_SECONDS", "Watcher", "forked"]

PATIENCE_SECONDS = 60.0
_END = "all is done"


def forked(job: Any, *given: Any) -> tuple[int, int]:
    """The id of a process that does a job, and the pipe that it writes to."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writes)
        return pid, reads
    try:
        os.close(reads)
        job(*given, writes)
    finally:
        os._exit(0)


def _follow(place: str, name: str, first: int, out: int) -> None:
    """Write a line for each event, until the end is told."""
    with turnlog.open(name, store=place, read_only=True) as session:
        for event in session.follow(first, every=0.002):
            assert event.record is not None
            os.write(out, (json.dumps([event.kind, event.text, event.record.n]) + "\n").encode())
            if event.text == _END:
                return


class Watcher:
    """A process that is told the events of a session, which exists, from record `first` on."""

    def __init__(self, place: str, name: str, first: int = 1) -> None:
        self._place, self._name, self._first = place, name, first
        self._pid, self._pipe = forked(_follow, place, name, first)

    def end(self) -> tuple[list[Any], list[Any]]:
        """What it was told, and what the log holds now that all is done."""
        with turnlog.open(self._name, store=self._place, wait=10) as session:
            session.note(RUNNER, _END)
            events = session.follow(self._first).waiting()
        told = self._lines()
        os.waitpid(self._pid, 0)
        end = [event.text for event in events].index(_END) + 1  # others may have said so since
        return told, [[event.kind, event.text, event.record.n] for event in events[:end] if event.record]

    def _lines(self) -> list[Any]:
        data = b""
        while True:
            assert select.select([self._pipe], [], [], PATIENCE_SECONDS)[0], "a follower hangs"
            piece = os.read(self._pipe, 1 << 16)
            if not piece:
                os.close(self._pipe)
                return [json.loads(line) for line in data.splitlines()]
            data += piece
