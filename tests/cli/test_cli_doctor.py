"""`turnlog doctor`: what was left half-done is named, and put on record when asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_cli_visible import harmful

import turnlog as package
from commands import Command
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import Approval, StreamCheckpoint
from turnlog.log.store import Draft
from turnlog.stores import SqliteStore
from turnlog.testing import crash

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
    crash(session)
    store.close()


def test_what_was_left_half_done_is_named(crashed: None, turnlog: Command) -> None:
    """A tool that may have run is what somebody has to look after; nothing is written for looking."""
    shown = turnlog("doctor", "s")
    assert shown.out.splitlines() == [
        "record 1: turn: turn 1 is open: awaiting the result of ls (c1), the result of rm\\u001b[2J (c2)",
        "record 3: unfinished: ls (c1) started and never ended: it may have run",
        "record 3: unfinished: rm\\u001b[2J (c2) not on record whether it started",
        "record 5: result of 'c9': no call before it has that id and name",
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
    orphan, recovered = shown.out.splitlines()  # what is to be done comes first, what is done with behind it
    assert recovered.startswith("record 6: recovered: turn 1: left open: ")
    assert orphan == "record 5: result of 'c9': no call before it has that id and name"
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
    assert (shown.code, shown.out, shown.err) == (0, "", "nothing unfinished\n")
    assert turnlog("doctor", "absent").code == 4


def test_what_was_recovered_and_what_changed_is_told(crashed: None, turnlog: Command, tmp_path: Path) -> None:
    """Somebody who looks after the fact has to see what the next opening did, and with what the session goes on."""
    aim, other = package.target("openai-chat", "gpt-4o"), package.target("openai-chat", "gpt-4o", seed=1)
    with package.open("s", store=tmp_path / "log.db", target=aim, tools=[{"name": "look"}]):
        pass
    with package.open("s", store=tmp_path / "log.db", target=other, override=True):
        pass
    rows = turnlog("doctor", "s", "--json").rows
    assert [(row["kind"], row["detail"]) for row in rows if row["kind"] in ("recovered", "changed")] == [
        (
            "recovered",
            "turn 1: left open: the process ended, or the session was forked, in the midst of it; without a result: "
            "ls (c1: started and never ended: it may have run), rm\x1b[2J (c2: not on record whether it started)",
        ),
        ("changed", "setting seed nothing -> 1"),
    ]


def test_what_is_set_before_the_first_message_is_no_change(turnlog: Command, tmp_path: Path) -> None:
    """A new session that is given its tools and strategy one after the other would be told as one that changed; so
    would every later look at it. What is set after the first message is a change."""
    with package.open("s", store=tmp_path / "log.db", target=package.target("openai-chat", "gpt-4o")) as session:
        session.system("Be brief.")
        session.configure(tools=[{"name": "look"}], strategy="codex")
        assert turnlog("doctor", "s").out == ""
        session.user("go")
        assert turnlog("doctor", "s").out == ""
        changed = session.configure(strategy="mask").n
        assert turnlog("doctor", "s").out == f"record {changed}: changed: strategy codex -> mask\n"


def test_a_stream_that_was_cut_off(turnlog: Command, tmp_path: Path) -> None:
    """What had come of an answer is found before anybody opens the session, and kept by `--fix`."""
    store = SqliteStore(tmp_path / "log.db")
    with package.open("s", store=store) as session:
        session.user("go")
    store.append("s", [Draft(StreamCheckpoint(Message("assistant", (Text("I go "),))))])
    store.close()
    assert "record 2: stream: an answer was being streamed; this is what had arrived\n" in turnlog("doctor", "s").out
    shown = turnlog("doctor", "s", "--fix")
    assert "the streamed part of an answer was kept as an interrupted answer" in shown.err
    assert shown.out == (
        "record 3: recovered: an interrupted answer was kept: the process ended while the answer was being streamed\n"
    )
    assert shown.code == 0


def test_files_that_changed_without_a_record(turnlog: Command, tmp_path: Path) -> None:
    """`--fix` is the opening that finds them, and no later one does: what it does not say nobody hears."""
    (tmp_path / "work").mkdir()
    session = package.open("s", store=tmp_path / "log.db")
    session.turn("go", watch=tmp_path / "work").__enter__()
    (tmp_path / "work" / "half.txt").write_text("half")
    busy = turnlog("doctor", "s", "--fix")
    assert (busy.code, busy.out, busy.err.count("\n")) == (3, "", 1)
    assert busy.err.startswith("turnlog: session 's' is in use: this process has it open already (thread MainThread, ")
    crash(session)
    told = "record 4: recovered: files: changed without a record: half.txt\n"
    assert turnlog("doctor", "s", "--fix").out.endswith(told)
    assert turnlog("doctor", "s").out.endswith(told)


def test_many_findings_of_one_kind_are_one_line(turnlog: Command, tmp_path: Path) -> None:
    """543 findings in a thousand lines were read by nobody, and `ledger: Approval: record 0 has no call` by few; a
    program gets each of them."""
    store = SqliteStore(tmp_path / "log.db")
    with package.open("s", store=store) as session:
        session.user("go")
    store.append("s", [Draft(Approval(f"c{n}", "given", by="auto")) for n in range(9)])
    store.close()
    shown = turnlog("doctor", "s")
    assert (shown.code, shown.err) == (1, "9 findings\n")
    assert shown.out == (
        "record 2: tool run: an approval of call 'c0', which is not on record; "
        "8 more like it, in records 3, 4, 5, 6, ...\n"
    )
    assert len(turnlog("doctor", "s", "--json").rows) == 9
