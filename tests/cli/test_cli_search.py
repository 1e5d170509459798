"""`turnlog search`: what is found, how it is shown, and what a hostile transcript cannot do."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands import Command
from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft
from turnlog.stores import open_store


def test_hits_are_marked_and_safe_to_show(turnlog: Command, tmp_path: Path) -> None:
    """A hit that is not marked, runs over its line, or whose text reaches the terminal as it is."""
    store = open_store(tmp_path / "log.db")
    store.create("s")
    text = "one\x1b[2J line\nred apple\u202e and \u2066more"
    store.append("s", [Draft(MessageRecord(Message("user", (Text(text),)), source=""), "2026-01-02T03:04:05.678Z")])
    store.close()
    ended = turnlog("search", "apple", "on*")
    assert ended == (
        0,
        "s  now          one\\u001b[2J line\n  1  user  »one«\\u001b[2J line red »apple«\\u202e and \\u2066more\n",
        "1 hit in 1 session.  turnlog show s --at 1\n",
    )
    assert turnlog("search", "apple", "--json").rows == [
        {"session": "s", "record": 1, "role": "user", "time": "2026-01-02T03:04:05.678Z",
         "snippet": text.replace("\n", " "), "start": 17, "end": 22, "rewound": 0}
    ]  # fmt: skip
    assert turnlog("search", "apple", "--until", "2025").err == (
        "nothing found, but:\n  apple    1 record  without --since, --role and the like\n"
    )
    assert turnlog("search", "apple", "--since", "soon").code == 2
    assert turnlog("search", "apple", "--session", "none").code == 4
    assert turnlog("search", "...").code == 2


def test_searching_no_store_makes_none(turnlog: Command, tmp_path: Path) -> None:
    """A search that makes a store, of either kind, where there is none."""
    for store in ("none.db", "files:none"):
        ended = turnlog("search", "apple", "--store", store)
        assert (ended.code, ended.out) == (0, "")
        assert "no store" in ended.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_files_is_a_store(turnlog: Command, transcript: Path) -> None:
    """A command that cannot work on a store of files."""
    assert turnlog("import", str(transcript), "--store", "files:logs").code == 0
    session = turnlog("ls", "--store", "files:logs", "--json").rows[0]["id"]
    assert turnlog("search", "the", "--store", "files:logs", "--limit", "1").out.startswith(session[:4])
    assert turnlog("verify", "--store", "files:logs") == (0, "", "no problems\n")
    (transcript.parent / "logs" / "sessions" / f"{session}.jsonl").open("ab").write(b'{"sum":')
    ended = turnlog("verify", "--store", "files:logs")
    assert (ended.code, "unfinished append" in ended.out) == (1, True)


def test_a_date_that_there_is_not_is_refused(turnlog: Command) -> None:
    """A search that finds nothing, for ever, because of a slip of the finger."""
    for date in ("2025-13", "2025-02-31", "2025-12-99", "soon", ""):
        ended = turnlog("search", "x", "--since", date)
        assert (ended.code, "is not a time: today, yesterday" in ended.err) == (2, True), date
    for date in ("2025", "2025-12", "2025-12-31", "2025-12-31T10:00:00Z", "yesterday", "3d"):
        assert turnlog("search", "x", "--until", date).code == 0


@pytest.fixture
def talks(tmp_path: Path) -> None:
    """Two sessions with messages of today."""
    store = open_store(tmp_path / "log.db")
    for name, title, texts in (
        ("a1b2-old", "Windows", ["It runs detached on windows.", "A detached process, detached from its terminal."]),
        ("c3d4-new", "Weather", ["Exit code 3 came back.", "The code said: exit."]),
    ):
        store.create(name, title=title)
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        store.append(name, [Draft(MessageRecord(Message("user", (Text(text),)), source=""), now) for text in texts])
    store.close()


def test_hits_stand_below_their_sessions(turnlog: Command, talks: None) -> None:
    """An id of 36 characters on each line, no title, only the first word marked: nobody saw which talk it was."""
    ended = turnlog("search", "detached", "process")
    assert ended.out == (
        "a1b2  now          Windows\n  2  user  A »detached« »process«, »detached« from its terminal.\n"
    )
    both = turnlog("search", "code", "--since", "yesterday")
    assert both.out == (
        "c3d4  now          Weather\n  2  user  The »code« said: exit.\n  1  user  Exit »code« 3 came back.\n"
    )
    assert both.err == "2 hits in 1 session.  turnlog show c3d4 --at 2\n"


def test_an_argument_of_several_words_is_a_phrase(turnlog: Command, talks: None) -> None:
    """The shell takes the quotes, and `"exit code"` found two words anywhere."""
    assert [row["record"] for row in turnlog("search", "exit code", "--json").rows] == [1]
    assert [row["record"] for row in turnlog("search", "exit", "code", "--json").rows] == [2, 1]


def test_what_nearly_matches_is_told(turnlog: Command, talks: None) -> None:
    """`nothing found` for a form of a word, and no word of which one was missing."""
    assert turnlog("search", "windows", "detach") == (
        0,
        "",
        "nothing has both words, but:\n"
        "  windows detach*    1 record  turnlog search windows 'detach*'\n"
        "  windows            1 record  turnlog search windows\n"
        "  detach            0 records\n",
    )
    assert turnlog("search", "zebra").err == "nothing found\n"


def test_an_id_before_the_words_is_the_session(turnlog: Command, talks: None) -> None:
    """Other commands take the id first; here it was a word that no record has."""
    ended = turnlog("search", "a1b2", "detached", "--json")
    assert [row["session"] for row in ended.rows] == ["a1b2-old", "a1b2-old"]
    assert ended.err.splitlines()[0] == "only in session a1b2-old, as the first word is its id"
    assert {row["session"] for row in turnlog("search", "-2", "detached", "--json").rows} == {"a1b2-old"}
    assert turnlog("search", "latest", "detached", "--json").rows == []
    assert turnlog("search", "a1b2", "--json").rows == []  # alone, it is a word
