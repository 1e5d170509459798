"""Owners of a session that are processes, which are killed with SIGKILL: actors of the schedules in `leasing`."""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import Future
from multiprocessing.connection import Connection
from typing import Any

from leasing import PATIENCE_SECONDS, ThreadActor, Work
from turnlog.errors import SessionBusy

__all__ = ["ProcessActor"]

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["turnlog.session.open", "turnlog.stores.sqlite.store", "leasing"])


def serve(pipe: Connection) -> None:
    """Do what comes through the pipe, until it is closed or the process is killed."""
    work = Work("")
    while True:
        try:
            name, given = pipe.recv()
        except EOFError:
            return
        try:
            result = _fork(work) if name == "fork" else getattr(work, name)(*given)
        except BaseException as error:  # noqa: BLE001 - whoever asked is told
            result = f"{type(error).__name__}: {error}"
        pipe.send(result)


def _fork(work: Work) -> int:
    """Fork a child that tries to use the session and to end the turn, and then lives on. Returns its id, 0 if it did
    anything."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        refused = 0
        for use in (work.say, work.begin):
            try:
                use()
            except SessionBusy:
                refused += 1
        if work.turn is not None:
            work.turn.__exit__(SystemExit, SystemExit(), None)
        assert work.session is not None
        work.session.close()
        os.write(write, b"ok" if refused == 2 else b"no")
        signal.pause()
    os.close(write)
    said = os.read(read, 2)
    os.close(read)
    return child if said == b"ok" else 0


class Worker:
    """A process that serves one schedule after the other, until it is killed."""

    def __init__(self) -> None:
        self.pipe, end = _SERVER.Pipe()
        self.process = _SERVER.Process(target=serve, args=(end,), daemon=True)
        self.process.start()
        end.close()

    def kill(self) -> None:
        """Kill it, and wait until it is gone."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()
        self.pipe.close()


_idle: list[Worker] = []


class ProcessActor:
    """An actor that is a process."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._worker: Worker | None = None
        self._open = False
        self._caller = ThreadActor(place)._thread  # asks and waits for the answer

    def _ask(self, name: str, given: tuple[Any, ...]) -> Any:
        if self._worker is None:
            self._worker = _idle.pop() if _idle else Worker()
            self._worker.pipe.send(("__init__", (self._place,)))
            self._worker.pipe.recv()
        self._worker.pipe.send((name, given))
        return self._worker.pipe.recv()

    def __getattr__(self, name: str) -> Any:
        def tell(*given: Any) -> Future[Any]:
            return self._caller.submit(self._ask, name, given)

        return tell

    def lose(self) -> None:
        """See `leasing.Actor`: here it is `kill -9`."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None

    def leave(self) -> None:
        """See `leasing.Actor`. A worker without a session serves the next schedule."""
        if self._worker is not None:
            self._caller.submit(self._ask, "lose", ()).result(PATIENCE_SECONDS)
            _idle.append(self._worker)
        self._caller.shutdown()
