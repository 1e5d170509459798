"""However a command ends, it ends with the exit code that the manual names and without a traceback."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from commands import Command
from turnlog import __version__, errors
from turnlog.cli.entry import EXIT_CODES, build_parser, main
from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft
from turnlog.stores import open_store

BODY = '{"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}'
PROGRAM = "import sys\nfrom turnlog.cli import main\nsys.exit(main())\n"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a session `s` of a megabyte, more than any pipe holds."""
    path = tmp_path / "log.db"
    with closing(open_store(path)) as made:
        made.create("s")
        made.append("s", [Draft(MessageRecord(Message("user", (Text("word " * 200_000),))))])
    return path


def shell(command: str, store: Path) -> tuple[int, str]:
    """A shell command with `$T` for turnlog: exit code, and what was said on stderr."""
    program = store.parent / "t.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "TURNLOG_STORE": str(store), "T": f"{sys.executable} {program}"}
    run = subprocess.run(["bash", "-c", command], env=environment, cwd=store.parent, capture_output=True, timeout=60)
    return run.returncode, run.stderr.decode("utf-8", "replace")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("set -o pipefail; $T show s | head -c 1 >/dev/null", 141, ""),
        ("set -o pipefail; $T export s --format jsonl | head -c 1 >/dev/null", 141, ""),
        ("$T show s >&-", 3, "turnlog: standard output is closed\n"),
        ("$T show s >&- 2>&-", 3, ""),
        ("$T check - <&-", 2, "turnlog: -: standard input is closed; give a file, or redirect one to standard input\n"),
        (
            "$T import - <&-",
            2,
            "turnlog: -: standard input is closed; give a file, or redirect one to standard input\n",
        ),
        (
            "$T rm s <&-",
            2,
            "turnlog: rm: standard input is not a terminal, so no confirmation can be asked for; add --yes to delete "
            "without asking\n",
        ),
        ("$T check . --as google", 2, "turnlog: .: cannot be read (Is a directory); name a readable file\n"),
        ("$T --store /proc/no/store.db import t.py", 3, None),
        ("$T --store . ls", 3, None),
        ("$T --store t.py ls", 3, None),
        ("$T show $'\\xff\\xfe'", 4, None),
        ("$T import $'\\xff\\xfe'", 2, None),
        ("$T request $'\\xff\\xfe' --to google", 4, None),
        ("$T rename s $'\\xff\\xfe' && $T ls", 0, ""),
        ("$T nonsense", 2, None),
        ("$T", 0, ""),
        ("$T --help", 0, ""),
        (f"$T check <(echo '{BODY}') --as openai-chat", 0, None),
        (f"$T request <(echo '{BODY}') --to google >/dev/null", 0, None),
        (f"$T import <(echo '{BODY}')", 0, ""),
        ("LC_ALL=C PYTHONUTF8=0 PYTHONIOENCODING=ascii $T rename s 'Grüße 中' && PYTHONIOENCODING=ascii $T ls", 0, ""),
    ],
)
def test_every_end_is_clean(store: Path, command: str, code: int, said: str | None) -> None:
    """A reader that goes away, closed streams, bad names: an exit code and at most a sentence."""
    ended, err = shell(command, store)
    assert ended == code, err
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    if said is not None:
        assert err == said


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["$T show s", "$T ls", "$T request s --to google", "$T --help"])
def test_a_full_disk_is_said(store: Path, command: str) -> None:
    """Output that could not be written must not end with 0."""
    code, err = shell(f"{command} >/dev/full", store)
    assert (code, "No space left on device" in err, "Traceback" in err, "ignored" in err) == (3, True, False, False)


def test_ctrl_c(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Interrupted while it waits for its input: 130, no traceback."""

    class Waiting(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            signal.raise_signal(signal.SIGINT)
            return b""

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Waiting()))
    assert main(["check", "-"]) == 130
    assert capsys.readouterr().err == "turnlog: interrupted\n"


def test_ctrl_c_before_the_command_has_begun() -> None:
    """Interrupted while the modules are opened, half a second on a slow disk: a traceback of imports."""
    hook = (
        "class Hook:\n  def find_spec(self, name, *_):\n"
        "    if name == 'turnlog.config.settings': signal.raise_signal(2)\n"
    )
    program = f"import signal, sys\n{hook}sys.meta_path.insert(0, Hook())\n{PROGRAM}"
    run = subprocess.run([sys.executable, "-c", program, "ls"], capture_output=True, timeout=60, check=False)
    assert (run.returncode, run.stdout, run.stderr.splitlines()) == (130, b"", [b"turnlog: interrupted"])


def test_an_error_of_ours(turnlog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug is told in a line that says where, and has an exit code of its own."""

    def broken(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("turnlog.cli.check.json_object", broken)
    ended = turnlog("check", "x")
    assert (ended.code, ended.out) == (70, "")
    assert ended.err.startswith("turnlog: an error in turnlog itself, please report it: KeyError: 'x' (")


def test_system_errors(turnlog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system refuses is told in its words, with the file."""

    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "some/file")

    monkeypatch.setattr("turnlog.cli.check.json_object", refused)
    assert turnlog("check", "x") == (3, "", "turnlog: Permission denied: some/file\n")


def test_version(turnlog: Any) -> None:
    """`--version` is the package's version."""
    assert turnlog("--version") == (0, f"turnlog {__version__}\n", "")


def test_exit_codes_are_listed(turnlog: Any) -> None:
    """An error class whose exit code the manual does not know fails here."""
    found = (getattr(errors, name) for name in errors.__all__)
    codes = {one.exit_code for one in found if isinstance(one, type) and issubclass(one, errors.TurnlogError)}
    assert codes <= set(EXIT_CODES)
    shown = turnlog("--help").out
    assert [code for code, meaning in EXIT_CODES.items() if f"{code:>3}  {meaning}\n" not in shown] == []


def test_words_no_shell_could_send(turnlog: Any) -> None:
    """`main` is a function too: characters that no file name can hold are refused, not met."""
    for word in ("a\0b", "\ud800"):
        for command in (["show", word], ["import", word], ["request", word, "--to", "google"], ["--store", word, "ls"]):
            assert turnlog(*command).code == 2
    assert main(["show", "\udcff"]) == 3


def test_a_command_alone_is_the_command_among_all() -> None:
    """A command whose module is not the one that the table names for it is unknown when it is asked for."""

    def known(*argv: str) -> dict[str, str]:
        (choices,) = (action.choices for action in build_parser(argv)._actions if isinstance(action.choices, dict))
        return {name: parser.format_help() for name, parser in choices.items()}

    (commands,) = (action.choices for action in build_parser()._actions if isinstance(action.choices, dict))
    whole = {name: parser.format_help() for name, parser in commands.items()}
    for name, described in whole.items():
        assert known("--store", "ls.db", name, "--help")[name] == described
        assert known("--store=show", name)[name] == described
        assert len(known(name)) <= 4
    listed = known("nonsense")
    assert [*listed] == [*known("--help", "ls")] == [*whole]
    assert build_parser(["--help"]).format_help() == build_parser().format_help()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ls", "--bogus"], "turnlog ls: unrecognized arguments: --bogus\n"),
        (["export", "s", "--format", "html", "-x", "f"], "turnlog export: unrecognized arguments: -x f\n"),
        (["export", "s", "-o", "f"], "turnlog export: the following arguments are required: --format\n"),
        (["--store", "log.db", "show"], "turnlog show: the following arguments are required: ID\n"),
        (["show", "s", "t"], "turnlog show: unrecognized arguments: t\n"),
    ],
)
def test_a_wrong_argument_is_told_with_the_usage_of_its_command(turnlog: Any, words: list[str], said: str) -> None:
    """Whoever mistypes an option has to see those that there are, not a list of all commands."""
    ended = turnlog(*words)
    assert (ended.code, ended.out) == (2, "")
    name = said.partition(":")[0]
    assert ended.err.startswith(f"usage: {name} [-h] ") and ended.err.endswith(f"\n{said}")


def test_a_wrong_argument_ahead_of_the_command(turnlog: Any) -> None:
    """What stands ahead of the command is no option of it."""
    ended = turnlog("--bogus", "ls")
    assert (ended.code, ended.err.splitlines()[-1]) == (2, "turnlog: unrecognized arguments: --bogus")
    assert ended.err.startswith("usage: turnlog [-h] ")


@pytest.mark.slow
def test_it_runs_as_a_module() -> None:
    """Where the script is not on the path, `python -m turnlog` is what is left."""
    ended = subprocess.run([sys.executable, "-m", "turnlog", "--version"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, f"turnlog {__version__}", "")


@pytest.mark.parametrize(
    ("words", "said"),
    (
        (("search", "x", "--role", "usr"), "--role: no 'usr' is on record; did you mean 'user'?"),
        (
            ("search", "x", "--role", "king"),
            "--role: no 'king' is on record; there are user, assistant, system, tool, ",
        ),
        (("search", "x", "--limit", "0"), "'0' is not a whole number of hits, at least 1"),
        (("memory", "s", "--limit", "0"), "'0' is not a whole number of things, at least 1"),
        (("request", ".", "--to", "anthropic"), ".: a folder, not a file; in "),
        (("check", "log.db"), "log.db: a store, not a request; name it with --store"),
        (("visualize", "s", "-o", "x.gif"), "a picture is written as PNG, not as .gif: give a name that ends in .png"),
        (("show", "s", "--store", "log.db/x"), "log.db"),
    ),
)
def test_wrong_words_are_told_with_what_is_right(turnlog: Command, words: tuple[str, ...], said: str) -> None:
    """A typing error that ends in "nothing found" makes a user believe that nothing is there."""
    with closing(open_store("log.db")) as store:
        store.create("s")
    ended = turnlog(*words)
    assert ended.code in (2, 3, 4) and said in ended.err and ended.out == ""
