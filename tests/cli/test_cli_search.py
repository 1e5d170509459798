"""`turnlog search`: what is found, how it is shown, and what a hostile transcript cannot do."""

from __future__ import annotations

from pathlib import Path

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
        "s      1  2026-01-02T03:04  user       »one«\\u001b[2J line red apple\\u202e and \\u2066more\n",
        "1 hit\n",
    )
    assert turnlog("search", "apple", "--json").rows == [
        {"session": "s", "record": 1, "role": "user", "time": "2026-01-02T03:04:05.678Z",
         "snippet": text.replace("\n", " "), "start": 17, "end": 22, "rewound": 0}
    ]  # fmt: skip
    assert turnlog("search", "apple", "--until", "2025").err == "nothing found\n"
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
    assert turnlog("search", "the", "--store", "files:logs", "--limit", "1").out.startswith(session)
    assert turnlog("verify", "--store", "files:logs") == (0, "", "no problems\n")
    (transcript.parent / "logs" / "sessions" / f"{session}.jsonl").open("ab").write(b'{"sum":')
    ended = turnlog("verify", "--store", "files:logs")
    assert (ended.code, "unfinished append" in ended.out) == (1, True)


def test_a_date_that_there_is_not_is_refused(turnlog: Command) -> None:
    """A search that finds nothing, for ever, because of a slip of the finger."""
    for date in ("2025-13", "2025-02-31", "2025-12-99", "yesterday", ""):
        ended = turnlog("search", "x", "--since", date)
        assert (ended.code, "is not a date; write 2026-01-31" in ended.err) == (2, True), date
    for date in ("2025", "2025-12", "2025-12-31", "2025-12-31T10:00:00Z"):
        assert turnlog("search", "x", "--until", date).code == 0
