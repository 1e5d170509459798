"""Outputs of tools, made shorter by what the tool is: nothing that matters goes, nothing goes in silence."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog import InputError
from turnlog.view.curate.curate import LEAST
from turnlog.view.curate.recognise import OUTPUTS

MARK = re.compile(r"\[\.\.\. .*left out.* \.\.\.\]")
LOG = [f"step {n}: {'abcdefghij'[n % 10] * (5 + n % 7)} done" for n in range(2_000)]
GREP = "\n".join(f"src/module_{n // 40}.py:{n}:    value = compute({n}, other_argument)" for n in range(800))
DIFF = "".join(
    f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n"
    + "".join(f"@@ -{n},2 +{n},2 @@\n-old line {n} {name}\n+new line {n} {name}\n" for n in range(1, lines))
    for name, lines in (("src/a.py", 30), ("package-lock.json", 900), ("src/b.py", 20))
)


def shell(command: str, text: str, **more: Any) -> turnlog.view.Curated:
    """The output of a shell command."""
    return turnlog.curate("bash", text, arguments={"command": command}, **more)


def some(lines: list[str], at: int, line: str) -> str:
    """Lines with one more at a place."""
    return "\n".join([*lines[:at], line, *lines[at:]])


@pytest.mark.parametrize(
    ("tool", "arguments", "text", "kind"),
    [
        ("Grep", {"pattern": "value"}, GREP, "search"),
        ("bash", {"command": "cd src && rg -n value | head -900"}, GREP, "search"),
        ("exec_command", {"cmd": "git grep -n value"}, GREP, "search"),
        ("mcp__code__find_references", {}, GREP, "search"),
        ("bash", {"command": "find . -type f"}, "\n".join(f"./src/file_{n}.py" for n in range(900)), "listing"),
        ("bash", {"command": "docker ps -a"}, "\n".join(LOG), "command"),
        ("bash", {"command": "make -j4"}, "\n".join(LOG), "build"),
        ("shell", {"command": ["bash", "-lc", "python -m pytest -q"]}, "\n".join(LOG), "tests"),
        ("run", {"command": "npm run test:unit"}, "\n".join(LOG), "tests"),
        ("bash", {"command": "git diff HEAD~3"}, DIFF, "diff"),
        ("anything", {}, DIFF, "diff"),
        ("get_issue", {}, json.dumps([{"id": n, "title": "x" * 50} for n in range(200)]), "json"),
        ("fetch", {"url": "https://example.org"}, "<!doctype html><p>" + "<b>word</b> " * 900, "page"),
        ("run_query", {}, "\n".join(["id,name,size", *(f"{n},name {n},{n * n}" for n in range(900))]), "table"),
        ("Read", {"file_path": "a.json"}, json.dumps([{"id": n} for n in range(900)]), "read"),
        ("bash", {"command": "cat page.html"}, "<!doctype html><p>" + "<b>word</b> " * 900, "read"),
        ("str_replace_editor", {"command": "view", "path": "a.py"}, GREP, "read"),
        ("frobnicate", {}, "\n".join(LOG), "text"),
        ("frobnicate", {"path": "notes"}, "\n".join(LOG), "text"),
    ],
)
def test_a_tool_is_told_by_name_arguments_and_shape(tool: str, arguments: Any, text: str, kind: str) -> None:
    """A tool taken for another would lose what matters of its output, or keep what does not."""
    assert turnlog.curate(tool, text, arguments=arguments).kind == kind


@pytest.mark.parametrize("tool", ["Read", "view_file", "frobnicate"])
def test_the_content_of_a_file_is_never_folded(tool: str) -> None:
    """A fold in the middle of a file led an agent to delete a brace: what may be a file stays whole."""
    text = "\n".join(f"    call({n});\n}}" for n in range(3_000))
    assert turnlog.curate(tool, text, arguments={"path": "src/main.c"}).text == text
    assert shell("sed -n '1,6000p' src/main.c", text).text == text
    assert shell("cat src/main.c | head -9000", text).text == text


@pytest.mark.parametrize("command", ["docker logs web", "make", "pytest"])
@pytest.mark.parametrize("line", ["ValueError: no such key", "warning: unused variable", "FAILED tests/a.py::test_b"])
def test_lines_about_errors_stay_with_what_stands_around_them(command: str, line: str) -> None:
    """A build whose one error is in the middle would be read as a success."""
    shown = shell(command, some(LOG, 1_000, line)).text
    assert "\n".join([LOG[998], LOG[999], line, LOG[1_000], LOG[1_001]]) in shown
    assert len(shown) < 15_000


def test_a_line_about_no_errors_is_no_error() -> None:
    """Thousands of lines "0 errors" would stay."""
    text = "\n".join(f"{'xyz'[n % 3] * 9} {n % 10}: 0 errors, no warnings" for n in range(2_000))
    assert len(shell("make", text).text) < 12_000


@pytest.mark.slow
def test_an_error_behind_the_first_megabytes_stays() -> None:
    """What is not looked at line by line must not hide a failure."""
    lines = [f"{n:x} {'pqrst'[n % 5] * (n % 13)}" for n in range(400_000)]
    shown = shell("./run.sh", some(lines, 200_000, "fatal: disk quota exceeded")).text
    assert "fatal: disk quota exceeded" in shown and len(shown) < 20_000


def test_a_traceback_stays_whole() -> None:
    """The line of the error is far below its first line."""
    frames = [f'  File "a{n}.py", line {n}, in f\n    g({n})' for n in range(20)]
    trace = "\n".join(["Traceback (most recent call last):", *frames, "KeyError: 'x'"])
    assert trace in shell("python tool.py", some(LOG, 900, trace)).text


def test_progress_is_folded_and_escapes_go() -> None:
    """Progress bars cost thousands of tokens and say nothing."""
    bars = "\r".join(f"\x1b[32mdownloading {n}% {'=' * (n // 4):25}\x1b[0m" for n in range(101))
    steps = "\n".join(f"  copying file {n} of 900" for n in range(900))
    shown = shell("pip install x", f"start\n{bars}\n{steps}\nexit code 3").text
    assert "\x1b" not in shown and "downloading 100%" in shown and "downloading 50%" not in shown
    assert "[... 896 similar lines left out ...]" in shown and shown.endswith("exit code 3")


def test_a_test_report_counts_what_passed() -> None:
    """Of a test report the failures are wanted."""
    passed = [f"tests/test_{n}.py::test_it PASSED" for n in range(400)]
    shown = shell("pytest -v", some([*passed, "= 1 failed, 400 passed in 3.2s ="], 200, "tests/x.py::test_y FAILED"))
    assert "test_y FAILED" in shown.text and "1 failed, 400 passed in 3.2s" in shown.text
    counts = [int(count) for count in re.findall(r"(\d+) passed tests? left out", shown.text)]
    assert sum(counts) == 400 - shown.text.count("PASSED") > 380


def test_a_search_is_grouped_by_file_with_counts() -> None:
    """Each path is said once, and what is not shown is counted."""
    shown = turnlog.curate("Grep", GREP).text
    files = [f"src/module_{n}.py" for n in range(20)]
    assert [line for line in shown.split("\n") if line in files] == files
    gone = sum(int(count) for count in re.findall(r"(\d+) more lines of this file left out", shown))
    assert len(re.findall(r"^  \d+:     value", shown, re.MULTILINE)) + gone == 800


def test_a_search_names_files_whose_matches_are_not_shown() -> None:
    """The path of a match is what is needed most."""
    text = "\n".join(f"pkg/part_{n}/mod_{n}.py:{n + 1}:{'match ' * 20}" for n in range(150))
    shown = turnlog.curate("Grep", text).text
    assert all(f"pkg/part_{n}/mod_{n}.py" in shown for n in range(150))


def test_folders_that_nobody_looks_into_are_one_line() -> None:
    """`find` in a project with packages lists ten thousand files that matter to nobody."""
    files = [f"./src/part/file_{n}.py" for n in range(30)]
    text = "\n".join([*files, *(f"./node_modules/pkg_{n % 90}/lib/{n}.js" for n in range(5_000))])
    shown = shell("find . -type f", text).text
    assert all(file in shown for file in files)
    assert "./node_modules/ [... 5,000 entries left out ...]" in shown


def test_a_long_listing_is_a_tree_with_counts() -> None:
    """Entries that are not shown are counted by folder."""
    text = "\n".join(f"/data/set_{n // 400}/shard_{n:05}.bin" for n in range(2_000))
    shown = shell("find /data", text).text
    assert shown.count("/data/set_") == 5 and "(400 entries)" in shown
    gone = [int(count.replace(",", "")) for count in re.findall(r"([\d,]+) more entries left out", shown)]
    assert sum(gone) + len(re.findall(r"^  shard_", shown, re.MULTILINE)) == 2_000


def test_json_stays_json_and_says_what_the_others_are_like() -> None:
    """A value that is cut inside is read as another value."""
    rows = [{"id": n, "price": 1.50 + n, "name": f"name {n}"} for n in range(500)]
    shown = turnlog.curate("query_api", json.dumps({"rows": rows, "total": 500}, indent=2)).text
    read = json.loads(shown)
    assert read["total"] == 500 and [row for row in read["rows"] if isinstance(row, dict)][-1] == rows[-1]
    assert all(row in rows for row in read["rows"] if isinstance(row, dict))
    (mark,) = [row for row in read["rows"] if isinstance(row, str)]
    assert f"{500 - len(read['rows']) + 1} more elements with the keys id, price, name left out" in mark


def test_numbers_of_json_keep_their_spelling() -> None:
    """`1.50` that became `1.5` is another identifier."""
    text = json.dumps([{"id": n} for n in range(900)]).replace('{"id": 0}', '{"id": 1.50}')
    assert '{"id": 1.50}' in turnlog.curate("api", text).text


def test_the_output_inside_an_object_is_curated_and_the_exit_code_stays() -> None:
    """Codex puts outputs and exit codes into JSON."""
    text = json.dumps({"output": some(LOG, 900, "error: x"), "metadata": {"exit_code": 2}})
    made = turnlog.curate("shell", text, arguments={"command": ["bash", "-lc", "make"]})
    read = json.loads(made.text)
    assert made.kind == "build" and read["metadata"] == {"exit_code": 2} and "error: x" in read["output"]


def test_a_diff_keeps_hunks_whole_and_counts_the_others() -> None:
    """Half a hunk cannot be applied; a lock file is read by nobody."""
    shown = shell("git diff", DIFF).text
    assert "[... 899 hunks (+899 -899 lines) left out ...]" in shown
    assert all(f"+new line {n} src/a.py" in shown for n in range(1, 30))
    assert all(hunk in DIFF for hunk in re.findall(r"@@ -.*?(?=@@|diff|\[|\Z)", shown, re.DOTALL))


def test_a_page_is_its_text_with_links() -> None:
    """Markup and scripts are most of a page."""
    page = (
        "<!DOCTYPE html><html><head><title>The &amp; title</title><script>var x = '<p>no</p>';</script></head>"
        "<body><!-- <p>hidden</p> --><h2>Head</h2><p>One <b>two</b>.</p><a href='https://example.org/x'>link</a>"
        + "<style>p { color: red }</style>"
        * 200
    )
    shown = turnlog.curate("fetch", page).text.split("\n")
    assert shown[:4] == ["The & title", "## Head", "One two.", "link (https://example.org/x)"]
    assert re.fullmatch(r"\[\.\.\. markup, scripts and styles of [\d,]+ characters left out \.\.\.\]", shown[4])


def test_a_table_keeps_its_head_and_says_what_its_columns_hold() -> None:
    """Rows of a table are alike."""
    rows = [f"{n},{'abc'[n % 3]},name {n}" for n in range(1_000)]
    shown = turnlog.curate("sql_query", "\n".join(["id,kind,name", *rows])).text
    assert shown.startswith("id,kind,name\n0,a,name 0\n") and "[... 984 rows of 1,000 left out ...]" in shown
    assert shown.endswith("[column id: 0 to 999]\n[column kind: a, b, c]\n[column name: 1,000 different values]")


def test_marks_name_the_record() -> None:
    """A mark that does not say how to get the rest is of no use."""
    shown = shell("docker ps", "\n".join(LOG), record=57).text
    assert MARK.findall(shown) and all(", kept as record 57 ...]" in mark for mark in MARK.findall(shown))


@pytest.mark.slow
def test_nothing_is_curated_twice() -> None:
    """What was shortened before, by turnlog or with its marks, stays as it is."""
    first = shell("docker ps", "\n".join(LOG * 20)).text
    assert shell("docker ps", first * 3).text == first * 3


@pytest.mark.parametrize("output", OUTPUTS)
def test_what_is_small_stays(output: str) -> None:
    """A limit so low that the agent reads again costs more than it saves."""
    text = GREP[: LEAST - 1]
    assert turnlog.curate("grep", text, output=output).text == text


def test_what_would_not_shrink_by_a_third_stays() -> None:
    """A cache is written anew and a mark is read for nothing."""
    text = "\n".join(f"{n}: {chr(97 + n % 26) * 40}" for n in range(150))
    assert shell("docker ps", text).text == text


def test_the_user_says_what_an_output_is() -> None:
    """The user knows the tool."""
    assert turnlog.curate("frobnicate", GREP, output="search").kind == "search"
    assert turnlog.curate("grep", GREP, output="text").text == GREP
    with pytest.raises(InputError, match="output='serach': give one of build, command"):
        turnlog.curate("grep", GREP, output="serach")


PIECES = st.sampled_from(
    ["\n", "\n\n", "a.py:1:", "error", "{", "}", "[", "]", '"', ",", "<p>", "<!--", "</", "\x1b[1m", "\r",
     "@@ -1 +1 @@\n", "diff --git a b\n", "--- a\n+++ b\n", "node_modules/", "src/a.py\n",
     "ok 1\n", "PASSED\n", " 12→", "1,2,3\n", "é",
     "\u2028", "x" * 90]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40), st.integers(1, 90), st.sampled_from(["", *OUTPUTS]))
def test_curation_is_a_function_that_makes_shorter_and_says_so(pieces: list[str], times: int, output: str) -> None:
    """For any text: no crash, the same each time, by a third shorter with a mark or the text itself."""
    text = "".join(pieces) * times
    made = turnlog.curate("tool", text, output=output)
    assert made == turnlog.curate("tool", text, output=output)
    assert made.text == text or len(made.text) * 3 <= len(text) * 2
    assert turnlog.curate("tool", made.text, output=output).text == made.text or not MARK.search(made.text)
