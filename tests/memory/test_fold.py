"""The memory of a conversation is a fold: the same however the records came, and what it says stands in them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from draws import examples
from real_transcripts import imported, records_of
from turnlog.errors import InputError
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import MessageRecord, Record
from turnlog.log.store import Draft
from turnlog.memory import Entity, Memory
from turnlog.memory.fold import FileMemory
from turnlog.stores import MemoryStore
from turnlog.testing.histories import History
from turnlog.testing.strategies import damaged_histories
from turnlog.view.decisions import Rewinds

FOLDERS = ("claude-code-log", "codex-entire", "gemini-entire", "cline", "mini-swe-agent", "swe-agent", "openhands")


def numbered(history: History) -> list[Record]:
    return records_of(Draft(MessageRecord(message)) for message in history.messages)


def called(session: turnlog.Session, name: str, result: str = "done", outcome: str = "ok", **arguments: object) -> int:
    """The number of the record with the result of a call."""
    call = ToolCall(f"c{len(session.history())}", name, arguments)
    session.add(Message("assistant", (call,)))
    return session.tool_result(call, result, outcome=outcome).n  # type: ignore[arg-type]


def the(session: turnlog.Session, value: str) -> Entity:
    return next(one for one in session.memory.entities if one.value == value)


@given(damaged_histories(), st.randoms(use_true_random=False))
@settings(max_examples=examples(40, 1_000))
def test_following_gives_what_the_log_gives(history: History, chance: random.Random) -> None:
    """A session that was open for long and one opened after a crash would speak of different files."""
    session = turnlog.open("s", store=MemoryStore())
    for message in history.messages:
        session.add(message)
        if chance.random() < 0.3:
            _ = session.memory.entities
    records = session.history()
    assert session.memory == Memory.of(records)
    assert session.memory.last <= records[-1].n


def files_of(memory: Memory) -> tuple[object, ...]:
    """All that the memory of files alone is asked for."""
    read = [(file.value, file.read) for file in memory.files if not file.changed]
    return memory.file_states, read, memory.is_changing_files


@given(damaged_histories())
@settings(max_examples=examples(40, 1_000))
def test_files_alone_are_those_of_the_memory(history: History) -> None:
    """A digest would name other files than the memory of the session."""
    whole, alone = Memory(), FileMemory.after(0, (), Rewinds())
    for record in numbered(history):
        whole.take(record)
        alone.take(record)
        assert files_of(alone) == files_of(whole)


def test_a_result_is_of_its_own_command() -> None:
    """Of two calls with one id, the memory said that the one that failed had worked; a further result was taken for
    that of a call that was killed."""
    session = turnlog.open("s", store=MemoryStore())
    killed, tests, lint = (
        ToolCall("c1", "bash", {"command": word}) for word in ("make all", "pytest -x", "ruff check")
    )
    session.add(Message("assistant", (killed,)))
    session.user("Go on.")
    session.add(Message("assistant", (tests, lint)))
    for outcome in ("failed", "ok", "failed"):
        session.add(Message("user", (ToolResult("c1", "bash", (Text("done"),), outcome),)))  # type: ignore[arg-type]
    states = {value: the(session, value).state for value in ("make all", "pytest -x", "ruff check")}
    assert states == {"make all": "", "pytest -x": "failed", "ruff check": "worked"}


@given(damaged_histories())
@settings(max_examples=examples(40, 1_000))
def test_mentions_are_in_the_log(history: History) -> None:
    """An entity that names records without it, or more mentions than it had, misleads whoever looks there."""
    memory = Memory.of(numbered(history))
    for one in memory.entities:
        assert 1 <= one.first <= one.last <= memory.last
        assert one.mentions == sum(one.by.values()) > 0
        assert one.at == 0 or one.first <= one.at <= memory.last


@pytest.mark.slow
def test_real_transcripts_fold_the_same_record_by_record(shared: Path) -> None:
    """A memory that depends on when it was asked would differ between two processes that follow a session."""
    sessions = 0
    for _, session in imported(shared, FOLDERS):
        records = records_of(session.drafts)
        whole, growing, files = Memory.of(records), Memory(), FileMemory.of(records)
        assert files_of(files) == files_of(whole)
        for record in records:
            if not growing.follows(record):
                break
            growing.take(record)
            if record.n % 7 == 0:
                _ = growing.facts
        else:
            assert growing == whole
            sessions += 1
    assert sessions > 40


def test_a_file_has_its_last_state() -> None:
    """A model that takes a deleted file for an edited one, or a failed edit for a change, goes wrong."""
    session = turnlog.open("s", store=MemoryStore())
    called(session, "write_file", path="src/a.py", content="a = 1")
    read = called(session, "read_file", "     1\ta = 1\n     2\tb = 2", path="src/a.py")
    assert (the(session, "src/a.py").state, the(session, "src/a.py").lines) == ("created", (1, 2))
    edited = called(session, "edit_file", path="/repo/src/a.py", old="a", new="b")
    file = the(session, "/repo/src/a.py")
    assert (file.state, file.changes, file.read, file.stale) == ("edited", 2, read, True)
    called(session, "edit_file", "Error: old not found", "failed", path="/repo/src/a.py", old="x", new="y")
    file = the(session, "/repo/src/a.py")
    assert (file.state, file.changed, file.changes) == ("failed", edited - 1, 2)
    called(session, "bash", command="cd /repo && rm src/a.py")
    assert the(session, "/repo/src/a.py").state == "deleted"
    assert [one.value for one in session.memory.files] == ["/repo/src/a.py"]


def test_an_error_is_fixed_once_its_call_works() -> None:
    """An error that is told as open after its test passed is looked for again."""
    session = turnlog.open("s", store=MemoryStore())
    called(session, "bash", "ValueError: bad date", "failed", command="pytest tests/test_dates.py")
    assert [one.value for one in session.memory.errors] == ["ValueError: bad date"]
    worked = called(session, "bash", "1 passed", command="pytest tests/test_dates.py")
    error = the(session, "ValueError: bad date")
    assert (error.state, error.at, list(session.memory.errors)) == ("fixed", worked, [])


def test_what_was_taken_back_is_not_remembered() -> None:
    """A file that only a message that was taken back names would be spoken of again."""
    session = turnlog.open("s", store=MemoryStore())
    session.user("Look at kept.py.")
    session.assistant("It is fine.")
    session.user("Look at gone.py. Never open it.")
    assert {str(one) for one in session.memory.entities} == {"file:kept.py", "file:gone.py"}
    session.rewind(turns=1)
    assert {str(one) for one in session.memory.entities} == {"file:kept.py"}
    assert not session.memory.facts
    session.undo()
    assert {str(one) for one in session.memory.entities} == {"file:kept.py", "file:gone.py"}


def test_nobody_pays_for_a_memory_that_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work at each append would cost every user of the library."""
    monkeypatch.setattr(Memory, "take", lambda *_: pytest.fail("a memory was made"))
    session = turnlog.open("s", store=MemoryStore(), target=turnlog.target("openai-chat", "gpt-4o"))
    for n in range(20):
        session.user(f"Look at f{n}.py.")
        session.request()
        session.assistant("Done.")


@given(damaged_histories(), st.integers(1, 400))
@settings(max_examples=examples(40, 1_000))
def test_a_block_stays_within_its_tokens(history: History, most: int) -> None:
    """A block that is larger than asked makes the request that it is put into too large."""
    memory = Memory.of(numbered(history))
    count = turnlog.tokens.counter_for("", "").text
    assert count(memory.block(most)) <= most
    files = memory.working_set(most)
    assert list(files) == list(memory.files)[: len(files)]


def test_a_block_without_room_is_refused() -> None:
    """`block(0)` is a mistake of the caller, not a memory with nothing in it."""
    with pytest.raises(InputError, match="max_tokens takes a number of tokens, at least 1, not 0"):
        Memory().block(0)
    assert Memory().block(100) == ""


def test_facts_are_in_the_users_words() -> None:
    """A fact that a tool printed, or in other words than the user's, is nothing that the user stated."""
    session = turnlog.open("s", store=MemoryStore())
    said = session.user("Never touch vendor/. It is old.")
    session.add(Message("assistant", (Text("You must never do that."),)))
    assert [(fact.record, fact.text) for fact in session.memory.facts] == [(said.n, "Never touch vendor/.")]


def test_a_file_that_a_tool_names_from_its_folder_is_one_file(tmp_path: Path) -> None:
    """A file that a running tool changed is listed twice, as the call names it and as the disk has it, or counted
    twice; and one of the same name elsewhere, changed later, is taken for it."""
    session = turnlog.open("s", store=MemoryStore())
    files = session.files(tmp_path)
    for path in ("a.py", "src/b.py"):
        call = ToolCall(path, "edit_file", {"path": path, "old": "", "new": "x"})
        session.add(Message("assistant", (call,)))
        files.record(path, None, b"x")
        session.tool_result(call, "made")
    files.record("other/a.py", None, b"x")
    root = tmp_path.resolve().as_posix()
    found = {one.value: one.changes for one in session.memory.changed_files}
    assert found == {f"{root}/a.py": 1, f"{root}/src/b.py": 1, f"{root}/other/a.py": 1}
    assert session.memory == Memory.of(session.history())
