"""What is given each time that a session is opened: system text, target, budget, tools; and how a mistake is told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from agents import CHAT
from draws import examples
from judging import TARGETS
from turnlog.errors import InputError, SessionBusy, SessionIdError, SessionNotFound
from turnlog.log.records import Configuration, Decision
from turnlog.log.store import Store
from turnlog.models.target import Target
from turnlog.runners import ScriptedRunner
from turnlog.session.session import Session
from turnlog.skills.ready import LOAD_SKILL
from turnlog.stores import FilesStore, MemoryStore, SealedStore, SqliteStore, open_store
from turnlog.stores.encrypted.vault import Vault

TOOL = turnlog.Tool("weather", "The weather", {"type": "object", "properties": {"city": {"type": "string"}}})
_CLAUDE = turnlog.target("anthropic", "claude-sonnet-4-5")
_SAME = turnlog.target(CHAT.provider, CHAT.model)
_DECLARED = {"type": "function", "function": {"name": "weather", "description": TOOL.description}}
KEY = "sk-proj-" + "Zq8v3Kx1Lm5Np7Rt9Ws2Yb4Dc6Fg0Hj" * 2


@pytest.fixture(params=["memory", "sqlite", "files", "sealed", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store of each kind."""
    opens: dict[str, Callable[[], Store]] = {
        "memory": MemoryStore,
        "sqlite": lambda: SqliteStore(tmp_path / "s.db"),
        "files": lambda: FilesStore(tmp_path / "s"),
        "sealed": lambda: SealedStore(MemoryStore(), Vault.drawn()),
        "postgres": lambda: open_store(request.getfixturevalue("postgres").new_place()),
    }
    made = opens[request.param]()
    yield made
    made.close()


def _count(session: Session) -> int:
    return sum(1 for _ in session.log.records())


_WORDS = st.lists(st.sampled_from(["hi", "go on"]), max_size=3)

# -- system text -----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS, ids=str)
@given(text=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40), words=_WORDS)
@settings(max_examples=examples(20, 1_000))
def test_system_text_that_is_given_is_sent_as_if_it_were_recorded_first(
    target: Target, text: str, words: list[str]
) -> None:
    """A request whose bytes, and so its cached prefix, depend on how the program gave its system text; or a record more
    at each start of the program."""
    store = MemoryStore()
    with turnlog.open("recorded", store=store, target=target) as recorded:
        recorded.system(text)
        for word in words:
            recorded.user(word)
        expected = recorded.request().json()
    with turnlog.open("given", store=store, target=target, system=text) as session:
        for word in words:
            session.user(word)
        assert session.request().json() == expected
        records = _count(session)
    for _ in range(3):
        with turnlog.open("given", store=store, target=target, system=text) as session:
            assert (_count(session), session.request().json()) == (records, expected)


def test_another_system_text_replaces_the_one_on_record() -> None:
    """A program with a new system prompt goes on with the old one, or sends both."""
    store = MemoryStore()
    with turnlog.open("s", store=store, target=CHAT, system="Be brief.") as session:
        session.user("hi")
        session.assistant("hello")
    for _ in range(2):
        with turnlog.open("s", store=store, system="Be long.") as session:
            session.prompt.add(turnlog.prompt.Section("rules", "No jokes."))
            session.user("more")
            body = session.request().body
            assert [message["content"] for message in body["messages"] if message["role"] == "system"] == [
                "Be long.",
                "No jokes.",
            ] or body["messages"][0]["content"].startswith("Be long.")
            assert "Be brief" not in session.request().json().decode()
            made = [record for record in session.log.records() if isinstance(record.body, Decision)]
            assert [record.body.action for record in made if record.body.action == "system"] == ["system"]
    with turnlog.open("s", store=store) as session:
        assert "Be long." in session.request().json().decode()


def test_the_setting_and_the_argument_are_one_thing() -> None:
    """Two system texts, one of the configuration and one of the program; or sections that make it record again."""
    store, settings = MemoryStore(), turnlog.Settings(system="Of the settings.")
    with turnlog.open("s", store=store, target=CHAT, system="Of the program.", settings=settings) as session:
        session.prompt.add(turnlog.prompt.Section("rules", "No jokes."))
        session.user("hi")
        assert "Of the settings" not in session.request().json().decode()
        records = _count(session)
    with turnlog.open("s", store=store, system="Of the program.", settings=settings) as session:
        assert _count(session) == records


def test_a_secret_in_system_text_is_not_recorded_again(tmp_path: Path) -> None:
    """On disk there is a mark: the text that is given differs from it at each start."""
    text = f"Use the key {KEY} for the wiki."
    counts = []
    for _ in range(3):
        with turnlog.open("s", store=tmp_path / "s.db", target=CHAT, system=text) as session:
            session.user("hi")
            session.request()
            found = [record.message for record in session.log.records() if record.message is not None]
            counts.append([message.role for message in found].count("system"))
            assert not [one for one in session.log.of_kinds("decision") if one.body.action == "system"]
    assert counts == [1, 1, 1]
    assert KEY.encode() not in b"".join(path.read_bytes() for path in tmp_path.glob("s.db*") if path.is_file())


def test_the_same_text_again_is_no_change_of_session_system() -> None:
    """`session.system(TEXT, replace=True)` at each start is a decision more at each start."""
    with turnlog.open("s", store=MemoryStore(), target=CHAT) as session:
        first = session.system("Be brief.")
        assert session.system("Be brief.", replace=True) == first
        session.user("hi")
        second = session.system("Be long.", replace=True)
        assert second != first and session.system("Be long.", replace=True) == second
        assert _count(session) == second.n


@pytest.mark.parametrize("call", ["run", "arun", "stream", "astream"])
def test_a_run_takes_system_text(call: str) -> None:
    """An agent that is started in a loop says its system text in each turn again, or not at all."""
    with turnlog.open("s", store=MemoryStore(), target=CHAT) as session:

        async def answered(text: str, **options: Any) -> None:
            runner = ScriptedRunner(["yes"])
            if call == "arun":
                await turnlog.agent.arun(session, text, runner, **options)
            else:
                async for _ in turnlog.agent.astream(session, text, runner, **options):
                    pass

        def answer(text: str, **options: Any) -> None:
            if call == "run":
                turnlog.run(session, text, ScriptedRunner(["yes"]), **options)
            elif call == "stream":
                list(turnlog.agent.stream(session, text, ScriptedRunner(["yes"]), **options))
            else:
                asyncio.run(answered(text, **options))

        for text in ("one", "two", "three"):
            answer(text, system="Be brief.")
        messages = [record.message for record in session.log.records() if record.message is not None]
        assert [message.role for message in messages] == ["system", *["user", "assistant"] * 3]
        answer("four", system="Be long.")
        assert session.request().body["messages"][0] == {"role": "system", "content": "Be long."}
        with pytest.raises(InputError, match="system must be a string, not int"):
            answer("five", system=5)


def test_system_text_is_text() -> None:
    """A list of parts, or bytes, that is put on record as something else; a session that is made by a mistake."""
    store = MemoryStore()
    for wrong in (b"x", 5, ["x"]):
        with pytest.raises(InputError, match="system must be a string"):
            turnlog.open("s", store=store, system=wrong)  # type: ignore[arg-type]
    assert store.sessions() == []
    turnlog.open("s", store=store).close()
    with pytest.raises(InputError, match="system cannot be set"):
        turnlog.open("s", store=store, system="x", read_only=True)

    async def opened() -> int:
        async with await turnlog.aopen("s", store=store, system="x") as session:
            return _count(session)

    assert [asyncio.run(opened()) for _ in range(2)] == [1, 1]


# -- target, budget, tools -------------------------------------------------------------------------


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    caplog.clear()
    return found


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"target": _CLAUDE}, f"model {CHAT.provider} {CHAT.model} -> anthropic claude-sonnet-4-5"),
        ({"target": turnlog.target("openai-chat", "gpt-4o", temperature=1)}, "setting temperature"),
        ({"budget": 6_000}, "budget max_tokens 5,000 -> 6,000"),
        ({"tools": []}, "tool weather removed"),
        ({"tools": [TOOL, turnlog.Tool("clock", "The time")]}, "tool clock added"),
    ],
    ids=["target", "setting", "budget", "no tools", "tools"],
)
def test_what_is_not_taken_over_is_a_warning(
    given: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A program with a larger budget or another model, which goes on with the old one and does not say so."""
    store = MemoryStore()
    turnlog.open("s", store=store, target=CHAT, budget=5_000, tools=[TOOL]).close()
    assert _warnings(caplog) == []
    with turnlog.open("s", store=store, **given) as session:
        (warned,) = _warnings(caplog)
        assert said in warned and "override=True" in warned
        heard = [event.kind for event in session.events().waiting()]
        assert heard == ["session_resumed", "warning"]
    _warnings(caplog)
    with turnlog.open("s", store=store, override=True, **given) as session:
        assert session.resumed is not None and session.resumed.kept == ()
    with turnlog.open("s", store=store, **given):
        assert _warnings(caplog) == []


def test_what_is_on_record_already_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A warning at each start of a program that gives the same each time, however it spells it."""
    store = MemoryStore()
    given: dict[str, Any] = {"target": CHAT, "budget": turnlog.Budget(5_000), "tools": [TOOL], "system": "Be brief."}
    turnlog.open("s", store=store, **given).close()
    declared = {**_DECLARED, "function": {**_DECLARED["function"], "parameters": TOOL.parameters}}
    for again in (given, {"budget": 5_000}, {"tools": [declared]}, {"target": _SAME}):
        turnlog.open("s", store=store, **again).close()
    flat = {"type": "function", "name": TOOL.name, "parameters": TOOL.parameters}  # as the Responses API has it
    described = {"description": TOOL.description} if TOOL.description else {}
    turnlog.open("s", store=store, tools=[{**flat, **described}]).close()
    of_tuples: dict[str, Any] = {
        "target": turnlog.target("openai-chat", "gpt-4o", stop=("END",)),
        "tools": [{"name": "weather", "parameters": {"properties": {"city": {"enum": ("Oslo", "Rome")}}}}],
    }
    for _ in range(2):
        turnlog.open("tuples", store=store, **of_tuples).close()
    loads = turnlog.Tool("rare", "Seldom used", {"type": "object"}, on_demand=True)
    for _ in range(2):
        turnlog.open("on-demand", store=store, target=CHAT, tools=[loads]).close()
    assert LOAD_SKILL not in [loads] and _warnings(caplog) == []


def test_configuring_what_is_so_already_records_nothing() -> None:
    """A configuration more in the log at each start of a program that configures its session."""
    with turnlog.open("s", store=MemoryStore(), target=CHAT) as session:
        values: list[dict[str, Any]] = [
            {"budget": 5_000},
            {"budget": turnlog.Budget(5_000)},
            {"tools": [TOOL], "temperature": 0.5},
            {"tools": [TOOL]},
            {"temperature": 0.5},
            {"strategy": "mask"},
            {"strategy": "mask", "budget": 5_000},
            {"top_p": None},
            {},
            {"stop": ("END",)},
            {"stop": ["END"]},
            {"stop": ("END",), "metadata": {"of": ("ann", "bob")}},
            {"metadata": {"of": ["ann", "bob"]}},
        ]
        made = [session.configure(**one).n for one in values]
        assert made == [2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 6, 6]
        configured = [record.n for record in session.log.records() if isinstance(record.body, Configuration)]
        assert configured == [1, 2, 3, 4, 5, 6]
        assert session.configure(temperature=None).n == 7


# -- ids, owners -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Ann", "Ann@x.org"])
def test_ids_that_differ_by_case_are_told_with_both(store: Store, name: str) -> None:
    """`there is no session 'ann'`, or `'ann' is in use`, while `Ann` is on the list: nobody sees the difference."""
    other = name.lower()
    uses: list[Callable[[], object]] = [
        lambda: turnlog.open(other, store=store, create=False, wait=0),
        lambda: turnlog.open(other, store=store, read_only=True),
        lambda: store.info(other),
        lambda: store.rename(other, "x"),
        lambda: store.delete(other),
    ]
    with turnlog.open(name, store=store) as session:
        for again in range(2):
            for opens in (lambda: turnlog.open(other, store=store, wait=0), lambda: store.create(other)):
                with pytest.raises(SessionIdError) as refused:
                    opens()
                assert repr(other) in str(refused.value) and repr(name) in str(refused.value)
            for use in uses:
                with pytest.raises(SessionNotFound) as missing:
                    use()
                assert repr(other) in str(missing.value) and repr(name) in str(missing.value)
            if not again:
                session.close()
    assert [info.id for info in store.sessions()] == [name]


def test_deleting_what_is_not_there(store: Store) -> None:
    """Forgetting a user twice is an error; or a session that is in use, or has grown, is deleted all the same."""
    store.delete("none", missing_ok=True)
    with pytest.raises(SessionNotFound):
        store.delete("none")
    with turnlog.open("s", store=store) as session:
        with pytest.raises(SessionBusy):
            store.delete("s", missing_ok=True)
        session.user("hi")
    with pytest.raises(turnlog.errors.Conflict):
        store.delete("s", expected=0, missing_ok=True)
    store.delete("s", missing_ok=True)
    store.delete("s", missing_ok=True)
    assert store.sessions() == []
    with pytest.raises(InputError, match="missing_ok must be True or False"):
        store.delete("s", missing_ok="yes")  # type: ignore[arg-type]


def test_a_cell_that_runs_again_is_told_of_its_own_session(store: Store) -> None:
    """A notebook whose cell opens a session says that somebody has it: it is the same cell, a minute ago."""
    cell = "session = turnlog.open('s', store=store, wait=0)"
    names: dict[str, Any] = {"turnlog": turnlog, "store": store}
    exec(cell, names)
    with pytest.raises(SessionBusy, match=r"this process has it open already .*earlier.* object.*session\.close\(\)"):
        exec(cell, names)
    exec(f"session.close()\n{cell}", names)
    with closing(names["session"]) as session:
        assert session.resumed is not None
