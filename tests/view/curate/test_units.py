"""The law of curation: each unit of an output is shown, in order, or counted exactly by a mark; none becomes empty."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from curation_units import unshown
from real_transcripts import imported, records_of
from turnlog.log.messages import Text, ToolCall, ToolResult
from turnlog.view.curate.curate import curated
from turnlog.view.curate.recognise import OUTPUTS

PATHS = st.sampled_from(
    ["src/a.py", "./b-1-2/c.ts", "Makefile", "C:\\x\\y.cs", "a b/c.txt", "app-2026-11-03-007.log.gz"]
)
WORDS = st.sampled_from(
    ["value", "error: no such file", "warning: unused", "0 errors", "done", "12:13:14", "2026-11-03T10:12:13Z", "{",
     "}", "[... 3 lines left out", "x" * 300, "y" * 2_100, "é\u2028", "ok 1", "PASSED", "-12-", "py",
     "Traceback (most recent"]
)  # fmt: skip
NUMBERS = st.integers(0, 99_999)
MOST = 900_000  # characters: of longer ones a session leaves it to the budget what is shown


@st.composite
def lines(draw: st.DrawFn) -> str:
    """One line of some program, or a few of them."""
    path, word, n = draw(PATHS), draw(WORDS), draw(NUMBERS)
    forms = [
        f"{path}:{n}:{word}", f"{path}-{n}-{word}", f"{path}:{word}", path, f"{n}:{word}", f"  {n}-{word}",
        f"L{n}: {word}", "--", "", f"{path}/x{n}", f"./node_modules/p{n % 9}/{n}.js", "./node_modules/a:",
        f"src/p{n % 3}/f{n}.py",
        f"{n}", f"-rw-r--r-- 1 u g {n} Nov  3 10:12 f{n}", f"[{n}/400] CC part_{n}.o", f"{word} {n}", f"{n / 7:.3f}",
        word,
        f"2026-11-03 ERROR {word} {n}", f"order-{n}", f"\x1b[3{n % 8}m{word}\x1b[0m {n}",
        f"get {n}%\rget {n + 1}%\r{word}",
        f"{n}\r{n + 1}", f"a\x08{word}", f"{n},{word},x",
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n c\n-o\n+n",
        "@@ -1 +1 @@\n-o\n+n\n\\ No newline at end of file", "<p>", "</html>", f"<a href='{path}'>{word}</a>",
        "    File \"x.py\", line 3", json.dumps({"id": n, "word": word}), f"{path} ({n} entries)",
        f"tests/t.py::t{n} PASSED",
    ]  # fmt: skip
    return draw(st.sampled_from(forms))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.sampled_from(["z" * 5_000, 1.5, "..."]),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4) | st.just("..."), inner, max_size=6)
    ),
    max_leaves=12,
)


@st.composite
def outputs(draw: st.DrawFn) -> str:
    """An output of some tool, whole or damaged."""
    kind = draw(
        st.sampled_from(["mixed", "mixed", "alike", "alike", "json", "jsonl", "table", "diff", "page", "wrapped"])
    )
    some = draw(st.lists(lines(), min_size=1, max_size=12))
    times = draw(st.sampled_from([3, 40, 300, 300, 900]))
    match kind:
        case "alike":
            text = "\n".join(some[0].replace("7", str(n)) if n % 50 else some[-1] for n in range(times))
        case "json":
            value = draw(VALUES)
            text = json.dumps([value] * times if draw(st.booleans()) else {str(n): value for n in range(times)})
        case "jsonl":
            text = "\n".join(json.dumps({"n": n, "value": draw(VALUES) if n < 3 else n}) for n in range(times))
        case "table":
            text = "\n".join(["id,name,size", *(f"{n},{some[0].partition(',')[0]},{n * n}" for n in range(times))])
        case "diff":
            text = "\n".join(_diff(draw, n) for n in range(min(times, 60)))
        case "page":
            text = (
                f"<!doctype html><title>T</title><script>var a = '<!--'</script><p>{'<p>'.join(some * min(times, 40))}"
            )
        case "wrapped":
            text = json.dumps({"output": "\n".join(some * times), "exit_code": draw(NUMBERS), "cost": 1.5})
        case _:
            text = "\n".join(some * times)
    if draw(st.integers(0, 9)) == 0:  # a line behind it, or an end that is missing
        text = draw(st.sampled_from([f"{text}\nHTTP 200", f"{text}\n\n", text[: len(text) * 2 // 3], f"\x1b[1m{text}"]))
    return text[:MOST]


def _diff(draw: st.DrawFn, n: int) -> str:
    name = "package-lock.json" if n % 5 == 4 else f"src/f{n}.py"
    many = draw(st.integers(1, 8))
    hunk = "".join(f" c{i}\n-o{i}\n+n{i} {'w' * (i * 9)}\n" for i in range(many)).rstrip("\n")
    behind = "\ncommit abcdef1234\nAuthor: A\n\n    Say why" if n % 4 == 3 else ""
    return (
        f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1,{2 * many} +1,{2 * many} @@\n{hunk}{behind}"
    )


TOOLS = st.sampled_from(
    [("bash", {"command": c}) for c in ("grep -rn x .", "ls -R", "find . | sed 's/.*\\.//'", "make", "pytest",
                                        "docker ps",
                                        "curl -s u", "git diff", "cut -d, -f2 a.csv", "grep ERROR app.log")]
    + [("Grep", {"pattern": "x"}), ("get_logs", {}), ("list_orders", {}), ("mcp__x__search_logs", {}),
       ("sql_query", {}), ("fetch", {"url": "u"}), ("frobnicate", {})]
)  # fmt: skip

KNOWN = (
    (
        ("bash", {"command": "grep ERROR app.log"}),
        "\n".join(f"2026-11-03T10:12:{n % 60:02}Z ERROR {n}" for n in range(90)),
    ),
    (("bash", {"command": "ls"}), "\n".join(f"app-2026-11-03-{n:03}.log.gz" for n in range(200))),
    (("get_logs", {}), "\n".join(f"2026-11-03 10:12:13 request {n} took {n} ms" for n in range(90))),
    (("list_orders", {}), "\n".join(f"A-17-{n} paid" for n in range(300))),
    (("bash", {"command": "find . -type f | sed 's/.*\\.//'"}), "py\njs\nmd\n" * 400),
    (
        ("bash", {"command": "ls -R"}),
        "\n".join(f"d{n // 30}:\nf{n}.py" if n % 30 == 0 else f"f{n}.py" for n in range(900)),
    ),
    (("Grep", {}), "src/a.py:7:the same hit\n" * 400),
    (("bash", {"command": "cut -d, -f2 a.csv"}), "\n".join(str(n * 37 % 1_000 / 4) for n in range(898))),
    (("bash", {"command": "curl -s u"}), json.dumps([{"name": f"n{n}"} for n in range(900)]) + "\nHTTP 200"),
)
"""Outputs of which lines, or all, once went without a mark."""


def known(test: Any) -> Any:
    """The test with each known output as an example."""
    for tool, text in KNOWN:
        test = example(tool=tool, text=text, output="", loses=True)(test)
    return test


@known
@given(tool=TOOLS, text=outputs(), output=st.sampled_from(["", "", "", *OUTPUTS]), loses=st.booleans())
def test_each_unit_is_shown_or_counted(tool: tuple[str, Any], text: str, output: str, loses: bool) -> None:
    """A model was sent an empty result for a search in a log, and acted on it."""
    made = curated(ToolCall("", *tool), text, output, 57, loses=loses)
    assert unshown(made.kind if loses else "command", text, made.text, 57) == ""
    assert made.text == text or len(made.text) < len(text)


def _real(shared: Path) -> Iterator[tuple[str, ToolCall, str]]:
    """Each text of a tool result in the shared transcripts, with its place and its call."""
    for path, session in imported(shared):
        calls: dict[str, ToolCall] = {}
        messages = (record.message for record in records_of(session.drafts))
        for part in (part for message in messages if message is not None for part in message.parts):
            if isinstance(part, ToolCall):
                calls[part.id] = part
            elif isinstance(part, ToolResult):
                call = calls.get(part.call_id, ToolCall("", part.name))
                yield from ((f"{path.name} {call.id}", call, one.text) for one in part.parts if isinstance(one, Text))


@pytest.mark.slow
@pytest.mark.parametrize("loses", [True, False])
def test_each_unit_of_real_outputs_is_shown_or_counted(shared: Path, loses: bool) -> None:
    """Real programs print what nobody thinks of."""
    wrong, seen = [], 0
    for place, call, text in _real(shared):
        made = curated(call, text, "", 57, loses=loses)
        seen += made.text != text
        if found := unshown(made.kind if loses else "command", text, made.text, 57):
            wrong.append(f"{place} {made.kind}: {found}")
    assert wrong == [] and seen > 0


def test_the_judge_finds_what_is_not_shown() -> None:
    """A judge that finds nothing wrong with anything proves nothing."""
    text = "\n".join(f"line {n}" for n in range(90))
    cut = "line 0\n[... 87 lines left out ...]\nline 88\nline 89"
    assert unshown("command", text, cut.replace("87", "86")) != ""
    assert unshown("command", text, cut.replace("line 88\nline 89", "line 89\nline 88")) != ""
    assert unshown("command", text, cut) == "" and unshown("command", text, " ") == "empty"
    assert unshown("search", "a.py:1:x\nb.py:2:y", "a.py\n  1: x") != ""
    assert unshown("listing", "a/x\na/y\nb/z", "a/ (2 entries)\n  x\n  y") != ""
    assert unshown("json", "[1, 2, 3]", '[1, "[... 2 more elements left out ...]", 3]') != ""
    assert unshown("page", "<p>one two", "one\n[... markup, scripts and styles of 3 characters left out ...]") != ""


PARAGRAPHS = "".join(f"<p>item {n} costs {n * 3}</p>" for n in range(60))
CODE = "<script>" + "x;" * 2_000 + "</script>"


@pytest.mark.parametrize(
    "ahead",
    [
        "<script>for(i=0;i<style.length;i++){}</script>", "<script>el.innerHTML='<style>'+css</script>",
        "<!-- TODO remove the <style> hack -->", "<div data-tpl='<style>'>", "<script src='a.js'/>", "<template-card>",
        "<head-line>", "<template shadowrootmode=open>", "<head><title>t</title><body><header>n</header>", "<!-- never",
        "<svg>", "<noscript>",
    ],
)  # fmt: skip
def test_the_text_of_a_page_is_no_markup(ahead: str) -> None:
    """Sixty paragraphs were counted as scripts and styles, for a word in a script."""
    made = curated(ToolCall("", "fetch", {"url": "u"}), f"<!doctype html><html>{ahead}{CODE}{PARAGRAPHS}{CODE}")
    assert made.saved > 0 and all(f"item {n} costs {n * 3}" in made.text for n in range(60))


@pytest.mark.parametrize(
    "rows",
    [
        [f"Alice,{n},{n * 7 % 13}" for n in range(300)], [f"sensor {n} reads {n * 3} mV" for n in range(300)],
        [f"Q{n}: answer is {n * 9}" for n in range(300)],
    ],
)  # fmt: skip
def test_lines_of_old_macs_are_lines(rows: list[str]) -> None:
    """A table whose lines end with carriage returns lost all rows but the last, on arrival, without a mark."""
    for loses in (True, False):
        made = curated(ToolCall("", "bash", {"command": "python report.py"}), "\r".join(rows), loses=loses)
        kind = made.kind if loses else "command"
        assert unshown(kind, "\n".join(rows), made.text.replace("\r", "\n")) == ""


def test_a_test_that_never_ended_is_shown() -> None:
    """Of a run that was killed, the test that hung was counted as passed."""
    lines = [f"=== {word}  TestCase{n}" for word in ("RUN", "PAUSE", "CONT") for n in range(60)]
    lines += [f"--- PASS: TestCase{n} (0.00s)" for n in range(60) if n != 17]
    made = curated(ToolCall("", "bash", {"command": "go test -v ./..."}), "\n".join([*lines, "signal: terminated"]))
    passed = sum(int(n) for n in re.findall(r"(\d+) passed tests?", made.text)) + made.text.count("--- PASS")
    assert passed == 59 and "=== CONT  TestCase17" in made.text


@pytest.mark.parametrize(
    "values", ["=> == >= --", "../ ../../../ ../../ ./", "12\u00a0K|13\u00a0B|14\u00a0M|15\u00a0T"]
)
def test_lines_with_other_values_are_not_similar(values: str) -> None:
    """Operators, paths and units are values."""
    words = [value.replace("\u00a0", " ") for value in (values.split("|") if "|" in values else values.split())]
    lines = [f"the constraint x1 {words[n % len(words)]} holds" for n in range(400)]
    assert "similar" not in curated(ToolCall("", "bash", {"command": "./solve"}), "\n".join(lines)).text


def test_what_a_terminal_shows_as_a_link_keeps_its_address() -> None:
    """Sixty addresses became one line and a count of equal lines."""
    lines = [f"\x1b]8;;https://ci.example/{n}\x1b\\view run\x1b]8;;\x1b\\" for n in range(60)]
    made = curated(ToolCall("", "bash", {"command": "gh run list"}), "\n".join(lines), loses=False)
    assert all(f"https://ci.example/{n} view run" in made.text for n in range(60)) or made.saved == 0


def test_a_title_that_never_ends_takes_no_lines_with_it() -> None:
    """A hundred errors went with the escape that had no end."""
    text = "\x1b]0;make\n" + "\n".join(f"src/f{n}.c: error: x{n}" for n in range(100)) + "\x07 build finished\n"
    made = curated(ToolCall("", "bash", {"command": "make"}), text, loses=False)
    assert all(f"src/f{n}.c: error: x{n}" in made.text for n in range(100))
