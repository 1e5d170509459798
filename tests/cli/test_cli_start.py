"""`turnlog` alone, words that are no commands, and help: a user who knows nothing yet finds the next step."""

from __future__ import annotations

import io
import json
import shlex
import sys
from pathlib import Path

import msgspec
import pytest

import turnlog as library
from commands import Command
from turnlog import __version__
from turnlog.cli.arguments import _MEANT, COMMANDS, EXAMPLES
from turnlog.cli.entry import build_parser
from turnlog.runners import ScriptedRunner
from turnlog.stores import open_store

BODY = {"model": "gpt-4o", "messages": [{"role": "user", "content": "how do I set a timeout?"}]}
NOT_RUN = {
    "chat --model anthropic/claude-sonnet-4-5": "needs the network",
    "chat -c": "needs a terminal",
    "handoff latest --to claude --start": "needs a program",
    "rekey --key ask --new-key ask": "needs an encrypted store",
    "rekey --key file:old.key --new-key file:new.key": "needs an encrypted store",
    "serve --discover": "goes on until Ctrl-C",
    "serve --open": "goes on until Ctrl-C",
}


class _Agreeing(io.StringIO):
    """Standard input at a terminal, where somebody says yes."""

    def isatty(self) -> bool:
        return True


def test_without_a_store_it_says_how_to_begin(turnlog: Command, tmp_path: Path) -> None:
    """The first thing that a user types is answered with a usage error, or makes a file."""
    ended = turnlog()
    assert (ended.code, ended.err) == (0, "")
    first, *rest = ended.out.splitlines()
    assert first == f"turnlog {__version__}   no sessions yet in {tmp_path}/log.db"
    assert all(word in ended.out for word in ("turnlog import --discover", "turnlog demo", "turnlog --help"))
    assert max(map(len, rest)) <= 80 and not (tmp_path / "log.db").exists()
    open_store(tmp_path / "log.db").close()
    assert turnlog().out.splitlines()[0].startswith(f"turnlog {__version__}   no sessions yet in {tmp_path}/log.db (")


def test_it_says_where_the_store_is_and_which_session_was_the_last(
    turnlog: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody finds the store, or the session of yesterday."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with library.open("cc432c40-1", store=tmp_path / "log.db") as session:
        session.user("hi")
    assert turnlog("rename", "cc43", "the parser\x1b[2J").code == 0
    ended = turnlog()
    lines = ended.out.splitlines()
    assert lines[0].startswith(f"turnlog {__version__}   1 session in ~/log.db (") and lines[0].endswith(" kB)")
    assert lines[1] == "  last   cc43  now  the parser\\u001b[2J   turnlog show latest"
    assert turnlog("--store", "other.db").out.splitlines()[0].endswith("no sessions yet in other.db")


def test_the_configuration_says_where_the_store_is(
    turnlog: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`store = ""`, and nobody knows which file that is, nor how large."""
    monkeypatch.delenv("TURNLOG_STORE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    place = tmp_path / "data" / "turnlog" / "turnlog.db"
    told = turnlog("config").out.splitlines()
    assert told[:2] == ["# the store is ~/data/turnlog/turnlog.db, which does not exist yet", 'store = ""  # default']
    place.parent.mkdir(parents=True)
    open_store(place).close()
    first = turnlog("config").out.splitlines()[0]
    assert first.startswith("# the store is ~/data/turnlog/turnlog.db (") and first.endswith(" kB)")
    [row] = [row for row in turnlog("config", "--json").rows if row["key"] == "store"]
    assert (row["value"], row["place"]) == ("", str(place))


def test_the_cache_of_a_session_is_what_its_log_says(turnlog: Command, tmp_path: Path) -> None:
    """What was read from the cache, and why not more, is seen only by a program."""
    usage = {"prompt_tokens": 1_640, "completion_tokens": 4}
    answer = {"role": "assistant", "content": "Two."}
    with library.open("s", store=tmp_path / "log.db", target=library.target("openai-chat", "gpt-4o")) as session:
        for read in (0, 1_536):
            session.user("Which tests fail?")
            session.request()
            billed = usage | {"prompt_tokens_details": {"cached_tokens": read}}
            choices = [{"message": answer, "finish_reason": "stop"}]
            session.receive({"model": "gpt-4o", "choices": choices, "usage": billed})
        known = [msgspec.to_builtins(each) for each in session.cache]
    assert turnlog("cache", "s", "--json").rows == known and len(known) == 2
    header, *rows, total = turnlog("cache", "latest").out.splitlines()
    assert header.split() == ["RECORD", "MODEL", "INPUT", "READ", "EXPECTED", "WRITTEN", "WHY"]
    assert [row.split()[:4] for row in rows] == [
        [str(each["n"]), "gpt-4o", "1,640", f"{each['read']:,}"] for each in known
    ]
    assert total == "2 requests: 1,536 of 3,280 tokens read from the cache (46 %), 0 written to it"


def test_a_program_that_is_not_there_ends_a_handoff_as_a_system_that_could_not(
    turnlog: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1, which says that something was found; or a session for what never began."""
    with library.open("s", store=tmp_path / "log.db") as session:
        session.user("hi")
    monkeypatch.setenv("PATH", "")
    ended = turnlog("handoff", "latest", "--to", "claude", "--start")
    assert ended.code == 3 and "claude is not installed" in ended.err
    assert [(row["id"], row["messages"]) for row in turnlog("ls", "--json").rows] == [("s", 1)]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("log", "did you mean ls or show?"),
        ("list", "did you mean ls?"),
        ("delete", "did you mean rm?"),
        ("sho", "did you mean show?"),
        ("serach", "did you mean search?"),
        ("xyzzy", "`turnlog help` lists them"),
    ],
)
def test_a_word_that_is_no_command_is_answered_with_the_one_that_is_meant(
    turnlog: Command, word: str, said: str
) -> None:
    """A wall of forty names for a slip of the finger."""
    for words in ((word,), ("--store", "x.db", word), ("help", word), (word, "--json")):
        assert turnlog(*words) == (2, "", f"turnlog: there is no command {word!r}; {said}\n"), words


def test_words_that_others_use_lead_to_commands() -> None:
    """Advice to use a command that does not exist, or a word that hides one that does."""
    assert {name for names in _MEANT.values() for name in names.split()} <= COMMANDS.keys()
    assert not _MEANT.keys() & COMMANDS.keys()


def test_help_is_what_the_option_shows(turnlog: Command) -> None:
    """Two texts of one command, of which one is out of date."""
    assert turnlog("help") == turnlog("--help")
    for name in COMMANDS:
        ended = turnlog("help", name)
        assert ended == turnlog(name, "--help") and ended.code == 0
        assert ended.out.count("--store") <= 1, "one line of every help, and not seven"


def test_every_command_has_two_examples_of_itself(turnlog: Command) -> None:
    """Whoever reads a help has to put a command together from its options."""
    assert EXAMPLES.keys() == COMMANDS.keys()
    for name, examples in EXAMPLES.items():
        assert len(set(examples)) == 2 and all(example.split()[0] == name for example in examples)
        shown = turnlog("help", name).out
        assert all(f"\n  turnlog {example}\n" in shown for example in examples)


@pytest.mark.parametrize("example", [example for examples in EXAMPLES.values() for example in examples])
def test_every_example_runs(turnlog: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: str) -> None:
    """An example that fails is the first thing that a user tries."""
    words = shlex.split(example.partition(" > ")[0])
    if example in NOT_RUN:
        build_parser(words).parse_args(words)
        return
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "request.json").write_text(json.dumps(BODY), "utf-8")
    (tmp_path / "session.jsonl").write_text(json.dumps({"session_id": "another", "request": BODY}) + "\n", "utf-8")
    for name in ("trial", "last"):
        target = library.target("openai-chat", "gpt-4o")
        with library.open(name, store=tmp_path / "log.db", target=target, labels={"user": "ann"}) as session:
            for question in ("How are the tests run?", "And the flaky test, with which timeout?"):
                library.run(session, question, ScriptedRunner(["With make test. " * 200]))
            if words[0] == "undo":
                session.compact(keep=1)
    if words[0] in ("rm", "gc", "scrub"):
        monkeypatch.setattr("turnlog.cli.terminal.is_terminal", lambda stream: True)
        if "--yes" not in words:
            monkeypatch.setattr("commands._Stdin", lambda data: _Agreeing("y\n"))
    if words[-1] == "file:new.key":
        (tmp_path / "new.key").write_bytes(b"k" * 32)
        (tmp_path / "new.key").chmod(0o600)
    ended = turnlog(*words)
    assert ended.code == 0, ended.err
    sys.stdout.flush()
