"""A session that is opened again: it has what it had, says what it found half-done, and what is not as it was."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest

import turnlog
from agents import CHAT, chunks, says
from turnlog.errors import InputError, SessionNotFound
from turnlog.log.budget import Budget
from turnlog.log.messages import Message, Text, ToolCall, text_of
from turnlog.log.records import (
    Configuration,
    Environment,
    MessageRecord,
    Note,
    PartialAnswer,
    Record,
    StreamCheckpoint,
    ToolStarted,
    TurnClosed,
    TurnOpened,
)
from turnlog.log.store import Draft
from turnlog.models.target import Target
from turnlog.session import configure, recovery
from turnlog.session.checkpoint import KILLED, Checkpoints
from turnlog.session.configure import Change, changes_between, changes_since
from turnlog.session.recovery import Recovered, Resumed
from turnlog.session.session import Session
from turnlog.session.versions import VIEWS
from turnlog.stores import MemoryStore
from turnlog.testing import crash
from turnlog.view.fold import INTERRUPTED
from turnlog.workspace.watch import FileRecorder

SHELL = {"name": "shell", "description": "Run.", "parameters": {"type": "object"}}
LOOK = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}
LOUDER = {"name": "look", "description": "Look twice.", "parameters": {"type": "object"}}
CLAUDE = turnlog.target("anthropic", "claude-sonnet-4-5", max_tokens=100)


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    """A store in memory."""
    made = MemoryStore()
    yield made
    made.close()


_owners: WeakKeyDictionary[MemoryStore, Session] = WeakKeyDictionary()


def opened(store: MemoryStore, **arguments: Any) -> Session:
    """The session of these tests, opened with these arguments and settings; whoever had it before is killed first."""
    given = {name: arguments.pop(name) for name in ("strategy", "system", "checkpoint") if name in arguments}
    if store in _owners:
        crash(_owners[store])
    session = turnlog.open("s", store=store, settings=turnlog.Settings(**given), **arguments)
    _owners[store] = session
    return session


def told(session: Session) -> list[str]:
    """What opening said has changed."""
    assert session.resumed is not None
    return [str(change) for change in session.resumed.changes]


# -- what changed ----------------------------------------------------------------------------------


def test_a_session_has_what_it_had_and_says_nothing(store: MemoryStore) -> None:
    """Whoever names nothing gets target, settings, budget, strategy, tools and system text back, and no news."""
    first = opened(store, target=CHAT, budget=9_000, strategy="mask", tools=[SHELL], system="Be brief.")
    assert (first.resumed, first.changes) == (None, ())
    first.user("hello")
    body, records = first.request().json(), len(first.history())
    again = opened(store)
    assert again.request().json() == body
    assert again.configuration == first.configuration
    assert again.resumed == Resumed(records, session="s")
    assert str(again.resumed) == f"session s resumed at record {records}"
    assert (again.changes, len(again.history())) == ((), records)


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ({"budget": 5_000}, ["budget max_tokens 9,000 -> 5,000"]),
        ({"tools": [LOUDER]}, ["tool look changed", "tool shell removed"]),
        ({"tools": [SHELL, LOOK, {**SHELL, "name": "dig"}]}, ["tool dig added"]),
        ({"system": "Be long."}, ["system text changed"]),
        ({"target": CHAT.with_settings(temperature=1)}, ["setting temperature nothing -> 1"]),
        (
            {"target": CLAUDE, "budget": 9_000},
            [
                "model openai-chat gpt-4o -> anthropic claude-sonnet-4-5",
                "setting max_tokens nothing -> 100",
                "input limit 128,000 -> 1,000,000",
                "output limit 16,384 -> 64,000",
            ],
        ),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
def test_other_arguments_are_told(store: MemoryStore, arguments: dict[str, Any], expected: list[str]) -> None:
    """A change that goes unsaid, or one that is said and not made, or said again by the next opening, fails here."""
    opened(store, target=CHAT, budget=9_000, strategy="mask", tools=[SHELL, LOOK], system="Be brief.").user("hello")
    changed = opened(store, override=True, **arguments)
    limits = {"input limit", "output limit"}
    found = [one for one in told(changed) if not any(one.startswith(limit) for limit in limits)]
    assert found == [one for one in expected if not any(one.startswith(limit) for limit in limits)]
    if "target" in arguments and arguments["target"] is CLAUDE:
        assert {change.name for change in changed.changes if change.what == "limit"} == limits
    event = changed.events().waiting()[0]
    assert (event.kind, event.found, event.text) == ("session_resumed", changed.resumed, str(changed.resumed))
    again = opened(store, override=True, **arguments)
    assert (told(again), again.changes) == ([], ())
    assert again.request().json() == changed.request().json()


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ({"budget": 5_000}, ["budget max_tokens 9,000 -> 5,000"]),
        ({"tools": []}, ["tool shell removed"]),
        ({"tools": [SHELL], "budget": 9_000, "target": CHAT}, []),
        ({"target": CHAT.with_settings(temperature=1)}, ["setting temperature nothing -> 1"]),
        (
            {"target": CLAUDE, "tools": [SHELL, LOOK]},
            [
                "model openai-chat gpt-4o -> anthropic claude-sonnet-4-5",
                "setting max_tokens nothing -> 100",
                "tool look added",
            ],
        ),
    ],
)
def test_arguments_are_for_a_new_session(store: MemoryStore, arguments: dict[str, Any], expected: list[str]) -> None:
    """A session that forgets what it was switched to because a program names its usual model at each start, or that
    does not say which arguments it has not taken over."""
    opened(store, target=CHAT, budget=9_000, tools=[SHELL], system="Be brief.").user("hello")
    before = opened(store)
    again = opened(store, **arguments)
    assert again.resumed is not None
    assert ([str(one) for one in again.resumed.kept], again.resumed.changes) == (expected, ())
    assert (again.configuration, again.request().json()) == (before.configuration, before.request().json())
    assert len(again.history()) == len(before.history())
    assert str(again.resumed).endswith(", ".join(expected))


def test_a_session_without_a_target_takes_the_arguments(store: MemoryStore) -> None:
    """An imported session could never be given a target by `open` otherwise."""
    opened(store).user("hello")
    again = opened(store, target=CHAT, budget=9_000, tools=[SHELL])
    assert again.resumed is not None and again.resumed.kept == ()
    assert again.target == CHAT and again.configuration.budget == Budget(9_000)
    assert [tool.name for tool in again.configuration.tools] == ["shell"]


def test_no_session_is_made_unasked(store: MemoryStore, tmp_path: Path) -> None:
    """A mistyped id would begin an empty conversation, and nobody would notice."""
    for place in (store, tmp_path / "made.db", f"files:{tmp_path / 'made'}"):
        with pytest.raises(SessionNotFound, match=r"no session 'typo'.*create=False makes none"):
            turnlog.open("typo", store=place, create=False)
        assert not {tmp_path / "made", Path(str(place))} & {*tmp_path.iterdir()}  # no store either
        turnlog.open("there", store=place).close()
        with pytest.raises(SessionNotFound, match=r"no session 'typo'.*create=False makes none"):
            turnlog.open("typo", store=place, create=False)
        with turnlog.open("there", store=place, create=False) as found:
            assert found.id == "there"
        reading = turnlog.stores.open_store(place) if place is not store else store
        assert [info.id for info in reading.sessions()] == ["there"]
    with pytest.raises(InputError, match="create=False opens a session that exists: name it"):
        turnlog.open(store=store, create=False)


def test_a_strategy_of_the_settings_is_for_new_sessions(store: MemoryStore) -> None:
    """Whoever changes a file of settings must not thereby change what the sessions that are there show next."""
    opened(store, target=CHAT, strategy="mask").close()
    again = opened(store, strategy="sliding")
    assert again.configuration.strategy is not None
    assert (again.configuration.strategy.name, again.changes) == ("mask", ())
    again.configure(strategy="sliding")
    assert [str(change) for change in again.changes] == ["strategy mask -> sliding"]


def test_another_system_text_takes_the_place_of_the_old_one(store: MemoryStore) -> None:
    """Both texts in a request would contradict each other; the log keeps the old one."""
    session = opened(store, target=CHAT, system="Be brief.")
    session.user("hello")
    session = opened(store, system="Be long.")
    assert session._configurer.system_text == "Be long."
    assert [m["content"] for m in session.request().body["messages"]] == ["Be long.", "hello"]
    assert [text_of(r.message) for r in session.history() if r.message] == ["Be brief.", "hello"]
    assert session.explain().accounts[session.history()[1].n].fate in ("kept", "replaced")
    session.clear()
    assert next(shown.message for shown in session.view()) == Message("system", (Text("Be long."),))


def test_what_changes_later_is_told_as_well(store: MemoryStore) -> None:
    """Many set tools and texts after opening: `changes` compares with what was found, whenever it is asked."""
    opened(store, target=CHAT, tools=[SHELL]).user("hello")
    session = opened(store)
    session.configure(tools=[])
    session.switch(CHAT.with_settings(seed=1))
    assert session.changes == (Change("setting", "seed", "", "1"), session.changes[1])
    assert str(session.changes[1]) == "tool shell removed"


def test_another_table_of_models_and_another_turnlog_are_told_once(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits that shrank since make requests smaller: that is said, and not for ever."""
    opened(store, target=turnlog.target("openai-chat", "gpt-4o")).user("hello")
    table = tmp_path / "models.json"
    table.write_text(json.dumps({"models": {"gpt-4o": {"input": 64_000}}}))
    monkeypatch.setenv("TURNLOG_MODELS", str(table))
    monkeypatch.setattr(configure, "__version__", "9.9.9")
    session = opened(store)
    assert told(session) == ["input limit 128,000 -> 64,000", f"turnlog {turnlog.__version__} -> 9.9.9"]
    assert session.configuration.environment == Environment("9.9.9", 64_000, 16_384, views=VIEWS)
    assert told(opened(store)) == []


def test_a_model_that_left_the_table_is_told() -> None:
    """Its limits are a guess from now on."""
    was, now = Environment("1", 200_000, 8_000), Environment("1", 128_000, 8_000, known=False)
    assert [str(one) for one in changes_since(was, now)] == [
        "input limit 200,000 -> 128,000",
        "model in the table of models -> in no table of models",
    ]
    assert changes_since(None, now) == changes_since(now, now) == []


def test_every_field_of_a_configuration_is_compared() -> None:
    """A field that is added to a configuration and forgotten here would change in silence."""
    plain = Configuration("p", "m")
    values: dict[str, Any] = {
        "provider": "q", "model": "n", "settings": {"a": 1}, "tools": (turnlog.Tool("t"),), "input_limit": 5,
        "budget": Budget(max_tokens=5), "strategy": turnlog.Strategy("mask"),
        "base_url": "http://localhost", "server": "vllm",
        "answer_schema": {"type": "object"},
    }  # fmt: skip
    silent = {"form", "why", "environment"}  # spelling, a remark, and what `changes_since` compares
    assert values.keys() | silent == set(Configuration.__struct_fields__)
    for name, value in values.items():
        other = Configuration(**{"provider": "p", "model": "m", name: value})
        assert len(changes_between(plain, other)) == len(changes_between(other, plain)) == 1
    assert changes_between(plain, plain) == []


# -- what was half-done ----------------------------------------------------------------------------


def test_an_open_turn_and_its_calls_are_told_once(store: MemoryStore) -> None:
    """After a crash: which turn, which calls may have run; the next opening has nothing to add."""
    session = opened(store, target=CHAT)
    turn = session.turn("go").__enter__()
    one, _ = turn.receive(says("", "c1", "c2")).tool_calls
    turn.tool_started(one)
    resumed = opened(store).resumed
    assert resumed is not None and resumed.recovered.turn is not None
    assert resumed.recovered.turn.id == turn.id
    assert [(info.call.id, info.started > 0) for info in resumed.recovered.calls] == [("c1", True), ("c2", False)]
    assert "weather (c1) started and never ended: it may have run" in str(resumed)
    again = opened(store)
    assert again.resumed is not None and not again.resumed.recovered
    assert [info.call.id for info in again.log.unfinished()] == ["c1", "c2"]


def test_calls_are_told_where_no_turn_was_recorded(store: MemoryStore) -> None:
    """Those since the user's last word; they stay open until a result is on record, and are told until then."""
    session = opened(store, target=CHAT)
    session.user("go")
    session.receive(says("", "old"))
    session.user("go on")
    (call,) = session.receive(says("", "new")).tool_calls
    session.tool_started(call)
    for _ in range(2):
        resumed = opened(store).resumed
        assert resumed is not None
        assert [info.call.id for info in resumed.recovered.calls] == ["new"]
    opened(store).tool_result(call, "4 degrees")
    assert opened(store).resumed == Resumed(store.info("s").records, session="s")


def test_what_had_come_of_a_stream_survives(store: MemoryStore) -> None:
    """A process that is killed in the midst of an answer leaves what was on record of it, marked, with its turn."""
    session = opened(store, target=CHAT, checkpoint=0.0)
    turn = session.turn("tell").__enter__()
    answer = turn._until_cancelled(chunks("It was ", "once ", "upon a ti"))
    with pytest.raises(GeneratorExit):
        session.receive(_killed(answer))
    left = [record for record in session.history() if isinstance(record.body, StreamCheckpoint)]
    other = MemoryStore()
    other.create("s")
    for record in session.history():
        if not isinstance(record.body, PartialAnswer):  # a killed process says no more
            other.append("s", [turnlog.log.store.Draft(record.body)])
    resumed = turnlog.open("s", store=other)
    assert resumed.resumed is not None
    partial = next(r for r in resumed.history() if r.n == resumed.resumed.recovered.answer)
    assert partial.body == PartialAnswer(
        Message("assistant", (Text("It was once upon a "),)), KILLED, count=_count(partial)
    )
    assert resumed.log.turns()[-1].last == partial.n + 1
    shown = resumed.request().body["messages"][-1]["content"]
    assert [part["text"] for part in shown] == ["It was once upon a ", INTERRUPTED]
    assert [text_of(r.body.message) for r in left if isinstance(r.body, StreamCheckpoint)] == [
        "It was ", "It was once ", "It was once upon a ",
    ]  # fmt: skip


def test_of_two_who_open_a_session_one_tells_what_was_left(store: MemoryStore) -> None:
    """Workers that are started again all at once, on a disk without locks: a model is told the same half of an answer
    by each of them."""

    class Raced(MemoryStore):
        """A store in which another opens the session just when this one is about to say what it found."""

        others = 2

        def append(
            self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None
        ) -> tuple[Record, ...]:
            if self.others and isinstance(drafts[0].body, (PartialAnswer, TurnClosed)):
                self.others -= 1
                Session(self, self.info("s"))._begin()
            return super().append(session_id, drafts, expected=expected)

    for left in ([TurnOpened("1"), MessageRecord(Message("user", (Text("go"),)))], []):
        raced = Raced()
        raced.create("s")
        half = StreamCheckpoint(Message("assistant", (Text("It was once "),)))
        raced.append("s", [Draft(body) for body in (*left, half)])
        with opened(raced) as session:
            assert session.resumed is not None
            assert session.resumed.recovered == Recovered()  # the other found it
            kinds = [type(record.body) for record in session.history()][len(left) + 1 :]
        assert kinds == [PartialAnswer, *([TurnClosed] if left else [])]


def test_an_answer_that_is_still_coming_is_not_taken_for_a_broken_one(store: MemoryStore) -> None:
    """Who begins a turn while another thread receives an answer has the model told half of it, as if the process had
    ended, and then all of it."""
    session = opened(store, target=CHAT, checkpoint=0.0)

    def slowly() -> Iterator[Any]:
        yield from chunks("It was ", "once ")
        with session.turn("and now?"):
            yield from chunks("upon a time")

    session.receive(slowly())
    bodies = [record.body for record in session.history()]
    assert [text_of(body.message) for body in bodies if isinstance(body, PartialAnswer)] == ["It was once upon a time"]
    with session.turn("and then?"):
        assert len(session.history()) == len(bodies) + 2


def _killed(chunks: Iterator[Any]) -> Iterator[Any]:
    yield from chunks
    raise GeneratorExit


def _count(record: Record) -> Any:
    return record.body.count if isinstance(record.body, PartialAnswer) else None


def test_checkpoints_are_rare_and_hold_no_half_word() -> None:
    """An answer of many chunks must not be written many times over, and half a secret looks like none."""
    kept: list[Any] = []
    assembler = turnlog.providers.provider("openai-chat").assembler()
    usual = Checkpoints(assembler.reply, kept.append, 3_600.0)
    always = Checkpoints(assembler.reply, kept.append, 0.0)
    for chunk in chunks("the key is ", "sk-ant-", "api03-abcdef"):
        assembler.feed(chunk)
    assert (usual.is_due, always.is_due) == (False, True)  # an hour has not gone by
    always.look()
    always.look()
    assert kept == [StreamCheckpoint(Message("assistant", (Text("the key is "),)))]


def test_scripts_without_spaces_are_kept() -> None:
    """Where no space ends a word, a checkpoint would never hold anything."""
    kept: list[Any] = []
    assembler = turnlog.providers.provider("openai-chat").assembler()
    always = Checkpoints(assembler.reply, kept.append, 0.0)
    for chunk in chunks("昔々", "、密码 sk-ant-", "api03"):
        assembler.feed(chunk)
        always.look()
    assert [text_of(checkpoint.message) for checkpoint in kept] == ["昔々", "昔々、密码 "]


def test_no_checkpoint_holds_a_part_of_a_secret(store: MemoryStore) -> None:
    """The first half of a key looks like no key; and a key that went by in three checkpoints is one key."""
    session = opened(store, target=CHAT, checkpoint=0.0)
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    session.receive(chunks("The key is ", key[:12], key[12:25], key[25:], ". Keep ", "it ", "safe."))
    records = session.history()
    assert sum(isinstance(record.body, StreamCheckpoint) for record in records) > 2
    assert [record.n for record in records if key[:8].encode() in (record.raw or b"")] == []
    assert sum(session.log.redacted.values()) == 1


def half_streamed(store: MemoryStore) -> Session:
    """A session whose process was killed while it streamed "It was once upon a", as another process sees it."""
    session = opened(store, target=CHAT)
    session.user("tell")
    checkpoint = StreamCheckpoint(Message("assistant", (Text("It was once "),)), model="gpt-4o")
    store.append("s", [turnlog.log.store.Draft(checkpoint)])
    return session


def recovered_answer(store: MemoryStore) -> str:
    """What the next opening keeps of an answer, nothing where it keeps none."""
    resumed = opened(store).resumed
    assert resumed is not None
    n = resumed.recovered.answer
    assert opened(store).resumed == Resumed(store.info("s").records, session="s")  # and it is told once
    message = next(iter(store.read("s", first=n))).message if n else None
    return text_of(message) if message else ""


def test_what_others_said_meanwhile_does_not_end_a_stream(store: MemoryStore) -> None:
    """A word of the user and a late result of a tool, recorded meanwhile, would lose what had come of the answer."""
    session = opened(store, target=CHAT)
    session.user("go")
    (call,) = session.receive(says("", "c1")).tool_calls
    session = half_streamed(store)
    session.tool_result(call, "4 degrees")
    session.user("are you there?")
    assert recovered_answer(store) == "It was once "


@pytest.mark.parametrize("partial", [False, True])
def test_an_answer_ends_a_stream(store: MemoryStore, partial: bool) -> None:
    """An answer that is on record would stand there twice, once whole and once as far as a checkpoint had it."""
    session = half_streamed(store)
    session.receive(chunks("It was once ") if partial else says("It was once upon a time."))
    session.user("and then?")
    assert recovered_answer(store) == ""


def test_what_was_cleared_or_taken_back_is_not_recovered(store: MemoryStore) -> None:
    """Half an answer to a question that the user took back would stand in the conversation without its question."""
    session = half_streamed(store)
    session.clear()
    assert recovered_answer(store) == ""
    opened(store).user("anew")
    session = half_streamed(store)
    session.rewind(turns=1)
    assert recovered_answer(store) == ""


def test_what_came_after_a_clearing_is_recovered(store: MemoryStore) -> None:
    """Only what a decision covers is gone; a stream that went on, or a rewind that was undone, is not."""
    session = opened(store, target=CHAT)
    before = session.user("before")
    session.clear()
    session = half_streamed(store)
    session.rewind(turns=1)
    session.undo("rewind")
    session.pin(before.n)
    assert recovered_answer(store) == "It was once "


def test_a_fork_keeps_what_has_come_as_often(store: MemoryStore) -> None:
    """A session that puts every chunk on record would have forks that lose a second of an answer to a kill."""
    fork = opened(store, target=CHAT, checkpoint=0.0).fork("other")
    fork.receive(chunks("It was ", "once "))
    assert any(isinstance(record.body, StreamCheckpoint) for record in fork.history())


@pytest.mark.parametrize("seconds", [-1, None, "1", True, float("nan")])
def test_a_pause_between_checkpoints_is_a_number(store: MemoryStore, seconds: Any) -> None:
    """What is no number of seconds is said at the door, not in the midst of the first stream."""
    with pytest.raises(turnlog.InputError, match=r"checkpoint: .* is not allowed"):
        opened(store, checkpoint=seconds)


def test_files_of_a_watched_folder_are_told(store: MemoryStore, tmp_path: Path) -> None:
    """A kill loses what the folder held before; that files changed must not be lost with it."""
    (tmp_path / "old").write_text("x")
    past = datetime(2001, 1, 1, tzinfo=UTC)
    recorder = FileRecorder(tmp_path, lambda *bodies: (), lambda data: "")
    assert recorder.touched(past) == ["old"]
    assert recorder.touched(datetime(2999, 1, 1, tzinfo=UTC)) == []
    session = opened(store, target=CHAT)
    session.turn("go", watch=tmp_path).__enter__()
    (tmp_path / "new").write_text("y")
    resumed = opened(store).resumed
    assert resumed is not None and "new" in resumed.recovered.files
    assert "changed without a record: " in str(resumed)
    session.close()


def test_a_kill_while_what_was_left_is_told_keeps_none_of_it_quiet(tmp_path: Path) -> None:
    """Files that a turn changed before it was killed, told by nobody for good, as the process that was opening the
    session again was killed too: the turn was closed by then, and the next opening looks into open ones only."""

    class Dying(MemoryStore):
        """A store of a process that is killed ahead of an append."""

        left = 99

        def append(
            self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None
        ) -> tuple[Record, ...]:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
            return super().append(session_id, drafts, expected=expected)

    for appends in range(4):
        store = Dying()
        killed = opened(store, target=CHAT)
        killed.turn("go", watch=tmp_path).__enter__()
        (tmp_path / "new").write_text("y")
        store.left = appends
        with suppress(KeyboardInterrupt):
            opened(store)
        store.left = 99
        bodies = [record.body for record in opened(store).history()]
        (note,) = [body for body in bodies if isinstance(body, Note)]
        assert (note.topic, note.data) == (recovery.TOUCHED, ["new"])
        assert sum(isinstance(body, TurnClosed) for body in bodies) == 1
        killed.close()


def test_a_turn_that_began_nobody_knows_when_is_no_error(store: MemoryStore, tmp_path: Path) -> None:
    """A session that cannot be opened any more: it was brought in from elsewhere, with times that are none."""
    store.create("s")
    left = TurnOpened("1", str(tmp_path)), MessageRecord(Message("user", (Text("go"),)))
    store.append("s", [Draft(body, "yesterday") for body in left])
    (tmp_path / "file").write_text("word")
    with opened(store) as session:
        assert session.resumed is not None and session.resumed.recovered.turn is not None
        assert session.resumed.recovered.files == ()


def test_what_a_killed_tool_recorded_is_not_told_as_unrecorded(store: MemoryStore, tmp_path: Path) -> None:
    """A tool's own folder inside the watched one gives its files other names; they are on record all the same."""
    (tmp_path / "src").mkdir()
    session = opened(store, target=CHAT)
    turn = session.turn("go", watch=tmp_path)
    turn.__enter__()
    with turn.files(tmp_path / "src") as files, files.watch():
        (tmp_path / "src" / "a").write_text("y")
    resumed = opened(store).resumed
    assert resumed is not None and resumed.recovered.files == ()
    session.close()


def test_what_changed_after_it_was_recorded_is_told(store: MemoryStore, tmp_path: Path) -> None:
    """Two tools write a file, the second is killed: that the first was recorded would hide that the file changed. One
    whose secrets the log does not hold is not another file by that."""
    session = opened(store, target=CHAT)
    session.turn("go", watch=tmp_path).__enter__()
    with session.files(tmp_path) as files, files.watch():
        (tmp_path / "same").write_text("one")
        (tmp_path / "other").write_text("one")
        (tmp_path / "secret").write_text("password=" + "hunter2hunter2xyz")
    (tmp_path / "other").write_text("two")
    later = datetime.now(UTC).timestamp() + 5
    for name in ("same", "other"):
        os.utime(tmp_path / name, (later, later))
    resumed = opened(store).resumed
    assert resumed is not None and resumed.recovered.files == ("other",)
    session.close()


def test_nothing_recovered_is_false() -> None:
    """Who asks `if session.resumed.recovered` wants to know whether there is something to say."""
    assert not Recovered()
    assert Recovered(answer=3)
    assert str(Recovered(files=tuple("abcdefg"))) == "changed without a record: a, b, c, d, e and 2 more"


def test_what_is_told_of_calls_is_what_requests_say(store: MemoryStore) -> None:
    """A caller and the model must not hear different things of one call."""
    session = opened(store, target=CHAT)
    session.user("go")
    call = ToolCall("c1", "dig")
    session.add(Message("assistant", (call,)))
    session.tool_started(call)
    assert isinstance(session.history()[-1].body, ToolStarted)
    again = opened(store)
    assert again.resumed is not None
    (info,) = again.resumed.recovered.calls
    assert "may have run" in info.standing
    assert "may have run" in again.request().body["messages"][-1]["content"]


def test_a_log_of_before_has_no_snapshot(store: MemoryStore) -> None:
    """What was never noted cannot have changed, and opening must not write for nothing."""
    store.create("s")
    old = Configuration("openai-chat", "gpt-4o")
    store.append(
        "s", [turnlog.log.store.Draft(old), turnlog.log.store.Draft(MessageRecord(Message("user", (Text("hi"),))))]
    )
    session = opened(store)
    assert isinstance(session.target, Target)
    assert (session.resumed, len(session.history())) == (Resumed(2, session="s"), 2)


def test_files_that_a_killed_turn_touched_stay_on_record(store: MemoryStore, tmp_path: Path) -> None:
    """They were told once, to whoever opened the session first, and to nobody after."""
    killed = opened(store)
    turn = killed.turn("Write", watch=tmp_path)
    turn.__enter__()
    (tmp_path / "x.txt").write_text("half")
    again = opened(store)
    assert again.resumed is not None and again.resumed.recovered.files == ("x.txt",)
    third = opened(store)
    assert third.resumed is not None and third.resumed.recovered.files == ()
    notes = [record.body for record in third.history() if isinstance(record.body, Note)]
    turn.cancel()
    killed.close()
    assert notes == [Note("recovered files", "changed without a record: x.txt", ["x.txt"])]


def test_a_fork_does_not_tell_what_its_parent_has_on_record(store: MemoryStore, tmp_path: Path) -> None:
    """A fork from the midst of an old turn would put on record that all that changed since, in that turn or long after
    it, changed without a record."""
    session = opened(store)
    with session.turn("Write", watch=tmp_path) as turn:
        (tmp_path / "x.txt").write_text("whole")
    (tmp_path / "later").write_text("by hand")
    fork = session.fork("two", at=turn.info.first + 1)
    assert fork.resumed is not None and fork.resumed.recovered.turn is not None
    assert fork.resumed.recovered.files == ()
    own = fork.turn("Write more", watch=tmp_path)
    own.__enter__()
    (tmp_path / "own").write_text("half")
    crash(fork)
    again = turnlog.open("two", store=store)
    assert again.resumed is not None and "own" in again.resumed.recovered.files
    session.close()
