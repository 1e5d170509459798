"""One conversation through servers that imitate OpenAI, with the real client: each in its own ways, with its own words
for what it refuses."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import openai
import pytest
from test_openai_servers import MODELS

import turnlog
from accounting import unaccounted
from draws import LONG
from turnlog.errors import RunnerError
from turnlog.runners import RetryingRunner, SdkRunner

Start = Callable[..., Any]

TURNS, STAY = (60, 10) if LONG else (12, 3)
"""How many turns a conversation has, and after how many it goes to the next server."""

WINDOW = 8_000
"""What a server takes, in its own tokens; turnlog is told only when it asks for more."""

TOOLS = (
    {
        "name": "look",
        "description": "Look at a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
    {"name": "ping", "description": "Ask whether anything is there."},
)


_TAGS = re.compile(r"<(think|reasoning)>.*?</\1>", re.DOTALL)


def replies(number: int, chance: random.Random) -> list[dict[str, Any]]:
    """What the model says in one turn."""
    call = {"name": "look", "args": {"path": f"file-{number}"}}
    ping = {"name": "ping", "args": {}}
    calls = chance.choice([[call], [call, ping], [ping]])
    thought = {"thinking": f"thought {number}"} if chance.random() < 0.7 else {}
    ahead = {"text": "I look."} if chance.random() < 0.5 else {}
    return [{**thought, **ahead, "tool_calls": calls}, {**thought, "text": f"done {number}"}]


async def turn(session: turnlog.Session, runner: RetryingRunner, question: str, *, whole: bool) -> list[Any]:
    """One turn of an agent, until the model stops calling tools: its answers."""
    session.user(question)
    answers = []
    while True:
        request = session.request()
        if whole:
            answer = session.receive(await runner.ask(request), request)
        else:
            answer = await session.areceive(runner.stream(request), request)
        answers.append(answer)
        if not answer.tool_calls:
            return answers
        for call in answer.tool_calls:
            session.tool_result(call, f"{call.arguments}: " + "word " * 500 if call.name == "look" else "pong")


@pytest.mark.parametrize("whole", [False, True], ids=["streamed", "whole"])
@pytest.mark.parametrize("first", range(0, len(MODELS), 4))
def test_a_conversation_goes_through_servers(first: int, whole: bool, fake_server: Start) -> None:
    """An agent that changes its server, or one whose window is small, would stop in the middle."""
    asyncio.run(conversation(first, fake_server, importlib.import_module("servers"), whole=whole))


async def conversation(first: int, fake_server: Start, judge: ModuleType, *, whole: bool) -> None:
    """Turns at one server after the other, each judged."""
    chance = random.Random(first)
    names = [*MODELS][first:] + [*MODELS][:first]
    session = turnlog.open("s", store=":memory:", target=turnlog.target("openai-chat", "gpt-4o"), tools=TOOLS)
    servers: dict[str, Any] = {}  # each knows its own signatures
    for number in range(TURNS):
        name = names[number // STAY % len(names)]
        model = MODELS[name][number // STAY % len(MODELS[name])]
        if name not in servers:
            servers[name] = fake_server(server=name, context_limit=WINDOW)
        server = servers[name]
        asked = len(server.requests)
        url = f"{server.url}/v1"
        session.switch(turnlog.target("openai-chat", model, base_url=url, server=name))
        server.script(*(script := replies(number, chance)))
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:
            runner = RetryingRunner(SdkRunner(openai=client), session)
            try:
                answers = await turn(session, runner, f"question {number}", whole=whole)
            except turnlog.TurnlogError as error:
                raise AssertionError((name, model, server.requests[-1].errors)) from error
        called = [(call.name, call.arguments) for call in answers[0].tool_calls]
        assert called == [(call["name"], call["args"]) for call in script[0]["tool_calls"]], (name, model)
        # Some servers put what was thought into the text.
        assert [_TAGS.sub("", answer.text).strip() for answer in answers] == [
            script[0].get("text", ""),
            f"done {number}",
        ], (name, model)
        assert all(answer.complete for answer in answers), (name, model)
        refused = [one for one in server.requests[asked:] if one.status >= 400]
        for one in refused:  # for nothing but its size
            assert judge.check_server(name, one.body, model) == [], (name, model, one.errors)
        assert len(refused) < 3, (name, model, [one.errors for one in refused])
        request = session.request()
        said = [(record.n, record.message) for record in session.history() if record.message]
        assert unaccounted(said, request.body, [*request.edits, *request.losses], {}) == [], (name, model)


@pytest.mark.parametrize("name", MODELS)
def test_a_stream_that_breaks_at_a_server_ends_nothing(name: str, fake_server: Start) -> None:
    """What had come would be lost, or the next request be refused for what is missing in it."""

    async def talk() -> None:
        judge = importlib.import_module("servers")
        for number, broken in enumerate([{"cut_after": 3}, {"cut_after": 4, "stream_error": "out of memory"}] * 2):
            server = fake_server(server=name)
            url = f"{server.url}/v1"
            model = MODELS[name][number % len(MODELS[name])]
            aim = turnlog.target("openai-chat", model, base_url=url, server=name)
            session = turnlog.open(f"s{number}", store=":memory:", target=aim, tools=TOOLS)
            ask, done = replies(number, random.Random(number))
            server.script({**ask, **broken}) if number < 2 else server.script(ask, {**done, **broken})
            async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:
                runner = RetryingRunner(SdkRunner(openai=client), session)
                # Whether all had come by then is the server's affair.
                with contextlib.suppress(RunnerError):
                    await turn(session, runner, "look", whole=False)
                with server._lock:
                    server._script[:] = [{"text": "done"}]  # what was not asked for is not said
                answers = await turn(session, runner, "go on", whole=False)
            assert _TAGS.sub("", answers[-1].text).strip() == "done", (name, model)
            for one in server.requests:
                assert judge.check_server(name, one.body, model if name == "azure" else "") == [], (name, model)

    asyncio.run(talk())


_CHILD = """
import sys, openai, turnlog
from turnlog.runners import SdkRunner

store, url, model, server = sys.argv[1:]

def look(path: str) -> str:
    "Look at a file."
    print("running", flush=True)
    return sys.stdin.readline()

def ping() -> str:
    "Ask whether anything is there."
    return "pong"

aim = turnlog.target("openai-chat", model, base_url=url, server=server)
with turnlog.open("s", store=store, target=aim, override=True) as session:
    client = openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0)
    turnlog.run(session, "question", SdkRunner(openai=client), tools=[look, ping])
"""


@pytest.mark.parametrize("amid", ["tool", "answer"])
def test_a_process_that_is_killed_goes_on_at_the_next_server(amid: str, fake_server: Start, tmp_path: Path) -> None:
    """What a killed process left behind would be refused by another server, or be gone."""
    judge = importlib.import_module("servers")
    store, names = str(tmp_path / "log.db"), [*MODELS][:: 1 if LONG else 6]
    for number, name in enumerate(names):
        asked = threading.Event()
        server = fake_server(server=name, extra_checks=lambda *_, asked=asked: asked.set() or [])
        ask = {"thinking": "hm", "text": "I look.", "tool_calls": [{"name": "look", "args": {"path": "a"}}]}
        server.script({**ask, "delay": 30} if amid == "answer" else ask)
        model = MODELS[name][number % len(MODELS[name])]
        with subprocess.Popen(
            [sys.executable, "-c", _CHILD, store, f"{server.url}/v1", model, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as child:
            assert child.stdout is not None
            assert asked.wait(30) if amid == "answer" else child.stdout.readline() == "running\n"
            child.kill()
        refused = [one for one in server.requests if one.status >= 400]
        assert refused == [], (name, model)
        with turnlog.open("s", store=store) as session:
            after = names[(number + 1) % len(names)]
            aim = turnlog.target("openai-chat", MODELS[after][0], server=after)
            session.switch(aim)
            session.user("go on")
            request = session.request()
            said = [(record.n, record.message) for record in session.history() if record.message]
            assert judge.check_server(after, request.body, MODELS[after][0]) == [], (name, after)
            assert unaccounted(said, request.body, [*request.edits, *request.losses], {}) == [], (name, after)
