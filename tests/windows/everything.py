"""Uses every store, an agent with tools, and a chat. `test_without_posix.py` runs this with what Windows lacks taken
away."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import turnlog
from turnlog.agent import tool
from turnlog.chat.choice import Choice
from turnlog.chat.conversation import Chat
from turnlog.export import FORMATS
from turnlog.log.records import Note
from turnlog.log.store import Draft, Store
from turnlog.redaction.scrub import scrub
from turnlog.runners import DEMO_MODEL, ScriptedRunner
from turnlog.stores import MemoryStore, open_store
from turnlog.testing.leases import check_leases
from turnlog.testing.stores import STORE_CHECKS

DEMO = turnlog.target("openai-chat", DEMO_MODEL)
KEY = bytes(range(32))


def _stores(folder: Path) -> dict[str, Callable[[], Store]]:
    return {
        "memory": MemoryStore,
        "sqlite": lambda: open_store(folder / "s.db"),
        "files": lambda: open_store(f"files:{folder / 's'}"),
        "locked sqlite": lambda: open_store(folder / "locked.db", key=KEY),
        "locked files": lambda: open_store(f"files:{folder / 'locked'}", key=KEY),
    }


def promises(folder: Path) -> None:
    """What every store promises, but for leases on disk, which need locks of the system."""
    for check in STORE_CHECKS:
        for name in _stores(folder):
            if check is check_leases and name != "memory":
                continue
            place = folder / f"{check.__name__} {name}"
            place.mkdir()
            with closing(_stores(place)[name]()) as store:
                check(store)


def sessions(folder: Path) -> None:
    """A session's life in every store: opened, continued, packed, scrubbed, exported, deleted."""
    for name, opened in _stores(folder).items():
        with closing(opened()) as store:
            for text in ("one", "two"):
                with turnlog.open("a:b?", store=store, target=DEMO) as session:
                    turnlog.run(session, text, ScriptedRunner())
                    session.fork(f"fork of {text}").close()
                store.pack("a:b?")
            assert scrub(store, "a:b?").redacted == {}
            assert [len(b"".join(write(store, "a:b?", []))) > 0 for write in FORMATS.values()], name
            assert store.verify() == [], name
            store.rename("a:b?", "x")
            store.delete("fork of one")
            turnlog.collect(store, turnlog.Limits(max_sessions=1))
            store.reclaim()
            assert {info.id for info in store.sessions()} <= {"a:b?", "fork of two"}, name


def secrets(folder: Path) -> None:
    """A log that is written anew in every store, packed and not."""
    for name, opened in _stores(folder).items():
        with closing(opened()) as store:
            for session_id, packed in (("plain", False), ("packed", True)):
                store.create(session_id)
                store.append(session_id, [Draft(Note("x", "password = hunter2hunter2"))])
                if packed:
                    store.pack(session_id)
                assert scrub(store, session_id).redacted == {"password": 1}, name
                assert "hunter2" not in "".join(map(repr, store.read(session_id))), name


def agent() -> None:
    """An agent that calls a function, in the thread of a blocking run."""

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    with turnlog.open("a", store=MemoryStore(), target=DEMO) as session:
        done = turnlog.run(session, 'CALL add {"a": 2, "b": 3}', ScriptedRunner(), tools=[tool(add)])
        assert "5" in done.text


def chat(folder: Path) -> None:
    """A chat that runs commands and searches, with its watch of the folder."""
    store = open_store(f"files:{folder / 'chat'}")
    work = folder / "work"
    work.mkdir()
    (work / "x.txt").write_text("needle\n")
    start = partial(turnlog.open, store=store, settings=turnlog.Settings())
    allowed = ("run_command", "edit_file", "search", "read_file")
    talk = Chat(store, start, start("s", target=DEMO), Choice(DEMO, ScriptedRunner()), folder=work, allowed=allowed)

    async def say(text: str) -> str:
        return "".join([event.text async for event in talk.say(text) if event.kind == "text"])

    for call, expected in (
        ('run_command {"command": "echo said-it"}', "said-it"),
        ('search {"pattern": "need"}', "needle"),
        ('read_file {"path": "x.txt"}', "needle"),
    ):
        said = asyncio.run(say(f"CALL {call}"))
        assert expected in said, said
    asyncio.run(say('CALL edit_file {"path": "x.txt", "old": "needle", "new": "thread"}'))
    assert (work / "x.txt").read_bytes() == b"thread\n"
    asyncio.run(say('CALL run_command {"command": "sleep 30", "seconds": 1}'))  # is ended with `taskkill`
    asyncio.run(talk.aclose())
    store.close()


def main(folder: Path) -> None:
    """Everything, in an empty folder."""
    for part in (promises, sessions, secrets, chat):
        place = folder / part.__name__
        place.mkdir()
        part(place)
    agent()
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
