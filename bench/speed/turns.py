"""What it costs to tell turns and calls from a log, and to go back in it: each beside reading the same records."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness import Report, bench, by_turns
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import Body, MessageRecord, ToolFinished, ToolStarted, TurnClosed, TurnOpened, UsageRecord
from turnlog.log.store import Draft
from turnlog.log.usage import Count, Usage
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


@bench(quick={"records": 1_000})
def turns(report: Report, *, records: int = 20_000) -> None:
    """What it costs to tell turns and calls from a log, and to go back in it, beside reading its records."""
    with tempfile.TemporaryDirectory() as folder:
        for name, place in (("sqlite", str(Path(folder) / "a.db")), ("files", f"files:{folder}/a")):
            store = open_store(place)
            store.create("s")
            store.append("s", [Draft(body) for one in bodies(records) for body in one])
            info = store.info("s")
            session = Session(store, info)
            log = session.log
            works = {
                "reading": session.history,
                "open": lambda info=info, store=store: Session(store, info),
                "begin": session._begin,
                **{fold.__name__: fold for fold in (log.turns, log.calls, log.tools_used, log.validate)},
                "rewind": lambda s=session: s.rewind(turns=1, dry_run=True),
                "undo": lambda s=session: (s.rewind(turns=1), s.undo("rewind")),
            }
            taken = by_turns(works, 3)
            report.row(f"{name}, reading all", {"records": info.records, "s": min(taken["reading"])})
            report.row(
                f"{name}, of that",
                {what: min(taken[what]) / min(taken["reading"]) for what in works if what != "reading"},
            )
            with session.turn("go") as live:
                status = by_turns({"status": lambda live=live: live.status}, 3)
            report.row(f"{name}, turn.status", {"ms": min(status["status"]) * 1000})
            store.close()
