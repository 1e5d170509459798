"""Random schedules of owners of one session: threads, tasks, and processes that are killed with SIGKILL.

    python bench/leases.py [--schedules 10000] [--steps 14] [--seed 1]

Each schedule has one session in a store on disk and three who open it (alone or shared), wait for it, read it, run
turns, record, fork, close it and die. A model says who has the session; after each step the log must agree: no two
living turns unless the session is shared, no living turn closed, no lease that outlives its owner by more than a
second, and a forked child owns nothing. Prints what was done; ends with status 1 and the shortest schedule that shows
it if anything is found. Needs fork (Linux, macOS).
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import signal
import sys
import time
from concurrent.futures import Future
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from leasing import ACTORS, PATIENCE_SECONDS, Schedule, ThreadActor, Work
from turnlog.errors import SessionBusy

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
        except BaseException as error:  # whoever asked is told
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


class Killed(Schedule):
    """The schedules of the tests, with processes."""

    kinds = st.lists(st.sampled_from(["process", "process", "thread", "task"]), min_size=3, max_size=3)
    stores = st.sampled_from(["sqlite", "files"])

    def made(self, kind: str) -> Any:
        """An actor."""
        if not hasattr(self, "children"):
            self.children: list[int] = []
        return ProcessActor(self.place) if kind == "process" else super().made(kind)

    @precondition(lambda self: any(self.kinds_of[who] == "process" for who in self.owners))
    @rule(who=ACTORS)
    def fork(self, who: int) -> None:
        """An owner forks; the child lives on after it."""
        owners = [each for each in sorted(self.owners) if self.kinds_of[each] == "process"]
        child = self.actors[owners[who % len(owners)]].fork().result(PATIENCE_SECONDS)
        assert isinstance(child, int) and child, f"a forked child used its parent's session: {child}"
        self.counts["forked"] += 1
        self.children.append(child)

    def teardown(self) -> None:
        """As the schedule's; the children that are left are killed."""
        super().teardown()
        for child in getattr(self, "children", ()):
            os.kill(child, signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent.parent / "tests")
    logging.getLogger("turnlog").addHandler(logging.NullHandler())
    logging.getLogger("turnlog").propagate = False
    begun, found = time.monotonic(), 0
    run = settings(
        max_examples=arguments.schedules,
        stateful_step_count=arguments.steps,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(seed(arguments.seed)(Killed), settings=run)
    except BaseException as error:  # a finding
        found = 1
        print(f"FOUND: {type(error).__name__}: {error}", *getattr(error, "__notes__", ()), sep="\n")
    for name, count in sorted(Schedule.counts.items()):
        print(f"{name}: {count:,}")
    print(f"longest wait for a session that was free: {Schedule.longest[0]:.3f} s")
    print(f"{time.monotonic() - begun:.0f} s, {'a finding' if found else 'nothing found'}")
    return found


if __name__ == "__main__":
    sys.exit(main())
