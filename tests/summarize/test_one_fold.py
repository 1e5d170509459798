"""Memory and digests say the same of files and errors, as both follow them with one fold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_digest import assistant, call, result, user

from draws import examples
from real_transcripts import imported, records_of
from turnlog.log.messages import Message
from turnlog.log.records import MessageRecord, Record
from turnlog.log.store import Draft
from turnlog.memory import Memory
from turnlog.summarize.changed_files import FileState, FileStates, file_states, lines_of, states_in
from turnlog.summarize.errors import errors
from turnlog.summarize.notes import NoteCache, NoteReader
from turnlog.summarize.reading import LOOK, Said, with_calls
from turnlog.testing.histories import History
from turnlog.testing.strategies import damaged_histories
from turnlog.view.types import Shown

_LINE = re.compile(r"\[(\d+)\] .*?(?:(?:worked at \[(\d+)\])|not seen to work since)", re.DOTALL)


def told(messages: Sequence[Message]) -> list[Said]:
    """The messages as a digest reads them, all at once."""
    shown = [Shown(message, (n,)) for n, message in enumerate(messages, start=1)]
    return NoteReader(NoteCache()).read(with_calls(shown))


def compare(records: Sequence[Record]) -> tuple[int, int]:
    """Fail if a digest of these records and their memory contradict each other; else how many errors and files both
    name."""
    memory = Memory.of(records)
    shown = [Shown(record.body.message, (record.n,)) for record in records if isinstance(record.body, MessageRecord)]
    said = NoteReader(NoteCache()).read(with_calls(shown))
    failed: dict[int, set[int]] = {}
    for one in memory.failed_calls:
        failed.setdefault(one.result, set()).add(one.fixed)
    lines = errors(said)
    still = [line for _, line in lines if "; not seen to work since" in line]
    for _, line in lines:
        match = _LINE.match(line)
        if match is not None:
            assert int(match[1]) in failed, line
            assert (0 if match[2] is None else int(match[2])) in set().union(*failed.values()), line
    last = {one.said: one.result for one in memory.failed_calls}  # a user may have told of the same error since
    by_calls = {error.at if error.at in failed else last[error.value] for error in memory.errors if error.about}
    assert {int(line[1 : line.index("]")]) for line in still} == by_calls
    states = {(state.record, _kind(state.state)) for state in file_states(said).states}
    newest = {PurePath(state.path).name: state.record for state in reversed(file_states(said).states)}
    for state in memory.file_states.states:
        name = PurePath(state.path).name  # a memory may know one file by two folders
        assert (state.record, _kind(state.state)) in states or newest.get(name, 0) > state.record, state
    return len(lines), len(states)


def _kind(state: str) -> str:
    """A state as far as a digest without a memory can know it: it does not know which files were there before."""
    first = state.partition(" ")[0]
    return "edited" if first == "created" else first


@given(damaged_histories())
@settings(max_examples=examples(40, 1_000))
def test_a_damaged_history_reads_the_same(history: History) -> None:
    """An agent that asks the memory is told of an error as open which the digest above says was mended."""
    compare(records_of(Draft(MessageRecord(message)) for message in history.messages))


_COMMANDS = (
    "pytest -x",
    "make test | tail -3",
    "git stash",
    "git stash pop",
    "git checkout -- a.py",
    "git checkout .",
    "git reset --hard",
    "git commit -am x",
    "rm a.py",
    "sed -i s/a/b/ a.py",
    "sed -i s/a/b/ b.py && pytest -x",
    "cat > c.py <<'E'\nx\nE\npytest -x",
    "git clean -fd",
    "grep -n x a.py",
)
_RESULTS = (
    ("ok", "ok"),
    ("KeyError: 'a'\nExit code: 1", "ok"),
    ("KeyError: 'a'", "failed"),
    ("The user doesn't want to proceed with this tool use.", "failed"),
    ("", "timeout"),
    ("<tool_use_error>Sibling tool call errored</tool_use_error>", "failed"),
    ("sed: can't read b.py: No such file or directory\nExit code: 2", "ok"),
)
_CALLS = st.one_of(
    st.sampled_from(_COMMANDS).map(lambda command: ("bash", {"command": command})),
    st.sampled_from(("a.py", "b.py", "src/c.py")).map(lambda path: ("edit_file", {"path": path})),
    st.sampled_from(("a.py", "b.py")).map(lambda path: ("write_file", {"path": path, "content": "x"})),
)


@given(st.lists(st.tuples(_CALLS, st.sampled_from(_RESULTS)), max_size=20))
@settings(max_examples=examples(100, 2_000))
def test_calls_in_any_order_read_the_same(steps: list[tuple[tuple[str, dict[str, Any]], tuple[str, str]]]) -> None:
    """The same for calls that fail, are refused, work again, and are taken back by git."""
    messages = [user("Mend it.")]
    for n, ((tool, arguments), (text, outcome)) in enumerate(steps):
        messages += [call(f"c{n}", tool, **arguments), result(f"c{n}", text, name=tool, outcome=outcome)]
    compare(records_of(Draft(MessageRecord(message)) for message in messages))


@pytest.mark.slow
def test_real_transcripts_read_the_same(shared: Path) -> None:
    """The same for what agents really did."""
    sessions = found = changed = 0
    for _, session in imported(shared):
        messages = [record for record in records_of(session.drafts) if isinstance(record.body, MessageRecord)]
        if sum(len(str(record.body)) for record in messages) > LOOK:
            continue  # only the ends of long texts are read
        lines, files = compare(messages)
        sessions, found, changed = sessions + 1, found + lines, changed + files
    assert sessions > 200 and found > 150 and changed > 150, (sessions, found, changed)


_PATHS = st.lists(st.sampled_from(("src", "lib", "a b", "x")), min_size=1, max_size=3).map(
    lambda parts: "/".join(parts)
)
_FOLDERS, _NAMES = ("", "/home/shop/", "shop/backend/"), ("a.py", "b c.md", "d, e")
_FILES = st.builds(
    FileState,
    st.builds("{}{}/{}".format, st.sampled_from(_FOLDERS), _PATHS, st.sampled_from(_NAMES)),
    st.sampled_from(("edited", "created", "deleted", "moved", "undone", "edited by a command that failed")),
    st.integers(1, 99),
)


@given(st.lists(_FILES, max_size=12, unique_by=lambda file: file.path))
def test_lines_of_files_can_be_read_again(states: list[FileState]) -> None:
    """A digest that goes on from another would name files in folders where they are not."""
    lines = [line.text for line in lines_of(FileStates(states), 10_000)]
    absolute = [state for state in states if state.path.startswith("/")]
    if not absolute or len(absolute) == len(states):  # a path without a folder may be of the root, or of another
        assert sorted(states_in(lines)) == sorted(states)


def state_of(*steps: tuple[str, dict[str, Any], str, str]) -> list[tuple[str, str, int]]:
    """The files that a digest names after these calls."""
    messages = [user("Mend it.")]
    for n, (tool, arguments, text, outcome) in enumerate(steps):
        messages += [call(f"c{n}", tool, **arguments), result(f"c{n}", text, name=tool, outcome=outcome)]
    records = records_of(Draft(MessageRecord(message)) for message in messages)
    compare(records)
    return [(state.path, state.state, state.record) for state in file_states(told(messages)).states]


def ran(command: str, text: str = "ok", outcome: str = "ok") -> tuple[str, dict[str, Any], str, str]:
    return "bash", {"command": command}, text, outcome


EDIT = ("edit_file", {"path": "a.py"}, "ok", "ok")
REFUSED = "The user doesn't want to proceed with this tool use."


@pytest.mark.parametrize(
    ("steps", "states"),
    [
        ([ran("sed -i s/a/b/ a.py", REFUSED, "failed")], []),
        ([ran("rm a.py && make", REFUSED, "failed")], []),
        ([ran("sed -i s/a/b/ a.py && make", "x.c:1:1: error: no\nExit code: 2")], [("a.py", "edited", 2)]),
        ([ran("make && rm a.py", "x.c:1:1: error: no\nExit code: 2")], []),
        ([ran("sed -i s/a/b/ a.py; make", "sed: can't read a.py: No such file\nExit code: 2")], []),
        ([ran("rm a.py", "", "timeout")], []),
        ([EDIT, ran("rm a.py"), ran("cat > a.py <<'E'\nx\nE")], [("a.py", "edited", 6)]),
        ([ran("echo x > tmp.txt; cat tmp.txt; rm tmp.txt")], []),
        ([EDIT, ran("git checkout -- a.py")], [("a.py", "undone", 4)]),
        ([EDIT, ran("git checkout a.py")], [("a.py", "undone", 4)]),
        ([EDIT, ran("git stash")], [("a.py", "undone", 4)]),
        ([EDIT, ran("git stash && make; git stash pop")], [("a.py", "edited", 4)]),
        ([EDIT, ran("git reset --hard HEAD")], [("a.py", "undone", 4)]),
        ([EDIT, ran("git stash", REFUSED, "failed")], [("a.py", "edited", 2)]),
        ([EDIT, ran("git commit -am x"), ran("git reset --hard")], [("a.py", "edited", 2)]),
        ([EDIT, ran("git commit -am x"), EDIT, ran("git restore a.py")], [("a.py", "edited", 2)]),
        ([EDIT, ran("git reset HEAD~1"), ran("git stash list")], [("a.py", "edited", 2)]),
        ([ran("sed -n 1,3p a.py"), ran("sed s/a/b/ a.py"), ran("sed -E 's/-i/b/' a.py")], []),
    ],
)
def test_only_what_happened_changed_a_file(
    steps: list[tuple[str, dict[str, Any], str, str]], states: list[tuple[str, str, int]]
) -> None:
    """`edited by sed` of a command that the user refused, or `edited` of a change that git took back: the agent builds
    on what is not there."""
    found = state_of(*steps)
    assert [(path, state.removesuffix(" by a command that failed"), n) for path, state, n in found] == states


def test_an_error_says_how_often_and_what_solved_it() -> None:
    """Four lines say the same, and none what was wrong; or a process line stands for the explanation."""
    failed = "E   KeyError: 'total'\nExit code: 1"
    messages = [
        user("Mend it."),
        *(call("a", "bash", command="pytest -x"), result("a", failed)),
        assistant("Let me look at the row."),
        *(call("b", "bash", command="pytest -x"), result("b", failed)),
        assistant("Found it. `parse_row` reads the total before it is set. Now I'll mend that."),
        *(call("c", "edit", path="a.py"), result("c", "ok")),
        *(call("d", "bash", command="pytest -x"), result("d", "3 passed")),
        *(call("e", "bash", command="make lint"), result("e", "error: line too long\nExit code: 2")),
    ]
    lines = [line for _, line in errors(told(messages))]
    assert lines == [
        "[13] bash make lint: error: line too long; not seen to work since",
        "[6] bash pytest -x: E KeyError: 'total' (2 times since [3]); worked at [11]:"
        ' "`parse_row` reads the total before it is set."',
    ]
