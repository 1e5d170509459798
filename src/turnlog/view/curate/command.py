"""The output of programs: what they say by the way can go, how they ended and what went wrong cannot."""

from __future__ import annotations

import re

from .lines import Picked, picked
from .marks import Marks

_INSPECTION = Picked(head=5_000, tail=4_000)
_BUILD = Picked(head=600, tail=7_000)
_TESTS = Picked(head=600, tail=7_000)
_PASSED = re.compile(
    r"(?:^\s*(?:PASS\b|ok \d|ok\s+\S+\s+(?:\(cached\)|[\d.]+s)|--- PASS|=== (?:RUN|PAUSE|CONT)|[✓✔√] )|\bPASSED\b"
    r"|^test \S.* \.\.\. ok$|\.\.\. ok$|^\s*<testcase\b[^>]*/>\s*$)"
)


def command(text: str, marks: Marks) -> str:
    """Of a program that looks at something: the beginning, the end, and every line about an error between them."""
    return picked(text, _INSPECTION, marks)


def build(text: str, marks: Marks) -> str:
    """Of a build or an installation: the end, and every line about an error or a warning before it."""
    return picked(text, _BUILD, marks)


def tests(text: str, marks: Marks) -> str:
    """Of a test report: the failures and the end. Lines about tests that passed are counted."""
    return picked(text, _TESTS, marks, _PASSED, "passed tests")
