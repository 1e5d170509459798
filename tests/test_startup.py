"""What importing, opening and short commands load and compile: counted, as time on a busy machine proves nothing."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import turnlog
from turnlog._platform.lazy import _Pattern

_COUNTED = """
import json, re, sys
compiled = []
compile_of_re = re._compile
def counting(pattern, flags):
    frame = sys._getframe(1)
    while frame.f_code.co_filename == re.__file__:
        frame = frame.f_back
    if "turnlog" in frame.f_code.co_filename:
        compiled.append(pattern)
    return compile_of_re(pattern, flags)
re._compile = counting
store = sys.argv[1]
sys.argv[1:] = sys.argv[2:]
try:
    exec(sys.argv.pop(1))
except SystemExit:
    pass
own = [name for name in sys.modules if name.partition(".")[0] == "turnlog"]
print(json.dumps([len(own), len(set(map(str, compiled))), sorted(sys.modules)]), file=sys.stderr)
"""

_OPEN = "import turnlog\nwith turnlog.open('s', store=store) as session:\n    "
_MAIN = "from turnlog.cli import main; main()"
_SLOW = {"asyncio", "ssl", "html.entities", "difflib", "http", "opentelemetry", "rich", "prompt_toolkit"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small store."""
    store = str(tmp_path_factory.mktemp("startup") / "t.db")
    with turnlog.open("s", store=store, target=turnlog.target("openai-chat", "gpt-4o")) as session:
        session.user("hello")
        session.request()
    return store


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "words", "modules", "patterns"),
    [
        ("import turnlog", (), 5, 0),
        (f"{_OPEN}pass", (), 254, 70),
        (f"{_OPEN}session.request()", (), 275, 130),
        (_MAIN, ("--version",), 20, 5),
        (_MAIN, ("--help",), 20, 5),
        (_MAIN, ("ls", "--store", "{}"), 260, 75),
    ],
    ids=["import", "open", "request", "--version", "--help", "ls"],
)
def test_little_is_loaded_and_compiled(
    place: str, code: str, words: tuple[str, ...], modules: int, patterns: int
) -> None:
    """A package that is loaded for nothing, or hundreds of patterns that are compiled for nothing, would make every
    command and every start of a server slower, and no other test would notice."""
    command = [sys.executable, "-c", _COUNTED, place, code, *(word.format(place) for word in words)]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("TURNLOG_")}
    done = subprocess.run(command, env=plain, capture_output=True, text=True, check=True)
    own, compiled, loaded = json.loads(done.stderr.splitlines()[-1])
    assert own <= modules
    assert compiled <= patterns
    assert _SLOW & {*loaded} == set()


def test_every_pattern_compiles() -> None:
    """A mistake in a pattern would show only when somebody first needs it."""
    patterns = []
    for module in pkgutil.walk_packages([str(Path(turnlog.__file__).parent)], "turnlog."):
        if not module.name.endswith("__main__"):
            patterns += [
                value for value in vars(importlib.import_module(module.name)).values() if isinstance(value, _Pattern)
            ]
    assert len(patterns) > 250
    assert all(pattern.pattern for pattern in patterns)


def test_patterns_of_modules_are_compiled_late() -> None:
    """The next pattern at the head of a module would be paid for by every start."""
    source = Path(turnlog.__file__).parent
    alone = {source / "_platform" / "lazy.py", source / "chat" / "searching.py"}  # the latter runs by itself
    compiled = [
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if path not in alone and re.search(r"^\w+(?:: [^=]+)? = re\.compile\(", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert compiled == []
