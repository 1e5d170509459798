"""What counts as an error of a call, and which line says what went wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.log.messages import Outcome, ToolCall
from turnlog.summarize.failures import REFUSED, failure_of, is_harmless

OUTCOMES: tuple[Outcome, ...] = ("ok", "failed", "timeout", "canceled", "aborted", "lost")
GEMINI = "Command: x\nDirectory: (root)\nOutput: {}\nError: (none)\nExit Code: 1\nSignal: 0\nBackground PIDs: (none)"


@pytest.mark.parametrize(
    ("text", "outcome", "said"),
    [
        ("Exit code 1\nsrc/a.go:3:1: undefined: x\nFAIL\tsrc [build failed]", "failed", "src/a.go:3:1: undefined: x"),
        ("Traceback (most recent call last):\n  File 'a.py'\nKeyError: 'x'", "failed", "KeyError: 'x'"),
        ("panic({0x1, 0x2})\npanic: no such id\nmain.run(0x3)\nexit status 2", "failed", "panic: no such id"),
        ("<tool_use_error>File does not exist.</tool_use_error>", "failed", "File does not exist."),
        (GEMINI.format("sudo: 3 incorrect password attempts"), "ok", "sudo: 3 incorrect password attempts"),
        (GEMINI.format("(empty)"), "ok", ""),
        ("Process exited with code 1\n 1 file\n--flag says\nOutput:", "failed", "1 file"),
        ('1 validation error:\n```json\n[{"msg": "not permitted"}]', "failed", "1 validation error: not permitted"),
        ("make: *** [all] Error 2\n/bin/sh: 1: cd: can't cd to /x", "failed", "/bin/sh: 1: cd: can't cd to /x"),
        ("serving on port 80", "timeout", ""),
        ("<returncode>1</returncode>", "ok", ""),
        ("CRITERIA NOT MET:\n - script: the name is fixed", "ok", "CRITERIA NOT MET: - script: the name is fixed"),
        ("success=false, message=no such order", "ok", "success=false, message=no such order"),
    ],
)
def test_the_line_that_says_what_went_wrong(text: str, outcome: Outcome, said: str) -> None:
    """A line of the program that was checked, or `Exit code 1`, was told as the error."""
    failure = failure_of(text, outcome)
    assert failure is not None and failure.said == said


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("rg x", "Process exited with code 1\nOutput:\n"),
        ("git diff --no-index --stat /dev/null a", "exit code 1\n 1 file changed, 219 insertions(+)"),
        ("cat notes.txt", "All went well.\nValueError: as an example"),
        ("head -3 a.log && sed -n 1,3p b.log", "error: of yesterday\nthe end"),
    ],
)
def test_what_is_shown_or_sought_is_no_error(command: str, text: str) -> None:
    """`1 file changed` and lines of a log that somebody looked at were listed as errors, open for good."""
    call = ToolCall("c", "bash", {"command": command})
    failure = failure_of(text, "ok")
    assert failure is not None and is_harmless(call, failure)
    assert not is_harmless(ToolCall("c", "bash", {"command": "make"}), failure)


def test_a_refusal_says_what_the_user_said() -> None:
    """The program's own sentence stood for the error, and the user's words were cut off."""
    text = "The user doesn't want to take this action right now. The user said: use pnpm"
    failure = failure_of(text, "failed")
    assert failure is not None and (failure.text, failure.outcome, failure.reason) == (REFUSED, "canceled", "use pnpm")


@pytest.mark.parametrize(
    "line",
    [
        "    log.Error(err)",
        "src/a.go:12:    log.Error(err)",
        "src/a.go-13-\treturn errors.New(invalid)",
        "raise ValueError(unknown)",
        "-rw-r--r-- 1 root root 12 Jan  1 10:00 error.log",
        "drwxr-xr-x 2 root root 12 Jan  1 10:00 failed",
    ],
)
def test_a_line_of_a_program_or_a_listing_is_no_error(line: str) -> None:
    """`log.Error(err)` stood under what went wrong, in a call that worked; and in one that failed, for its reason."""
    assert failure_of(f"a\n{line}", "ok") is None
    failure = failure_of(f"{line}\nno rule for it, failed\n{line}", "failed")
    assert failure is not None and failure.said == "no rule for it, failed"


@given(st.text(st.sampled_from("Error: .go:1;{}(\t \n'\x1b[0m/abc-+"), max_size=400), st.sampled_from(OUTCOMES))
def test_whatever_a_result_says(text: str, outcome: Outcome) -> None:
    """A result of any text has a failure if and only if its outcome or its words say so, on one short line."""
    failure = failure_of(text, outcome)
    assert outcome == "ok" or failure is not None
    if failure is not None:
        assert len(failure.said) <= 160 and "\n" not in failure.text and failure.text


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (ToolCall("c", "Read", {"file_path": "/a/ci.log"}), "     1→Process exited with code 1"),
        (ToolCall("c", "Grep", {"pattern": "exit"}), "a.py:1:Exit code 3"),
        (ToolCall("c", "WebFetch", {"url": "http://x"}), "It ends with exit code 7"),
        (ToolCall("c", "Read", {"file_path": "/a/ci.log"}), "ok\n--- FAIL: TestOne (0.01s)\nFAIL"),
    ],
)
def test_an_exit_status_that_a_text_quotes_is_no_error(call: ToolCall, text: str) -> None:
    """Files that somebody read were listed as failed calls, open for good, as they told of a program that failed."""
    failure = failure_of(text, "ok")
    assert failure is not None and is_harmless(call, failure)


@pytest.mark.parametrize(
    "text",
    [
        "    a_test.go:9: want 5\n--- FAIL: TestOne (0.01s)\nFAIL\nFAIL\ta\t0.5s",
        "FAILED test_a.py::test_one - assert 1 == 2\n===== 1 failed, 3 passed in 0.12s =====",
        "a.ts(8,4): error TS2304: Cannot find name 'x'.\nnpm error command failed",
        "test result: FAILED. 3 passed; 1 failed; 0 ignored",
        "a.c:1:2: error: expected ';'\nmake: *** [all] Error 2",
        "[test:unit] ERROR task failed",
    ],
)
def test_a_summary_of_failures_behind_a_pipe_is_one(text: str) -> None:
    """`make test | tail` ends with the status of tail: tests that failed were told to have worked."""
    failure = failure_of(text, "ok")
    assert failure is not None and not is_harmless(ToolCall("c", "Bash", {"command": "make test | tail -20"}), failure)
    assert is_harmless(ToolCall("c", "Bash", {"command": "tail -20 test.log"}), failure)


@pytest.mark.parametrize("text", ["===== 0 failed, 3 passed =====", "Tests: 3 passed, 0 failed", "no FAIL here\nok"])
def test_a_summary_without_failures_is_none(text: str) -> None:
    """Runs that went well were listed as failed."""
    assert failure_of(text, "ok") is None
