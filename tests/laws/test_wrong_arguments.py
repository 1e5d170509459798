"""Values of a wrong kind, handed to what anybody calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import turnlog
from turnlog import importers, memory
from turnlog.log.usage import Usage
from turnlog.models.catalog import model_facts
from turnlog.stores import MemoryStore
from turnlog.summarize import Digest
from turnlog.tokens import FactoredCounter, Tally
from turnlog.tokens.families import claude_family

BODY: dict[str, Any] = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
AIM = turnlog.target("openai-chat", "gpt-4o")
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ANSWER = {
    "model": "gpt-4o",
    "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [CALL]}}],
}


def _in_session(use: Callable[[turnlog.Session, Any], Any]) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        with turnlog.open("s", store=MemoryStore(), target=AIM) as session:
            session.user("hi")
            return use(session, value)

    return call


def _denied(session: turnlog.Session, value: Any) -> None:
    with session.turn("hi") as turn:
        turn.receive(ANSWER)
        turn.deny(value)


def _watched(session: turnlog.Session, value: Any) -> None:
    with session.turn("hi", watch=value):
        pass


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "count model": (lambda v: turnlog.count(BODY, model=v), "model must be a string"),
    "count provider": (lambda v: turnlog.count(BODY, provider=v), "unknown provider"),
    "count counter": (lambda v: turnlog.count(BODY, counter=v), "counter: give a counter of"),
    "check provider": (lambda v: turnlog.check(BODY, v), "unknown provider"),
    "repair provider": (lambda v: turnlog.repair(BODY, v), "unknown provider"),
    "convert to": (lambda v: turnlog.convert(BODY, to=v), "unknown provider"),
    "convert source": (lambda v: turnlog.convert(BODY, to="anthropic", provider=v), "unknown provider"),
    "convert model": (lambda v: turnlog.convert(BODY, to="anthropic", model=v), "model must be a string"),
    "fit provider": (lambda v: turnlog.fit(BODY, provider=v), "unknown provider"),
    "cost model": (lambda v: turnlog.cost(Usage(1), v), "model must be a string"),
    "facts model": (lambda v: model_facts(v), "model must be a string"),
    "redactor patterns": (lambda v: turnlog.Redactor(v), "patterns must be a dict"),
    "redactor text": (lambda v: turnlog.Redactor().text(v), "text must be a string"),
    "read back provider": (lambda v: turnlog.read_back_tool(v), "provider"),
    "open store": (lambda v: turnlog.open("s", store=v), "store must be a path"),
    "open settings": (lambda v: turnlog.open("s", store=":memory:", settings=v), "settings must be turnlog.Settings"),
    "open tools": (lambda v: turnlog.open("s", store=":memory:", target=AIM, tools=v), "tools"),
    "collect store": (lambda v: turnlog.collect(v, turnlog.Limits(max_sessions=1)), "store must be a path"),
    "collect limits": (lambda v: turnlog.collect(MemoryStore(), v), "limits must be turnlog.Limits"),
    "read file": (lambda v: importers.read_file(v), "a transcript is a path"),
    "search query": (lambda v: MemoryStore().search(v), "query must be a string"),
    "search role": (lambda v: MemoryStore().search("a", role=v), "role must be a string"),
    "search tool": (lambda v: MemoryStore().search("a", tool=v), "tool must be a string"),
    "search since": (lambda v: MemoryStore().search("a", since=v), "since: .* is not a date"),
    "extend": (_in_session(lambda s, v: s.extend(v)), "messages must be a list"),
    "configure tools": (_in_session(lambda s, v: s.configure(tools=v)), "tools"),
    "explain also": (_in_session(lambda s, v: s.explain(v)), "must be a dict from record number"),
    "explain aim": (_in_session(lambda s, v: s.explain(target=v)), "target must be what"),
    "files": (_in_session(lambda s, v: s.files(v)), "the folder must be a path"),
    "files record": (_in_session(lambda s, v: s.files().record(v, None, b"x")), "path must be the path of a file"),
    "fork id": (_in_session(lambda s, v: s.fork(v)), "session id"),
    "fork title": (_in_session(lambda s, v: s.fork("new", title=v)), "title must be a string"),
    "records": (_in_session(lambda s, v: s.log.records(v)), "first must be the number of a record"),
    "of_kinds": (_in_session(lambda s, v: s.log.of_kinds(v)), "kind must be a string"),
    "read back": (_in_session(lambda s, v: s.answer_read_back(v)), "call must be a ToolCall"),
    "recall": (_in_session(lambda s, v: s.answer_recall(v)), "call must be a ToolCall"),
    "recall query": (lambda v: memory.recall(MemoryStore(), v), "query must be a string"),
    "recall tool": (lambda v: turnlog.recall_tool(v), "provider"),
    "resolve": (lambda v: memory.Memory().resolve(v), "reference must be a string"),
    "resolve in": (lambda v: memory.Memory().resolve("it", v), "said must be a string"),
    "deny": (_in_session(_denied), "call must be a ToolCall"),
    "watch": (_in_session(_watched), "the folder must be a path"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("value", [1.5, object(), [object()]], ids=["float", "object", "list"])
def test_a_value_of_a_wrong_kind_is_an_input_error(name: str, value: Any) -> None:
    """Without it a slip ends in AttributeError or TypeError from deep within: the caller is not told which argument
    it was, and `except turnlog.TurnlogError` around the call does not hold it."""
    call, said = WRONG[name]
    with pytest.raises(turnlog.InputError, match=said):
        call(value)


def test_a_counter_that_lacks_what_counters_have_is_told_by_that(tmp_path: Path) -> None:
    """Without it `counter=5` is an AttributeError, and what is false (0, an empty string) counts as no counter at all:
    a count by somebody else's rules, in silence."""
    for wrong in (5, 0, "", "gpt-4o", len):
        with pytest.raises(turnlog.InputError, match="has no 'id', 'text', 'messages', 'tools', 'frame'"):
            turnlog.count(BODY, counter=wrong)  # type: ignore[arg-type]


def _counter(name: str, said: Any) -> Any:
    """A counter all of whose answers are numbers of tokens, but for one."""
    good = {
        "id": "mine:1",
        "text": lambda text: 400 + len(text),
        "messages": lambda messages, blob=None: Tally(user=400 * len(messages)),
        "tools": lambda tools, choice="auto": Tally(tools=5 * len(tools)),
        "frame": lambda *, system, tools: Tally(framing=3),
    }
    return SimpleNamespace(**{**good, name: said if name == "id" else lambda *given, **named: said})


_NO_TOKENS = [None, -1, 2.5, float("nan"), "5", {"user": 5}, Tally(user=-5), Tally(user=2.5), Tally(user="5")]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["id", "text", "messages", "tools", "frame"])
@pytest.mark.parametrize("said", [*_NO_TOKENS, Tally(certainty="sure")], ids=repr)  # type: ignore[arg-type]
def test_whatever_a_counter_says_that_is_no_size_is_told(name: str, said: Any) -> None:
    """An answer about tools, or a part of a tally, was added up as it was: an AttributeError, a count that is NaN or
    below the truth, a request taken to fit that did not."""
    long = {**BODY, "tools": TOOLS, "messages": BODY["messages"] * 40}
    if (name, said) == ("id", "5"):
        return  # which is one
    with pytest.raises(turnlog.InputError, match=r"^counter: "):
        turnlog.count(long, counter=_counter(name, said))
    with pytest.raises(turnlog.InputError, match=r"^counter: "):
        turnlog.fit(long, max_tokens=2_000, counter=_counter(name, said))


@pytest.mark.parametrize("said", [None, -1, 2.5, "5"])
def test_a_tokenizer_that_gives_no_number_is_told(said: Any) -> None:
    """It ended in a TypeError from within the sums, or was a count below the truth."""
    counter = FactoredCounter(claude_family("claude-sonnet-4-5"), texts=lambda text: said, name="mine")
    with pytest.raises(turnlog.InputError, match=r"texts\(\) returned"):
        turnlog.count(BODY, counter=counter)


def test_a_store_that_no_file_can_be_named_like_is_an_input_error() -> None:
    """Without it a name with half a character ends in UnicodeEncodeError, and the root in ValueError."""
    with pytest.raises(turnlog.InputError, match="allowed: the name of a file"):
        turnlog.open("s", store="/")
    with pytest.raises(turnlog.InputError, match="characters that file names cannot have"):
        turnlog.open("s", store="a\ud800b.db")


@pytest.mark.skipif(sys.platform == "win32", reason="there a working directory cannot be deleted")
@pytest.mark.parametrize("store", ["trips.db", "files:trips"])
def test_a_working_directory_that_is_gone_is_told(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent deletes the folder that it works in: the next relative path was a FileNotFoundError that named none."""
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(turnlog.InputError, match="is a relative path, and the working directory was deleted"):
        turnlog.open("s", store=store)
    with turnlog.open("s", store=tmp_path / "here.db", target=AIM) as session:
        with pytest.raises(turnlog.InputError, match=r"'\.' is a relative path, and the working directory was deleted"):
            session.files(".")
        with (
            pytest.raises(turnlog.InputError, match="the working directory was deleted"),
            session.turn("hi", watch="src"),
        ):
            pass
        assert session.log.turns() == []
        with session.turn("hi", watch=tmp_path / "here"):
            pass


def test_a_watch_on_a_file_is_refused(tmp_path: Path) -> None:
    """Without it `watch=` on a file looks into it as a folder, finds none, and says nothing of what a turn changes."""
    place = tmp_path / "notes.txt"
    place.write_text("before")
    with turnlog.open("s", store=":memory:", target=AIM) as session:
        with pytest.raises(turnlog.InputError, match="is not a folder; give the folder that contains the file"):
            _watched(session, place)
        _watched(session, tmp_path / "not there yet")


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": "gpt-5"},
        {"budget": -5},
        {"budget": 5_000},
        {"tools": [5]},
        {"tools": TOOLS},
        {"target": AIM, "tools": [{"name": "f", "parameters": {"default": float("nan")}}]},
        {"target": turnlog.target("openai-chat", "gpt-4o", user=object())},
    ],
    ids=" ".join,
)
def test_a_mistake_leaves_no_session_behind(wrong: dict[str, Any]) -> None:
    """Every try of a program that is being written would leave an empty session in the user's store. Where it is made
    with the budget, strategy or tools of no target, the next try would find it, and it would have none of what the
    configuration says of new sessions."""
    store = MemoryStore()
    said = {"target": "target|settings"}
    with pytest.raises(turnlog.InputError, match=said.get(name := list(wrong)[-1], name)):
        turnlog.open("trip", store=store, **wrong)
    assert store.sessions() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": 5},
        {"strategy": "bogus"},
        {"system": 5},
        {"summarizer": Digest},
        {"summarizer": "gpt-4o"},
        {"summary_timeout": 0},
        {"summary_timeout": float("inf")},
        {"checkpoint": -1},
        {"checkpoint": "soon"},
        {"source": "the web"},
        {"redact": "yes"},
        {"key": 5},
    ],
    ids=" ".join,
)
def test_a_mistake_in_a_setting_names_it(wrong: dict[str, Any]) -> None:
    """A wrong setting that is found when it is first used is found in the midst of somebody's session."""
    [name] = wrong
    for made in (turnlog.Settings, turnlog.load_settings):
        with pytest.raises(turnlog.InputError, match=f"{name}: .* is not allowed"):
            made(**wrong)


@pytest.mark.parametrize(
    "wrong", [{"session_id": "no\nid"}, {"target": turnlog.target("openai-chat", "gpt-4o", user=object())}]
)
def test_a_mistake_leaves_nothing_open(wrong: dict[str, Any], tmp_path: Path) -> None:
    """A server that answers mistakes runs out of files, and `gc` takes the session to be in use, for as long as anybody
    has the error."""
    turnlog.open("s", store=tmp_path / "s.db").close()
    with pytest.raises(turnlog.InputError):
        turnlog.open(**{"session_id": "s", "store": tmp_path / "s.db", **wrong})
    assert [path.name for path in tmp_path.iterdir()] == ["s.db"]  # what is open has others beside it


def test_no_model_may_be_none() -> None:
    """Without it a caller whose own argument for the model is None unless given, which `fit` takes, is refused."""
    none: Any = None
    assert turnlog.count(BODY, model=none) == turnlog.count(BODY)
    assert turnlog.fit(BODY, model=none).body == turnlog.fit(BODY).body
    claude = turnlog.convert({**BODY, "model": "claude-sonnet-4-5"}, to="anthropic")
    assert turnlog.convert({**BODY, "model": "claude-sonnet-4-5"}, to="anthropic", model=none).body == claude.body
