"""What the command line says of turns, tools and where sessions come from."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import (
    Approval,
    MessageRecord,
    Note,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    TurnClosed,
    TurnOpened,
    UsageRecord,
)
from turnlog.log.store import Draft
from turnlog.log.usage import Usage
from turnlog.stores import open_store

CALLS = (ToolCall("c1", "run", {}), ToolCall("c2", "run", {}), ToolCall("c3", "look", {}))
BODIES = [
    SessionOpened("interactive"),
    TurnOpened("2"),
    MessageRecord(
        Message("user", (Text("Do it,\n\x1b[31mnow and at once, and then whatever else there may be to do."),))
    ),
    MessageRecord(Message("assistant", CALLS[:1])),
    UsageRecord("openai-chat", "gpt-4o", Usage(input=1200, output=80)),
    ToolStarted("c1", 4, "run"),
    ToolFinished("c1", 4, "timeout", 12.5),
    MessageRecord(Message("user", (ToolResult("c1", "run", (Text("late"),), "timeout"),))),
    TurnClosed("2", "failed", "TimeoutError: gave up"),
    SessionOpened("non-interactive", resumed=True),
    TurnOpened("11"),
    MessageRecord(Message("user", (Text("Again."),))),
    MessageRecord(Message("assistant", CALLS[1:])),
    Approval("c2", "asked", 13),
]


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A store with session `s`, which waits in its second turn, and `old`, of which less is known."""
    path = tmp_path / "log.db"
    with closing(open_store(path)) as store:
        store.create("s", created="2025-01-01T00:00:00.000Z")
        store.append("s", [Draft(body, f"2025-01-01T00:00:{n:02}.000Z") for n, body in enumerate(BODIES, 1)])
        store.create("old", created="2024-01-01T00:00:00.000Z")
        store.append("old", [Draft(MessageRecord(Message("user", (Text("hi"),))), "2024-01-01T00:00:00.000Z")])
    return path


def test_turns(turnlog: Any, session: Path) -> None:
    """Which call an open turn waits for, and for what, is what somebody looks for who was called to it."""
    ended = turnlog("show", "s", "--turns")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        "TURN  RECORDS  SECONDS  CALLS  TOKENS     COST  STATUS"
        "                                                  INPUT\n"
        "   1     2-10      7.0      1   1,280  $0.0038  failed: TimeoutError: gave up"
        "                           Do it, \\u001b[31mnow and at once, and then whatever else th…\n"
        "   2    11-14               2       0        -  awaiting approval of run (c2), the result of look (c3)"
        "  Again.\n"
    )
    first, second = turnlog("show", "s", "--turns", "--json").rows
    assert (first["status"], first["reason"], first["seconds"]) == ("failed", "TimeoutError: gave up", 7.0)
    assert (first["usage"]["input"], first["cost"]["total"]) == (1200, 0.0038)
    assert {key: value for key, value in second.items() if key not in ("usage", "cost")} == {
        "turn": 2, "id": "11", "records": [11, 14], "status": "awaiting_approval", "reason": "",
        "started": "2025-01-01T00:00:11.000Z", "seconds": None, "input": "Again.", "answer": "", "calls": 2,
        "awaiting": [
            {"call_id": "c2", "name": "run", "record": 13, "awaits": "approval"},
            {"call_id": "c3", "name": "look", "record": 13, "awaits": "result"},
        ],
    }  # fmt: skip
    assert "turn 11 is open: awaiting approval of run (c2), the result of look (c3)" in turnlog("doctor", "s").out


def test_tools(turnlog: Any, session: Path) -> None:
    """What each tool did, how it ended, how long it took: the figures that a slow or failing one is found by."""
    assert turnlog("show", "s", "--tools").out == (
        "TOOL  CALLS  FAILED  SECONDS  LONGEST  TOKENS  OUTCOMES\n"
        "look      1       -        -        -       -  1 unknown\n"
        "run       2       1     12.5     12.5       1  1 timeout, 1 unknown\n"
    )
    run = {"name": "run", "calls": 2, "outcomes": {"timeout": 1, "unknown": 1}, "timed": 1, "seconds": 12.5}
    assert turnlog("show", "s", "--tools", "--json").rows[1] == {
        **run, "longest": 12.5, "result_tokens": 1, "failed": 1,
    }  # fmt: skip
    assert turnlog("show", "s", "--tools", "--cost").code == 2


def test_tools_of_all_sessions(turnlog: Any, session: Path) -> None:
    """Which tool fails or is slow over weeks is seen in no single session; a call that a fork or a transcript that was
    resumed has, too, was made once."""
    with closing(open_store(session)) as store:
        store.fork("s", "fork", at=12)
        store.append("fork", [Draft(MessageRecord(Message("assistant", (ToolCall("c9", "look", {}),))))])
        called = MessageRecord(Message("assistant", (ToolCall("c1", "Bash", {}),)), response_id="msg_1")
        failed = MessageRecord(Message("user", (ToolResult("c1", "Bash", (Text("no"),), outcome="failed"),)))
        for day, name in (1, "first"), (2, "resumed"):
            store.create(name, created=f"2025-02-0{day}T00:00:00.000Z")
            bodies = zip((0, 1, 4), (Note("context", data={"version": "2"}), called, failed), strict=True)
            store.append(name, [Draft(body, f"2025-02-01T00:00:0{n}.000Z") for n, body in bodies])
    found = turnlog("show", "--tools", "--all")
    assert (found.out, found.err) == (
        "TOOL  CALLS  FAILED  SECONDS  LONGEST  TOKENS  OUTCOMES\n"
        "look      2       -        -        -       -  2 unknown\n"
        "run       2       1     12.5     12.5       1  1 timeout, 1 unknown\n"
        "Bash      1       1      3.0      3.0       1  1 failed\n",
        "5 calls of 3 tools in 5 sessions\n",
    )
    bash = {
        "name": "Bash", "calls": 1, "outcomes": {"failed": 1}, "timed": 1, "seconds": 3.0, "longest": 3.0,
        "result_tokens": 1, "failed": 1,
    }  # fmt: skip
    assert turnlog("show", "--tools", "--all", "--json").rows[2] == bash
    assert turnlog("show", "--tools", "--all", "--json", "--agent", "claude").rows == [bash]
    assert [row["name"] for row in turnlog("show", "--tools", "--all", "--json", "--since", "2025-02").rows] == [
        "Bash", "look",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--all",), "turnlog show: --all goes with --tools, without ID\n"),
        (("s", "--tools", "--all"), "turnlog show: --all goes with --tools, without ID\n"),
        (("--tools",), "turnlog show: the following arguments are required: ID\n"),
        (("s", "--tools", "--since", "1d"), "turnlog show: --since and --agent go with --tools --all\n"),
    ],
)
def test_what_does_not_go_together(turnlog: Any, session: Path, arguments: tuple[str, ...], told: str) -> None:
    """An option that is passed over would be taken for one that was heeded."""
    refused = turnlog("show", *arguments)
    assert refused.code == 2 and refused.err.endswith(f"\n{told}")


def test_sources(turnlog: Any, session: Path) -> None:
    """From where a session was opened stands at its head and at each opening; one can ask the listing for it."""
    assert turnlog("ls").out == (
        "ID   WHEN                      AGENT    FOLDER  MSG  TITLE\n"
        "s    2025-01-01T00:00:14.000Z  turnlog  -         5  Do it,\n"
        "old  2024-01-01T00:00:00.000Z  -        -         1  hi\n"
    )
    found = {
        source: [row["id"] for row in turnlog("ls", "--json", "--source", source).rows]
        for source in ("interactive", "non-interactive", "embedded-server", "resumed")
    }
    assert found == {"interactive": ["s"], "non-interactive": [], "embedded-server": [], "resumed": ["s"]}
    assert turnlog("ls", "--source", "embedded-server").err == "no session is on record as embedded-server\n"
    assert [row["source"] for row in turnlog("ls", "--json").rows] == ["interactive", ""]
    lines = turnlog("show", "s", "--records").out.splitlines()
    assert lines[1] == "14 records, 5 messages, 2025-01-01T00:00:00.000Z to 2025-01-01T00:00:14.000Z, interactive"
    assert [line for line in lines if "[session]" in line] == [
        "    1  [session]     opened, interactive",
        "   10  [session]     resumed, non-interactive",
    ]
    with closing(sqlite3.connect(session)) as db, db:
        db.execute("update records set record = 'x' where kind = 'session_opened'")
    assert [row["source"] for row in turnlog("ls", "--json").rows] == ["", ""]  # damage hides no session
