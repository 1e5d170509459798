"""Recognises what a tool is by its name, its arguments and the shape of its output, or by `Tool.output`.

A name alone is never trusted: nearly all lines of an output must have the form. A tool of which nothing is known may
have printed the content of a file, so its output is only touched if it is JSON, a diff, a page or a table, and never
taken for a search.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ...log.messages import ToolCall
from ..file_edits import changes_of, commands_in, words_of
from .diff import is_diff
from .json_values import is_json
from .listing import is_listing
from .page import has_markup, is_page
from .programs import printed_by
from .search import is_grouped, is_search
from .table import separator_of

OUTPUTS = ("build", "command", "diff", "json", "listing", "page", "read", "search", "table", "tests", "text")
"""What a tool's output can be. `command`: of a program that looks at something; `build`: of a build or an installation;
`tests`: a test report; `read`: the content of a file; `page`: HTML; `text`: nothing that is ever shortened."""

_NAMES: tuple[tuple[str, frozenset[str]], ...] = (
    ("tests", frozenset("test tests pytest".split())),
    ("search", frozenset("grep rg ripgrep search codesearch".split())),
    ("read", frozenset("read cat view open viewer".split())),
    ("listing", frozenset("ls glob list tree dir directory find files".split())),
    ("page", frozenset("fetch browse browser web url curl crawl scrape http".split())),
    ("table", frozenset("csv sql query".split())),
    ("command", frozenset("bash shell sh zsh terminal console cmd command exec execute run powershell".split())),
)
"""Words in the names of tools, and what such a tool usually is. The first that fits counts."""

_PATHS = re.compile(r"(?:^|_)(?:path|file|filename|filepath|uri)$")
_VIEWING = re.compile(r"(?:view|read|open|show|cat)$")  # the action of an editor
_REPORT = re.compile(
    r"^(?:=+ .{0,200}\b(?:passed|failed|errors?)\b.{0,60} in [\d.]+s|Tests:\s+\d+ |test result: |Ran \d+ tests? in "
    r"|(?:ok|FAIL)\s+\S+\s+[\d.]+s$|\s{0,8}<testsuite\b|TAP version |Test Files\s+\d+ )",
    re.MULTILINE,
)
_SAMPLE = 200
"""Lines of an output that tell its shape."""

_LEAD = 8
"""The most lines that a program says of a command above the line `Output:`."""


def kind_of(call: ToolCall, text: str, output: str = "") -> str:
    """What the output of a call is, one of `OUTPUTS`. `output` is what the user says it is, "" if nothing."""
    if output:
        return output
    claimed = _claimed(call)
    return claimed if claimed in ("read", "text") else _shaped(claimed, text)


def _claimed(call: ToolCall) -> str:
    """What a tool is by its name and arguments."""
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
    """What an output is by its shape, if that fits what its tool is said to be."""
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
    """A call of a tool with these arguments: JSON as text, or its values."""
    raw = None
    if isinstance(arguments, str):
        raw = arguments
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = None
    return ToolCall("", tool, arguments, raw)
