"""Every public function and method, called with values of wrong types, one argument at a time."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import NoneType, SimpleNamespace
from typing import Any

import pytest

import turnlog
from turnlog import agent, export, handoff, importers, memory, models, prompt, runners, stores, summarize, tokens
from turnlog import session as sessions
from turnlog.errors import TurnlogError
from turnlog.log.usage import Usage
from turnlog.models import catalog
from turnlog.session.session import Session
from turnlog.session.tool_run import ToolRun
from turnlog.session.turn import Turn
from turnlog.stores import MemoryStore
from turnlog.text_history import HistoryPrompt
from turnlog.trajectory import Navigation, Trajectory

AIM = turnlog.target("openai-chat", "gpt-4o")
BODY: dict[str, Any] = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ANSWER = {
    "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [CALL]}}]
}


def cycle() -> list[Any]:
    """A list that holds itself."""
    made: list[Any] = []
    made.append(made)
    return made


def knot() -> dict[str, Any]:
    """A dict that holds itself."""
    made: dict[str, Any] = {}
    made["messages"] = [made]
    return made


WRONG: dict[str, Any] = {
    "None": None,
    "int": 5,
    "negative": -1,
    "float": 1.5,
    "nan": float("nan"),
    "bool": True,
    "text": "x",
    "word": "false",
    "empty": "",
    "bytes": b"x",
    "object": object(),
    "class": object,
    "function": len,
    "list": [object()],
    "tuple": (1, 2),
    "dict": {1: 2},
    "half": "\ud800",
    "cycle": cycle(),
    "knot": knot(),
}


def f(q: str = "") -> str:
    """A tool."""
    return q


class World:
    """A session in the midst of a turn, with a call that waits for its result; made when it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.transcript = folder / "transcript.json"
        self.runner = runners.ScriptedRunner(["done"])

    @cached_property
    def _parts(self) -> tuple[MemoryStore, Session, Turn, turnlog.ToolCall, ToolRun]:
        store = MemoryStore()
        session = turnlog.open("s", store=store, target=AIM)
        turn = session.turn("hi").__enter__()
        session.request()
        (call,) = turn.receive(ANSWER).tool_calls
        return store, session, turn, call, turn.tool(call)

    @property
    def store(self) -> MemoryStore:
        """The store of the session."""
        return self._parts[0]

    @property
    def session(self) -> Session:
        """The session."""
        return self._parts[1]

    @property
    def turn(self) -> Turn:
        """Its open turn."""
        return self._parts[2]

    @property
    def call(self) -> turnlog.ToolCall:
        """The call that waits."""
        return self._parts[3]

    @property
    def run(self) -> ToolRun:
        """The run of its tool, not begun."""
        return self._parts[4]

    def idle(self) -> Session:
        """Another session, in which no turn is open."""
        made = turnlog.open("idle", store=MemoryStore(), target=AIM)
        made.user("hi")
        return made

    def walked(self) -> Session:
        """A session in which nothing was said."""
        return turnlog.open("walked", store=MemoryStore(), target=AIM)

    def entered(self) -> ToolRun:
        """The run of the tool, begun."""
        self.run.__enter__()
        return self.run


Given = dict[str, Any]
Made = tuple[Callable[..., Any], Given]
"""What is called, and arguments of the right types."""

USAGE = Usage(1)
MESSAGE = turnlog.Message("user", (turnlog.Text("x"),))

FUNCTIONS: dict[str, Callable[[World], Made]] = {
    "open": lambda w: (turnlog.open, {"session_id": "new", "store": MemoryStore(), "target": AIM}),
    "aopen": lambda w: (turnlog.aopen, {"session_id": "new", "store": MemoryStore(), "target": AIM}),
    "run": lambda w: (turnlog.run, {"session": w.idle(), "text": "x", "runner": w.runner, **OPTIONS}),
    "arun": lambda w: (turnlog.arun, {"session": w.idle(), "text": "x", "runner": w.runner, **OPTIONS}),
    "stream": lambda w: (agent.stream, {"session": w.idle(), "text": "x", "runner": w.runner, **OPTIONS}),
    "astream": lambda w: (agent.astream, {"session": w.idle(), "text": "x", "runner": w.runner, **OPTIONS}),
    "tool": lambda w: (lambda **named: agent.tool(**named)(f), dict(TOOL)),
    "tool of a schema": lambda w: (
        lambda **named: agent.tool(**named),
        {"name": "g", "call": lambda **given: "", "parameters": {"type": "object"}},
    ),
    "tool of a declaration": lambda w: (agent.tool, {"name": turnlog.Tool("g"), "call": f}),
    "FunctionTool": lambda w: (agent.FunctionTool, {"function": f, "parameters": None, "declared": None, **TOOL}),
    "FunctionTool.read": lambda w: (agent.FunctionTool(f).read, {"call": w.call}),
    "FunctionTool.run": lambda w: (agent.FunctionTool(f).run, {"arguments": {}, "context": None}),
    "FunctionTool.returned": lambda w: (agent.FunctionTool(f).returned, {"arguments": {}, "context": None}),
    "ToolContext": lambda w: (agent.ToolContext, {"session_id": "s", "call_id": "c", "labels": {"a": "b"}}),
    "ToolContext.progress": lambda w: (agent.ToolContext().progress, {"text": "half"}),
    "check": lambda w: (turnlog.check, {"body": BODY}),
    "repair": lambda w: (turnlog.repair, {"body": BODY}),
    "convert": lambda w: (turnlog.convert, {"body": BODY, "to": "anthropic"}),
    "count": lambda w: (turnlog.count, {"body": BODY}),
    "fit": lambda w: (turnlog.fit, {"body": BODY}),
    "Fitter": lambda w: (turnlog.Fitter, {}),
    "Fitter.fit": lambda w: (turnlog.Fitter().fit, {"body": BODY}),
    "cost": lambda w: (turnlog.cost, {"usage": USAGE, "model": "gpt-4o"}),
    "curate": lambda w: (turnlog.curate, {"tool": "bash", "text": "x"}),
    "collect": lambda w: (turnlog.collect, {"store": w.store, "limits": turnlog.Limits(max_sessions=1)}),
    "load_settings": lambda w: (turnlog.load_settings, {name: ... for name in SETTINGS}),
    "load_skills": lambda w: (turnlog.load_skills, {"folder": w.folder}),
    "read_back_tool": lambda w: (turnlog.read_back_tool, {"provider": "anthropic"}),
    "recall_tool": lambda w: (turnlog.recall_tool, {"provider": "anthropic"}),
    "target": lambda w: (lambda provider, model, **more: turnlog.target(provider, model, **more), dict(TARGET)),
    "warm": lambda w: (turnlog.warm, {}),
    "Target.with_settings": lambda w: (AIM.with_settings, {"temperature": 1}),
    "Settings": lambda w: (turnlog.Settings, {}),
    "Strategy": lambda w: (in_use("strategy", turnlog.Strategy), {}),
    "Budget": lambda w: (in_use("budget", turnlog.Budget), {"max_tokens": 9000}),
    "Limits": lambda w: (lambda **named: turnlog.collect(w.store, turnlog.Limits(**named)), named(turnlog.Limits)),
    "Redactor": lambda w: (turnlog.Redactor, {}),
    "Redactor.text": lambda w: (turnlog.Redactor().text, {"text": "x"}),
    "Tool": lambda w: (configured(w), {"name": "look", **named(turnlog.Tool)}),
    "When": lambda w: (sectioned(w), named(prompt.When)),
    "Section": lambda w: (lambda **given: w.idle().prompt.add(prompt.Section(**given)), SECTION),
    "answer_unfinished": lambda w: (sessions.answer_unfinished, {"session": w.session}),
    "interrupted_turn": lambda w: (sessions.interrupted_turn, {"session": w.session}),
    "follow_records": lambda w: (sessions.follow_records, {"session": w.session, "callback": len}),
    "recall": lambda w: (memory.recall, {"store": w.store, "query": "x"}),
    "quoted": lambda w: (memory.quoted, {"found": []}),
    "Memory.resolve": lambda w: (memory.Memory().resolve, {"reference": "it"}),
    "Memory.block": lambda w: (w.session.memory.block, {}),
    "model_facts": lambda w: (models.model_facts, {"model": "gpt-4o"}),
    "model_abilities": lambda w: (catalog.model_abilities, {"model": "gpt-4o"}),
    "model_origins": lambda w: (catalog.model_origins, {"model": "gpt-4o"}),
    "counter_for": lambda w: (tokens.counter_for, {"provider": "anthropic"}),
    "detect": lambda w: (importers.detect, {"origin": w.transcript}),
    "read_file": lambda w: (importers.read_file, {"origin": w.transcript}),
    "open_store": lambda w: (stores.open_store, {"path_or_url": ":memory:"}),
    "copy_store": lambda w: (stores.copy_store, {"source": w.store, "target": MemoryStore()}),
    "salvage": lambda w: (stores.salvage, {"store": w.store, "session_id": "s", "new_id": "t"}),
    "save": lambda w: (export.save, {"store": w.store, "session_id": "s", "form": "json", "path": w.folder / "a"}),
    "handoff": lambda w: (handoff.handoff, {"store": w.store, "session_id": "s", "to": "claude"}),
    "SdkRunner": lambda w: (runners.SdkRunner, {}),
    "ScriptedRunner": lambda w: (runners.ScriptedRunner, {"answers": ["x"]}),
    "ProgramRunner": lambda w: (runners.ProgramRunner, {"program": "claude"}),
    "RetryingRunner": lambda w: (runners.RetryingRunner, {"runner": w.runner, "session": w.session}),
    "BlockingRunner": lambda w: (runners.BlockingRunner, {"runner": w.runner}),
    "RunnerSummarizer": lambda w: (runners.RunnerSummarizer, {"runner": w.runner}),
    "ModelSummarizer": lambda w: (summarize.ModelSummarizer, {"call": len, "name": "n"}),
    "ProviderSummarizer": lambda w: (summarize.ProviderSummarizer, {"send": len}),
    "HistoryPrompt": lambda w: (HistoryPrompt, {}),
    "HistoryPrompt.add_message": lambda w: (HistoryPrompt().add_message, {"role": "user", "content": "x"}),
    "HistoryPrompt.add_user_message": lambda w: (HistoryPrompt().add_user_message, {"content": "x"}),
    "HistoryPrompt.load": lambda w: (HistoryPrompt.load, {"path": "none"}),
    "HistoryPrompt.save": lambda w: (HistoryPrompt().save, {"path": "x"}),
    "HistoryPrompt.build_prompt": lambda w: (HistoryPrompt().build_prompt, {"current_message": "x"}),
    "Navigation": lambda w: (Navigation, {"session": w.walked(), "question": "x"}),
    "Navigation.add_turn": lambda w: (
        Navigation(w.walked(), "x").add_turn,
        {"image": None, "response": {"reasoning": "r"}},
    ),
    "Trajectory.from_json": lambda w: (Trajectory.from_json, {"data": {}}),
}
FILES = ("a", "x", "false", "x-open", "false-open")
"""Files that are written because a text is the path of one: of a store, with its lock, or of an export."""
OPTIONS: Given = {
    "tools": [f],
    "approve": None,
    "max_steps": 3,
    "max_seconds": None,
    "max_cost": None,
    "parallel": 1,
    "deps": None,
}
TOOL: Given = {
    "name": "g",
    "description": "",
    "needs_approval": False,
    "repeatable": False,
    "seconds": 1.0,
    "on_demand": False,
}
TARGET: Given = {"provider": "openai-chat", "model": "gpt-4o", "base_url": "", "temperature": 1, "stop": None}
SECTION: Given = {"name": "a", "text": "b", "place": "start", "when": prompt.When(), "cap": 0, "priority": 0}
SETTINGS = tuple(inspect.signature(turnlog.Settings).parameters)


def named(kind: Any) -> Given:
    """Every field of a value, at its default."""
    return {
        name: one.default for name, one in inspect.signature(kind).parameters.items() if one.default is not one.empty
    }


def in_use(argument: str, kind: Any) -> Callable[..., Any]:
    """What makes a value and asks for a request under it."""

    @contextmanager
    def opened(**given: Any) -> Iterator[None]:
        with turnlog.open("new", store=MemoryStore(), target=AIM) as made:
            made.user("hi")
            made.configure(**{argument: kind(**given)})
            made.request()
            yield

    def use(**given: Any) -> None:
        with opened(**given):
            pass

    use.__signature__ = inspect.signature(kind)  # type: ignore[attr-defined]
    return use


def configured(world: World) -> Callable[..., Any]:
    """What declares a tool and asks for a request."""

    def use(**given: Any) -> None:
        made = world.idle()
        made.configure(tools=[turnlog.Tool(**given)])
        made.request()

    return use


def sectioned(world: World) -> Callable[..., Any]:
    """What gives a section of the prompt a condition and asks for a request."""

    def use(**given: Any) -> None:
        made = world.idle()
        made.prompt.add(prompt.Section("a", "b", when=prompt.When(**given)))
        made.user("x")
        made.request()

    return use


METHODS: dict[str, Given] = {
    "aattach": {"service": SimpleNamespace(close=lambda: None)},
    "add": {"message": MESSAGE},
    "answer_read_back": {"call": "call"},
    "answer_recall": {"call": "call"},
    "areceive": {"chunks": [], "target": AIM},
    "assistant": {"content": "x"},
    "attach": {"service": SimpleNamespace(close=lambda: None)},
    "exclude": {"n": 4},
    "extend": {"messages": BODY["messages"]},
    "fork": {"new_id": "t"},
    "label": {"labels": {"a": "b"}},
    "media": {"data": b"x", "mime": "image/png"},
    "note": {"topic": "x"},
    "on_event": {"callback": len},
    "pin": {"n": 4},
    "unpin": {"n": 4},
    "read_back": {"n": 4},
    "receive": {"answer": ANSWER},
    "rewind": {"to": 4},
    "switch": {"target": AIM},
    "system": {"content": "x"},
    "tool_finished": {"call": "call"},
    "tool_result": {"call": "call"},
    "tool_started": {"call": "call"},
    "user": {"content": "x"},
    "approve": {"call": "call"},
    "ask_approval": {"call": "call"},
    "deny": {"call": "call"},
    "stream": {"chunks": []},
    "tool": {"call": "call"},
    "result": {"content": "x"},
    "untold": {"reason": "x"},
}
"""Arguments of the right types for methods that need some; "call" is the open call."""


def methods(kind: type) -> list[str]:
    """The public methods of a class."""
    return [name for name, value in inspect.getmembers(kind, callable) if not name.startswith("_")]


def of(world: World, owner: str) -> Any:
    """The object whose methods are called."""
    made: dict[str, Callable[[], Any]] = {
        "Session": lambda: world.session,
        "Turn": lambda: world.turn,
        "ToolRun": world.entered,
        "SessionLog": lambda: world.session.log,
        "Prompt": lambda: world.session.prompt,
        "SessionSkills": lambda: world.session.skills,
        "MemoryStore": lambda: world.store,
    }
    return made[owner]()


OTHERS: dict[str, dict[str, Given]] = {
    "SessionLog": {
        "blob": {"sha256": "0" * 64},
        "calls": {},
        "records": {},
        "tools_used": {},
        "turns": {},
        "validate": {},
    },
    "Prompt": {"limit": {"max_tokens": 100}},
    "MemoryStore": {
        "delete": {"session_id": "s"},
        "info": {"session_id": "s"},
        "rename": {"session_id": "s", "title": "t"},
        "search": {"query": "x"},
        "usage": {"session_id": "s"},
        "verify": {},
    },
}
"""Methods of other objects. What a session calls of a store is checked by the session, see `check_store`."""


def calls() -> list[str]:
    """The names of everything that is called."""
    owners: tuple[type, ...] = (Session, Turn, ToolRun)
    found = [f"{owner.__name__}.{name}" for owner in owners for name in methods(owner)]
    return [*FUNCTIONS, *found, *(f"{owner}.{name}" for owner, some in OTHERS.items() for name in some)]


def made(world: World, name: str) -> Made:
    """What is called by a name, and arguments of the right types."""
    if name in FUNCTIONS:
        return FUNCTIONS[name](world)
    owner, method = name.split(".")
    given = OTHERS[owner][method] if owner in OTHERS else METHODS.get(method, {})
    return getattr(of(world, owner), method), {key: world.call if one == "call" else one for key, one in given.items()}


def finished(value: Any) -> None:
    """Wait for what a call returned, or take the first things of it."""
    if inspect.iscoroutine(value):
        finished(asyncio.run(asyncio.wait_for(value, 5)))
    elif inspect.isasyncgen(value):
        asyncio.run(taken(value))
    elif inspect.isgenerator(value):
        list(islice(value, 5))
    elif isinstance(value, Turn):
        with value:
            pass
    elif isinstance(value, Session | stores.SqliteStore | stores.FilesStore):
        value.close()


async def taken(value: Any) -> None:
    """The first things of an asynchronous generator."""
    async for _ in value:
        break
    await value.aclose()


def slip(call: Callable[..., Any], given: Given, kind: Any, wrong: Any) -> str:
    """What a call ended in that is no error of turnlog; "" if it succeeded or ended in one. A TypeError of the call
    itself is Python's own check of its arguments. A flag or a text of another type may not succeed; None may stand
    for no text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            finished(call(**given))
    except TurnlogError:
        return ""
    except Exception as error:  # noqa: BLE001 - that is the question
        trace = error.__traceback__
        while (
            trace is not None
            and trace.tb_next is not None
            and "turnlog/" not in trace.tb_next.tb_frame.f_code.co_filename
        ):
            trace = trace.tb_next
        inside = trace is not None and trace.tb_next is not None
        return f"{type(error).__name__}: {error!s:.100}" if inside or not isinstance(error, TypeError) else ""
    allowed = {"bool": bool, "str": (str, NoneType)}.get(str(kind))
    return f"accepted for {kind}" if allowed is not None and not isinstance(wrong, allowed) else ""


def slips(name: str, folder: Path) -> list[str]:
    """What goes wrong in the calls of one name."""
    found = []
    world = World(folder)
    call, given = made(world, name)
    signature = inspect.signature(call)
    parameters = [
        one for one in (*signature.parameters, *given) if one not in ("args", "named", "given", "more", "options")
    ]
    for parameter in dict.fromkeys(parameters):
        for kind, wrong in WRONG.items():
            world = World(folder)
            call, given = made(world, name)
            given = {key: value for key, value in given.items() if value is not ...}
            kinds = signature.parameters[parameter].annotation if parameter in signature.parameters else ""
            if said := slip(call, {**given, parameter: wrong}, kinds, wrong):
                found.append(f"{name}({parameter}={kind}): {said}")
    return found


@pytest.mark.parametrize("name", calls())
def test_a_value_of_a_wrong_type_is_an_input_error_at_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slip ends in AttributeError from deep within, or is taken for something else: `except turnlog.TurnlogError`
    around the call does not hold it, and nobody is told which argument it was."""
    monkeypatch.chdir(tmp_path)
    assert slips(name, tmp_path) == []
    assert sorted(path.name for path in tmp_path.iterdir() if path.name not in FILES) == []
