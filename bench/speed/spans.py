"""What spans cost a turn, and sources a listing: each beside the same without."""

from __future__ import annotations

import tempfile
import time
from contextlib import closing
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider

import turnlog
from harness import Report, bench
from turnlog import telemetry
from turnlog.session.reader import source_of
from turnlog.stores import open_store

TARGET = turnlog.target("openai-chat", "gpt-4o")
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":"x"}'}}
ANSWER = {
    "model": "gpt-4o",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "tool_calls": [CALL]}}],
    "usage": {"prompt_tokens": 100, "completion_tokens": 10},
}


def live(folder: Path, turns: int, *, content: bool | None) -> float:
    """Seconds of processor time that a turn with one tool takes, on average; `content` is None without spans."""
    with turnlog.open("s", target=TARGET, store=folder / f"{content}.db") as session:
        if content is not None:
            telemetry.attach(session, tracer_provider=TracerProvider(), content=content)
        begun = time.process_time()
        for _ in range(turns):
            with session.turn("go on " * 50) as turn:
                (call,) = turn.receive(ANSWER).tool_calls
                with turn.tool(call) as run:
                    run.result("out " * 200)
        return (time.process_time() - begun) / turns


def listing(folder: Path, sessions: int) -> tuple[float, float]:
    """Seconds of processor time to list sessions, and to find the source of each."""
    with closing(open_store(folder / "many.db")) as store:
        for n in range(sessions):
            turnlog.open(f"s{n}", target=TARGET, store=store, settings=turnlog.Settings(source="interactive")).close()
        begun = time.process_time()
        infos = store.sessions()
        listed = time.process_time()
        assert all(source_of(store, info.id) == "interactive" for info in infos)
        return listed - begun, time.process_time() - listed


@bench(quick={"turns": 50, "sessions": 50})
def spans(report: Report, *, turns: int = 500, sessions: int = 300) -> None:
    """What spans cost a turn, and sources a listing: each beside the same without."""
    with tempfile.TemporaryDirectory() as name:
        plain = live(Path(name), turns, content=None)
        report.row("a turn without spans", {"ms": plain * 1e3})
        for content, what in ((False, "with spans"), (True, "with spans and contents")):
            took = live(Path(name), turns, content=content)
            report.row(f"a turn {what}", {"ms": took * 1e3, "times": took / plain})
        listed, found = listing(Path(name), sessions)
        report.row(
            "listing", {"sessions": sessions, "ms": listed * 1e3, "ms for the source of each": found * 1e3 / sessions}
        )
