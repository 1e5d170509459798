"""What a release says of itself: its version, its changes, what it no longer reads, what it brings."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from pathlib import Path

from turnlog import __version__

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NUMBER = tuple(map(int, __version__.split(".")[:2]))


def test_the_newest_changes_are_of_this_version() -> None:
    """A release whose changes nobody can look up, or without a place for the next ones."""
    headings = re.findall(r"(?m)^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"))
    newest = re.fullmatch(rf"\[{re.escape(__version__)}\] - (\d{{4}}-\d\d-\d\d)", headings[1])
    assert headings[0] == "[Unreleased]" and newest is not None, headings
    assert date.fromisoformat(newest[1])


def test_what_is_read_until_a_version_is_gone_in_it() -> None:
    """An old name that outlives the version which was said to remove it, or that the page on deprecations lacks."""
    sources = (path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    said = {version for source in sources for version in re.findall(r"\buntil (\d+\.\d+)\b", source)}
    page = (ROOT / "docs" / "versions.md").read_text("utf-8")
    listed = set(re.findall(r"(?m)^\| .* \| (\d+\.\d+) \|$", page))
    assert said == listed
    assert [version for version in said if tuple(map(int, version.split("."))) <= NUMBER] == []


def test_the_extra_all_is_every_extra() -> None:
    """An extra that who asks for all of them does not get."""
    extras = PROJECT["optional-dependencies"]
    [everything] = extras["all"]
    assert everything == f"turnlog[{','.join(sorted(set(extras) - {'all'}))}]"


def test_readme_leads_to_what_a_user_of_a_release_asks() -> None:
    """How to report a vulnerability, what changed, and how long an old name works, where nobody finds it."""
    readme = (ROOT / "README.md").read_text("utf-8")
    links = ("(CHANGELOG.md)", "(SECURITY.md)", "(docs/versions.md)")
    assert [link for link in links if link not in readme] == []
