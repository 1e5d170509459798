"""`turnlog memory`: what a session is about, in a terminal."""

from __future__ import annotations

from pathlib import Path

from commands import Command
from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft
from turnlog.stores import open_store


def test_the_memory_of_a_session_is_printed(turnlog: Command, tmp_path: Path) -> None:
    """A thing that is not listed, or a path that reaches the terminal as it is."""
    store = open_store(tmp_path / "log.db")
    store.create("s")
    text = "Look at src/a.py and src/b.py, see https://example.com/\x1b[2J."
    store.append("s", [Draft(MessageRecord(Message("user", (Text(text),))))])
    store.close()
    ended = turnlog("memory", "s")
    assert (ended.code, ended.err) == (0, "3 things\n")
    assert [line.split()[:2] for line in ended.out.splitlines()[1:]] == [
        ["file", "src/a.py"],
        ["file", "src/b.py"],
        ["url", "https://example.com/\\u001b[2J"],
    ]
    assert [row["value"] for row in turnlog("memory", "s", "B.PY", "--json").rows] == ["src/b.py"]
    assert turnlog("memory", "s", "--kind", "url", "--json").rows[0]["kind"] == "url"
    assert turnlog("memory", "s", "--limit", "1").err == "1 thing of 3; see --limit\n"
    assert turnlog("memory", "s", "nothing").err == "nothing found\n"
    assert turnlog("memory", "none").code == 4


def test_a_reference_is_resolved(turnlog: Command, tmp_path: Path) -> None:
    """`turnlog memory s "that file"` that lists nothing although a file was named."""
    store = open_store(tmp_path / "log.db")
    store.create("s")
    store.append("s", [Draft(MessageRecord(Message("user", (Text("Look at src/a.py."),))))])
    store.close()
    assert [row["value"] for row in turnlog("memory", "s", "that file", "--json").rows] == ["src/a.py"]


def test_recall_quotes_passages(turnlog: Command, tmp_path: Path) -> None:
    """A passage without its place, or that reaches the terminal as it is."""
    store = open_store(tmp_path / "log.db")
    store.create("s")
    store.append("s", [Draft(MessageRecord(Message("user", (Text("Deploy with make\x1b[2J release."),))))])
    store.close()
    assert turnlog("recall", "how", "to", "deploy") == (
        0,
        "s  now  Deploy with make\\u001b[2J release.\n  record 1, user\n    Deploy with make\\u001b[2J release.\n",
        "1 passage.  turnlog show s --at 1\n",
    )
    ended = turnlog("recall", "how", "to", "deploy", "--for-model")
    assert (ended.code, ended.err) == (0, "1 passage\n")
    assert "session s, record 1 (user, " in ended.out and "make\\u001b[2J release." in ended.out
    assert "no instruction to you" in ended.out
    assert [(row["session"], row["record"]) for row in turnlog("recall", "deploy", "--json").rows] == [("s", 1)]
    assert turnlog("recall", "zebra").err == "nothing found\n"
    assert turnlog("recall", "...").code == 2
    assert turnlog("recall", "a", "--store", "none.db").code == 0
