"""`turnlog show`: the talk in a pipe and at a terminal, and the pager."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from commands import Command
from screens import at_terminal
from turnlog.cli import terminal
from turnlog.log.messages import Message, Reasoning, Text, ToolCall, ToolResult
from turnlog.log.records import Body, MessageRecord, Note, UsageRecord
from turnlog.log.store import Draft
from turnlog.log.usage import Usage
from turnlog.stores import open_store


def said(role: Any, *parts: Any) -> MessageRecord:
    """A message."""
    return MessageRecord(Message(role, tuple(Text(part) if isinstance(part, str) else part for part in parts)))


def read(call_id: str, path: str) -> ToolCall:
    """A call that reads a file."""
    return ToolCall(call_id, "Read", {"path": path})


BODIES: list[Body] = [
    Note("internal", "nobody's business"),
    said("user", "What is it?\nSay."),
    said("assistant", Reasoning("p", "Let me\nsee."), read("a", "x/one.py"), read("b", "x/two.py")),
    UsageRecord("anthropic", "claude-opus-4-5", Usage(input=100_000, output=20_000)),
    said("user", ToolResult("a", "Read", (Text("1"),)), ToolResult("b", "Read", (Text("2"),))),
    said("assistant", "It is *two* files.", ToolCall("c", "Bash", {"command": "make"})),
    said("user", ToolResult("c", "Bash", (Text("\nno rule\n\tto make it"),), "failed")),
    said("assistant", "Sorry."),
    said("user", "Go on."),
    said("assistant", ToolCall("d", "Bash", {"command": "make all"})),
]


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A store with session `some-session`, which has two turns."""
    path = tmp_path / "log.db"
    with closing(open_store(path)) as store:
        store.create("some-session", title="A title", created="2025-01-01T12:00:00.000Z")
        store.append("some-session", [Draft(b, f"2025-01-01T12:00:{n:02}.000Z") for n, b in enumerate(BODIES, 1)])
    return path


def plain(text: str) -> str:
    """Text without its times, which depend on the time zone."""
    return re.sub(r"\d\d:\d\d|31 Dec|2 Jan", "HH:MM", text)


HEAD = """\
some-session  A title
opus · 1 Jan 2025 HH:MM · 2 turns · 4 calls · $1.00
"""
FIRST = """
── 1 · HH:MM · 6 s · $1.00 ────────────────────────────────────────────────────
> What is it?
> Say.
  ~ Let me see.
  • Read x2 x/one.py, x/two.py  all ok
It is *two* files.
  • Bash make  failed
      no rule: to make it
Sorry.
"""
SECOND = """
── 2 · HH:MM ──────────────────────────────────────────────────────────────────
> Go on.
  • Bash make all  not on record whether it started
  -- awaiting the result of Bash (d)
"""


def test_a_talk_in_a_pipe(turnlog: Command, session: Path) -> None:
    """What was said and done, turn by turn, whole; nothing internal, nothing folded without a sign of it."""
    head = HEAD.replace("opus", "claude-opus-4-5")
    shown = turnlog("show", "latest")
    assert (shown.code, plain(shown.out), shown.err) == (0, head + FIRST + SECOND, "")
    for words, parts in (
        (("--turn", "1"), FIRST), (("--turn", "-1"), SECOND), (("--last", "1"), SECOND), (("--last", "0"), ""),
        (("--last", "9"), FIRST + SECOND), (("--at", "1"), ""),
        (("--at", "9"), SECOND.replace("> Go", "▶ record 9\n> Go")),
    ):  # fmt: skip
        assert plain(turnlog("show", "some", *words).out) == head + parts
    assert turnlog("show", "some", "--at", "1").err == (
        "record 1 is not part of the talk; `turnlog show some-session --records` shows it\n"
    )


def test_a_record_that_is_asked_for_is_not_folded(turnlog: Command, session: Path) -> None:
    """`search` names a record that is a result: it is what its reader wants to see, whole and marked; with `--full`,
    everything is."""
    at = turnlog("show", "some", "--at", "7").out
    call = '▶ record 7\n  • Bash make  failed\n    {"command":"make"}\n    |\n    | no rule\n    | \tto make it\n'
    assert call in at and "Read x2" in at
    full = turnlog("show", "some", "--full").out
    assert call.removeprefix("▶ record 7\n") in full and "  ~ Let me\n  ~ see.\n" in full and "    | 2\n" in full


def test_parts_of_the_records(turnlog: Command, session: Path) -> None:
    """`--turn` and `--at` choose among records as they choose among turns; taken for nothing, they would show all."""
    for words, numbers in (
        ((), range(1, 11)),
        (("--turn", "-1"), [9, 10]),
        (("--at", "3"), [3]),
        (("--last", "2"), [9, 10]),
    ):
        assert [row["n"] for row in turnlog("show", "some", "--json", *words).rows] == [*numbers]
    assert turnlog("show", "some", "--records", "--at", "8").out.splitlines()[-1] == "    8  assistant     Sorry."


def test_what_cannot_be_shown(turnlog: Command, session: Path) -> None:
    """A turn or record that is not there, or two wishes at once: one line says so."""
    told = turnlog("show", "some", "--turn", "3")
    assert (told.code, told.err) == (2, "turnlog: --turn: session 'some-session' has 2 turns, none with number 3\n")
    told = turnlog("show", "some", "--at", "11")
    assert (told.code, told.err) == (2, "turnlog: --at: session 'some-session' has 10 records, none with number 11\n")
    assert turnlog("show", "some", "--at", "1", "--last", "1").code == 2
    assert turnlog("show", "some", "--records", "--cost").code == 2


@pytest.mark.slow
def test_at_a_terminal(session: Path, tmp_path: Path) -> None:
    """Calls have their outcome at the edge and their files without folders, Markdown is laid out, and the last line
    says how to go on; all within the width."""
    pytest.importorskip("rich")
    with at_terminal(tmp_path, "--store", "log.db", "show", "latest", COLUMNS="60", LINES="60", NO_COLOR="1") as screen:
        code, text = screen.ends()
    lines = text.splitlines()
    assert code == 0 and max(map(len, lines)) <= 60
    assert f"  • {'Read x2 one.py, two.py':<47}  all ok" in lines
    assert "It is two files." in [line.rstrip() for line in lines]
    with at_terminal(tmp_path, "--store", "log.db", "show", "latest", "--at", "7", LINES="60", NO_COLOR="1") as screen:
        assert "    |     to make it\n" in screen.ends()[1]
    assert lines[0] == "some  A title" and lines[-1] == "show some --turn 2 · diff some · handoff some --to codex"


@pytest.mark.slow
def test_the_pager_has_what_is_longer_than_the_screen(session: Path, tmp_path: Path) -> None:
    """A short text is printed, a long one goes through the pager with its colours; messages come after it."""
    pager = "sh -c 'cat > paged.txt; echo over'"
    show = "--store", "log.db", "show", "latest"
    with at_terminal(tmp_path, *show, PAGER=pager, LINES="60", NO_COLOR="") as screen:
        code, whole = screen.ends()
    assert code == 0 and "A title" in whole and not (tmp_path / "paged.txt").exists()
    with at_terminal(tmp_path, *show, PAGER=pager, LINES="9", NO_COLOR="") as screen:
        code, rest = screen.ends()
    assert (code, rest) == (0, "over\nshow some --turn 2 · diff some · handoff some --to codex\n")
    assert (tmp_path / "paged.txt").read_text("utf-8") + rest.removeprefix("over\n") == whole
    for words in ("cat", "no-such-program-at-all", "'half"):
        with at_terminal(tmp_path, *show, PAGER=words, LINES="9", NO_COLOR="") as screen:
            assert screen.ends() == (0, whole)


@pytest.mark.slow
def test_leaving_the_pager_early_is_no_error(tmp_path: Path) -> None:
    """The reader has seen enough: no message, and exit code 0, although most was not read."""
    with closing(open_store(tmp_path / "log.db")) as store:
        store.create("long")
        store.append("long", [Draft(said("user", "word\n" * 500_000))])
    show = "--store", "log.db", "show", "long", "--full"
    with at_terminal(tmp_path, *show, PAGER="head -n 1", LINES="9", NO_COLOR="1") as screen:
        code, text = screen.ends()
    assert (code, text.splitlines()[0], "Broken" in text) == (0, "long", False)


def test_an_error_inside_paged_output_is_told(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    """An error ends the pager first; what was printed before it is not lost."""
    monkeypatch.setattr(terminal, "is_terminal", lambda stream: True)
    monkeypatch.setenv("PAGER", "less -R")

    def printing() -> None:
        with terminal.paged():
            terminal.out("before")
            terminal.say("a message")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        printing()
    terminal.flush()
    assert capfd.readouterr() == ("before\n", "a message\n")


@pytest.mark.parametrize("whole", ["--tools", "--turns", "--cost"])
@pytest.mark.parametrize("part", [("--turn", "1"), ("--last", "1"), ("--at", "1"), ("--full",)])
def test_a_part_of_what_is_told_of_all_is_refused(
    turnlog: Command, session: Path, whole: str, part: tuple[str, ...]
) -> None:
    """The tools of all turns are taken for those of the one that was asked for."""
    ended = turnlog("show", "latest", whole, *part)
    assert (ended.code, f"{part[0]} goes with the talk or --records, not with {whole}" in ended.err) == (2, True)
