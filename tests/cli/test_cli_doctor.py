"""`turnlog doctor`: what was left half-done is named, and put on record when asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_cli_visible import harmful

import turnlog as package
from conftest import Command
from turnlog.content import Message, Text, ToolCall, ToolResult
from turnlog.stores import SqliteStore

CALLS = (ToolCall("c1", "ls"), ToolCall("c2", "rm\x1b[2J"))


@pytest.fixture
def crashed(tmp_path: Path) -> None:
    """A session whose process died in the midst of a turn, with one tool running."""
    store = SqliteStore(tmp_path / "log.db")
    session = package.open("s", store=store)
    session.turn("go").__enter__()
    session.add(Message("assistant", CALLS))
    session.tool_started(CALLS[0])
    session.add(Message("user", (ToolResult("c9", "ls", (Text("x"),)),)))
    store.close()


def test_what_was_left_half_done_is_named(crashed: None, turnlog: Command) -> None:
    """A tool that may have run is what somebody has to look after; nothing is written for looking."""
    shown = turnlog("doctor", "s")
    assert shown.out.splitlines() == [
        "record 1: turn: turn 1 is open: awaiting the result of ls (c1), the result of rm\\u001b[2J (c2)",
        "record 3: unfinished: ls (c1) started and never ended: it may have run",
        "record 3: unfinished: rm\\u001b[2J (c2) not on record whether it started",
        "record 5: orphan: result of 'c9': no call before it has that id",
    ]
    assert (shown.code, shown.err) == (1, "4 findings\n")
    assert harmful(shown.out) == set()
    rows: list[dict[str, Any]] = turnlog("doctor", "s", "--json").rows
    assert [(row["kind"], row["records"]) for row in rows] == [
        ("turn", [1]), ("unfinished", [3]), ("unfinished", [3]), ("orphan", [5]),
    ]  # fmt: skip


def test_what_is_known_is_put_on_record(crashed: None, turnlog: Command) -> None:
    """After that nothing is open; what contradicts itself stays, for a log is never rewritten."""
    shown = turnlog("doctor", "s", "--fix")
    assert shown.out.splitlines() == ["record 5: orphan: result of 'c9': no call before it has that id"]
    assert shown.err.splitlines() == [
        "the turn that was left open is closed as failed", "2 calls answered with what is known", "1 finding",
    ]  # fmt: skip
    assert turnlog("doctor", "s", "--strict").out == shown.out
    assert turnlog("doctor", "s", "--fix").err == "1 finding\n"


def test_a_session_in_order(turnlog: Command, tmp_path: Path) -> None:
    """A clean bill of health ends with exit code 0; a session that is not there has its own."""
    with package.open("s", store=tmp_path / "log.db") as session, session.turn("go"):
        session.assistant("yes")
    shown = turnlog("doctor", "s")
    assert (shown.code, shown.out, shown.err) == (0, "", "nothing was left half-done\n")
    assert turnlog("doctor", "absent").code == 4
