"""`turnlog completion`: words of commands, options and sessions, in the shells themselves where they are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import turnlog as library
from commands import Command
from turnlog.cli.arguments import COMMANDS
from turnlog.cli.completion import SHELLS
from turnlog.stores import open_store

ROOT = Path(__file__).resolve().parents[2]
IDS = ("cc432c40-1", "cc99", "odd $(touch made) 'name'")
ZSH = """
zmodload zsh/zpty zsh/zselect 2>/dev/null || exit 77
zpty shell zsh -f
zpty -w shell 'PS1=; autoload -Uz compinit; compinit -u -D && source turnlog.zsh && LISTMAX=1000 && print begun'
while zpty -r shell line; do [[ $line == *begun* && $line != *print* ]] && break; done
zpty -w -n shell "$1"$'\\t'
typeset -F SECONDS
while (( SECONDS < 20 )); do
    zpty -r -t shell line && print -rn -- "$line" && [[ $line == *$2* ]] && exit
    zselect -t 5
done
exit 0
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs shells")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a store, the scripts, and `turnlog` on the path."""
    with closing(open_store(tmp_path / "log.db")) as store:
        for name in IDS:
            store.create(name, title=f"about {name[:4]}\x1b[2J")
    for shell in SHELLS:
        shutil.copy(ROOT / f"src/turnlog/cli/data/turnlog.{shell}", tmp_path)
    program = tmp_path / "bin" / "turnlog"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m turnlog "$@"\n')
    program.chmod(0o755)
    return tmp_path


def in_shell(place: Path, *command: str) -> str:
    """What a command of a shell prints."""
    home = {"HOME": str(place), "TURNLOG_STORE": str(place / "log.db"), "TERM": "dumb"}
    path = f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **home, "PATH": path, "XDG_CONFIG_HOME": str(place), "XDG_DATA_HOME": str(place)}
    ran = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=120)
    assert ran.returncode in (0, 77), ran.stderr
    if ran.returncode == 77:
        pytest.skip("a zsh without zpty")
    return ran.stdout


CASES = [
    (("",), list(COMMANDS)),
    (("sh",), ["show"]),
    (("show", "cc4"), ["cc432c40-1"]),
    (("show", "l"), ["latest"]),
    (("--store", "none.db", "rm", "cc"), []),
    (("--store", "log.db", "rm", "cc9"), ["cc99"]),
    (("chat", "--session", "cc9"), ["cc99"]),
    (("export", "cc99", "--format", "ht"), ["html"]),
    (("request", "cc99", "--to", "anth"), ["anthropic"]),
    (("show", "--too"), ["--tools"]),
    (("ls", "--source", "emb"), ["embedded-server"]),
    (("help", "vi"), ["visualize"]),
    (("completion", "f"), ["fish"]),
    (("import", "log.d"), ["log.db"]),
    (("rename", "cc99", "--"), ["--help", "--store", "--key"]),
    (("--st",), ["--store"]),
]


def test_the_scripts_are_those_of_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command or an option that is new is never completed: run scripts/completions.py."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from completions import FOLDER, scripts

    made = scripts()
    sys.modules.pop("completions")
    assert {shell: (FOLDER / f"turnlog.{shell}").read_text("utf-8") for shell in SHELLS} == made


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_the_script(turnlog: Command, shell: str) -> None:
    """A script that is not in the package, or comes out changed."""
    script = (ROOT / f"src/turnlog/cli/data/turnlog.{shell}").read_text("utf-8")
    assert turnlog("completion", shell) == (0, script, "")


@pytest.mark.parametrize(("words", "offered"), CASES, ids=lambda value: " ".join(value)[:30])
def test_bash_completes(place: Path, words: tuple[str, ...], offered: list[str]) -> None:
    """A script that a shell does not take, or that offers what the command refuses."""
    run = (
        'source turnlog.bash; complete -p turnlog; COMP_WORDS=(turnlog "$@"); COMP_CWORD=$#; _turnlog; '
        "((${#COMPREPLY[@]})) && printf '%s\\n' \"${COMPREPLY[@]}\" || true"
    )
    assert in_shell(place, "bash", "--norc", "-c", run, "bash", *words).splitlines() == [
        "complete -F _turnlog turnlog",
        *offered,
    ]


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish on the PATH")
@pytest.mark.parametrize(("words", "offered"), CASES, ids=lambda value: " ".join(value)[:30])
def test_fish_completes(place: Path, words: tuple[str, ...], offered: list[str]) -> None:
    """A script that a shell does not take, or that offers what the command refuses."""
    run = "source turnlog.fish; complete -C $argv[1]"
    lines = in_shell(place, "fish", "--no-config", "-c", run, " ".join(["turnlog", *words])).splitlines()
    assert sorted(line.partition("\t")[0] for line in lines) == sorted(offered)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh on the PATH")
@pytest.mark.parametrize(
    ("line", "added"),
    [("turnlog sho", "w "), ("turnlog show cc4", "32c40-1 "), ("turnlog export cc99 --format ht", "ml ")],
)
def test_zsh_completes(place: Path, line: str, added: str) -> None:
    """A script that a shell does not take, or that offers nothing."""
    assert in_shell(place, "zsh", "-f", "-c", ZSH, "zsh", line, added).rstrip("\n").endswith(added)


def test_an_id_runs_nothing_and_a_title_does_nothing_to_the_terminal(place: Path, turnlog: Command) -> None:
    """A session that somebody else named runs a program when its name is completed."""
    run = "source turnlog.bash; COMP_WORDS=(turnlog show odd); COMP_CWORD=2; _turnlog"
    run += '; eval "set -- $COMPREPLY"; echo "$1"'
    assert in_shell(place, "bash", "--norc", "-c", run) == f"{IDS[2]}\n"
    assert not (place / "made").exists()
    assert turnlog("completion", "ids", "show", "cc9") == (0, "cc99\tnow  about cc99\\u001b[2J\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("where", ["sealed.db", "files:folder", "files:sealed"])
def test_ids_come_from_every_kind_of_store(turnlog: Command, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Only who has one SQLite file gets anything completed; or a store without its key shows what it hides."""
    monkeypatch.setenv("PASS", "phrase")
    key = ("--key", "passphrase-env:PASS") if "sealed" in where else ()
    turnlog("chat", "--store", where, *key, "--model", "scripted/demo", "--session", "cc1", "-p", "hi")
    assert turnlog("rename", "--store", where, *key, "cc1", "the plan").code == 0
    told = "cc1\tnow  the plan\n"
    assert turnlog("completion", "ids", "show", "--store", where, *key, "c") == (0, told, "")
    hidden = "" if "sealed" in where else told
    assert turnlog("completion", "ids", f"--store={where}", "show", "c") == (0, hidden, "")


def test_the_configuration_names_the_store(turnlog: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids of another store than the one that the command will use."""
    monkeypatch.delenv("TURNLOG_STORE")
    (tmp_path / "turnlog.toml").write_text('store = "mine.db"\n')
    library.open("cc1", store=tmp_path / "mine.db").close()
    assert turnlog("completion", "ids", "show", "c") == (0, "cc1\tnow  \n", "")


def test_a_damaged_store_offers_nothing_and_says_nothing(turnlog: Command, tmp_path: Path) -> None:
    """A traceback in the middle of a line that is being typed."""
    (tmp_path / "log.db").write_bytes(b"no database")
    assert turnlog("completion", "ids", "show", "c") == (0, "", "")
