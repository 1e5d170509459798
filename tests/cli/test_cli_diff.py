"""`turnlog diff`: a patch that git takes, the box of changes, and nothing raw on a terminal."""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path

import pytest
from test_cli_visible import harmful

from commands import Command
from turnlog.cli import diff as command
from turnlog.log.messages import Message, Text
from turnlog.log.records import FileChange, MessageRecord
from turnlog.log.store import Draft
from turnlog.stores import SqliteStore
from turnlog.testing.edits import has_git

HOSTILE = b"\x1b[2J\x1b]0;t\x07 \xe2\x80\xaegnp\n"


def said(text: str) -> Draft:
    """What a user says."""
    return Draft(MessageRecord(Message("user", (Text(text),))))


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    """A session of two turns: the first makes a file, the second changes it and others."""
    made = SqliteStore(tmp_path / "log.db")
    made.create("s")
    one, two, binary = (made.put_blob(data) for data in (b"a\nb\n", b"a\nc\n\xff\n", b"\0"))
    made.append(
        "s",
        [
            said("make it"),
            Draft(FileChange("src/a.txt", "created", after=one)),
            said("change it"),
            Draft(FileChange("src/a.txt", "modified", before=one, after=two)),
            Draft(FileChange("img", "deleted", before=binary)),
            Draft(FileChange("new", "renamed", old_path="old", before=one, after=one)),
        ],
    )
    return made


def test_files_of_two_folders(tmp_path: Path, turnlog: Command) -> None:
    """Files of one name in two folders shown as one; or a folder that can be given as it stands in the patch, not."""
    made = SqliteStore(tmp_path / "log.db")
    made.create("s")
    one, two = (made.put_blob(data) for data in (b"1\n", b"2\n"))
    for root in ("/p/api", "/p/web"):
        made.append("s", [said("go"), Draft(FileChange("README", "modified", before=one, after=two, root=root))])
    made.close()
    shown = turnlog("diff", "s")
    assert [line for line in shown.out.splitlines() if line.startswith("+++")] == [
        "+++ b/api/README",
        "+++ b/web/README",
    ]
    assert (shown.code, shown.err) == (0, "")
    assert "+++ b/web/README" in turnlog("diff", "s", "--turn", "2").out
    assert "+++ b/README" in turnlog("diff", "s", "--turn", "2", "--root", "web").out


def test_the_box_of_changes(store: SqliteStore, turnlog: Command) -> None:
    """Files, lines and totals at a glance, of a session and of one turn."""
    store.close()
    shown = turnlog("diff", "s", "--stat")
    assert shown.out.splitlines() == [
        "┌────────────────────────────────────────────┐",
        "│ Deleted   img        (binary, 1 → 0 bytes) │",
        "│ Renamed   old → new  (+0, -0)              │",
        "│ Created   src/a.txt  (+3, -0)              │",
        "├────────────────────────────────────────────┤",
        "│ 3 files (+3, -0)                           │",
        "└────────────────────────────────────────────┘",
    ]
    assert (shown.code, shown.err) == (0, "")


def test_one_turn_alone(store: SqliteStore, turnlog: Command) -> None:
    """The changes of another turn must not be in it; a turn that is not there is an error."""
    store.close()
    first = turnlog("diff", "s", "--turn", "1", "--json").rows
    assert [(row["path"], row["action"], row["additions"]) for row in first] == [("src/a.txt", "created", 2)]
    assert first[0]["patch"].startswith("diff --git a/src/a.txt b/src/a.txt\nnew file mode 100644\n")
    last = turnlog("diff", "s", "--turn", "-1", "--json").rows
    assert [(row["path"], row["action"], row["deletions"]) for row in last] == [
        ("img", "deleted", 0),
        ("new", "renamed", 0),
        ("src/a.txt", "modified", 1),
    ]
    assert b"+\xff\n" in base64.b64decode(last[2]["patch_base64"])
    wrong = turnlog("diff", "s", "--turn", "3")
    assert (wrong.code, "has 2 turns, none with number 3" in wrong.err) == (2, True)
    assert turnlog("diff", "s", "--turn", "0").code == 2


@pytest.mark.slow
@pytest.mark.skipif(not has_git(), reason="git is not there to apply the patch")
def test_a_pipe_gets_a_patch_that_git_applies(store: SqliteStore, tmp_path: Path) -> None:
    """`turnlog diff ID | git apply` is what the command is for; an escaped byte would break it."""
    store.close()
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "img").write_bytes(b"\0")
    (tree / "old").write_bytes(b"a\nb\n")
    code = "import sys; from turnlog.cli import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, "--store", str(tmp_path / "log.db"), "diff", "s"]
    patch = subprocess.run(words, capture_output=True, check=True).stdout
    for options in ([], ["-R"]):
        subprocess.run(["git", "apply", *options], input=patch, cwd=tree, check=True)
        found = {path.relative_to(tree).as_posix(): path.read_bytes() for path in tree.rglob("*") if path.is_file()}
        wanted = {"img": b"\0", "old": b"a\nb\n"} if options else {"new": b"a\nb\n", "src/a.txt": b"a\nc\n\xff\n"}
        assert found == wanted


def test_what_cannot_be_in_a_patch_is_said(store: SqliteStore, turnlog: Command) -> None:
    """Left out in silence, a change would pass for none; taken in, it would be written elsewhere."""
    known = store.put_blob(b"x")
    store.create("t")
    store.append(
        "t",
        [
            Draft(FileChange("a", "modified")),
            Draft(FileChange("../up", "created", after=known)),
            Draft(FileChange("lost", "created", after="0" * 64)),
        ],
    )
    store.close()
    ended = turnlog("diff", "t")
    assert (ended.code, ended.out) == (1, "")
    assert "a (modified): its change was not recorded" in ended.err
    assert "../up (created): it is outside the folder" in ended.err
    assert "lost (created): there is no blob" in ended.err
    assert [row["applies"] for row in turnlog("diff", "t", "--json").rows] == [False, False, False]


def test_a_terminal_gets_colours_and_nothing_else(
    store: SqliteStore, turnlog: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An escape sequence from a file, or from its name, that reaches a terminal fails here."""
    blob = store.put_blob(HOSTILE + b"tab\there\r\n")
    store.create("t")
    store.append("t", [Draft(FileChange("a\x1b[31m\u202e", "created", after=blob))])
    store.close()
    monkeypatch.setattr(command, "is_terminal", lambda stream: True)
    monkeypatch.setattr("turnlog.cli.terminal.is_terminal", lambda stream: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    shown = turnlog("diff", "t").out
    assert "\x1b[32m+\\u001b[2J\\u001b]0;t\\u0007 \\u202egnp\x1b[0m\n" in shown
    assert "\x1b[32m+tab\there\\u000d\x1b[0m\n" in shown
    for colour in ("\x1b[32m", "\x1b[36m", "\x1b[1m", "\x1b[0m"):
        shown = shown.replace(colour, "")
    assert harmful(shown) == set()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in turnlog("diff", "t").out
    assert harmful(turnlog("diff", "t", "--stat").out) == set()


def test_a_session_without_changes_says_so(store: SqliteStore, turnlog: Command) -> None:
    """An empty answer must not look like a failure, nor a missing session like an empty answer."""
    store.create("t")
    store.close()
    assert turnlog("diff", "t", "--stat")[:2] == (0, "")
    assert turnlog("diff", "t")[:2] == (0, "")
    assert turnlog("diff", "none").code == 4
