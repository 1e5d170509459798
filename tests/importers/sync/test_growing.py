"""Importing a transcript while it is being written: its last answer says more the next time."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from commands import Command
from turnlog import stores
from turnlog.errors import ImportFailed, InputError, SessionExists
from turnlog.importers import Imported, read_file
from turnlog.importers.sync.session import Synced, sync_session, without_secrets
from turnlog.log.messages import Message, Text, ToolCall
from turnlog.log.records import (
    Body,
    Configuration,
    Decision,
    MessageRecord,
    Note,
    Record,
    TurnClosed,
    TurnOpened,
    UsageRecord,
)
from turnlog.log.store import Draft, SessionInfo, Store
from turnlog.log.usage import Usage
from turnlog.redaction import Redactor
from turnlog.stores import FilesStore, MemoryStore, SqliteStore, open_store
from turnlog.stores.locks import Hold
from turnlog.view.turns import LEFT_OPEN

NO_TIMES = {("", "agent_message"): "message"}
TIME = "2025-01-01T00:00:00.000Z"
ASKED = MessageRecord(Message("user", (Text("go"),)))
CALLS = tuple(ToolCall(str(n), "ls", {"n": n}) for n in range(3))
Opener = Callable[[Path], Store]
STORES: tuple[Opener, ...] = (
    lambda folder: MemoryStore(),
    lambda folder: SqliteStore(folder / "s.db"),
    lambda folder: FilesStore(folder / "logs"),
    lambda folder: open_store(folder / "sealed.db", key=bytes(32)),
)


@pytest.fixture(params=STORES, ids=("memory", "sqlite", "files", "encrypted"))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with closing(request.param(tmp_path)) as store:
        yield store


def answer(calls: int) -> MessageRecord:
    return MessageRecord(Message("assistant", (Text("Looking."), *CALLS[:calls])), model="m", source=f"line {calls}")


def billed(output: int) -> UsageRecord:
    return UsageRecord("anthropic", "m", Usage(input=9, output=output))


def imported(*bodies: Body, title: str = "T") -> Imported:
    drafts = tuple(Draft(body, TIME) for body in bodies)
    echoes = {(TIME, "agent_message"): "message"}
    return Imported(session_id="s", format="test", drafts=drafts, title=title, echoes=echoes)


BEGUN = imported(
    TurnOpened("t"),
    ASKED,
    answer(1),
    billed(2),
    Note("ended", data={"id": "0", "output": ["a.txt", "b.txt"]}),
    Note("agent_message", data={"message": "Now I look at the files."}),
)
GROWN = imported(
    TurnOpened("t"),
    ASKED,
    answer(3),
    billed(7),
    Note("ended", data={"id": "0", "output": ["b.txt"]}),
    MessageRecord(Message("assistant", (Text("Now I look at the files."),)), source="line 9"),
    TurnClosed("t", "completed"),
)


def raws(store: Store, session_id: str = "s") -> list[bytes | None]:
    return [record.raw for record in store.read(session_id)]


def texts(store: Store, session_id: str) -> list[Any]:
    return [record.message.parts for record in store.read(session_id) if record.message is not None]


def test_an_answer_that_grew_is_there_once(store: Store) -> None:
    """A second session for each import of a session that is at work, and the half answer kept for good in the first."""
    sync_session(store, BEGUN)
    before = raws(store)
    store.rename("s", "Mine")
    store.keep("s")
    store.fork("s", "fork")
    assert sync_session(store, GROWN) == Synced("s", "continued", 5)
    other = MemoryStore()
    sync_session(other, GROWN)
    assert raws(store) == raws(other)
    assert (store.info("s").title, raws(store, "fork"), store.inventory().kept) == ("Mine", before, frozenset({"s"}))
    assert ({info.id for info in store.sessions()}, store.verify()) == ({"s", "fork"}, [])
    assert sync_session(store, GROWN) == Synced("s", "unchanged", 0)


def test_an_older_copy_is_nothing_new(store: Store) -> None:
    """A folder of backups, of which each that is read after a newer one becomes a session of its own."""
    sync_session(store, GROWN)
    own = [Draft(MessageRecord(Message("user", (Text("and now?"),))), TIME), Draft(Note("mine"), TIME)]
    for gone_on in ([], own):
        store.append("s", gone_on)
        before = raws(store)
        assert sync_session(store, BEGUN) == Synced("s", "unchanged", 0)
        assert (raws(store), len(store.sessions())) == (before, 1)


def test_a_turn_that_was_closed_by_opening_the_session_goes_on(store: Store) -> None:
    """Whoever only looked at a session that was at work has every later import of it beside the first."""
    sync_session(store, BEGUN)
    store.append("s", [Draft(TurnClosed("t", "failed", f"{LEFT_OPEN}; ls (0): never answered"))])
    assert sync_session(store, GROWN).status == "continued"
    assert len(raws(store)) == len(GROWN.drafts)


def test_a_session_that_is_made_again_is_never_gone() -> None:
    """A full disk, or a value that no record can hold, between the deletion of the old and the writing of the new."""

    class Failing(MemoryStore):
        """A store of which one append fails."""

        left = 99

        def append(
            self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None
        ) -> tuple[Record, ...]:
            self.left -= 1
            if not self.left:
                raise OSError("no room")
            return super().append(session_id, drafts, expected=expected)

    whole = MemoryStore()
    sync_session(whole, GROWN)
    for fails in (1, 2):
        store = Failing()
        sync_session(store, BEGUN)
        begun, store.left = raws(store), fails
        with pytest.raises(OSError, match="no room"):
            sync_session(store, GROWN)
        held = {info.id: raws(store, info.id) for info in store.sessions() if info.records}
        assert held == ({"s": begun} if fails == 1 else {"s.being-made": raws(whole)})
        assert sync_session(store, GROWN).session == "s"
        assert (raws(store), [info.id for info in store.sessions()]) == (raws(whole), ["s"])


class Dying(SqliteStore):
    """A store of a process that is killed ahead of the change of this number: nothing is changed from there on."""

    left = 1 << 30

    def _changed(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt

    def create(self, session_id: str, **values: Any) -> SessionInfo:
        self._changed()
        return super().create(session_id, **values)

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        self._changed()
        return super().append(session_id, drafts, expected=expected)

    def keep(self, session_id: str, *, kept: bool = True) -> None:
        self._changed()
        super().keep(session_id, kept=kept)

    def delete(self, session_id: str, *, expected: int | None = None) -> None:
        self._changed()
        super().delete(session_id, expected=expected)


@pytest.mark.slow
def test_a_killed_import_is_ended_by_the_next(tmp_path: Path) -> None:
    """A copy of the session, `s.2`, for good; or the notes, the title and the mark of somebody in that alone, since the
    next import made a new one out of the transcript."""
    ended = []
    for steps in range(10):
        with closing(Dying(tmp_path / f"{steps}.db")) as store:
            sync_session(store, BEGUN)
            store.append("s", [Draft(Note("mine"), "2026-01-01T00:00:00.000Z")])
            store.keep("s")
            store.rename("s", "Mine")
            store.left = steps
            try:
                sync_session(store, GROWN)
            except KeyboardInterrupt:
                store.left = 1 << 30
                assert sync_session(store, GROWN).session == "s"
            else:
                ended.append(steps)
            ids, kept = [info.id for info in store.sessions()], store.inventory().kept
            assert (ids, kept, store.info("s").title) == (["s"], frozenset({"s"}), "Mine"), steps
            assert [record.body for record in store.read("s")][-1] == Note("mine")
            assert len(raws(store)) == len(GROWN.drafts) + 1 and store.verify() == []
    assert ended == [8, 9]


NPM = "npm_" + "Ab3dE6gH9j" * 4
ASKS = tuple(MessageRecord(Message("user", (Text(text),)), source="line 0") for text in ("go", f"key {NPM}"))


@pytest.mark.parametrize(("asked", "redactor", "time"), [(ASKS[0], None, ""), (ASKS[1], Redactor(), TIME)])
def test_a_killed_import_is_ended_whatever_its_first_record_became(
    asked: MessageRecord, redactor: Redactor | None, time: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No later import of that session for good, as what was half-made is not known for what it is: of a transcript that
    tells no times each import has the clock's, and another one knows more secrets. Or a session that `gc` takes."""
    clock = count()
    monkeypatch.setattr(stores.records, "utc_now", lambda: f"2026-01-01T00:00:00.{next(clock):03}Z")
    begun, grown = (
        replace(imported(asked, answer(calls)), drafts=(Draft(asked, time), Draft(answer(calls), time)), echoes={})
        for calls in (1, 3)
    )
    grown = grown if redactor is None else without_secrets(grown, redactor)
    for steps in range(9):
        with closing(Dying(tmp_path / f"{steps}.db")) as store:
            sync_session(store, begun)
            store.keep("s")
            store.left = steps
            with suppress(KeyboardInterrupt):
                sync_session(store, grown, redactor)
            store.left = 1 << 30
            assert sync_session(store, grown, redactor).session == "s"
            assert ([info.id for info in store.sessions()], store.inventory().kept) == (["s"], frozenset({"s"})), steps
            assert [record.body for record in store.read("s")] == [draft.body for draft in grown.drafts]


def test_ctrl_c_behind_a_deletion_takes_not_both(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes and pins of somebody gone with the session, as whoever pressed Ctrl-C while the store tidied up behind its
    deletion, or had no room left for that, lost what was to take its place as well."""
    sync_session(store, BEGUN)
    store.append("s", [Draft(Note("mine"), "2026-01-01T00:00:00.000Z")])
    delete = store.delete

    def interrupted(session_id: str, *, expected: int | None = None) -> None:
        delete(session_id, expected=expected)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "delete", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sync_session(store, GROWN)
    assert sync_session(store, GROWN).session == "s"
    assert [info.id for info in store.sessions()] == ["s"]
    assert [record.body for record in store.read("s")][-1] == Note("mine")
    assert len(raws(store)) == len(GROWN.drafts) + 1


def test_an_import_waits_for_another_of_the_same(tmp_path: Path) -> None:
    """A session that is made anew out of the transcript by a second import, in the moment in which the first has
    deleted it to make it again: notes of somebody's own lost."""
    with closing(SqliteStore(tmp_path / "s.db")) as elsewhere:
        others = threading.Thread(target=sync_session, args=(elsewhere, GROWN))

        class First(SqliteStore):
            """A store of a process that another one catches up with once the session is deleted."""

            def delete(self, session_id: str, *, expected: int | None = None) -> None:
                super().delete(session_id, expected=expected)
                if session_id == "s":
                    others.start()
                    others.join(0.2)  # where it waits, it does not end

        with closing(First(tmp_path / "s.db")) as store:
            sync_session(store, BEGUN)
            store.append("s", [Draft(Note("mine"), "2026-01-01T00:00:00.000Z")])
            assert sync_session(store, GROWN).status == "continued"
            others.join()
            assert [info.id for info in store.sessions()] == ["s"]
            assert [record.body for record in store.read("s")][-1] == Note("mine")


@pytest.mark.parametrize("fork", [False, True])
def test_a_session_of_that_name_is_left_alone(store: Store, fork: bool) -> None:
    """A session of somebody's own that is taken for what a killed import left, and deleted: at once, as a fork, or when
    the imported one has to be made again. Or an import that waits for ever for whoever has it open."""
    sync_session(store, BEGUN)
    if fork:
        store.fork("s", "s.being-made")
    else:
        store.create("s.being-made")
    store.append("s.being-made", [Draft(Note("mine"), TIME)])
    before = raws(store, "s.being-made"), raws(store)
    with closing(store.hold("s.being-made") or Hold()):
        assert sync_session(store, BEGUN).status == "unchanged"
        with pytest.raises(SessionExists):
            sync_session(store, GROWN)
    assert (raws(store, "s.being-made"), raws(store)) == before
    store.delete("s.being-made")
    assert sync_session(store, GROWN) == Synced("s", "continued", 5)


def test_two_imports_at_once_agree() -> None:
    """Both fail, each because the other was there; or the session comes twice."""

    class Shared(MemoryStore):
        """A store without locks, into which somebody imports the same just before each of the first two changes."""

        others = 2

        def hold(self, session_id: str, *, alone: bool = False) -> Hold:
            return Hold()

        def create(self, session_id: str, **values: Any) -> SessionInfo:
            self._other()
            return super().create(session_id, **values)

        def append(
            self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None
        ) -> tuple[Record, ...]:
            self._other()
            return super().append(session_id, drafts, expected=expected)

        def _other(self) -> None:
            if self.others:
                self.others -= 1
                sync_session(self, BEGUN)

    store = Shared()
    assert sync_session(store, GROWN).session == "s"
    assert ([info.id for info in store.sessions()], len(raws(store))) == (["s"], len(GROWN.drafts))


def test_a_title_comes_when_the_transcript_has_one() -> None:
    """A session that was imported before the user spoke, without a title for ever; or a name of somebody's own lost."""
    store = MemoryStore()
    titles = []
    for title, bodies in (("", ()), ("go", (ASKED,)), ("Named", (ASKED, answer(1))), ("Again", (ASKED, answer(1)))):
        sync_session(store, imported(TurnOpened("t"), *bodies, title=title))
        titles.append(store.info("s").title)
    assert titles == ["", "go", "Named", "Named"]
    store.rename("s", "Mine")
    sync_session(store, imported(TurnOpened("t"), ASKED, answer(3), title="Named"))
    assert (store.info("s").title, len(raws(store))) == ("Mine", 3)


def test_what_happened_at_another_time_is_another_thing() -> None:
    """A note or a bill of somebody's own that is taken for one of the transcript, and lost."""
    for own, status in ((Note("ended", data={"id": "0"}), "continued"), (billed(3), "diverged")):
        store = MemoryStore()
        sync_session(store, BEGUN)
        store.append("s", [Draft(own, "2025-01-02T00:00:00.000Z")])
        assert sync_session(store, GROWN).status == status
        assert own in [record.body for record in store.read("s")]


def test_a_session_in_use_is_not_made_again(tmp_path: Path) -> None:
    """A session that is deleted under somebody who has it open."""
    with closing(SqliteStore(tmp_path / "s.db")) as store:
        sync_session(store, BEGUN)
        before = raws(store)
        with closing(SqliteStore(tmp_path / "s.db")) as elsewhere:
            held = elsewhere.hold("s")
            assert held is not None
            with pytest.raises(InputError, match="'s' cannot be updated while it is open"):
                sync_session(store, GROWN)
            assert raws(store) == before
            held.close()
        assert sync_session(store, GROWN).status == "continued"


@pytest.mark.parametrize(
    "own",
    [
        MessageRecord(Message("user", (Text("and now?"),))),
        MessageRecord(Message("system", (Text("Now I look at the files."),))),
        MessageRecord(Message("assistant", (Text("Now I look at the files."),))),
        MessageRecord(Message("user", (Text("Now I look at the files."),)), source="line 9"),
        Note("mine", data={"message": "remember this one"}),
        Note("mine", data={"message": "Now I look at the files."}),
        Note("agent_message", text="Mine.", data={"message": "Now I look at the files."}),
        Note("mine", data={"n": 1}),
        Note("ended", data={"id": "1", "output": ["b.txt"]}),
        Decision("pin", first=2, last=2),
        Configuration(model="other"),
        TurnClosed("t", "failed", "enough"),
        UsageRecord("anthropic", "m", Usage(input=9, output=8)),
        UsageRecord("anthropic", "other", Usage(input=9, output=2)),
    ],
    ids=lambda body: type(body).__name__,
)
def test_what_somebody_else_recorded_is_never_lost(own: Body) -> None:
    """A session that was gone on with in turnlog, and is made again as if nothing but the transcript were in it."""
    store = MemoryStore()
    sync_session(store, BEGUN)
    store.append("s", [Draft(own, TIME)])
    before = raws(store)
    assert sync_session(store, GROWN) == Synced("s.2", "diverged", len(GROWN.drafts))
    assert raws(store) == before


class Ticking(MemoryStore):
    """A store of which the clock goes on with each append, as it does where a person types."""

    now = 0

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        self.now += 1
        at = f"2025-06-01T00:00:{self.now:02}.000Z"
        timed = [replace(draft, time=draft.time or at) for draft in drafts]
        return super().append(session_id, timed, expected=expected)


SAID = [
    *(MessageRecord(Message(role, (Text(text),))) for role in ("user", "assistant") for text in ("go", "on", "Done.")),
    Note("agent_message", data={"message": "Now I look at the files."}),
    Note("ended", data={"id": "0"}),
    billed(2),
    TurnOpened("t"),
]
OWN = st.lists(st.sampled_from(SAID), max_size=3)
STEPS = st.lists(st.tuples(st.integers(0, 7), OWN), min_size=1, max_size=4)


@given(STEPS, st.booleans())
def test_nothing_that_a_session_recorded_is_ever_gone(steps: list[tuple[int, list[Body]]], timed: bool) -> None:
    """A message that somebody wrote in turnlog, deleted since the transcript says the same later, whoever says it."""
    said = MessageRecord(Message("user", (Text("on"),)), source="line 7")
    done = MessageRecord(Message("assistant", (Text("Done."),)), source="line 8")
    whole = replace(GROWN, drafts=(*GROWN.drafts, Draft(said, TIME), Draft(done, TIME)))
    store, own = Ticking(), list[Body]()
    for lines, bodies in [*steps, (9, [])]:
        cut = replace(BEGUN, drafts=BEGUN.drafts[:lines]) if lines < 7 else whole
        now = cut if timed else replace(cut, drafts=tuple(Draft(draft.body) for draft in cut.drafts), echoes=NO_TIMES)
        sync_session(store, now)
        store.append("s", [Draft(body) for body in bodies])
        own += bodies
        held = iter([record.body for record in store.read("s")])
        assert all(body in held for body in own)


def test_the_same_words_of_somebody_else_are_other_words(turnlog: Command, tmp_path: Path) -> None:
    """A question that was asked in turnlog deleted, as the agent was asked the same later."""
    asked = {"role": "user", "content": "go"}
    log = tmp_path / "log.jsonl"
    for lines, status in ((1, "new"), (2, "diverged")):
        said = [asked, {"role": "assistant", "content": "Done."}][:lines]
        log.write_text("".join(json.dumps(line) + "\n" for line in said))
        assert turnlog("import", str(log), "--json").rows[0]["status"] == status
        with closing(open_store(tmp_path / "log.db")) as store:
            session = next(info.id for info in store.sessions())
            if lines == 1:
                store.append(session, [Draft(MessageRecord(Message("user", (Text("Done."),))))])


def test_a_beginning_without_a_time_gets_none_from_what_follows() -> None:
    """A session whose transcript begins with lines that tell no time comes twice if it is imported after those."""
    begun = replace(imported(Note("mode", data={"mode": "plan"})), drafts=(Draft(Note("mode", data={"mode": "plan"})),))
    store = MemoryStore()
    sync_session(store, begun)
    whole = imported(Note("mode", data={"mode": "plan"}), ASKED)
    assert sync_session(store, whole) == Synced("s", "continued", 1)
    assert sync_session(store, whole) == Synced("s", "unchanged", 0)
    earlier = replace(whole, drafts=tuple(replace(draft, time="2999-01-01T00:00:00.000Z") for draft in whole.drafts))
    assert sync_session(store, earlier).status == "diverged"


def test_a_header_that_gets_longer_makes_no_second_session() -> None:
    """A long session in one document comes again, whole, when its agent writes a word more into the header."""
    said = [MessageRecord(Message("user", (Text(f"word {n}"),)), source=f"line {n}") for n in range(700)]
    store = MemoryStore()
    sync_session(store, imported(Note("session", data={"id": "s"}), *said[:500]))
    grown = imported(Note("session", data={"id": "s", "directories": ["/w"]}), *said)
    assert sync_session(store, grown) == Synced("s", "continued", 701)
    assert sync_session(store, grown) == Synced("s", "unchanged", 0)


@pytest.mark.parametrize(("role", "event"), [("user", "user_message"), ("assistant", "agent_message")])
@pytest.mark.parametrize("text", ["Look at all of the files, please.", "Look."])
def test_what_codex_tells_ahead_of_a_message_is_an_echo_of_it(role: str, event: str, text: str) -> None:
    """A session that is imported between an event and the message that it tells of comes twice."""
    content = [{"type": "output_text" if role == "assistant" else "input_text", "text": text}]
    payloads = [
        ("session_meta", {"id": "s", "timestamp": TIME}),
        ("event_msg", {"type": event, "message": text, "kind": "plain"}),
        ("response_item", {"type": "message", "role": role, "content": content}),
    ]
    lines = [json.dumps({"timestamp": TIME, "type": kind, "payload": payload}) for kind, payload in payloads]
    begun, whole = (read_file("\n".join(lines[:size]).encode())[0] for size in (2, 3))
    store = MemoryStore()
    assert [sync_session(store, one).status for one in (begun, whole, begun)] == ["new", "continued", "unchanged"]
    assert len(texts(store, "s")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["claude-code-entire/fc-99c919b212-0.jsonl", "vibe-tracker/gemini.jsonl", "codex"])
def test_real_transcripts_cut_anywhere(shared: Path, tmp_path: Path, name: str) -> None:
    """A format whose last records change as the file grows in a way that makes it another conversation."""
    folder = shared / "data"
    found = sorted((folder / "codex-entire").glob("*.jsonl"))[3] if name == "codex" else folder / name
    lines = found.read_bytes().splitlines(keepends=True)
    growing = tmp_path / found.name
    whole = MemoryStore()
    growing.write_bytes(b"".join(lines))
    for one in read_file(growing):
        sync_session(whole, one)
    store, chance = MemoryStore(), random.Random(1)
    statuses: set[Any] = set()
    for size in [*sorted(chance.sample(range(8, len(lines)), min(25, len(lines) - 8))), len(lines)]:
        growing.write_bytes(b"".join(lines[:size]))
        try:
            sessions = read_file(growing)
        except ImportFailed:  # too little to know it by
            continue
        statuses |= {sync_session(store, one).status for one in sessions}
    assert statuses <= {"new", "continued", "unchanged"}
    assert {i.id: raws(store, i.id) for i in store.sessions()} == {i.id: raws(whole, i.id) for i in whole.sessions()}


@pytest.mark.parametrize("cuts", [(7, 8, 9, 10), (2, 10)])
def test_a_stream_without_times_is_one_session(cuts: tuple[int, ...]) -> None:
    """A run that is imported while it prints an answer, of which no time tells whose it is, comes twice."""
    answer = {"id": "m", "type": "message", "role": "assistant", "model": "claude-x", "content": []}
    text = {"type": "text", "text": "It is done."}
    pieces = [
        {"type": "message_start", "message": {**answer, "usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {**text, "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {**text, "type": "text_delta", "text": word}}
          for word in ("It ", "is ", "done.")),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
        {"type": "message_stop"},
    ]  # fmt: skip
    lines: list[dict[str, Any]] = [
        {"type": "system", "subtype": "init", "claude_code_version": "2"},
        {"type": "user", "message": {"role": "user", "content": "go"}},
        *({"type": "stream_event", "event": piece} for piece in pieces),
        {"type": "assistant", "message": {**answer, "content": [text], "stop_reason": "end_turn"}},
    ]
    printed = [json.dumps({**line, "session_id": "s", "parent_tool_use_id": None}) for line in lines]
    store = Ticking()
    for size in (*cuts, len(lines)):
        (one,) = read_file("\n".join(printed[:size]).encode())
        assert sync_session(store, one).session == "s"
    assert [record.body for record in store.read("s")] == [draft.body for draft in one.drafts]


@pytest.mark.parametrize("whole_bodies", [True, False])
def test_json_lines_that_grow_are_imported_once(tmp_path: Path, whole_bodies: bool) -> None:
    """A log of requests, or of messages, all of which comes again under other names with each line that is added."""
    store = MemoryStore()
    said = [{"role": ("user", "assistant")[n % 2], "content": f"word {n}"} for n in range(6)]
    lines = [{"model": "m", "messages": said[: n + 1]} for n in range(6)] if whole_bodies else said
    log = tmp_path / "log.jsonl"
    for n in range(1, 7):
        log.write_text("".join(json.dumps(line) + "\n" for line in lines[:n]))
        statuses = [sync_session(store, one).status for one in read_file(log)]
        assert len(store.sessions()) == (n if whole_bodies else 1), statuses
    once = MemoryStore()
    for one in read_file(log):
        sync_session(once, one)
    sessions = {info.id for info in once.sessions()}
    assert {one: texts(store, one) for one in sessions} == {one: texts(once, one) for one in sessions}
