"""MCP servers: real ones, whose tools are functions of a run; what they say, ask, and what is told if they end."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")  # the extra `mcp`

from hypothesis import given as given_by
from hypothesis import strategies as st
from mcp.types import CallToolResult, TextContent

import turnlog
from scripted import PATIENCE
from tool_server import PNG
from turnlog import ToolCall, agent
from turnlog.agent import McpServer, Question
from turnlog.agent.mcp_results import result_of
from turnlog.agent.mcp_servers import free_name
from turnlog.errors import InputError, ToolServerError
from turnlog.log.messages import Media, Message, Text, ToolResult, sha256_hex, text_of
from turnlog.runners import ScriptedRunner
from turnlog.session.session import Session

pytestmark = pytest.mark.slow  # a server starts in half a second
CHAT = turnlog.target("openai-chat", "gpt-4o")
PROGRAM = str(Path(__file__).resolve().parents[1] / "tool_server.py")
LISTED = ["add", "pay", "die", "slow", "wait", "everything", "fail", "order", "grow", "list_files__"]
"""Its tools, as a model sees them."""


@pytest.fixture
def session() -> Iterator[Session]:
    """A session, closed with its servers."""
    with turnlog.open("s", store=":memory:", target=CHAT) as opened:
        yield opened


def over_stdio(folder: Path, way: str = "stdio", **options: Any) -> McpServer:
    """The server as a program, or an `older` one, which does not know the protocol of 2026. What it does is noted in
    the folder."""
    program = shutil.copy(PROGRAM, folder)  # so that each test finds its own processes
    command = [sys.executable, program, *(["older"] if way == "older" else [])]
    return agent.mcp_server(command, env={"FOLDER": str(folder)}, **options)


@pytest.fixture
def over_http(tmp_path: Path) -> Iterator[str]:
    """The URL of the server, which runs in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {"FOLDER": str(tmp_path), "PATH": ""}
    command = [sys.executable, PROGRAM, str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if b"running on" in line:
                break
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield f"http://127.0.0.1:{port}/mcp"
        process.kill()


def given(way: str, folder: Path, request: pytest.FixtureRequest) -> McpServer:
    """The server, by one of three ways."""
    return agent.mcp_server(url=request.getfixturevalue("over_http")) if way == "http" else over_stdio(folder, way)


def results(session: Session) -> dict[str, ToolResult]:
    """The newest result of each call."""
    parts = [part for record in session.history() if record.message for part in record.message.parts]
    return {part.call_id: part for part in parts if isinstance(part, ToolResult)}


def said(session: Session) -> dict[str, tuple[str, str]]:
    """Outcome and text of the newest result of each call."""
    return {key: (one.outcome, text_of(Message("user", one.parts))) for key, one in results(session).items()}


def asking(*names: str, **arguments: Any) -> list[Any]:
    """What a model says that calls these tools, one after the other."""
    return [[ToolCall(f"{name}-{n}", name, arguments)] for n, name in enumerate(names)]


def names_of(session: Session) -> list[str]:
    """The tools that the session declares now."""
    return [tool.name for tool in session.configuration.tools]


# -- tools and results -----------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["stdio", "older", "http"])
def test_its_tools_are_functions_of_a_run(
    way: str, session: Session, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A server whose tools are not declared, or whose answers, failures or progress do not arrive."""
    server = given(way, tmp_path, request)
    calls = [
        [ToolCall("a", "add", {"a": 1, "b": 2}), ToolCall("b", "slow"), ToolCall("c", "fail")],
        [ToolCall("d", "add", {"a": "x", "b": 2}), ToolCall("e", "list_files__", {"context": "c", "self": "s"})],
        "ok",
    ]
    events = list(agent.stream(session, "go", ScriptedRunner(calls), tools=[server]))
    assert names_of(session) == LISTED
    told = said(session)
    assert (told["a"], told["b"], told["e"]) == (("ok", "3"), ("ok", "done"), ("ok", "c s"))
    assert told["c"][0] == "failed" and "no such shelf" in told["c"][1]
    assert told["d"][0] == "failed" and told["d"][1].startswith("The tool was not run, as its arguments do not fit")
    assert [event.text for event in events if event.kind == "progress"] == ["one third", "2"]
    assert session.log.validate() == []


def test_content_of_every_kind_is_recorded(session: Session, tmp_path: Path) -> None:
    """An image that becomes text, or something that is dropped without a word."""
    run = ScriptedRunner([*asking("everything"), "ok"])
    assert turnlog.run(session, "go", run, tools=[over_stdio(tmp_path)]).text == "ok"
    hashed, size = sha256_hex(PNG), len(PNG)
    parts = results(session)["everything-0"].parts
    assert parts[:3] == (
        Text("text"),
        Media("image", mime="image/png", sha256=hashed, size=size),
        Media("audio", mime="audio/wav", sha256=hashed, size=size),
    )
    assert isinstance(parts[3], Text) and parts[3].text.startswith("[image/png: the server sent bytes that cannot be")
    assert parts[4:] == (
        Text("[resource file:///a.txt]"),
        Text("inside"),
        Text("[resource file:///a.pdf]"),
        Media("document", mime="application/pdf", sha256=hashed, size=size, name="file:///a.pdf"),
        Text("[resource file:///b.txt: a link, text/plain, more]"),
        Text('{"more":[1]}'),
    )
    assert session.request().losses


@given_by(st.lists(st.text(), max_size=9), st.text(max_size=9), st.text(max_size=70))
def test_any_name_becomes_one_that_providers_take(names: list[str], prefix: str, title: str) -> None:
    """A name that is refused, and with it the request; or the same one for two tools."""
    made: list[list[str]] = []
    for _ in range(2):
        taken: set[str] = set()
        made.append([])
        for name in names:
            made[-1].append(free_name(prefix, title, name, taken))
            taken.add(made[-1][-1])
    assert made[0] == made[1] and len(set(made[0])) == len(names)
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in made[0])


def test_an_empty_answer_says_so() -> None:
    """An empty list, of which the model sees nothing at all."""
    result = CallToolResult(content=[], structured_content={"result": []})
    assert result_of(result, "c", "look", pytest.fail).parts == (Text('{"result":[]}'),)


@pytest.mark.parametrize(
    ("text", "structured", "shown"),
    [
        ('{"a": [1]}', {"a": [1]}, []),
        ("3", {"result": 3}, []),
        ("x", {"result": "x"}, []),
        ("true", {"result": True}, []),
        ("x", {"result": "y"}, ['{"result":"y"}']),
        ("found", {"a": 1}, ['{"a":1}']),
        ("found", [], ["[]"]),
    ],
)
def test_structured_content_is_told_once(text: str, structured: Any, shown: list[str]) -> None:
    """A result that is sent twice, or one of which only a headline arrives."""
    result = CallToolResult(content=[TextContent(text=text)], structured_content=structured)
    parts = result_of(result, "c", "look", pytest.fail).parts
    assert parts == (Text(text), *map(Text, shown))


def test_names_stay_unique_and_the_same(session: Session, tmp_path: Path) -> None:
    """Two tools under one name: the wrong one runs; other names after a restart: the model calls what is not there."""

    def add(a: int, b: int) -> str:
        """Add."""
        return "mine"

    servers = [over_stdio(tmp_path), over_stdio(tmp_path), over_stdio(tmp_path, name="third")]
    calls = [ToolCall(str(n), name, {"a": 1, "b": 1}) for n, name in enumerate(["add", "shop_add", "third_add"])]
    for _ in range(2):
        turnlog.run(session, "go", ScriptedRunner([calls, "ok"]), tools=[add, *servers])
        assert said(session) == {"0": ("ok", "mine"), "1": ("ok", "2"), "2": ("ok", "2")}
        names = names_of(session)
        assert len(names) == len(set(names)) == 1 + 3 * len(LISTED)
        assert names[:3] == ["add", "shop_add", "pay"] and "shop_add_2" in names and "third_list_files__" in names
        for server in servers:
            server.close()


@pytest.mark.parametrize("way", ["stdio", "older", "http"])
def test_a_tool_that_comes_is_declared_in_the_next_request(
    way: str, session: Session, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A server that says that its tools changed, and a model that never learns of it."""
    server = given(way, tmp_path, request)

    def look() -> str:
        """Wait for what the server tells beside the call."""
        end = time.monotonic() + PATIENCE
        while not server.has_changed and "grown" not in names_of(session) and time.monotonic() < end:
            threading.Event().wait(0.01)
        return "looked"

    run = ScriptedRunner([*asking("grow"), *asking("look"), *asking("grown"), "ok"])
    turnlog.run(session, "go", run, tools=[server, look])
    assert said(session)["grown-0"] == ("ok", "grown") and names_of(session) == ["look", *LISTED, "grown"]


def test_tools_are_on_demand_like_others(session: Session, tmp_path: Path) -> None:
    """All schemas of a large server in every request."""
    run = ScriptedRunner([*asking("find_tools", names=["add"]), *asking("add", a=1, b=2), "ok"])
    turnlog.run(session, "go", run, tools=[over_stdio(tmp_path, on_demand=True)])
    assert said(session)["add-0"] == ("ok", "3")
    assert "description" not in str(run.requests[0].body["tools"][0].get("input_schema", ""))
    assert session.skills.savings().shown < session.skills.savings().whole


# -- the life of a server --------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["stdio", "older", "http"])
def test_a_server_that_ends_in_a_call_may_have_run_it(
    way: str, session: Session, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A payment that was made, told as a failure: the model pays again."""
    server = given(way, tmp_path, request)
    calls = [*asking("die"), [ToolCall("a", "add", {"a": 1, "b": 2})], "ok"]
    result = turnlog.run(session, "go", ScriptedRunner(calls), tools=[server])
    told = said(session)
    assert told["die-0"][0] == "aborted" and "It may have run, wholly or in part; check before" in told["die-0"][1]
    assert [info.outcome for info in result.turn.calls] == ["aborted", "failed" if way == "http" else "ok"]
    if way != "http":  # begun anew; over HTTP nobody starts it again, and the model is told so
        assert told["a"] == ("ok", "3")
    else:
        assert re.search("ToolServerError: the MCP server http.* cannot be reached: ConnectError", told["a"][1])
    assert (tmp_path / "done.txt").read_text("utf-8") == "died\n"


def processes(folder: Path) -> set[str]:
    """The processes of servers that live."""
    listed = subprocess.run(["ps", "-eww", "-o", "pid,args"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in listed.splitlines() if str(folder) in line and "defunct" not in line}


def test_a_server_lives_as_long_as_a_session_that_uses_it(tmp_path: Path) -> None:
    """A process that is left behind, or one that ends under another session."""
    server = over_stdio(tmp_path)
    with turnlog.open("a", store=":memory:", target=CHAT) as first:
        assert processes(tmp_path) == set()
        with turnlog.open("b", store=":memory:", target=CHAT) as second:
            for one in (first, second, first):
                turnlog.run(one, "go", ScriptedRunner([[ToolCall("a", "add", {"a": 1, "b": 2})], "ok"]), tools=[server])
            assert len(processes(tmp_path)) == 1
        assert len(processes(tmp_path)) == 1
    assert processes(tmp_path) == set()


def test_a_program_that_forgets_leaves_no_server(tmp_path: Path) -> None:
    """A server that does not heed the end of its input goes on for ever."""
    script = f"""
import sys, turnlog
from turnlog import agent
from turnlog.runners import ScriptedRunner
server = agent.mcp_server([sys.executable, {shutil.copy(PROGRAM, tmp_path)!r}], env={{"FOLDER": {str(tmp_path)!r}}})
session = turnlog.open("s", store=":memory:", target=turnlog.target("openai-chat", "gpt-4o"))
print(turnlog.run(session, "go", ScriptedRunner(["done"]), tools=[server]).text)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (run.stdout, run.stderr, processes(tmp_path)) == ("done\n", "", set())


def test_one_server_serves_every_event_loop(session: Session, tmp_path: Path) -> None:
    """A connection that belongs to the loop of the first run, and hangs in the next."""
    server = over_stdio(tmp_path)
    calls: list[Any] = [[ToolCall("a", "add", {"a": 1, "b": 2})], "ok"]
    for n in range(2):
        asyncio.run(turnlog.arun(session, f"go {n}", ScriptedRunner(calls), tools=[server]))
        turnlog.run(session, f"again {n}", ScriptedRunner(calls), tools=[server])
    assert [info.outcome for turn in session.log.turns() for info in turn.calls] == ["ok"] * 4


def wait_for(path: Path, word: str) -> None:
    """Wait until the server has noted it."""
    end = time.monotonic() + PATIENCE
    while not path.exists() or word not in path.read_text("utf-8"):
        assert time.monotonic() < end, f"the server did not note {word!r}"
        threading.Event().wait(0.01)


@pytest.mark.parametrize("kind", ["stdio", "older"])
@pytest.mark.parametrize("way", ["task", "turn", "time"])
def test_a_call_that_nobody_waits_for_is_cancelled_at_the_server(
    way: str, kind: str, session: Session, tmp_path: Path
) -> None:
    """A server that goes on working for a turn that is over."""
    server = over_stdio(tmp_path, kind, seconds=1 if way == "time" else None)
    run, done = ScriptedRunner([*asking("wait"), "ok"]), tmp_path / "done.txt"

    async def live() -> None:
        task = asyncio.create_task(turnlog.arun(session, "go", run, tools=[server]))
        await asyncio.to_thread(wait_for, done, "waiting")
        if way == "task":
            task.cancel()
        elif way == "turn":
            session._turn.turn.cancel("enough")  # type: ignore[union-attr]
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(live())
    wait_for(done, "cancelled")
    [info] = session.log.turns()[0].calls
    assert info.outcome == ("timeout" if way == "time" else "aborted")


# -- people ----------------------------------------------------------------------------------------


ANSWERS: list[tuple[Any, str]] = [
    ({"size": "L", "count": 2}, "accept L 2"),
    ({"size": "L"}, "accept L 1"),
    ({"size": "L", "count": "two"}, "cancel"),
    ({"size": "L", "count": None}, "cancel"),
    ({"count": 2}, "cancel"),
    (False, "decline"),
    ("Not now.", "decline"),
    (True, "cancel"),
    (agent.LATER, "cancel"),
    (None, "cancel"),
]
"""What people answer to the question for a size, and what the server is told. None: nobody is asked."""


@pytest.mark.parametrize("way", ["stdio", "older"])
def test_what_a_server_asks_is_asked_of_people(way: str, tmp_path: Path) -> None:
    """A question that nobody hears, or an answer that does not arrive; True alone does not give a size. A cancel that
    nobody meant was silent, and an answer of wrong types went to the server as it was."""
    server = over_stdio(tmp_path, way)
    with ExitStack() as sessions:  # the server lives as long as one of them is open
        for answer, told in ANSWERS:
            session = sessions.enter_context(turnlog.open("s", store=":memory:", target=CHAT))
            ask_for_a_size(session, server, answer, told)
        assert len(processes(tmp_path)) == 1


def ask_for_a_size(session: Session, server: McpServer, answer: Any, told: str) -> None:
    """Run the tool that asks for a size, give this answer, and look for what is `told`, on record and in warnings."""
    asked: list[Question] = []

    def approve(question: Question) -> Any:
        asked.append(question)
        return answer

    run = ScriptedRunner([*asking("order", what="shoes"), "ok"])
    options: dict[str, Any] = {} if answer is None else {"approve": approve}
    warned: list[str] = []
    session.on_event(lambda event: warned.append(event.text) if event.kind == "warning" else None)
    turnlog.run(session, "go", run, tools=[server], **options)
    assert said(session)["order-0"] == ("ok", told), answer
    assert [(question.call.name, question.reason, [*question.fields["properties"]]) for question in asked] == (
        [] if answer is None else [("order", "Which size of shoes?", ["size", "count"])]
    ), answer
    [_, note] = session.log.of_kinds("note")
    assert (note.body.topic, note.body.text) == ("mcp_question", "Which size of shoes?"), answer
    assert (note.body.data["call_id"], note.body.data["answer"]["action"]) == ("order-0", told.split()[0]), answer
    lost = any("asked 'Which size of shoes?', and got no answer: " in text for text in warned)
    assert lost == (told == "cancel"), answer


def test_a_question_belongs_to_the_call_that_is_open(session: Session, tmp_path: Path) -> None:
    """An older server that was begun anew in another call: people are asked about that one, or nobody is."""
    asked: list[str] = []

    def approve(question: Question) -> bool:
        asked.append(question.call.id)
        return False

    run = ScriptedRunner([*asking("die"), [ToolCall("a", "add", {"a": 1, "b": 2})], *asking("order", what="x"), "ok"])
    turnlog.run(session, "go", run, tools=[over_stdio(tmp_path, "older")], approve=approve)
    assert (asked, said(session)["order-0"]) == (["order-0"], ("ok", "decline"))


def test_approval_is_what_the_user_wants(session: Session, tmp_path: Path) -> None:
    """A server that says of itself what has to be asked, or a choice that is not heard."""
    asked: list[str] = []

    def approve(question: Question) -> bool:
        asked.append(question.call.name)
        return False

    def dangerous(tool: dict[str, Any]) -> bool:
        return tool.get("annotations", {}).get("destructiveHint", False)

    calls = [[ToolCall("a", "add", {"a": 1, "b": 2}), ToolCall("p", "pay", {"amount": 1})], "ok"]
    server = over_stdio(tmp_path, needs_approval=dangerous)
    turnlog.run(session, "go", ScriptedRunner(calls), tools=[server], approve=approve)
    assert (asked, said(session)["a"], said(session)["p"][0]) == (["pay"], ("ok", "3"), "canceled")
    with pytest.raises(InputError, match="tool 'pay' needs approval"):
        turnlog.run(session, "go", ScriptedRunner(["ok"]), tools=[server])


@pytest.mark.parametrize(("name", "options", "again"), [("add", {}, True), ("add", {"repeatable": False}, False)])
def test_what_is_read_only_runs_again_after_a_crash(
    name: str, options: dict[str, Any], again: bool, session: Session, tmp_path: Path
) -> None:
    """A call that only reads, of which the model is told that it may have run."""
    server = over_stdio(tmp_path, **options)
    turnlog.run(session, "hello", ScriptedRunner(["ok"]), tools=[server])
    turn = session.turn("go").__enter__()
    call = {"id": "a", "type": "function", "function": {"name": name, "arguments": '{"a": 1, "b": 2}'}}
    turn.receive({"choices": [{"message": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}]})
    turn.tool_started(turn.info.calls[0].call)
    turn.abandon()
    turnlog.run(session, None, ScriptedRunner(["ok"]), tools=[server])
    assert said(session)["a"][0] == ("ok" if again else "aborted")


# -- what goes wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"command": "no-such-program-here x"}, "there is no command 'no-such-program-here'"),
        ({"command": "true", "cwd": "/no/such"}, "there is no folder '/no/such'"),
        ({"command": [sys.executable, "-c", "import sys; sys.exit('no key')"]}, "Connection closed. It wrote: no key"),
        ({"command": "sleep 99", "start_seconds": 0.2}, "it did not answer within 0.2 s"),
        ({"url": "http://127.0.0.1:9/mcp"}, "http://127.0.0.1:9/mcp: it cannot be reached: ConnectError"),
    ],
)
def test_a_server_that_does_not_start_says_why(given: dict[str, Any], why: str, session: Session) -> None:
    """An error that leaves the user with the name of an exception of the SDK."""
    with pytest.raises(ToolServerError, match=re.escape(why)):
        turnlog.run(session, "go", ScriptedRunner(["ok"]), tools=[agent.mcp_server(**given)])
    assert session.log.turns() == []


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "by its command or by url="),
        ({"command": "x", "url": "http://x"}, "by its command or by url="),
        ({"command": "http://x"}, "is given as url="),
        ({"command": "'x"}, "No closing quotation"),
        ({"command": ["x", 1]}, "a list of its words"),
        ({"url": "x"}, "must begin with http://"),
        ({"url": "http://x", "env": {"A": "b"}}, "env= is for a server that is given by its command"),
        ({"command": "x", "headers": {"A": "b"}}, "headers= is for a server that is given by url="),
        ({"command": "x", "env": "A=b"}, "env must be a dict of texts"),
        ({"command": "x", "seconds": 0}, "seconds must be a number"),
        ({"command": "x", "needs_approval": "no"}, "needs_approval must be True or False"),
    ],
)
def test_a_wrong_option_is_named(given: dict[str, Any], why: str) -> None:
    """A server that is never asked for approval since the option was misunderstood."""
    with pytest.raises(InputError, match=re.escape(why)):
        agent.mcp_server(**given)


def test_its_name_tells_no_keys() -> None:
    """A key in a message that a model is told, or that goes into a log."""
    server = agent.mcp_server("npx -y some-server --key=secret1 secret2", env={"KEY": "secret3"})
    assert repr(server) == "McpServer(npx some-server)"
    server = agent.mcp_server(url="https://me:secret1@example.com/mcp?key=secret2", headers={"A": "secret3"})
    assert repr(server) == "McpServer(https://example.com/mcp)"


def test_the_extra_is_named_if_it_is_absent() -> None:
    """An ImportError from inside the library."""
    script = """
import sys, turnlog
from turnlog import agent
from turnlog.runners import ScriptedRunner
sys.modules["mcp"] = None
session = turnlog.open("s", store=":memory:", target=turnlog.target("openai-chat", "gpt-4o"))
try:
    turnlog.run(session, "go", ScriptedRunner(["done"]), tools=[agent.mcp_server("true")])
except turnlog.InputError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stdout.endswith("need the package mcp, from 2.3 on: pip install '.[mcp]' in your clone of turnlog\n")
