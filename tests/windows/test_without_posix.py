"""What can be known of Windows without one: everything runs where the names that Windows lacks are taken away."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from lacking import LACKING, MISSING

import turnlog
from parsed import parsed

HERE = Path(__file__).parent
SOURCE = Path(turnlog.__file__).parent
ENDED = "ended.txt"

WITHOUT: dict[str, dict[str, str]] = {
    "chat/processes.py": {
        "CLOCK_BOOTTIME SIGKILL clock_gettime killpg sysconf": "elsewhere than on Windows, by `os.name`",
    },
    "chat/searching.py": {"alarm": "behind `hasattr`"},
    "runners/programs/runner.py": {"killpg": "behind `hasattr`"},
    "session/threads.py": {"register_at_fork": "behind `hasattr`"},
    "stores/jsonl/files.py": {"fcntl": "in a `try`, else None"},
    "stores/leases.py": {
        "fcntl": "in a `try`, else None",
        "pread pwrite": "of files that were locked with `fcntl`",
        "register_at_fork": "behind `hasattr`",
    },
    "stores/locks.py": {"fcntl": "in a `try`, else None"},
    "stores/postgres/database.py": {"register_at_fork": "behind `hasattr`"},
    "stores/postgres/leases.py": {"register_at_fork": "behind `hasattr`"},
    "stores/presence.py": {"O_DIRECTORY": "behind `hasattr`"},
    "stores/sqlite/database.py": {"fcntl": "in a `try`, else None", "register_at_fork": "behind `hasattr`"},
    "transport/recorder.py": {"register_at_fork": "behind `hasattr`"},
    "web/connections.py": {"resource": "in a `try`, else the usual limit"},
}
"""What the product uses that Windows lacks, and why it does without."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the names are taken away from Linux")


def _used(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MISSING)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (alias.name for alias in node.names if alias.name in LACKING.get(node.module or "", ()))
            yield from {node.module or ""} & MISSING
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield from {node.attr} & LACKING.get(node.value.id, frozenset())


@pytest.mark.slow
def test_what_windows_lacks_is_used_only_where_the_table_says_why() -> None:
    """An AttributeError or an ImportError that only users of Windows see."""
    names = re.compile(rf"\b({'|'.join(MISSING.union(*LACKING.values()))})\b")
    paths = [path for path in SOURCE.rglob("*.py") if names.search(path.read_text("utf-8"))]
    used = {path.relative_to(SOURCE).as_posix(): {*_used(tree)} for path, tree in parsed(paths).items()}
    told = {file: {name for names in reasons for name in names.split()} for file, reasons in WITHOUT.items()}
    assert {file: names for file, names in used.items() if names} == told


def _like_windows(folder: Path) -> Mapping[str, str]:
    """The environment of a Python without what Windows lacks; its `taskkill` says what it ended."""
    tools = folder / "tools"
    tools.mkdir()
    program = tools / "taskkill"
    program.write_text(f'#!/bin/sh\necho "$@" >> "{folder / ENDED}"\nkill -9 "$4"\n')
    program.chmod(0o700)
    return {**os.environ, "PYTHONPATH": str(HERE), "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}


def _run(arguments: list[str], folder: Path, given: str = "") -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=_like_windows(folder),
        input=given,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_names_are_really_taken_away(tmp_path: Path) -> None:
    """The other tests here pass because nothing is missing."""
    program = (
        "import os, turnlog.stores.leases as leases, turnlog._platform.files as handles\n"
        "print(leases.fcntl, hasattr(handles.os, 'O_CLOEXEC'), handles.os.name, hasattr(os, 'O_CLOEXEC'), os.name)\n"
    )
    assert _run(["-c", program], tmp_path) == "None False nt True posix\n"


@pytest.mark.slow
def test_every_store_an_agent_and_a_chat_run_without_them(tmp_path: Path) -> None:
    """A store of files that dies of an AttributeError, a lock that is nobody's, a command that cannot be ended."""
    assert _run([str(HERE / "everything.py"), str(tmp_path)], tmp_path) == "done\n"
    assert (tmp_path / ENDED).read_text().startswith("/F /T /PID ")


@pytest.mark.slow
def test_the_command_line_runs_without_them(tmp_path: Path) -> None:
    """A chat that ends in a traceback at its first key, or leaves a store that cannot be opened again."""
    chat = ["-m", "turnlog", "chat", "--model", "scripted/demo", "--json", "--store", "files:s"]
    told = [json.loads(line) for line in _run(chat, tmp_path, "Say hello").splitlines()]
    assert told[-1]["text"].strip() == "You said: Say hello"
