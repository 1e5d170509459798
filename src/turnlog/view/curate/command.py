"""The output of programs: what they say by the way can go, how they ended and what went wrong cannot."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .lines import Picked, picked
from .marks import Marks

_INSPECTION = Picked(head=5_000, tail=4_000)
_BUILD = Picked(head=600, tail=7_000)
_TESTS = Picked(head=600, tail=7_000)
_PASSED = re.compile(
    r"(?:^\s*(?:PASS\b|ok \d(?!.*#\s*(?:skip|todo))|ok\s+\S+\s+(?:\(cached\)|[\d.]+s)|--- PASS|[✓✔√] )"
    r"|::\S.* PASSED\b|\bPASSED \S+::|^test \S.* \.\.\. ok$|\.\.\. ok$|^\s*<testcase\b[^>]*/>\s*$)",
    re.IGNORECASE,
)
_BEGAN = re.compile(r"\s*=== (?:RUN|PAUSE|CONT)\s+(\S+)")
_ENDED = re.compile(r"\s*--- (?:PASS|FAIL|SKIP): (\S+)")


def command(text: str, marks: Marks) -> str:
    """Of a program that looks at something: the beginning, the end, and every line about an error between them."""
    return picked(text, _INSPECTION, marks)


def build(text: str, marks: Marks) -> str:
    """Of a build or an installation: the end, and every line about an error or a warning before it."""
    return picked(text, _BUILD, marks)


def tests(text: str, marks: Marks) -> str:
    """Of a test report: the failures and the end, and tests of Go that began and never ended. Lines about tests that
    passed are counted."""
    return picked(text, _TESTS, marks, _PASSED, "passed tests", _unended)


def _unended(lines: Sequence[str]) -> list[int]:
    """The last line about each test that began and did not end."""
    ended = {found[1] for line in lines if (found := _ENDED.match(line)) is not None}
    last = {found[1]: i for i, line in enumerate(lines) if (found := _BEGAN.match(line)) is not None}
    return [i for name, i in last.items() if name not in ended]
