"""Agents with MCP servers over the real SDKs: long runs in which servers die, many tools, and a server in Node."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import AGENTS
from program_runners import programs_folder
from sdk_runners import sdk_runner

import turnlog
from draws import draws
from turnlog import ToolCall, agent
from turnlog.agent import McpServer, Question
from turnlog.log.messages import Media, ToolResult
from turnlog.models.target import Target
from turnlog.runners import ScriptedRunner

Start = Callable[..., Any]
PROGRAM = Path(__file__).resolve().parents[1] / "tool_server.py"
EVERYTHING = "@modelcontextprotocol/server-everything@2026.8.31"
TURNS, EACH = draws(10, 60), 5
"""Turns, and after how many a server dies."""


def over_stdio(folder: Path, **options: Any) -> McpServer:
    """A server that notes in `folder` what it did."""
    env = {"FOLDER": str(folder), **options.pop("env", {})}
    return agent.mcp_server([sys.executable, str(PROGRAM)], env=env, **options)


@pytest.mark.parametrize("aim", AGENTS, ids=lambda aim: aim.provider)
def test_an_agent_outlives_its_server(aim: Target, fake_server: Start, tmp_path: Path) -> None:
    """A server that is killed in the middle of a call every fifth turn: a request that is refused afterwards, a call
    that is told as failed although it ran, or tools that are gone until the program is started again."""
    server = fake_server(verify_signatures="all")
    with turnlog.open("s", store=":memory:", target=aim) as session:
        tools, runner = [over_stdio(tmp_path)], sdk_runner(server.url)
        for turn in range(TURNS):
            dies = turn % EACH == EACH - 1
            call = {"name": "die", "args": {}} if dies else {"name": "pay", "args": {"amount": turn}}
            again = {"name": "add", "args": {"a": turn, "b": 1}}
            server.script({"thinking": "so", "tool_calls": [call]}, {"tool_calls": [again]}, {"text": f"done {turn}"})
            result = turnlog.run(session, f"turn {turn}", runner, tools=tools)
            assert (result.text, [info.outcome for info in result.turn.calls]) == (
                f"done {turn}",
                ["aborted" if dies else "ok", "ok"],
            )
    assert server.rejections() == [] and len(server.requests) == 3 * TURNS
    told = [request for request in server.requests if "It may have run, wholly or in part" in str(request.body)]
    assert len(told) == 3 * TURNS - (3 * EACH - 2)  # from the first death on
    expected = ["died" if turn % EACH == EACH - 1 else f"paid {turn}" for turn in range(TURNS)]
    assert (tmp_path / "done.txt").read_text("utf-8").splitlines() == expected


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[McpServer]]:
    """Five servers with many tools. Each takes a second to start, so a session keeps them for all agents."""
    folder = tmp_path_factory.mktemp("five")
    servers = [over_stdio(folder, name=f"s{n}", on_demand=True, env={"MANY": "32"}) for n in range(5)]
    with turnlog.open("keeps", store=":memory:", target=AGENTS[0]) as session:
        turnlog.run(session, "Hello.", ScriptedRunner(["Hello."]), tools=servers)
        yield servers


@pytest.mark.parametrize("aim", AGENTS, ids=lambda aim: aim.provider)
def test_two_hundred_tools_of_five_servers_are_found(aim: Target, fake_server: Start, five: list[McpServer]) -> None:
    """The bars of `bench/run.py disclosure`: 30 tokens for each tool and 500 more, and no request refused."""
    server = fake_server()
    wanted = [f"s{n}_task_{n}" for n in range(5)]
    finds = [[{"name": "find_tools", "args": {"names": [name]}}] for name in wanted]
    uses = [[{"name": "use_tool", "args": {"name": name, "arguments": {"a": 1, "b": 2}}}] for name in wanted]
    direct = [[{"name": name, "args": {"a": 1, "b": 2}}] for name in wanted]
    runner = sdk_runner(server.url)
    with turnlog.open("s", store=":memory:", target=aim) as session:
        turnlog.run(session, "Hello.", ScriptedRunner(["Hello."]), tools=five)
        declared = [tool for tool in session.configuration.tools if tool.on_demand]
        assert len(declared) >= 200 and session.request().tokens <= 30 * len(declared) + 500
        names = {tool["name"] for tool in _declared(session.request().body)}
        used = uses if "use_tool" in names else direct
        for find, use in zip(finds, used, strict=True):
            server.script({"tool_calls": find}, {"tool_calls": use}, {"text": "done"})
            run = turnlog.run(session, "Go on.", runner, tools=five)
            assert [info.outcome for info in run.turn.calls] == ["ok", "ok"], run.turn.calls
    assert server.rejections() == []


def _declared(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The declarations of a request, of whatever API."""
    tools = [each for tool in body["tools"] for each in tool.get("functionDeclarations", [tool])]
    return [{"name": "", **tool.get("function", tool)} for tool in tools]


def test_a_server_in_node_is_understood(tmp_path: Path) -> None:
    """The reference server of the protocol, in another language and by an older version: echo, an image, structure, a
    question, progress."""
    command = programs_folder([EVERYTHING]) / "mcp-server-everything"
    server = agent.mcp_server([str(shutil.which("node")), str(command), "stdio"], env={"PATH": os.environ["PATH"]})

    def approve(question: Question) -> Any:
        return {"name": "Ann"} if question.fields["required"] == ["name"] else False

    calls = [
        ToolCall("a", "echo", {"message": "hi"}),
        ToolCall("b", "get-tiny-image"),
        ToolCall("c", "get-structured-content", {"location": "New York"}),
        ToolCall("d", "trigger-elicitation-request"),
        ToolCall("e", "trigger-long-running-operation", {"duration": 0.1, "steps": 2}),
    ]
    with turnlog.open("s", store=":memory:", target=turnlog.target("anthropic", "claude-sonnet-4-6")) as session:
        heard = list(agent.stream(session, "go", ScriptedRunner([calls, "ok"]), tools=[server], approve=approve))
        told = {event.call.id: (event.outcome, event.text) for event in heard if event.call and event.outcome}
        parts = [part for record in session.history() if record.message for part in record.message.parts]
        kinds = [inner for part in parts if isinstance(part, ToolResult) for inner in part.parts]
        assert [outcome for outcome, _ in told.values()] == ["ok"] * 5
        assert told["a"][1] == "Echo: hi" and "Name: Ann" in told["d"][1]
        assert told["c"][1] == '{"temperature":33,"conditions":"Cloudy","humidity":82}'
        assert [part.mime for part in kinds if isinstance(part, Media)] == ["image/png"]
        assert [event.text for event in heard if event.kind == "progress"] == ["1 of 2", "2 of 2"]
