"""The same agent with turnlog, openai-agents and pydantic-ai: lines of code, and what each does after a kill in a tool.

    pip install openai openai-agents 'pydantic-ai-slim[openai]'

The agent, a clerk, looks up a bill and pays it; the conversation is kept on disk, somebody is asked before it pays, and
there is a limit of steps. The first payment is made, and the process is killed with SIGKILL before the tool returns.
Then the same program is started again with the same words, and once more if that ends with an error. Programs are in
peers/clerks; the model is a script behind the wire format of OpenAI Chat. Reported for each: the lines of code that are
neither blank nor comments, how often the bill was paid, what the second start sent to the model, and how it ended.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from harness import Report, bench

CLERKS = Path(__file__).parent / "clerks"
PACKAGES = {"turnlog": "turnlog", "openai_agents": "openai-agents", "pydantic_ai": "pydantic-ai-slim"}
TASK = "Pay bill 7."


class Model(ThreadingHTTPServer):
    """A model that pays a bill: it looks up the amount, pays, and says what it was told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[dict[str, Any]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    server: Model

    def do_POST(self) -> None:
        """Answer a request, whole or streamed."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        message = _answer(body["messages"])
        finish = "tool_calls" if "tool_calls" in message else "stop"
        usage = {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60}
        head = {"id": "chatcmpl-1", "created": 1, "model": "gpt-4o"}
        if body.get("stream"):
            calls = [{"index": i, **call} for i, call in enumerate(message.get("tool_calls", ()))]
            delta = {**message, **({"tool_calls": calls} if calls else {})}
            choice = {"index": 0, "delta": delta, "finish_reason": None}
            end = {"index": 0, "delta": {}, "finish_reason": finish}
            chunks = [{"choices": [choice]}, {"choices": [end]}, {"choices": [], "usage": usage}]
            sent = [json.dumps({**head, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
            self._send("text/event-stream", "".join(f"data: {one}\n\n" for one in [*sent, "[DONE]"]))
        else:
            choice = {"index": 0, "message": message, "finish_reason": finish}
            answer = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
            self._send("application/json", json.dumps(answer))

    def _send(self, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


def _answer(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """What the model says: it goes by the results since the user spoke last."""
    last = max(i for i, message in enumerate(messages) if message["role"] == "user")
    results = [str(message["content"]) for message in messages[last:] if message["role"] == "tool"]
    if len(results) < 2:
        name, call = (("bill", "call_1"), ("pay", "call_2"))[len(results)]
        wanted = {"id": f"{call}_{len(messages)}", "type": "function",
                  "function": {"name": name, "arguments": '{"number": 7}'}}  # fmt: skip
        return {"role": "assistant", "content": None, "tool_calls": [wanted]}
    return {"role": "assistant", "content": f"The payment: {results[-1]}"}


class Seen(NamedTuple):
    """What one library did."""

    lines: int
    version: str
    paid: int
    asked: list[str]
    requests: int
    ends: list[str]


def seen(name: str, python: str) -> Seen:
    """Run the clerk of a library, which is killed, and start it again until it ends well, twice at most."""
    program = CLERKS / f"clerk_{name}.py"
    model = Model()
    with tempfile.TemporaryDirectory() as folder:
        around = {
            **os.environ,
            "CLERK_FOLDER": folder,
            "OPENAI_BASE_URL": f"http://127.0.0.1:{model.server_port}/v1",
            "OPENAI_API_KEY": "k",
        }
        ends: list[str] = []
        before = 0
        for start in range(3):
            before = len(model.requests) if start == 1 else before
            done = subprocess.run(
                [python, str(program), TASK], env=around, capture_output=True, text=True, timeout=120, check=False
            )
            last = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()[-1:] or [""]
            ends.append(f"killed ({-done.returncode})" if done.returncode < 0 else last[0])
            if done.returncode == 0:
                break
        files = {one: Path(folder) / one for one in ("paid", "asked")}
        told = {one: path.read_text("utf-8").splitlines() if path.exists() else [] for one, path in files.items()}
    model.shutdown()
    return Seen(code_lines(program), version(PACKAGES[name], python), len(told["paid"]), told["asked"],
                len(model.requests) - before, ends)  # fmt: skip


def code_lines(program: Path) -> int:
    """The lines that are neither blank, nor comments, nor docstrings."""
    text = program.read_text("utf-8")
    prose: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            prose |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and n not in prose for n, line in lines)


def version(package: str, python: str) -> str:
    """The installed version; empty if there is none."""
    if python == sys.executable:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return ""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=False).stdout.strip()


@bench(quick={})
def clerk(report: Report, *, python: str = sys.executable) -> None:
    """The same agent with turnlog, openai-agents and pydantic-ai (in --python), killed while it pays a bill."""
    for name, package in PACKAGES.items():
        own = sys.executable if name == "turnlog" else python
        if not version(package, own):
            report.say(f"{package}: skipped: not installed in {own}")
            continue
        found = seen(name, own)
        figures = {
            "lines": found.lines,
            "times paid": found.paid,
            "starts": len(found.ends),
            "requests of the second start": found.requests,
        }
        bars = {"times paid": 1, "starts": 2} if name == "turnlog" else {}
        report.row(f"{package} {found.version}", figures, at_most=bars, at_least=bars)
        report.say(f"  asked: {found.asked}; starts ended: {found.ends}")
