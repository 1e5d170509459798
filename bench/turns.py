"""What it costs to tell turns and calls from a log, and to go back in it: each beside reading the same records.

python bench/turns.py --records 20000
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import Body, MessageRecord, ToolFinished, ToolStarted, TurnClosed, TurnOpened, UsageRecord
from turnlog.log.store import Draft
from turnlog.log.usage import Count, Usage
from turnlog.session.recovery import begin
from turnlog.session.session import Session
from turnlog.stores import open_store

_SIZE = Count(30, "o200k/1", "exact")


def turn(n: int) -> list[Body]:
    """A turn with one tool call, that begins with record `n`."""
    call, name = ToolCall(f"call_{n}", "shell", {"command": "make"}), str(n)
    result = ToolResult(call.id, call.name, (Text("out " * 50),))
    return [
        TurnOpened(name),
        MessageRecord(Message("user", (Text("do it " * 20),)), _SIZE),
        MessageRecord(Message("assistant", (call,)), _SIZE),
        ToolStarted(call.id, n + 2, call.name),
        ToolFinished(call.id, n + 2, "ok", 0.1),
        MessageRecord(Message("user", (result,)), _SIZE),
        MessageRecord(Message("assistant", (Text("done " * 10),)), _SIZE),
        UsageRecord("openai-chat", "gpt-4o", Usage(input=100, output=5)),
        TurnClosed(name, "completed"),
    ]


def bodies(records: int) -> Iterator[list[Body]]:
    """Turns of so many records together."""
    n = 1
    while n <= records:
        yield turn(n)
        n += 9


def seconds(work: Callable[[], Any]) -> float:
    """How long it takes, the best of three."""
    best = float("inf")
    for _ in range(3):
        begun = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begun)
    return best


def main() -> None:
    """Print a table for each store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20_000)
    records = parser.parse_args().records
    with tempfile.TemporaryDirectory() as folder:
        for name, place in (("sqlite", str(Path(folder) / "a.db")), ("files", f"files:{folder}/a")):
            store = open_store(place)
            store.create("s")
            store.append("s", [Draft(body) for one in bodies(records) for body in one])
            info = store.info("s")
            session = Session(store, info)
            reading = seconds(session.history)
            print(f"{name}: {info.records:,} records; reading them all takes {reading:.2f} s")
            opening = seconds(lambda info=info, store=store: Session(store, info))  # type: ignore[misc]
            print(f"  open        {opening / reading:5.2f} of that")
            print(f"  begin       {seconds(lambda s=session: begin(s)) / reading:5.2f}")  # type: ignore[misc]
            for fold in (session.log.turns, session.log.calls, session.log.tools_used, session.log.validate):
                print(f"  {fold.__name__:<11} {seconds(fold) / reading:5.2f}")
            trying = seconds(lambda s=session: s.rewind(turns=1, dry_run=True))  # type: ignore[misc]
            print(f"  rewind      {trying / reading:5.2f}")
            print(f"  undo        {seconds(lambda s=session: (s.rewind(turns=1), s.undo('rewind'))) / reading:5.2f}")  # type: ignore[misc]
            with session.turn("go") as live:
                print(f"  turn.status {seconds(lambda live=live: live.status) * 1000:5.2f} ms")  # type: ignore[misc]
            store.close()


if __name__ == "__main__":
    main()
