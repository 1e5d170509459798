"""`turnlog rewind`: what leaves is said, and what stays on disk; nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_cli_visible import harmful

from commands import Command
from turnlog.log.messages import Message, Text
from turnlog.log.records import Decision, FileChange, MessageRecord, TurnOpened
from turnlog.log.store import Draft
from turnlog.stores import SqliteStore


def said(text: str) -> Draft:
    """What a user says."""
    return Draft(MessageRecord(Message("user", (Text(text),))))


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    """A session of two turns: the first makes a file, the second changes it and makes one with a harmful name."""
    made = SqliteStore(tmp_path / "log.db")
    made.create("s")
    one, two = (made.put_blob(data) for data in (b"a\n", b"b\n"))
    made.append(
        "s",
        [
            said("make it"),
            Draft(FileChange("a.txt", "created", after=one)),
            Draft(Decision("pin", 1, 1, "pinned")),
            said("change it\x1b[2J"),
            Draft(FileChange("a.txt", "modified", before=one, after=two)),
            Draft(FileChange("b\x1b[2J", "renamed", old_path="c", before=one, after=one)),
            Draft(Decision("pin", 4, 4, "pinned")),
        ],
    )
    return made


def test_what_leaves_is_said(store: SqliteStore, turnlog: Command) -> None:
    """Messages that leave, decisions that end and files that stay changed are named; trying it records nothing."""
    lines = [
        "s: back to record 3, 1 message of 1 turn taken back: 17 -> 6 tokens",
        "     4  user       change it\\u001b[2J",
        "decision 7 (pin) is no longer in force",
        "2 files still changed on disk (turnlog diff s --rewound):",
        "  modified  a.txt",
        "  renamed   b\\u001b[2J from c",
    ]
    tried = turnlog("rewind", "s", "--dry-run")
    assert (tried.out.splitlines(), tried.err, tried.code) == (lines, "nothing recorded: a dry run\n", 0)
    assert store.info("s").records == 7
    done = turnlog("rewind", "s")
    assert (done.out, done.err) == (tried.out, "`turnlog rewind s --undo` shows it again\n")
    assert harmful(done.out) == set()
    assert [record.body for record in store.read("s", first=8)] == [Decision("rewind", 4, 7, "1 turn taken back")]


def test_it_is_shown_again(store: SqliteStore, turnlog: Command) -> None:
    """Undoing brings back what left; a second time there is nothing to undo, and somebody is told."""
    turnlog("rewind", "s", "--to", "3")
    shown = turnlog("rewind", "s", "--undo")
    assert shown.out.splitlines() == [
        "s: took back decision 8, 1 message shown again: 6 -> 17 tokens",
        "     4  user       change it\\u001b[2J",
    ]
    again = turnlog("rewind", "s", "--undo")
    assert (again.code, again.err) == (2, "turnlog: no rewind is in force that could be taken back\n")


def test_as_json(store: SqliteStore, turnlog: Command) -> None:
    """A program gets every figure, of going back and of undoing it."""
    assert turnlog("rewind", "s", "--turns", "1", "--json").rows == [
        {
            "decision": 8,
            "to": 3,
            "turns": [4],
            "gone": [4],
            "back": [],
            "ended": [7],
            "hidden": [],
            "again": [],
            "files": [
                {"path": "a.txt", "action": "modified", "old_path": ""},
                {"path": "b\x1b[2J", "action": "renamed", "old_path": "c"},
            ],
            "before": 17,
            "after": 6,
            "recorded": True,
        }
    ]
    assert turnlog("rewind", "s", "--undo", "--json").rows == [
        {"decision": 9, "supersedes": 8, "back": [4], "before": 6, "after": 17}
    ]


def test_a_decision_that_holds_again_is_said(store: SqliteStore, turnlog: Command) -> None:
    """What an earlier compaction leaves out again was not taken back, and comes back with the undoing."""
    store.append(
        "s",
        [
            said("so it is"),
            Draft(Decision("slide", 4, 4, "no room")),
            said("more"),
            Draft(Decision("undo", supersedes=9)),
        ],
    )
    lines = turnlog("rewind", "s").out.splitlines()
    assert lines[0].startswith("s: back to record 9, 1 message of 1 turn taken back: ")
    assert lines[1:4] == ["    10  user       more", "decision 9 (slide) is in force again", "1 message left out again"]
    back = turnlog("rewind", "s", "--undo").out.splitlines()
    assert back[0].startswith("s: took back decision 12, 2 messages shown again: ")
    assert [line.split()[0] for line in back[1:]] == ["4", "10"]


def test_the_other_commands_say_what_was_taken_back(store: SqliteStore, turnlog: Command) -> None:
    """Who looks into a session must not take for said what is in no request, nor for undone what is still on disk."""
    turnlog("rewind", "s")
    marked = turnlog("show", "s", "--records").out.splitlines()
    assert marked[5:7] == [
        "       [rewound]     from here on taken back by decision 8",
        "    4  user          change it\\u001b[2J",
    ]
    assert turnlog("show", "s", "--last", "2", "--records").out.count("[rewound]") == 1
    assert turnlog("search", "change").out.endswith("»change« it\\u001b[2J  (taken back by decision 8)\n")
    assert [row["rewound"] for row in turnlog("search", "it", "--json").rows] == [8, 0]
    assert turnlog("why", "s", "4").out.startswith("record 4: rewound by decision 8; 11 -> 0 tokens\n")
    diff = turnlog("diff", "s", "--json")
    assert [(row["path"], row["action"]) for row in diff.rows] == [("a.txt", "created")]
    assert diff.err == "left out: 2 file changes that a rewind took back, see --rewound\n"
    for option in (("--rewound",), ("--turn", "2"), ("--turn", "2", "--rewound")):
        rows = turnlog("diff", "s", "--json", *option).rows
        assert [(row["path"], row["action"]) for row in rows] == [("a.txt", "modified"), ("b\x1b[2J", "renamed")]
    assert turnlog("diff", "s", "--turn", "1", "--rewound").err == ""


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--turns 3", "turns: give a number from 1 to 2, not 3; the conversation has 2 turns"),
        ("--to 7", "to: give the number of a record from 0 (the beginning) to 6, not 7; the last record is 7"),
        (
            "--undo --dry-run",
            "rewind: --undo cannot be combined with --dry-run; `turnlog show ID` shows which records the last "
            "rewind took back",
        ),
    ],
)
def test_what_cannot_be_done_is_refused(store: SqliteStore, turnlog: Command, words: str, why: str) -> None:
    """A mistyped number must not take back something else; nothing is recorded."""
    ended = turnlog("rewind", "s", *words.split())
    assert (ended.code, ended.out, ended.err) == (2, "", f"turnlog: {why}\n")
    assert store.info("s").records == 7


def test_not_while_somebody_works_there(store: SqliteStore, turnlog: Command) -> None:
    """A turn that is open may be lived by another process: it is told how to close it."""
    store.append("s", [Draft(TurnOpened("8")), said("go")])
    ended = turnlog("rewind", "s")
    assert (ended.code, ended.err) == (
        2,
        "turnlog: turn '8' is open: wait for its end, or cancel it; if its process died, it is closed by opening the "
        "session again and by `turnlog doctor ID --fix`\n",
    )
