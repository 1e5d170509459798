"""MCP servers that do not keep to the protocol: what they answer cannot be read, or is meant to make a call run twice.

They are written without the SDK, which would not let them.
"""

from __future__ import annotations

import asyncio
import http.server
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")  # the extra `mcp`

import turnlog
from turnlog import ToolCall, agent
from turnlog.agent import LATER, McpServer, Question
from turnlog.agent.run_tools import RunTools
from turnlog.log.messages import Message, ToolResult, text_of
from turnlog.runners import ScriptedRunner
from turnlog.session.session import Session

pytestmark = pytest.mark.slow  # a server starts in half a second
CHAT = turnlog.target("openai-chat", "gpt-4o")
GO = {"name": "go", "inputSchema": {"type": "object"}}
OK = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"went"}]}}'
HELD = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"x %s y"}]}}'
GONE = b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32600,"message":"Session terminated"}}'
UNREAD = {
    "half a character": HELD.replace(b"%s", b"\\ud800"),
    "null": b'{"jsonrpc":"2.0","id":%d,"result":null}',
    "no result": b'{"jsonrpc":"2.0","id":%d}',
    "an error that is none": b'{"jsonrpc":"2.0","id":%d,"error":5}',
    "half a message": b'{"jsonrpc":"2.0","id":%d,"result":{',
    "too deep": b'{"jsonrpc":"2.0","id":%d,"result":' + b"[" * 9_000 + b"]" * 9_000 + b"}",
}
SERVER = """
import json, os, sys
folder, lines = os.environ["FOLDER"], sys.argv[1:]
tools = json.load(open(folder + "/tools.json"))
ask = lines == ["ask"]
def say(line):
    sys.stdout.buffer.write(line + b"\\n")
    sys.stdout.buffer.flush()
def question(n):
    params = {"message": f"q{n}", "requestedSchema": {"type": "object", "properties": {}}}
    say(json.dumps({"jsonrpc": "2.0", "id": f"e{n}", "method": "elicitation/create", "params": params}).encode())
for line in sys.stdin.buffer:
    told = json.loads(line)
    n, method = told.get("id"), told.get("method")
    if method == "initialize":
        known = {"protocolVersion": told["params"]["protocolVersion"], "capabilities": {"tools": {}}}
        known["serverInfo"] = {"name": "broken", "version": "1"}
        say(json.dumps({"jsonrpc": "2.0", "id": n, "result": known}).encode())
    elif method == "tools/list":
        say(json.dumps({"jsonrpc": "2.0", "id": n, "result": {"tools": tools}}).encode())
    elif method == "tools/call":
        with open(folder + "/done.txt", "a") as file:
            file.write("went\\n")
        call = n
        if ask:
            question(1)
        for one in [] if ask else lines:
            one = one.encode("latin-1")
            say(one.replace(b"%d", str(n).encode()))
    elif ask and method is None and str(n).startswith("e"):
        if n == "e40":
            done = {"content": [{"type": "text", "text": told["result"]["action"]}]}
            say(json.dumps({"jsonrpc": "2.0", "id": call, "result": done}).encode())
        else:
            question(int(n[1:]) + 1)
    elif method and n is not None:
        say(json.dumps({"jsonrpc": "2.0", "id": n, "error": {"code": -32601, "message": "no"}}).encode())
"""


def over_stdio(folder: Path, *lines: bytes, tools: Any = (GO,), **options: Any) -> McpServer:
    """A server that answers each call with these lines, %d for the number of the request. It notes in the folder that
    it was called."""
    folder.mkdir(exist_ok=True)
    (folder / "tools.json").write_text(json.dumps(tools))
    command = [sys.executable, "-c", SERVER, *(line.decode("latin-1") for line in lines)]
    return agent.mcp_server(command, env={"FOLDER": str(folder)}, **options)


class OverHttp(http.server.BaseHTTPRequestHandler):
    """As that over HTTP, with the status."""

    protocol_version = "HTTP/1.1"
    line = b""
    status = 200
    effects = 0

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def _say(self, status: int, line: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(line)))
        self.send_header("mcp-session-id", "abc")
        self.end_headers()
        self.wfile.write(line)

    def do_GET(self) -> None:
        """There is nothing to hear."""
        self._say(405, b"")

    do_DELETE = do_GET

    def do_POST(self) -> None:
        """Answer a request."""
        told = json.loads(self.rfile.read(int(self.headers["content-length"])))
        n, method = told.get("id"), told.get("method")
        if n is None:
            self._say(202, b"")
        elif method == "tools/call":
            type(self).effects += 1
            self._say(self.status, self.line.replace(b"%d", str(n).encode()))
        else:
            version = told.get("params", {}).get("protocolVersion", "2025-11-25")
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "broken", "version": "1"}}
            known = {
                "initialize": {"result": {"protocolVersion": version, **about}},
                "tools/list": {"result": {"tools": [GO]}},
            }
            answer = known.get(method, {"error": {"code": -32601, "message": "no"}})
            self._say(200, json.dumps({"jsonrpc": "2.0", "id": n, **answer}).encode())


@pytest.fixture
def over_http() -> Iterator[tuple[str, type[OverHttp]]]:
    """The URL of such a server, and what says how it answers."""

    class Handler(OverHttp):
        """That of one test."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/mcp", Handler
        server.shutdown()


@pytest.fixture
def session() -> Iterator[Session]:
    """A session, closed with its servers."""
    with turnlog.open("s", store=":memory:", target=CHAT) as opened:
        yield opened


def warnings_of(session: Session) -> list[str]:
    """The warnings of the session, as they come."""
    warned: list[str] = []
    session.on_event(lambda event: warned.append(event.text) if event.kind == "warning" else None)
    return warned


def called(session: Session, server: McpServer, **options: Any) -> tuple[str, str]:
    """Outcome and text of a call of `go`."""
    runner = ScriptedRunner([[ToolCall("c", "go")], "ok"])
    assert turnlog.run(session, "go", runner, tools=[server], max_seconds=60, **options).stop == "end"
    return said(session)


def said(session: Session) -> tuple[str, str]:
    """Outcome and text of the only result."""
    parts = [part for record in session.history() if record.message for part in record.message.parts]
    [result] = [part for part in parts if isinstance(part, ToolResult)]
    return result.outcome, text_of(Message("user", result.parts))


def effects(folder: Path) -> int:
    """How often the server was called."""
    done = folder / "done.txt"
    return done.read_text("utf-8").count("went") if done.exists() else 0


@pytest.mark.parametrize("kind", UNREAD)
def test_an_answer_that_cannot_be_read_ends_the_call(kind: str, session: Session, tmp_path: Path) -> None:
    """A run that waits for ever for an answer that has come."""
    outcome, text = called(session, over_stdio(tmp_path, UNREAD[kind]))
    assert (outcome, effects(tmp_path)) == ("aborted", 1)
    assert "It may have run, wholly or in part; check before repeating it." in text


@pytest.mark.parametrize("line", [*UNREAD.values(), b"\xff" + OK], ids=[*UNREAD, "no UTF-8"])
def test_an_answer_over_http_that_cannot_be_read_may_have_run(
    line: bytes, session: Session, over_http: tuple[str, type[OverHttp]]
) -> None:
    """A payment that was made, told as a failure, since its receipt was cut."""
    url, Handler = over_http
    Handler.line = line
    outcome, text = called(session, agent.mcp_server(url=url))
    assert (outcome, Handler.effects) == ("aborted", 1)
    assert text.endswith("Failed to parse JSON response.)")


@pytest.mark.parametrize(
    "line",
    [b"calling...", b"{}", b"[1,2]", b'{"jsonrpc":"2.0"}', b'{"level":"info","id":2}', b"", b"\xff\xfe log", b"{oops"],
)
def test_lines_of_a_log_do_no_harm(line: bytes, session: Session, tmp_path: Path) -> None:
    """A connection that ends, or a call that fails, since a server prints what it does."""
    assert called(session, over_stdio(tmp_path, line, OK)) == ("ok", "went")


def test_bytes_that_are_no_text_are_shown_as_such(session: Session, tmp_path: Path) -> None:
    """A file name in another encoding that ends the server."""
    assert called(session, over_stdio(tmp_path, HELD.replace(b"%s", b"\xff"))) == ("ok", "x \ufffd y")


@pytest.mark.parametrize("repeatable", [False, True])
def test_no_words_make_a_call_run_twice(repeatable: bool, session: Session, tmp_path: Path) -> None:
    """A payment made twice, since the server's error has the words of the SDK for a session that it does not know."""
    outcome, text = called(session, over_stdio(tmp_path, GONE, repeatable=repeatable))
    assert (outcome, effects(tmp_path)) == ("failed", 1) and "Session terminated" in text


@pytest.mark.parametrize(("line", "status"), [(GONE, 200), (b"{}", 404), (GONE, 404)])
@pytest.mark.parametrize("repeatable", [False, True])
def test_a_call_of_a_lost_session_is_sent_again_only_if_it_may(
    repeatable: bool, line: bytes, status: int, session: Session, over_http: tuple[str, type[OverHttp]]
) -> None:
    """A payment made twice, since a server said too late that it does not know the session."""
    url, Handler = over_http
    Handler.line, Handler.status = line, status
    outcome, text = called(session, agent.mcp_server(url=url, repeatable=repeatable))
    assert (outcome, Handler.effects) == ("aborted", 2 if repeatable else 1)
    assert "It may have run" in text


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("back", [False, True])
def test_a_call_that_waited_is_not_run_by_another_server(back: bool, alike: bool, tmp_path: Path) -> None:
    """An approval for one shop that pays in another, which has a tool of this name after a restart; or one that is
    lost, though its server is back."""
    one, other = tmp_path / "one", tmp_path / "other"

    def servers(*offered: list[Any]) -> list[McpServer]:
        return [
            over_stdio(folder, OK, tools=tools, needs_approval=True, cwd=None if alike else folder)
            for folder, tools in zip((one, other), offered, strict=True)
        ]

    with turnlog.open("s", store=tmp_path / "log.db", target=CHAT) as session:
        runner = ScriptedRunner([[ToolCall("c", "go")]])
        assert turnlog.run(session, "go", runner, tools=servers([GO], [GO]), approve=LATER).stop == "awaiting_approval"
        session.approve("c")
    with turnlog.open("s", store=tmp_path / "log.db", target=CHAT) as session:  # a run that is killed as it begins
        tools = RunTools(session, servers([], [GO]), asks=True)
        asyncio.run(tools.read())
        tools.declare()
    with turnlog.open("s", store=tmp_path / "log.db", target=CHAT) as session:
        now = servers([GO] if back else [], [GO])
        assert turnlog.run(session, None, ScriptedRunner(["ok"]), tools=now, approve=LATER).stop == "end"
        outcome, text = said(session)
        assert session.log.validate() == []
    assert (outcome, effects(one), effects(other)) == (("ok", 1, 0) if back else ("failed", 0, 0))
    assert back or text == (
        "The tool was not run: when it was called, 'go' was a tool of another MCP server, or of none. If it is still "
        "to be done, call it again."
    )


def test_a_server_asks_no_more_than_twenty_times(session: Session, tmp_path: Path) -> None:
    """People who are asked without end, each time on record."""
    asked: list[str] = []

    def approve(question: Question) -> bool:
        asked.append(question.reason)
        return True

    warned = warnings_of(session)
    assert called(session, over_stdio(tmp_path, b"ask"), approve=approve) == ("ok", "cancel")
    assert asked == [f"q{n}" for n in range(1, 21)] == [note.body.text for note in questions(session)]
    [warning] = warned
    assert warning.endswith("asks more than 20 questions in a call: the others are cancelled")


def questions(session: Session) -> list[Any]:
    """The questions that are on record."""
    return [note for note in session.log.of_kinds("note") if note.body.topic == "mcp_question"]


def test_tools_of_one_name_are_told(session: Session, tmp_path: Path) -> None:
    """A server that offers a name twice: one of the two tools is gone without a word."""
    warned = warnings_of(session)
    server = over_stdio(tmp_path, OK, tools=[GO, {**GO, "description": "The other."}])
    turnlog.run(session, "go", ScriptedRunner(["ok"]), tools=[server])
    assert [tool.description for tool in session.configuration.tools] == ["The other."]
    assert [text.partition(" offers ")[2] for text in warned] == ["several tools of one name: the last of these counts"]


def test_a_tool_that_cannot_be_read_does_not_hide_the_others(session: Session, tmp_path: Path) -> None:
    """A server that is of no use at all, as one of its tools breaks the protocol."""
    bad = [{"name": "list", "inputSchema": {"type": "array"}}, {"inputSchema": {"type": "object"}}, 5]
    warned = warnings_of(session)
    assert called(session, over_stdio(tmp_path, OK, tools=[bad[0], GO, *bad[1:]])) == ("ok", "went")
    assert [tool.name for tool in session.configuration.tools] == ["go"]
    [warning] = warned
    assert warning.endswith(
        "offers tools that cannot be read, and are left out: 'list' (inputSchema.type: Input should be 'object'); "
        "None (name: Field required); 5 (: Input should be a valid dictionary or instance of Tool)"
    )
