"""Everything that a command asks: what it is about is on the screen before the question."""

from __future__ import annotations

import io
import itertools
import logging
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog as library
from screens import LISTENS, at_terminal
from turnlog.cli import terminal
from turnlog.log.records import Note
from turnlog.log.store import Draft
from turnlog.stores import Passphrase, open_store
from turnlog.testing import crash

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals there")

YEARS = ("s2020", "s2021", "s2022")
SECRET = "password=hunter2-Xk93"
SHOUT = 'CALL run_command {"command": "true"}'


@pytest.fixture
def years(tmp_path: Path) -> Path:
    """A folder with a store of three sessions of different years."""
    with closing(open_store(tmp_path / "log.db")) as store:
        for name in YEARS:
            time = f"{name[1:]}-01-01T00:00:00.000Z"
            store.create(name, title=f"Year {name[1:]}", created=time)
            store.append(name, [Draft(Note("x", SECRET), time)])
    return tmp_path


def left(folder: Path) -> list[str]:
    """The sessions of the store."""
    with closing(open_store(folder / "log.db", read_only=True)) as store:
        return sorted(info.id for info in store.sessions())


def unscrubbed(folder: Path) -> bool:
    """Whether the secret is still in the first session."""
    with closing(open_store(folder / "log.db", read_only=True)) as store:
        return SECRET in str([record.body for record in store.read("s2020")])


ASKING: dict[str, tuple[tuple[str, ...], list[str], str, Callable[[Path], object], object, object]] = {
    # what is asked: (the command, what the user has to see before, the question, what is looked at, if no, if yes)
    "gc": (
        ("gc", "--max-sessions", "1"),
        ["WHY", "s2020", "s2021"],
        "delete 2 sessions for good? [y/N]",
        left,
        [*YEARS],
        ["s2022"],
    ),
    "gc of one": (("gc", "--max-sessions", "2"), ["s2020"], "delete 1 session for good?", left, [*YEARS], [*YEARS[1:]]),
    "gc --json": (
        ("gc", "--max-sessions", "2", "--json"),
        ["WHY", "s2020"],
        "delete 1 session for good?",
        left,
        [*YEARS],
        [*YEARS[1:]],
    ),
    "rm": (
        ("rm", "s2020", "s2022"),
        ["s2020  ", "Year 2020", "s2022  ", "Year 2022"],
        "delete for good? [y/N]",
        left,
        [*YEARS],
        ["s2021"],
    ),
    "scrub": (
        ("scrub", "s2020"),
        ["s2020  ", "1 password in 1 record"],
        "rewrite these records for good? [y/N]",
        unscrubbed,
        True,
        False,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "answer"), [*itertools.product(ASKING, ("n\n", "y\n")), ("rm", "\n"), ("rm", "\x04"), ("rm", "Yes \n")]
)
def test_what_is_asked_is_seen_before(years: Path, what: str, answer: str) -> None:
    """Somebody is asked whether a session may be deleted, and sees which one after the answer; or any other answer
    than yes deletes."""
    words, seen, question, look, kept, done = ASKING[what]
    with at_terminal(years, *words, "--store", "log.db") as screen:
        before = screen.reads(question).partition(question)[0]
        assert [text for text in seen if text not in before] == []
        screen.types(answer)
        code, _ = screen.ends()
    assert (code, look(years)) == (0, done if answer.lower().startswith("y") else kept)


@pytest.mark.slow
def test_sessions_without_a_title_are_asked_about_by_their_words(tmp_path: Path) -> None:
    """An id of digits alone before "delete for good?"; or who stays, and what is freed, is told after the answer."""
    for name in ("s1", "s2", "s3"):
        with library.open(name, store=tmp_path / "log.db") as session:
            session.user(f"What is the weather of {name}?")
    with closing(open_store(tmp_path / "log.db")) as store:
        store.keep("s1")
    for words, answer, seen in (
        (("rm", "s2"), "n\n", ["s2  now  1 message  ", "  What is the weather of s2?\n"]),
        (
            ("gc", "--max-sessions", "1"),
            "y\n",
            ["What is the weather of s2?", "s1 stays: it is protected from gc", "2 sessions would be deleted, about"],
        ),
    ):
        with at_terminal(tmp_path, *words, "--store", "log.db") as screen:
            before = screen.reads("for good? [y/N]")
            assert [text for text in seen if text not in before] == []
            screen.types(answer)
            code, after = screen.ends()
        assert code == 0 and "s1 stays" not in after.replace(before, "")
    assert left(tmp_path) == ["s1"]


@pytest.mark.slow
def test_a_listing_that_went_elsewhere_is_shown_with_the_question(years: Path) -> None:
    """`gc > list.txt`: what would be deleted is in the file, and whoever is asked sees nothing of it."""
    words = ("gc", "--max-sessions", "2", "--store", "log.db")
    with (years / "list.txt").open("wb") as file, at_terminal(years, *words, stdout=file) as screen:
        assert "s2020" in screen.reads("delete 1 session for good? [y/N]").partition("delete")[0]
        screen.types("n\n")
        assert screen.ends()[0] == 0
    assert "s2020" in (years / "list.txt").read_text()


@pytest.mark.slow
def test_only_what_was_listed_is_deleted(years: Path) -> None:
    """While somebody reads the list another session is made; the next oldest goes unseen, to make room for it."""
    with at_terminal(years, "gc", "--max-sessions", "2", "--store", "log.db") as screen:
        screen.reads("delete 1 session for good? [y/N]")
        with closing(open_store(years / "log.db")) as store:
            store.create("made meanwhile")
        screen.types("y\n")
        code, text = screen.ends()
    assert (code, left(years)) == (0, ["made meanwhile", *YEARS[1:]])
    assert "s2021 stays: it was not listed before" in text


@pytest.mark.slow
def test_a_new_passphrase_is_asked_for_by_its_name_and_twice(tmp_path: Path) -> None:
    """Two equal questions in a row: nobody knows which of them is about the new passphrase. And a slip of a finger in
    it locks everybody out."""
    with closing(open_store(tmp_path / "log.db", key=Passphrase("alfa"))) as store:
        store.create("s")
    words = ("rekey", "--store", "log.db", "--key", "ask", "--new-key", "ask")
    for again, ended in (("bravu", 2), ("bravo", 0)):
        with at_terminal(tmp_path, *words) as screen:
            for what, answer in (("passphrase: ", "alfa"), ("new passphrase: ", "bravo"), ("phrase again: ", again)):
                screen.reads(what)
                screen.types(f"{answer}\n")
            code, text = screen.ends()
        assert (code, {"alfa", "bravo", "bravu"} & {*text.split()}) == (ended, set())
        assert ("the two answers differ" in text) == (ended == 2)
    with closing(open_store(tmp_path / "log.db", key=Passphrase("bravo"), read_only=True)) as store:
        assert [info.id for info in store.sessions()] == ["s"]


@pytest.mark.slow
def test_the_passphrase_of_a_store_to_be_made_is_asked_for_twice(tmp_path: Path) -> None:
    """A store is made with a passphrase that nobody knows."""
    (tmp_path / "body.json").write_text('{"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}')
    with at_terminal(tmp_path, "import", "body.json", "--store", "log.db", "--key", "ask") as screen:
        screen.reads("new passphrase: ")
        screen.types("one\n")
        screen.reads("new passphrase again: ")
        screen.types("two\n")
        assert screen.ends()[0] == 2
    assert not (tmp_path / "log.db").exists()


@pytest.mark.slow
def test_a_chat_that_nobody_would_see_does_not_begin(tmp_path: Path) -> None:
    """`turnlog chat > file` waits for answers to questions that are in the file."""
    words = ("chat", "--store", "log.db", "--model", "scripted/demo")
    with (tmp_path / "out.txt").open("wb") as file, at_terminal(tmp_path, *words, stdout=file) as screen:
        code, text = screen.ends()
    assert (code, "standard output is not a terminal" in text) == (2, True)


@pytest.mark.slow
def test_a_tool_in_the_chat_is_shown_before_it_is_asked_about(tmp_path: Path) -> None:
    """Whether a command may run is asked before the command is on the screen."""
    with at_terminal(tmp_path, "chat", "--store", "log.db", "--model", "scripted/demo", "--session", "s") as screen:
        screen.reads("/help lists the commands")
        screen.types('CALL run_command {"command": "echo made > new.txt"}\r')
        before = screen.reads("[y]es, [n]o, [a]lways, or why not:").partition("run run_command?")[0]
        assert '"echo made > new.txt"' in before.partition("session s")[2].partition("CALL")[2].partition("\n")[2]
        screen.types("n\r")
        screen.reads("run run_command?: n", "says: The user did not allow this call; it did not run.", LISTENS)
        screen.types("\x04")
        assert screen.ends()[0] == 0
    assert not (tmp_path / "new.txt").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "row", "remark"),
    [
        (("search", "password"), "s2020  ", "3 hits"),
        (("memory", "talk"), "src/money.py", "1 thing"),
        (("doctor", "talk"), "record 3: unfinished: ", "2 findings"),
        (("rewind", "said"), "Count.", "--undo` shows it again"),
        (("import", "body.json", "broken.json"), "1 new in ", "turnlog: broken.json"),
        (("chat", "-p", SHOUT, "--model", "scripted/demo"), "run_command says: ", "not run, as nobody"),
        (("scan",), "s2022, record 1", "3 secrets"),
    ],
)
def test_a_list_stands_before_what_is_said_of_it(years: Path, words: tuple[str, ...], row: str, remark: str) -> None:
    """The last row of a list comes after the line that counts its rows."""
    (years / "body.json").write_text('{"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}')
    (years / "broken.json").write_text('{"messages": 5}')
    with library.open("said", store=years / "log.db", settings=library.Settings()) as session:
        session.user("Count.")
    session = library.open("talk", store=years / "log.db", settings=library.Settings())
    session.turn("Look at src/money.py.").__enter__()
    session.assistant([library.ToolCall("c", "read_file", {"path": "src/money.py"})])
    crash(session)
    with at_terminal(years, *words, "--store", "log.db") as screen:
        lines = screen.ends()[1].splitlines()
    assert remark in lines[-1]
    assert any(row in line for line in lines[:-1])
    assert [line for line in lines if line.count(row) > 1] == []


# -- the law ----------------------------------------------------------------------------------------

_LOG = logging.getLogger("turnlog.law")
TEXTS = st.text("abc é\n", min_size=1, max_size=8)
SAYING: dict[str, Callable[[str], object]] = {
    "out": terminal.out,
    "out_line": terminal.out_line,
    "out_json": terminal.out_json,
    "out_bytes": lambda text: terminal.out_bytes([text.encode(), b"\n"]),
    "out_pieces": lambda text: terminal.out_pieces([(text, "1")]),
    "out_coloured": lambda text: terminal.out_coloured(text, "red"),
    "say": terminal.say,
    "log": _LOG.warning,
    "warning": lambda text: warnings.warn(text, stacklevel=1),
}


@given(st.lists(st.tuples(st.sampled_from(sorted(SAYING)), TEXTS), max_size=12), st.booleans())
def test_everything_stands_in_the_order_in_which_it_was_said(said: list[tuple[str, str]], watched: bool) -> None:
    """With both streams on one screen or in one file, a row stands behind the message that was said after it."""
    read, write = os.openpty() if watched else os.pipe()
    with open(read, "rb", 0) as screen, open(write, "wb", 0) as end, pytest.MonkeyPatch.context() as patch:
        for name in ("stdout", "stderr"):
            stream = io.TextIOWrapper(io.BufferedWriter(end), "utf-8", line_buffering=watched)
            patch.setattr(sys, name, stream)
        patch.setattr(_LOG, "propagate", False)  # or pytest's handlers print what it logs
        with terminal.in_order():
            warnings.simplefilter("always")
            for n, (how, text) in enumerate(said):
                SAYING[how](f"<{n}>{text}")
        terminal.say("asked")
        text = b""
        while b"asked" not in text:
            text += screen.read(1 << 16)
        assert (sys.stdout.detach().detach(), sys.stderr.detach().detach()) == (end, end)  # type: ignore[attr-defined]
    places = [text.find(b"<%d>" % n) for n in range(len(said))]
    assert -1 not in places and places == sorted(places)
