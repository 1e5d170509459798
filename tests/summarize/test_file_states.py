"""The files that a digest leads with: all of them, in little room, the same for whoever makes it."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from draws import examples
from turnlog.errors import InputError
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import Decision
from turnlog.session.memory import DigestFiles
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.summarize.changed_files import FileState, FileStates, lines_of

_MORE = "{} more, changed before these"
_NAMES = st.text("abc/.\n", min_size=1, max_size=12).map(lambda text: text.strip("/\n") or "a")
_STATES = st.builds(FileState, _NAMES, st.sampled_from(["edited", "created", "deleted"]), st.integers(1, 99))


def files_of(session: Session) -> str:
    """The section with files in the digest that a session made last."""
    made = [record.body for record in session.history() if isinstance(record.body, Decision)]
    texts = [part.text for one in made for said in one.replacement for part in said.parts if isinstance(part, Text)]
    digest = next(text for text in reversed(texts) if "Digest of records" in text)
    return digest.partition("## Files changed\n")[2].partition("\n## ")[0]


@given(st.lists(_STATES, max_size=30), st.integers(0, 900), st.integers(0, 9))
def test_lines_stay_within_their_room(states: list[FileState], room: int, more: int) -> None:
    """Lines that take more than their share push out what else a digest has to say; files that are missing without a
    word are lost."""
    lines = [line.text for line in lines_of(FileStates(states, more), room)]
    assert sum(len(line) + 1 for line in lines) <= room or not lines
    assert not any("\n" in line for line in lines)
    told = "\n".join(lines).count(" [")
    assert told == len(states) + more or not lines or lines[-1].startswith(f"{len(states) + more - told} more")


def test_files_of_a_folder_share_a_line() -> None:
    """A folder that is named again with each file takes the room of other files."""
    states = [
        FileState("/home/me/shop/cmd/main.go", "edited", 9),
        FileState("/home/me/shop/docs/plan.md", "created", 7),
        FileState("/home/me/shop/cmd/old.go", "deleted", 5),
        FileState("notes.txt", "edited", 2),
    ]
    lines = [
        "in /home/me/shop/",
        "cmd/: main.go edited [9], old.go deleted [5]",
        "docs/: plan.md created [7]",
        "./: notes.txt edited [2]",
    ]
    assert [line.text for line in lines_of(FileStates(states), 400)] == lines
    assert [line.text for line in lines_of(FileStates(states), 70)] == [
        "/home/me/shop/cmd/: main.go edited [9]",
        _MORE.format(3),
    ]


def worked(session: Session, turns: range) -> None:
    """Turns that each edit a file, create one and fail to edit another."""
    for n in turns:
        session.user(f"Please change part {n}. " + "It matters. " * 30)
        calls = (
            ToolCall(f"a{n}", "edit_file", {"path": f"/home/me/shop/src/part_{n}.py", "old": "a", "new": "b"}),
            ToolCall(f"b{n}", "write_file", {"path": f"/home/me/shop/tests/test_{n}.py", "content": "x"}),
            ToolCall(f"c{n}", "edit_file", {"path": f"/home/me/shop/src/never_{n}.py", "old": "a", "new": "b"}),
        )
        session.add(Message("assistant", calls))
        for call in calls[:2]:
            session.add(Message("user", (ToolResult(call.id, call.name, (Text("done"),)),)))
        session.add(Message("user", (ToolResult(calls[2].id, calls[2].name, (Text("not found"),), "failed"),)))
        session.request()
        session.assistant(f"Part {n} is changed.")


def test_a_digest_names_every_file_with_its_last_state() -> None:
    """A file that a session changed and its digest does not name is changed again, or forgotten: this is what
    compactions lose most."""
    store = MemoryStore()
    session = turnlog.open("s", store=store, target=turnlog.target("openai-chat", "gpt-4o"), budget=3_000)
    worked(session, range(40))
    told = files_of(session)
    changed = [n for n in range(40) if f"part_{n}.py" in told]
    assert len(changed) > 30 and changed == list(range(len(changed)))
    assert all(f"test_{n}.py created" in told for n in changed)
    assert "never_" not in told


def test_the_digest_is_the_same_whoever_opens_the_session() -> None:
    """A process that followed the session from its beginning and one that opened it later would send other bytes."""
    target = turnlog.target("openai-chat", "gpt-4o")
    bodies = []
    for again in (False, True):
        store = MemoryStore()
        session = turnlog.open("s", store=store, target=target, budget=3_000)
        for first in range(0, 24, 6):
            if again:
                session.close()
                session = turnlog.open("s", store=store, budget=3_000)
            worked(session, range(first, first + 6))
        bodies.append(session.request().json())
        assert "## Files changed" in bodies[-1].decode()
    assert bodies[0] == bodies[1]


class CountingStore(MemoryStore):
    """A store that counts the records read of its sessions by kind."""

    read_of_kinds = 0

    def of_kinds(self, session_id: str, kinds: Collection[str], *, first: int = 1, reverse: bool = False) -> Any:
        """As any store; each record that is taken counts."""
        for record in super().of_kinds(session_id, kinds, first=first, reverse=reverse):
            self.read_of_kinds += 1
            yield record


def test_files_are_read_from_the_newest_decision_on() -> None:
    """The first digest after an open would read the whole log, seconds of work in a long session."""
    store = CountingStore()
    session = turnlog.open("s", store=store, target=turnlog.target("openai-chat", "gpt-4o"), budget=3_000)
    worked(session, range(40))
    newest = next(r.n for r in store.of_kinds("s", ("decision",), reverse=True) if "files" in r.body.detail)
    store.read_of_kinds = 0
    states = DigestFiles(store, "s").states()
    assert len(states.states) > 60 and store.read_of_kinds <= 2 * (store.info("s").records - newest) + 3


def test_files_of_taken_back_turns_do_not_stay() -> None:
    """A decision that keeps files which a rewind took back, or brought back, would name them for ever."""
    store = MemoryStore()
    session = turnlog.open("s", store=store, target=turnlog.target("openai-chat", "gpt-4o"), budget=3_000)
    worked(session, range(20))
    followed = DigestFiles(store, "s")
    for turns, n in ((1, 18), (15, 3)):
        assert followed.states() == DigestFiles(store, "s").states()
        session.rewind(turns=turns)
        paths = {state.path for state in DigestFiles(store, "s").states().states}
        assert f"/home/me/shop/src/part_{n}.py" in paths
        assert f"/home/me/shop/src/part_{n + 1}.py" not in paths
    session.undo()
    brought_back = {state.path for state in DigestFiles(store, "s").states().states}
    assert "/home/me/shop/src/part_18.py" in brought_back
    assert followed.states() == DigestFiles(store, "s").states()


@pytest.mark.slow
def test_files_beyond_the_most_that_a_decision_keeps_are_counted() -> None:
    """Files that nobody names any more would be lost without a word."""
    store = MemoryStore()
    session = turnlog.open("s", store=store, target=turnlog.target("openai-chat", "gpt-4o"), budget=3_000)
    worked(session, range(170))
    states = DigestFiles(store, "s").states()
    assert 300 <= len(states.states) < 340 == len(states.states) + states.more
    assert files_of(session).rstrip().endswith("more, changed before these")


@pytest.mark.slow
def test_a_small_summary_forgets_no_file_for_later_ones() -> None:
    """What one digest has no room for could not be named by the next, which has."""
    store = MemoryStore()
    session = turnlog.open("s", store=store, target=turnlog.target("openai-chat", "gpt-4o"), budget=1_500)
    worked(session, range(40))
    states = DigestFiles(store, "s").states()
    assert (len(states.states), states.more) == (80, 0)


def test_a_call_that_fails_after_a_digest_changed_nothing() -> None:
    """A file would stay edited for ever, because the digest came between the call and its result."""
    store = MemoryStore()
    session = turnlog.open("s", store=store, target=turnlog.target("openai-chat", "gpt-4o"), budget=3_000)
    worked(session, range(20))
    session.user("One more.")
    late = ToolCall("late", "edit_file", {"path": "/home/me/shop/late.py", "old": "a", "new": "b"})
    session.add(Message("assistant", (late,)))
    session.compact(keep=1)
    session.add(Message("assistant", (ToolCall("x", "look", {"at": 1}),)))
    session.add(Message("user", (ToolResult("x", "look", (Text("seen"),)),)))
    session.compact(keep=1)
    session.add(Message("user", (ToolResult("late", "edit_file", (Text("not found"),), "failed"),)))
    assert "late.py" not in str(DigestFiles(store, "s").states())


def ran(session: Session, command: str) -> None:
    """A shell command that worked."""
    call = ToolCall(f"r{len(session.history())}", "bash", {"command": command})
    session.add(Message("assistant", (call,)))
    session.add(Message("user", (ToolResult(call.id, call.name, (Text("ok"),)),)))


def test_git_takes_back_what_is_not_committed_also_after_a_digest() -> None:
    """After a compaction nobody knew any more which changes were committed: `git stash` made undone of all of them."""
    store = MemoryStore()
    session = turnlog.open("s", store=store, target=turnlog.target("openai-chat", "gpt-4o"), budget=3_000)
    worked(session, range(20))
    ran(session, "git add -A && git commit -qm all")
    session.compact(keep=1)
    worked(session, range(20, 22))
    ran(session, "git stash")
    states = {state.path.rpartition("/")[2]: state.state for state in DigestFiles(store, "s").states().states}
    assert (states["part_3.py"], states["part_21.py"], states["test_21.py"]) == ("edited", "undone", "created")
    ran(session, "git stash pop")
    states = {state.path.rpartition("/")[2]: state.state for state in DigestFiles(store, "s").states().states}
    assert (states["part_3.py"], states["part_21.py"]) == ("edited", "edited")


_STEPS = st.tuples(st.sampled_from(("work", "work", "late", "rewind", "undo", "compact", "reopen")), st.integers(1, 3))


def lived(steps: list[tuple[str, int]], *, reopens: bool) -> tuple[bytes, FileStates]:
    """The last request, and the files, of a session that did this; it is opened again only where `reopens` says so."""
    store, target = MemoryStore(), turnlog.target("openai-chat", "gpt-4o")
    session = turnlog.open("s", store=store, target=target, budget=2_500)
    turns = 0
    for step, n in steps:
        match step:
            case "work":
                worked(session, range(turns, turns + 2 * n))
                turns += 2 * n
            case "late":
                path = f"src/late_{n}.py"
                session.user("Once more.")
                session.add(Message("assistant", (ToolCall(f"l{turns}", "edit_file", {"path": path, "old": "a"}),)))
            case "rewind":
                with suppress(InputError):  # fewer turns are left
                    session.rewind(turns=n)
            case "undo" if any("files" in d.detail for d in session._context.decisions.values()):
                session.undo()
            case "compact" if turns > 2:
                session.compact(keep=n)
            case "reopen" if reopens:
                session.close()
                session = turnlog.open("s", store=store)
    return session.request().json(), DigestFiles(store, "s").states()


@pytest.mark.slow
@given(steps=st.lists(_STEPS, min_size=1, max_size=12))
@settings(max_examples=examples(15, 1_000))
def test_files_are_the_same_however_often_a_session_is_opened(steps: list[tuple[str, int]]) -> None:
    """A rewind, an undo, a call that is still open or a compaction would make another process send other bytes."""
    assert lived(steps, reopens=True) == lived(steps, reopens=False)
