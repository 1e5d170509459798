"""What the programs in a shell command print: a table by the name of the program and its first argument."""

from __future__ import annotations

import re
from collections.abc import Sequence

_BEFORE = re.compile(
    r"(?:\w+=\S*|sudo|time|timeout|nohup|env|nice|exec|command|then|do|else|if|while|!|xvfb-run|stdbuf|\d+s?)$"
)
_SILENT = frozenset(
    "cd export echo source . set mkdir touch rm mv cp chmod sleep true pwd printf unset pushd popd".split()
)
_READ = frozenset("cat nl bat head tail less more sed awk type get-content gc od xxd hexdump strings".split())
_SEARCH = frozenset("grep egrep fgrep rg ag ack zgrep findstr select-string".split())
_LISTING = frozenset("ls find tree fd fdfind dir du exa eza get-childitem gci".split())
_REWRITING = frozenset("sed awk gawk cut tr jq yq perl python python3 node xargs rev paste column fmt fold".split())
"""Programs behind which the output of another is no listing or search any more."""
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
_TESTING = re.compile(r"(?:^|[\s:/_-])(?:tests?|pytest|jest|vitest|unittest|spec|e2e|check)(?:$|[\s:/_.-])")
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
    later = [_program(one)[0] for one in pipe[1:]]
    if first in _SILENT or not first:
        return ""
    kind = _of_program(first, words)
    if kind == "read" and any(one in _SEARCH for one in later):
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
    said = " ".join(words[:6])
    if name in _RUNNERS and words:
        if _TESTING.search(said):
            return "tests"
        inner = next((word for word in words if not word.startswith("-") and word not in ("run", "exec", "m")), "")
        if name not in ("python", "python3", "node") and inner in _TESTS | _BUILD:
            return "tests" if inner in _TESTS else "build"
        if "-m" in words[:2] and len(words) > words.index("-m") + 1 and words[words.index("-m") + 1] in _BUILD:
            return "build"
    if name in _BY_WORD:
        word = next((word for word in words if not word.startswith("-")), "")
        if name == "git" and word == "show" and ":" in said:
            return "read"
        return _BY_WORD[name].get(word, "command")
    if name in _READ:
        return "read"
    for kind, names in (("search", _SEARCH), ("listing", _LISTING), ("tests", _TESTS), ("build", _BUILD)):
        if name in names:
            return "tests" if kind == "build" and _TESTING.search(said) and name in ("make", "mvn", "gradle") else kind
    return "command"
