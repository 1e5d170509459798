"""Imports that are killed, repeated, crossed by others: of a transcript that grows, each record is there once."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from functools import partial
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts import SESSION, claude, claude_answer, item, jsonl

from turnlog.errors import ImportFailed
from turnlog.importers import Imported, read_file
from turnlog.importers.sync.session import sync_session
from turnlog.log.records import Body, Decision, Note
from turnlog.log.store import Draft, Store
from turnlog.stores import MemoryStore, open_store

EXAMPLES = max(10, settings.default.max_examples // 3) if settings.default else 33
KINDS = ("", "sqlite:///", "files:")
"""Of stores on the disk, the beginning of the place; none is in memory."""
CHANGES = ("create", "append", "rename", "put_blob", "keep", "delete")
SOON = "2026-07-01T00:00:00.000Z"
"""When somebody wrote notes: no time of a transcript."""


def _result(call_id: str, text: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call_id, "content": text}]


def _call(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": f"ls {call_id}"}}


CLAUDE = [
    claude(1, "user", "go on with the port of the importer"),
    claude_answer(2, "m1", {"type": "text", "text": "I look."}),
    claude_answer(3, "m1", _call("c1")),
    claude(4, "user", _result("c1", "a.txt")),
    claude_answer(5, "m1", _call("c2")),
    claude(6, "progress", data={"type": "hook_progress"}),
    claude(7, "user", _result("c2", "b.txt")),
    claude_answer(8, "m2", {"type": "text", "text": "Done."}),
    {"type": "ai-title", "aiTitle": "The port", "sessionId": SESSION},
    claude(9, "user", "thanks"),
    claude_answer(10, "m3", {"type": "thinking", "thinking": "well", "signature": "sig"}),
    claude_answer(11, "m3", {"type": "text", "text": "You are welcome."}),
]
"""A session of which answers grow: what was one line of them is others by the next."""


def _said(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


CODEX = [
    item({"id": SESSION, "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"}, "session_meta"),
    item({"type": "user_message", "message": "go on", "kind": "plain"}, "event_msg", 1),
    item(_said("user", "go on"), second=1),
    item({"type": "agent_message", "message": "I look at all of it."}, "event_msg", 2),
    item(_said("assistant", "I look at all of it."), second=2),
    item({"type": "function_call", "name": "shell", "call_id": "c1", "arguments": '{"x": 1}'}, second=3),
    item({"type": "function_call_output", "call_id": "c1", "output": "a.txt"}, second=4),
    item(_said("assistant", "Done."), second=5),
    item({"type": "agent_message", "message": "Done."}, "event_msg", 5),
    item(_said("user", "thanks"), second=6),
]
TRANSCRIPTS = {"claude-code": jsonl(CLAUDE), "codex": jsonl(CODEX)}


class Killed(BaseException):
    """What no code catches: the nearest to a process that is gone."""


class Step(NamedTuple):
    """An import of so much of the transcript, in thousandths of its bytes, killed at a change (ahead of it, or behind
    it) or not, and crossed by another one of so much; and what somebody does with the session then."""

    size: int
    killed: int | None
    behind: bool
    meets: int
    other: int
    then: str


LAST = Step(1_000, None, False, 99, 0, "nothing")
STEPS = st.lists(
    st.builds(
        Step,
        st.integers(1, 1_000),
        st.none() | st.integers(0, 9),
        st.booleans(),
        st.sampled_from((99, 99, 0, 1, 2, 3, 4, 5)),
        st.integers(1, 1_000),
        st.sampled_from(("nothing", "note", "pin", "rename", "keep", "fork", "pack")),
    ),
    min_size=1,
    max_size=5,
)


class Dying:
    """A store of a process that is killed at a change, and changes nothing from there on. At another one, somebody else
    begins to import: `other`."""

    def __init__(self, store: Store, step: Step, other: Callable[[], object]) -> None:
        self.store = store
        self._step = step
        self._other = threading.Thread(target=other)
        self._done = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.store, name)
        return partial(self._change, found) if name in CHANGES else found

    def _change(self, change: Callable[..., Any], *given: Any, **more: Any) -> Any:
        if self._done == self._step.meets:
            self._other.start()
        at, self._done = self._done, self._done + 1
        left = 99 if self._step.killed is None else self._step.killed - at
        made = change(*given, **more) if left > 0 or (left == 0 and self._step.behind) else None
        if left <= 0:
            raise Killed
        return made

    def wait(self) -> None:
        """Until the other one is done, if it began."""
        if self._other.ident is not None:
            self._other.join()


def cut(transcript: bytes, size: int) -> Imported | None:
    """What an import reads of a file that is so long by now; None if that is too little to know it by."""
    try:
        (session,) = read_file(transcript[: len(transcript) * size // 1_000])
    except ImportFailed:
        return None
    return session


class Importing:
    """A store that a growing transcript is imported to, and what somebody did with the session meanwhile."""

    def __init__(self, transcript: bytes, kind: str, folder: str) -> None:
        self.transcript = transcript
        self.own: list[Body] = []
        self.forks: dict[str, list[bytes | None]] = {}
        self.title = ""
        self.is_kept = False
        self._place = f"{kind}{folder}/s.db" if kind else ""
        self._memory = MemoryStore()

    def opened(self) -> AbstractContextManager[Store]:
        """The store, as another process has it."""
        return closing(open_store(self._place)) if self._place else nullcontext(self._memory)

    def takes(self, number: int, step: Step) -> None:
        """An import, and what is done with the session if it came to its end."""
        now = cut(self.transcript, step.size)
        if now is None:
            return
        with self.opened() as store:
            dying = Dying(store, step, lambda: self._other(step.other))
            with suppress(Killed):
                kept = sync_session(dying, now)  # type: ignore[arg-type]
                dying.wait()
                assert kept.session == SESSION
                self._is_whole(store)
                self._then(store, number, step.then)
            dying.wait()
            assert not self.own or self.own in [own(store, info.id) for info in store.sessions()]

    def _other(self, size: int) -> None:
        imported = cut(self.transcript, size)
        if imported is not None:
            with self.opened() as store:
                sync_session(store, imported)

    def _is_whole(self, store: Store) -> None:
        assert {info.id for info in store.sessions()} == {SESSION, *self.forks}
        assert own(store, SESSION) == self.own
        assert store.info(SESSION).title == self.title or not self.title
        assert SESSION in store.inventory().kept or not self.is_kept
        assert {name: [record.raw for record in store.read(name)] for name in self.forks} == self.forks

    def _then(self, store: Store, number: int, what: str) -> None:
        """What somebody does."""
        messages = [record.n for record in store.read(SESSION) if record.message is not None]
        if what == "note" or (what == "pin" and messages):
            said = Note("mine", str(number)) if what == "note" else Decision("pin", messages[0], messages[0])
            store.append(SESSION, [Draft(said, SOON)])
            self.own.append(said)
        elif what == "rename":
            self.title = f"Mine {number}"
            store.rename(SESSION, self.title)
        elif what == "keep":
            self.is_kept = True
            store.keep(SESSION)
        elif what == "fork":
            self.forks[f"f{number}"] = [record.raw for record in store.read(SESSION)]
            store.fork(SESSION, f"f{number}")
        elif what == "pack":
            store.pack(SESSION)


def own(store: Store, session_id: str) -> list[Body]:
    """What somebody put on record there."""
    return [record.body for record in store.read(session_id) if record.time == SOON]


def told(store: Store) -> list[Body]:
    """What the session has of the transcript."""
    return [record.body for record in store.read(SESSION) if record.time != SOON]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(name=st.sampled_from(sorted(TRANSCRIPTS)), steps=STEPS)
@settings(max_examples=EXAMPLES)
def test_a_transcript_is_there_once(kind: str, name: str, steps: list[Step]) -> None:
    """A session that comes twice, or half of it; somebody's notes, title or mark lost, or there twice; a fork that
    changes: whenever an import was killed, and whoever else imported at the same time."""
    with tempfile.TemporaryDirectory() as folder:
        importing = Importing(TRANSCRIPTS[name], kind, folder)
        for number, step in enumerate([*steps, LAST]):
            importing.takes(number, step)
        once = Importing(TRANSCRIPTS[name], "", folder)
        once.takes(0, LAST)
        with importing.opened() as store, once.opened() as other:
            assert (told(store), store.verify()) == (told(other), [])
