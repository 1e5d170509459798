"""docs/digests.md: the page and the questions that it is made of belong together."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/digests.md").read_text("utf-8")
QUESTIONS: dict[str, Any] = json.loads((ROOT / "scripts/digests.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def script() -> ModuleType:
    found = importlib.util.spec_from_file_location("made_digests", ROOT / "scripts/digests.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_page_shows_every_question(script: ModuleType) -> None:
    """A question that is left out of the page, or asked with other words, makes its figures those of other questions:
    run scripts/digests.py."""
    assert [len(session["questions"]) for session in QUESTIONS.values()] == [10] * 6
    for session in QUESTIONS.values():
        assert f"\n## {session['about']}\n" in PAGE
        for one in session["questions"]:
            assert f"\n| {script.shown(one['question'])} |" in PAGE and one["answer"] and one["says"]


def test_the_page_names_no_person(script: ModuleType) -> None:
    """Home folders and addresses of those whose sessions were recorded would be published."""
    line = (
        "at /Users/someone/code, someone@example.org, [a file](/Users/someone/a.md:3) and [a page](https://example.org)"
    )
    assert script.shown(line) == "at ~/code, (address), a file and a page"
    assert "/Users/" not in PAGE and "/home/" not in PAGE and "@example" not in PAGE


def test_a_shortened_digest_says_how_much_is_left_out(script: ModuleType) -> None:
    """A reader would take a part of a section for all of it."""
    section = [f"line {n}" for n in range(9)]
    shown = list(script.shortened("\n".join(["Digest", "## Asked", *section, "## Open", "one", "two"])))
    assert shown == [
        "Digest",
        "## Asked",
        "line 0",
        "line 1",
        "(... 5 lines)",
        "line 7",
        "line 8",
        "## Open",
        "one",
        "two",
    ]


def test_a_line_that_is_gone_answers_nothing(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """A digest that changed would keep the score that a reader gave to another one."""
    asked = {"session": "s", "questions": [{"after": ["said"]}, {"after": ["gone"]}, {"after": []}]}
    assert script.read(asked, "after", {"digest": "this was said"}) == [True, False, False]
    assert capsys.readouterr().out == "read again: s question 2, after: 'gone' is gone\n"
