"""The documentation runs: every example of README.md and docs/ does what it says.

A ```python block is executed; blocks of one file share a namespace and a temporary directory, and
run in the order they stand in. In a ```console block every `$ turnlog ...` and `$ python ...` command
runs, in the same directory; output shown under it is compared, a line `...` standing for any lines. A
comment on the line above a block says otherwise: `<!-- no-run -->` leaves it alone,
`<!-- file NAME -->` writes it to a file of that name in the directory, and ahead of `<!-- killed -->`
the process of the blocks before is killed: sessions that they opened have no owner any more. A block
with `<!-- example NAME no-run -->` is the file of that name in `examples/frameworks/`.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import turnlog
from turnlog import errors
from turnlog.cli import main
from turnlog.testing import crash

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
RUNNING = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LANDING = ROOT / "docs" / "index.md"
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_SHELL = re.compile(r"[|<>;&$`*\\]")
_WORDS = re.compile(r"<!-- (.*) -->")


class Block(NamedTuple):
    """A fenced block: its language, the words of the comment above it, the line its text begins on, its text."""

    language: str
    words: tuple[str, ...]
    line: int
    text: str


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    lines = page.splitlines()
    start: int | None = None
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = number + 1
        else:
            comment = _WORDS.fullmatch(lines[start - 2]) if start > 1 else None
            words = tuple(comment[1].split()) if comment else ()
            text = "\n".join(lines[start:number]) + "\n"
            found.append(Block(lines[start - 1].strip("`"), words, start + 1, text))
            start = None
    assert start is None, f"a block opened on line {start} is never closed"
    return found


def commands(text: str) -> list[tuple[str, str]]:
    """The `$` commands of a console block and the output shown under each."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and found[-1][0].endswith("\\") and not found[-1][1]:
            found[-1] = (found[-1][0][:-1] + line.removeprefix(">").strip(), [])
        elif found:
            found[-1][1].append(line)
    return [(command, "\n".join(shown).strip()) for command, shown in found]


def agrees(shown: str, printed: str) -> bool:
    """Whether `printed` is what `shown` says. A line `...` stands for any lines; 0.0 (seconds) for any time, since that
    depends on the machine."""
    pieces = re.split(r"(?m)^\.\.\.(?:\n|\Z)", shown.rstrip() + "\n")
    pattern = "(?s:.*)".join(map(re.escape, pieces))
    pattern = re.sub(r"(?<![\w.$])0\\\.0(?!\w)", r"\\d+\\.\\d", pattern)
    return re.fullmatch(pattern, printed.rstrip() + "\n") is not None


def run_command(command: str, folder: Path) -> str:
    """What a command prints, stdout and stderr together; fails if it ends in an error. Plain commands of turnlog run in
    this process, which takes a tenth of the time; tests/cli/test_cli_entry.py looks at the process."""
    if command.startswith("turnlog ") and not _SHELL.search(command):
        return run_here(command, folder)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HOME": str(folder), "COLUMNS": "100"}
    # As installed: modules that are compiled already, so that pages can show how long a turn took.
    # Nothing is buffered: pages show what a terminal shows, in the order in which it is written.
    environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONUNBUFFERED": "1"}
    run = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert run.returncode == 0, f"$ {command}\nended with {run.returncode}:\n{run.stdout}"
    return run.stdout


def run_here(command: str, folder: Path) -> str:
    """What a command of turnlog prints, in the order in which it is written."""
    place = folder.parent / "printed"
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", DeprecationWarning)
        printing = io.TextIOWrapper(stack.enter_context(open(place, "wb", buffering=0)), "utf-8", write_through=True)
        patch.setattr(sys, "stdin", stack.enter_context(open(os.devnull, encoding="utf-8")))
        patch.setattr(sys, "stdout", printing)
        patch.setattr(sys, "stderr", printing)
        patch.setenv("COLUMNS", "100")
        patch.chdir(folder)
        code = main(shlex.split(command)[1:])
    printed = place.read_text("utf-8")
    assert code == 0, f"$ {command}\nended with {code}:\n{printed}"
    return printed


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNING, ids=lambda page: page.name)
def test_examples_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """An example that does not run, or prints something else than the page shows, fails here."""
    if page.name == "postgres.md":
        monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("postgres").new_place())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):  # no page meets the sessions of another
        monkeypatch.delenv(name, raising=False)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page.read_text("utf-8")):
        if "no-run" in block.words:
            continue
        if block.words[:1] == ("file",):
            (tmp_path / block.words[1]).write_text(block.text, "utf-8")
        elif block.language == "python":
            if "killed" in block.words:
                for session in [each for each in namespace.values() if isinstance(each, turnlog.Session)]:
                    crash(session)
            # the line feeds in front make tracebacks name the page's own lines
            code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
            exec(code, namespace)
        elif block.language == "console":
            for command, shown in commands(block.text):
                if not command.startswith(("turnlog ", "python ")):
                    continue
                printed = run_command(command, tmp_path)
                problem = f"$ {command}\nprinted:\n{printed}\nthe page shows:\n{shown}"
                assert not shown or agrees(shown, printed), problem


def test_programs_of_frameworks_are_those_that_are_tested() -> None:
    """A page would show another program than `make test-frameworks` runs, or one that nobody has seen run."""
    page = (ROOT / "docs" / "frameworks.md").read_text("utf-8")
    shown = {block.words[1]: block.text for block in blocks(page) if block.words[:1] == ("example",)}
    programs = ROOT / "examples" / "frameworks"
    assert shown == {path.name: path.read_text("utf-8") for path in programs.glob("*.py") if path.name in shown}
    assert {"openai_agents_session.py", "langchain_middleware.py"} <= shown.keys()


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"(?ms)^```.*?^```$", "", page.read_text("utf-8"))


def anchors(page: Path) -> set[str]:
    """The places of a page that a link may name: its headings, and what stands as `<a id="...">`."""
    titles = re.findall(r"(?m)^#+ (.+)$", prose(page))
    slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    return slugs | set(re.findall(r'<a id="([^"]+)">', prose(page)))


def missing(page: Path, link: str) -> bool:
    """Whether a link leads to no file, or to no place in a page."""
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return not target.exists() or bool(anchor and anchor not in anchors(target))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """A link to a file or a heading that is not there fails here."""
    links = [link for link in _LINK.findall(prose(page)) if "://" not in link]
    assert [link for link in links if missing(page, link)] == []


def test_every_page_is_found_from_the_landing_page() -> None:
    """Nobody reads a page that the landing page does not link to, unless they know of it. README links there."""
    readme, landing = (path.read_text("utf-8") for path in (ROOT / "README.md", LANDING))
    pages = [page.relative_to(LANDING.parent).as_posix() for page in RUNNING[1:] if page != LANDING]
    assert "(docs/index.md)" in readme
    assert [page for page in pages if f"({page})" not in landing] == []


def test_readme_is_one_screen_and_a_little() -> None:
    """README is what a developer reads before trying turnlog: under 120 lines, none over 120 characters."""
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert len(lines) < 120 and max(map(len, lines)) <= 120


def test_every_public_name_is_on_a_page() -> None:
    """Somebody who is given a value, or catches an error, has to find its name somewhere and what it holds."""
    page = (ROOT / "docs" / "names.md").read_text("utf-8")
    assert [name for name in turnlog.__all__ if f"`turnlog.{name}`" not in page] == []
    assert [name for name in errors.__all__ if not re.search(rf"`(?:turnlog\.)?(?:errors\.)?{name}`", page)] == []


_INDEXED = re.compile(r"pip3? install (?:[\w=.-]+ )*['\"]?turnlog(?![\w-])|(?<![\w/.])turnlog\[[a-z]")


def test_nothing_says_to_install_what_no_index_has() -> None:
    """Whoever does what an error or a page says is told that there is no such package; or, worse, gets somebody else's
    of that name."""
    sources = sorted((ROOT / "src").rglob("*.py"))
    found = []
    for path in (*sources, *RUNNING, ROOT / "DESIGN.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"):
        found += [f"{path.relative_to(ROOT)}: {said[0]}" for said in _INDEXED.finditer(path.read_text("utf-8"))]
    assert found == []
    assert _INDEXED.search("pip install 'turnlog[otel]'") and _INDEXED.search("pip install -U turnlog")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = {name for path in sources for name in re.findall(r"install_extra\([\"'](\w+)", path.read_text("utf-8"))}
    assert {"zstd", "skills"} < named <= extras.keys()


def test_a_shown_output_can_disagree() -> None:
    """The comparison itself: were it to accept anything, no page could be wrong."""
    assert agrees("one\n...\nfour", "one\ntwo\nthree\nfour\n")
    assert agrees("one", "one\n")
    assert not agrees("one\n...\nfour", "one\ntwo\n")
    assert not agrees("one", "one\ntwo\n")


def test_blocks_and_commands_are_found() -> None:
    """The reader of pages itself: a block or command it missed would never run."""
    page = "text\n```console\n$ turnlog a \\\n>   b\nout\n$ turnlog c\n```\n\n<!-- sdk no-run -->\n```python\nx\n```\n"
    console, python = blocks(page)
    assert commands(console.text) == [("turnlog a b", "out"), ("turnlog c", "")]
    assert python == Block("python", ("sdk", "no-run"), 11, "x\n")


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    """The check of links itself: were it to accept anything, no link could be wrong."""
    page = tmp_path / "page.md"
    page.write_text('# A `b`: c\n```sh\n# no heading\n```\n<a id="placed"></a>\n')
    assert not any(missing(page, link) for link in ("page.md", "#a-b-c", "page.md#placed"))
    assert all(missing(page, link) for link in ("other.md", "#no-heading", "page.md#d"))


def test_every_call_that_somebody_knows_is_run_beside_ours() -> None:
    """A row that is only a comment stays on the page when the call has gone."""
    page = (ROOT / "docs" / "if-you-know.md").read_text("utf-8")
    lines = [line.strip() for block in blocks(page) if block.language == "python" for line in block.text.splitlines()]
    rows = [at for at, line in enumerate(lines) if line.startswith("#")]
    assert len(rows) >= 38
    assert [lines[at] for at in rows if lines[at + 1 : at + 2] == [""] or lines[at + 1].startswith("#")] == []
