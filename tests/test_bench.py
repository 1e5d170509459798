"""The benches: each is named where its figures are, what is named exists, and one that fails does not stop the rest."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import harness

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "DESIGN.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *ROOT.glob("docs/*.md"),
]
NAMED = re.compile(r"bench/run\.py ((?:[a-z_]+(?:\.[a-z_]+)?)(?: [a-z_]+(?:\.[a-z_]+)?)*)")
ANY_NAME = re.compile(r"`([a-z_]+(?:\.[a-z_]+)?)`")
WORDS = {"list", "quick"}
_TEST_FILE = r"\b(tests/(?!importers/(?:test|sample)_NAME)[\w/]+\.py)\b"


def text_of(path: Path) -> str:
    """A file with its line breaks as blanks."""
    return " ".join(path.read_text("utf-8").split())


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """The harness, in a process of its own."""
    command = [sys.executable, str(ROOT / "bench" / "run.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_bench_that_is_named_exists() -> None:
    """A page would give a command that does not run; a test of the suite would send the reader to nothing."""
    known = harness.benches()
    stems = {name.partition(".")[0] for name in known}
    places = [*PAGES, *ROOT.glob("tests/**/*.py"), *ROOT.glob("bench/**/*.py"), ROOT / "Makefile"]
    wrong = []
    for path in places:
        for named in NAMED.findall(text_of(path)):
            first = named.split()[0]
            if first not in {*known, *stems, *WORDS} and path != Path(__file__):
                wrong.append(f"{path.relative_to(ROOT)}: bench/run.py {first}")
        for file in re.findall(r"bench/[\w./]+\.(?:py|txt|jsonl)\b", text_of(path)):
            if not (ROOT / file).exists():
                wrong.append(f"{path.relative_to(ROOT)}: {file}")
    assert wrong == []


def test_every_bench_is_named_somewhere() -> None:
    """A script that nobody knows of is run by nobody, and breaks unseen."""
    named = {word for path in PAGES for found in NAMED.findall(text_of(path)) for word in found.split()}
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("### Benches")[2].partition("\n## ")[0]
    named |= set(ANY_NAME.findall(table))
    assert sorted(set(harness.benches()) - named) == []


def test_every_test_that_a_page_names_exists() -> None:
    """Figures of long runs, laws and recipes name the file of a test. (Other files on pages of docs/ are made up.)"""
    wrong = [
        (path.name, file)
        for path in PAGES
        for file in re.findall(r"ARGS=(tests/[\w/.]+)" if path.parent.name == "docs" else _TEST_FILE, text_of(path))
        if not (ROOT / file).exists()
    ]
    assert wrong == []


def test_no_bench_shadows_a_module() -> None:
    """`secrets.py` beside a script takes the place of a module of the standard library: something breaks far away."""
    stems = [path.stem for path in ROOT.glob("bench/*.py")]
    assert sorted({*stems, *harness.FOLDERS} & sys.stdlib_module_names) == []
    assert sorted({path.stem for path in ROOT.glob("bench/*/*.py")} & sys.stdlib_module_names) == []


def test_each_bench_has_a_line_in_the_list() -> None:
    """Who looks for a measurement would have to open every file."""
    listed = run("list").stdout.splitlines()
    assert [line.split()[0] for line in listed] == list(harness.benches())
    assert all(line.endswith(".") and len(line.split()) > 3 for line in listed)


@pytest.mark.slow
def test_figures_come_as_json() -> None:
    """Figures of two versions could not be compared by a program."""
    (line,) = run("decisions", "--steps", "2", "--json").stdout.splitlines()
    told = json.loads(line)
    assert (told["bench"], told["status"], told["missed"]) == ("decisions", "ok", [])
    assert told["rows"]["auto, 4,000"]["decisions"] == 0


def test_what_is_absent_is_skipped_and_said() -> None:
    """A machine without the shared material would see failures, and nobody could tell them from real ones."""
    done = run("trimmers", "--shared", "/nowhere")
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.startswith("skipped: /nowhere/bench/trimmers is absent")


def test_an_unknown_bench_is_refused() -> None:
    """A misspelt name that measures nothing would look like a bench that is well."""
    done = run("decision")
    assert done.returncode == 2 and "no bench has the name 'decision'" in done.stderr


@pytest.mark.slow
def test_one_that_fails_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`make bench` would end at the first failure, and not say what else is wrong."""
    for folder in harness.FOLDERS:
        (tmp_path / folder).mkdir()
    for name in ("harness.py", "run.py"):
        (tmp_path / name).write_text((ROOT / "bench" / name).read_text("utf-8"))
    bodies = {
        "broken": "raise ValueError('no')",
        "missed": "report.row('a', {'ms': 3}, at_most={'ms': 2})",
        "skips": "raise Skipped('no cat here')",
        "well": "report.row('a', {'ms': 1}, at_most={'ms': 2})",
    }
    for name, body in bodies.items():
        head = "from harness import Report, Skipped, bench\n\n\n@bench(quick={})\n"
        (tmp_path / "speed" / f"{name}.py").write_text(
            f'{head}def {name}(report: Report) -> None:\n    """A."""\n    {body}\n'
        )
    done = subprocess.run(
        [sys.executable, str(tmp_path / "run.py"), "quick"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout.splitlines()[-4:] == ["failed: broken", "missed a bar: missed", "skipped: skips", "ok: well"]
    assert "a: 3 ms (at most 2) MISSED" in done.stdout and "skipped: no cat here" in done.stdout
    assert "ValueError: no" in done.stderr


def test_bars_are_kept_or_missed() -> None:
    """A bench that misses its bar and ends well is a bench that nobody needs to look at."""
    report = harness.Report("b")
    report.row("a", {"ms": 2.0, "answers": 5}, at_most={"ms": 2}, at_least={"answers": 5})
    assert report.missed == []
    report.row("b", {"ms": 2.1, "answers": 4}, at_most={"ms": 2}, at_least={"answers": 5})
    assert report.missed == ["b: 2.10 ms", "b: 4 answers"]
    report.findings("wrong", ["x"])
    assert report.missed[2:] == ["wrong: 1 findings"]


def test_work_is_timed_by_turns() -> None:
    """Ratios of work that was timed one after the other tell what else the machine did."""
    done: list[str] = []
    taken = harness.by_turns({name: lambda name=name: done.append(name) for name in "ab"}, 3, times=2)  # type: ignore[misc]
    assert done == list("aabb" * 3)
    assert harness.Times({"a": [1.0, 3.0, 2.0], "b": [4.0]}).ratio("a", "b") == 0.5
    assert {name: len(each) for name, each in taken.items()} == {"a": 3, "b": 3}
