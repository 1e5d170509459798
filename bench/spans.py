"""What spans cost a turn, and sources a listing: each beside the same without.

python bench/spans.py --turns 500 --sessions 300
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import closing
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider

import turnlog
from turnlog import telemetry as spans
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
            spans.attach(session, tracer_provider=TracerProvider(), content=content)
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


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--sessions", type=int, default=300)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        plain = live(Path(name), arguments.turns, content=None)
        print(f"a turn without spans        {plain * 1e3:8.2f} ms")
        for content, what in ((False, "with spans"), (True, "with spans and contents")):
            seconds = live(Path(name), arguments.turns, content=content)
            print(f"a turn {what:<24} {seconds * 1e3:5.2f} ms  {seconds / plain:.2f} times")
        listed, found = listing(Path(name), arguments.sessions)
        print(f"listing {arguments.sessions} sessions {listed * 1e3:.1f} ms, the source of all {found * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
