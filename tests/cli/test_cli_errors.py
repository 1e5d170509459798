"""`turnlog errors`: which calls failed, what went wrong, and whether it was mended."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import Command
from turnlog.cli.drawing import shortened_line, shortened_path
from turnlog.log.messages import Message, Outcome, Text, ToolCall, ToolResult
from turnlog.log.records import Body, MessageRecord, PartialAnswer
from turnlog.log.store import Draft
from turnlog.stores import open_store

LINT = (
    "Exit code 1\n[lint] $ golangci-lint run ./...\ncmd/a/detached_test.go:90: 90-109 lines are duplicate (dupl)\n"
    'func TestA(t *testing.T) {\n\tif payload == nil {\n\t\tt.Fatal("Expected non-nil payload")\n\t}\n}\n2 issues:\n'
    "[lint] ERROR task failed"
)


def steps(*calls: tuple[str, dict[str, object], str, Outcome]) -> list[Body]:
    """Calls with their results, each in a message."""
    bodies: list[Body] = []
    for n, (tool, arguments, said, outcome) in enumerate(calls):
        bodies.append(MessageRecord(Message("assistant", (ToolCall(f"c{n}", tool, arguments),)), source=""))
        result = ToolResult(f"c{n}", tool, (Text(said),), outcome)
        bodies.append(MessageRecord(Message("user", (result,)), source=""))
    return bodies


def stored(tmp_path: Path, bodies: list[Body]) -> None:
    """A session `s` with these records, made within a minute."""
    store = open_store(tmp_path / "log.db")
    store.create("s")
    store.append("s", [Draft(body, f"2026-03-01T09:00:{n:02}.000Z") for n, body in enumerate(bodies)])
    store.close()


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are those of this machine, wherever it is; tests fix only the minute."""
    monkeypatch.setattr("turnlog.cli.errors.clock", lambda time: time[11:16])


def test_failed_calls_and_what_became_of_them(turnlog: Command, tmp_path: Path) -> None:
    """A line of source in a report was told as the error, `open` although the next run was clean; a search that found
    nothing was one, too."""
    bash = "Bash"
    bodies = steps(
        (bash, {"command": "mise run lint 2>&1"}, LINT, "failed"),
        (bash, {"command": "grep x a.go"}, "Exit code 1", "failed"),
        (bash, {"command": "mise run lint && mise run test"}, "0 issues.\nok", "ok"),
        ("Edit", {"file_path": "/w/b.go", "old_string": "x"}, "String to replace not found in file.", "failed"),
        (bash, {"command": "cat log"}, 'log.Fatal("boom")\nValueError: in a text that is shown', "ok"),
    )
    stored(tmp_path, bodies)
    assert turnlog("errors", "s") == (
        0,
        "2  09:00  Bash  mise run lint  exit 1  fixed at 6\n"
        "   cmd/a/detached_test.go:90: 90-109 lines are duplicate (dupl)\n"
        "8  09:00  Edit  /w/b.go  failed  open\n"
        "   String to replace not found in file.\n",
        "2 failed calls of 5, 1 open\n",
    )
    assert [row["record"] for row in turnlog("errors", "s", "--open", "--json").rows] == [8]
    assert turnlog("errors", "s", "--json").rows[0] == {
        "what": "call", "record": 2, "time": "2026-03-01T09:00:01.000Z", "tool": "Bash", "argument": "mise run lint",
        "outcome": "failed", "code": 1, "said": "cmd/a/detached_test.go:90: 90-109 lines are duplicate (dupl)",
        "call": 1, "fixed": 6,
    }  # fmt: skip


def test_a_call_that_was_refused_is_no_error(turnlog: Command, tmp_path: Path) -> None:
    """What the user did not want is shown, with the reason, and is never open; so is an answer that was cut off."""
    refusal = "The user doesn't want to proceed with this tool use. To tell you what to do, the user said:\nuse pnpm"
    cut = PartialAnswer(Message("assistant", (Text("I wi"),)), "the connection broke")
    stored(tmp_path, [*steps(("Bash", {"command": "npm install &&\n  npm test"}, refusal, "failed")), cut])
    assert turnlog("errors", "s") == (
        0,
        "2  09:00  Bash       npm install && npm test  refused\n   refused by the user: use pnpm\n"
        "3  09:00  an answer    interrupted\n   the connection broke\n",
        "no call failed, 1 refused by the user\n",
    )
    assert turnlog("errors", "s", "--open").out == ""


@pytest.mark.parametrize(
    ("first", "then", "said", "mended"),
    [
        ("go test ./a -run TestX", "go test ./a", "ok", True),
        ("go test ./a", "go test ./b", "ok", False),
        ("go test ./a", "go test ./a | tail -3", "FAIL a", False),
        ("go test ./a", "go test ./a | tail -3", "ok a", True),
        ("git commit -m 'one'", "git add x && git commit -m 'two'", "done", True),
        ("ssh host 'make'", "ssh host 'ls'", "done", False),
        ("python -c 'x'", "python -c 'y'", "done", False),
        ("npm run check", "npm run build", "done", False),
    ],
)
def test_what_mends_a_command(turnlog: Command, tmp_path: Path, first: str, then: str, said: str, mended: bool) -> None:
    """`fixed` after a run of something else sends nobody to look; `open` after a clean run sends everybody."""
    calls = (("bash", {"command": first}, "exit code: 2\nboom", "failed"), ("bash", {"command": then}, said, "ok"))
    stored(tmp_path, steps(*calls))  # type: ignore[arg-type]
    assert turnlog("errors", "s", "--json").rows[0]["fixed"] == (4 if mended else 0)


@pytest.mark.parametrize("width", range(3, 60))
def test_the_name_of_a_file_survives_cutting(width: int) -> None:
    """Of a path, a narrow terminal showed the folders that all files share."""
    for path in (
        "/Users/soph/Work/entire/telemetry/detached_test.go",
        "a/b.go",
        "b.go",
        "C:\\work\\src\\b.go",
        "/x",
    ):
        cut = shortened_path(path, width)
        assert len(cut) <= width or cut == path and len(path) <= width
        if "/" in cut or cut == path:
            assert cut.endswith(path.replace("\\", "/").rpartition("/")[2])
    line = "cmd/entire/cli/detached_test.go:90: 90 lines"
    assert len(shortened_line(line, width)) <= width
    assert shortened_line(line, 30) == "detached_test.go:90: 90 lines"
