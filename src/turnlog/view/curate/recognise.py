"""Recognise the kind of a tool's output by the tool's name, its arguments and the output's shape, or by `Tool.output`.

A name alone is never trusted: nearly all lines of an output must have the form. An unknown tool may have printed the
content of a file, so its output is changed only if it is JSON, a diff, a page or a table, and never taken for a search.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ..._platform.lazy import lazy_pattern
from ...log.messages import ToolCall
from ..file_edits import changes_of, commands_in, words_of
from .diff import is_diff
from .json_values import is_json
from .listing import is_listing
from .page import has_markup, is_page
from .search import is_grouped, is_search
from .table import separator_of

# -- programs --------------------------------------------------------------------------------------
#
# What the programs in a shell command print: a table by the name of the program and its first argument.

_BEFORE = lazy_pattern(
    r"(?:\w+=\S*|sudo|time|timeout|nohup|env|nice|exec|command|then|do|else|if|while|!|xvfb-run|stdbuf|\d+s?)$"
)
_SILENT = frozenset(
    "cd export echo source . set mkdir touch rm mv cp chmod sleep true pwd printf unset pushd popd".split()
)
_READ = frozenset("cat nl bat head tail less more sed awk type get-content gc od xxd hexdump strings".split())
_SEARCH = frozenset("grep egrep fgrep rg ag ack zgrep findstr select-string".split())
_LISTING = frozenset("ls find tree fd fdfind dir du exa eza get-childitem gci".split())
_REWRITING = frozenset("sed awk gawk cut tr jq yq perl python python3 node xargs rev paste column fmt fold".split())
"""Programs that change the output of the program before them, so that it is no listing or search any more."""
_TESTS = frozenset(
    "pytest py.test tox nox jest vitest mocha ava rspec phpunit ctest nosetests unittest karma cypress playwright "
    "gotestsum bats".split()
)
_BUILD = frozenset(
    "make gmake cmake ninja meson bazel tsc eslint ruff mypy pyright flake8 pylint black prettier webpack vite rollup "
    "esbuild gcc g++ clang clang++ javac rustc swiftc xcodebuild pip pip3 pipx poetry conda apt apt-get brew apk dnf "
    "yum bundle composer gradle gradlew mvn dotnet msbuild docker-compose terraform".split()
)
_BY_WORD = {
    "git": {
        "diff": "diff",
        "show": "diff",
        "format-patch": "diff",
        "log": "command",
        "grep": "search",
        "ls-files": "listing",
        "ls-tree": "listing",
    },
    "npm": {"test": "tests", "t": "tests", "install": "build", "ci": "build", "i": "build", "run": "build"},
    "cargo": {"test": "tests", "nextest": "tests", "build": "build", "check": "build", "clippy": "build"},
    "go": {"test": "tests", "build": "build", "vet": "build", "mod": "build", "install": "build", "get": "build"},
    "docker": {"build": "build", "compose": "build", "pull": "build"},
    "uv": {"pip": "build", "sync": "build", "add": "build", "lock": "build"},
    "swift": {"test": "tests", "build": "build"},
    "zig": {"test": "tests", "build": "build"},
    "deno": {"test": "tests", "lint": "build"},
}
_BY_WORD |= dict.fromkeys(("yarn", "pnpm", "bun"), _BY_WORD["npm"])
_TESTING = lazy_pattern(r"(?:^|[\s:/_-])(?:tests?|pytest|jest|vitest|unittest|spec|e2e|check)(?:$|[\s:/_.-])")
_RUNNERS = frozenset(
    "npx uvx bunx pnpx python python3 node uv poetry bundle pipenv hatch pdm rye yarn pnpm npm bun make".split()
)


def printed_by(pipes: Sequence[Sequence[str]]) -> str:
    """The kind of output of shell commands, given as pipes. "read" if any of them prints a file, "" if there are
    none."""
    kinds = [kind for pipe in pipes if (kind := _of_pipe(pipe))]
    if not kinds:
        return "command" if pipes else ""
    for kind in ("read", "tests", "build"):
        if kind in kinds:
            return kind
    return kinds[0] if len(set(kinds)) == 1 else "command"


def _of_pipe(pipe: Sequence[str]) -> str:
    first, words = _program(pipe[0])
    later = [_program(command)[0] for command in pipe[1:]]
    if first in _SILENT or not first:
        return ""
    kind = _of_program(first, words)
    if kind == "read" and any(name in _SEARCH for name in later):
        return "search"
    if "wc" in later or (kind in ("search", "listing") and not _REWRITING.isdisjoint(later)):
        return "command"
    return kind


def _program(command: str) -> tuple[str, list[str]]:
    words = command.split()
    while words and _BEFORE.match(words[0]):
        words.pop(0)
    name = words[0].replace("\\", "/").rpartition("/")[2].lower().removesuffix(".exe") if words else ""
    return name, words[1:]


def _of_program(name: str, words: Sequence[str]) -> str:
    head = " ".join(words[:6])
    if name in _RUNNERS and words:
        if _TESTING.search(head):
            return "tests"
        inner = next((word for word in words if not word.startswith("-") and word not in ("run", "exec", "m")), "")
        if name not in ("python", "python3", "node") and inner in _TESTS | _BUILD:
            return "tests" if inner in _TESTS else "build"
        if "-m" in words[:2] and len(words) > words.index("-m") + 1 and words[words.index("-m") + 1] in _BUILD:
            return "build"
    if name in _BY_WORD:
        word = next((word for word in words if not word.startswith("-")), "")
        if name == "git" and word == "show" and ":" in head:
            return "read"
        return _BY_WORD[name].get(word, "command")
    if name in _READ:
        return "read"
    for kind, names in (("search", _SEARCH), ("listing", _LISTING), ("tests", _TESTS), ("build", _BUILD)):
        if name in names:
            return "tests" if kind == "build" and _TESTING.search(head) and name in ("make", "mvn", "gradle") else kind
    return "command"


OUTPUTS = ("build", "command", "diff", "json", "listing", "page", "read", "search", "table", "tests", "text")
"""What a tool's output can be. `command`: that of a program that looks at something; `build`: that of a build or an
installation; `tests`: a test report; `read`: the content of a file; `page`: HTML; `text`: nothing that is ever
shortened."""

_NAMES: tuple[tuple[str, frozenset[str]], ...] = (
    ("tests", frozenset("test tests pytest".split())),
    ("search", frozenset("grep rg ripgrep search codesearch".split())),
    ("read", frozenset("read cat view open viewer".split())),
    ("listing", frozenset("ls glob list tree dir directory find files".split())),
    ("page", frozenset("fetch browse browser web url curl crawl scrape http".split())),
    ("table", frozenset("csv sql query".split())),
    ("command", frozenset("bash shell sh zsh terminal console cmd command exec execute run powershell".split())),
)
"""Words in the names of tools, and the kind of output that such tools usually have. The first match counts."""

_PATHS = lazy_pattern(r"(?:^|_)(?:path|file|filename|filepath|uri)$")
_VIEWING = lazy_pattern(r"(?:view|read|open|show|cat)$")  # the action of an editor
_REPORT = lazy_pattern(
    r"^(?:=+ .{0,200}\b(?:passed|failed|errors?)\b.{0,60} in [\d.]+s|Tests:\s+\d+ |test result: |Ran \d+ tests? in "
    r"|(?:ok|FAIL)\s+\S+\s+[\d.]+s$|\s{0,8}<testsuite\b|TAP version |Test Files\s+\d+ )",
    re.MULTILINE,
)
_SAMPLE = 200
"""The number of lines by which the shape of an output is judged."""

_LEAD = 8
"""The most lines about a command that a program puts above the line `Output:`."""


def kind_of(call: ToolCall, text: str, output: str = "") -> str:
    """The kind of a call's output, one of `OUTPUTS`. `output` is the kind that the user declared, "" if none."""
    if output:
        return output
    claimed = _claimed(call)
    return claimed if claimed in ("read", "text") else _shaped(claimed, text)


def _claimed(call: ToolCall) -> str:
    """The kind of output that a tool's name and arguments suggest."""
    named = call.arguments if isinstance(call.arguments, dict) else {}
    words = {word for word in re.split(r"[^a-z]+", words_of(call.name)) if word}
    has_path = any(_PATHS.search(words_of(str(key))) for key in named)
    if not has_path and (pipes := commands_in(call)):
        return printed_by(pipes)
    if any(True for _ in changes_of(call, "")):
        return "text"  # what an editor shows of a file
    if has_path and _VIEWING.match(str(named.get("command", ""))):
        return "read"
    kind = next((kind for kind, names in _NAMES if words & names), "")
    return "text" if has_path and kind not in ("search", "listing", "read", "tests") else kind


def _shaped(claimed: str, text: str) -> str:
    """The kind that the shape of an output shows, if it agrees with the kind that its tool suggests."""
    shape = _shape(text)
    if shape in ("json", "diff", "page"):
        return shape
    if claimed in ("build", "tests", "command"):
        return "tests" if claimed == "tests" or (shape == "tests" and claimed == "build") else claimed
    if claimed in ("search", "listing"):
        if shape in ("search", "listing"):
            return shape
        return "search" if claimed == "search" and is_grouped(text) else "text"
    if claimed == "page" and has_markup(text):
        return "page"
    if claimed in ("page", "table", "diff"):
        return "table" if shape == "table" and claimed == "table" else "text"
    return "table" if shape == "table" else "text"


def _shape(text: str) -> str:
    start = text[:60_000]
    lines = start.split("\n", _SAMPLE)[:_SAMPLE]
    if len(text) > len(start) and len(lines) > 1:
        lines.pop()
    if is_json(text.strip()):
        return "json"
    if is_diff(text):
        return "diff"
    if is_page(text):
        return "page"
    if _REPORT.search(start) or _REPORT.search(text, max(0, len(text) - 4_000)):
        return "tests"
    lead = next((i + 1 for i, line in enumerate(lines[:_LEAD]) if line == "Output:"), 0)
    lines = lines[lead:]  # what Codex says of a command is no line of its output
    if is_search(lines):
        return "search"
    if separator_of(text):
        return "table"
    return "listing" if is_listing(lines) else ""


def as_call(tool: str, arguments: Any) -> ToolCall:
    """A call of a tool with these arguments, given as JSON text or as values."""
    raw = None
    if isinstance(arguments, str):
        raw = arguments
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = None
    return ToolCall("", tool, arguments, raw)
