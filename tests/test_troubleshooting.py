"""docs/troubleshooting.md: an entry for every error, exit code and family of texts, and none that is out of date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from turnlog import errors
from turnlog.cli.entry import EXIT_CODES

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
SOURCE = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "src" / "turnlog").rglob("*.py")))


def rows(heading: str) -> dict[str, list[str]]:
    """The rows of the table under a heading, by the text of the first cell."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = [re.split(r"(?<!\\)\|", line.strip("| \n")) for line in section.splitlines() if line.startswith("|")]
    return {row[0].strip(" `"): [cell.strip() for cell in row[1:]] for row in cells[2:]}


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_has_an_entry(name: str) -> None:
    """An error that a user can meet and that nobody explains."""
    heading = "Warnings" if issubclass(getattr(errors, name), Warning) else "Errors in a program"
    meaning, advice = rows(heading)[name]
    assert len(meaning) > 20 and len(advice) > 10


def test_every_exit_code_has_an_entry() -> None:
    """A command that ends with a number that the page does not know."""
    assert {int(code) for code in rows("Exit codes of the command line")} == set(EXIT_CODES)


@pytest.mark.parametrize("text", rows("What the store says"))
def test_texts_are_those_of_the_code(text: str) -> None:
    """A text that was changed in the code, so that a search on the page finds nothing."""
    assert text in SOURCE


def test_texts_of_exit_codes_are_those_of_the_code() -> None:
    """The same for what the command line prints."""
    for text in ("there is no session", "was written by a newer turnlog", "the request cannot fit", "turnlog: inter"):
        assert f"`{text}" in PAGE and text in SOURCE
    assert "an error in turnlog itself, please report it" in SOURCE
