"""The same agent with turnlog, openai-agents and pydantic-ai, whose tools an MCP server has and whose approvals wait.

    pip install openai mcp openai-agents 'pydantic-ai-slim[openai,mcp]'

The agent, a clerk, looks up a bill and pays it; both tools are those of one MCP server over stdio, a payment needs
approval, and nobody is there to approve. One process starts the run and ends; another shows what waits and takes the
decision; a third goes on. Programs are in peers/clerks; the model is a script behind the wire format of OpenAI Chat.
Three scenes:

- an hour later: started, approved, gone on with.
- killed: the process that goes on is killed with SIGKILL, and the server with it, once the payment is made and before
  the tool returns. Then processes go on, and somebody decides who never lets run again what may have run.
- two people: both see the page before either decides; the first says yes, the second no.

Reported for each: how often the bill was paid, what people were shown, what the model was told of the payment, and how
the processes ended; for each library also the lines of code that are neither blank nor comments.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import Report, bench

from .clerk import CLERKS, PACKAGES, TASK, Model, code_lines, version

WAITS = "waits: "


class Desk:
    """The processes of one scene with one library, and what came of them."""

    def __init__(self, name: str, python: str, folder: str) -> None:
        self._command = [python, str(CLERKS / f"later_{name}.py")]
        self._folder = Path(folder)
        self._model = Model()
        self._around = {
            **os.environ,
            "CLERK_FOLDER": folder,
            "OPENAI_BASE_URL": f"http://127.0.0.1:{self._model.server_port}/v1",
            "OPENAI_API_KEY": "k",
        }
        self.shown: list[str] = []
        self.ends: list[str] = []

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Start a process of the program."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*self._command, *words], env=self._around, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )

    def end(self, process: subprocess.Popen[str], answers: str = "") -> str:
        """Wait for the end of a process: its last line, or how it failed."""
        out, err = process.communicate(answers, timeout=120)
        last = ((out if process.returncode == 0 else err).strip().splitlines() or [""])[-1]
        self.ends.append(f"killed ({-process.returncode})" if process.returncode < 0 else last)
        return self.ends[-1]

    def run(self, *words: str) -> str:
        """Start a process and wait for its end."""
        return self.end(self.begin(*words))

    def page(self) -> tuple[subprocess.Popen[str], str]:
        """Start a process that shows what waits, and wait until it shows the first call. Empty if nothing waits."""
        process = self.begin("page")
        assert process.stdout is not None
        shown = process.stdout.readline().strip().removeprefix(WAITS)
        self.shown.append(shown or "nothing")
        return process, shown

    def approve(self) -> None:
        """Show what waits to somebody who approves, but nothing that may have run."""
        process, shown = self.page()
        self.end(process, "no\n" if "may have run" in shown else "yes\n")

    def power_goes_off(self) -> None:
        """Kill the agent and the server in the next payment."""
        (self._folder / "crash").touch()

    def came_of_it(self) -> dict[str, Any]:
        """How often the bill was paid, and what the model was told of it."""
        self._model.shutdown()
        paid = self._folder / "paid"
        told = [
            str(message["content"])
            for message in (self._model.requests or [{"messages": []}])[-1]["messages"]
            if message["role"] == "tool" and message["tool_call_id"].startswith("call_2")
        ]
        return {"paid": len(paid.read_text("utf-8").splitlines()) if paid.exists() else 0, "told": told}


def an_hour_later(desk: Desk) -> None:
    """Nobody is there; later somebody approves, and the clerk goes on."""
    desk.run("start", TASK)
    desk.approve()
    desk.run("go")


def killed(desk: Desk) -> None:
    """The same, and the process that goes on is killed in the payment."""
    desk.run("start", TASK)
    desk.approve()
    desk.power_goes_off()
    desk.run("go")
    for _ in range(3):
        if "The payment: " in desk.run("go"):
            break
        desk.approve()


def two_people(desk: Desk) -> None:
    """Two people see the page; one says yes, then the other no."""
    desk.run("start", TASK)
    (first, _), (second, _) = desk.page(), desk.page()
    desk.end(first, "yes\n")
    desk.end(second, "no\n")
    desk.run("go")


@bench()
def later(report: Report, *, python: str = sys.executable) -> None:
    """The same agent with turnlog, openai-agents and pydantic-ai (in --python): MCP tools, approved an hour later."""
    for name, package in PACKAGES.items():
        own = sys.executable if name == "turnlog" else python
        missing = [one for one in (package, "mcp") if not version(one, own)]
        if missing:
            report.say(f"{package}: skipped: {missing[0]} is not installed in {own}")
            continue
        figures = {"lines": code_lines(CLERKS / f"later_{name}.py")}
        told: list[str] = []
        for scene in (an_hour_later, killed, two_people):
            with tempfile.TemporaryDirectory() as folder:
                desk = Desk(name, own, folder)
                scene(desk)
                found = desk.came_of_it()
            figures[f"times paid, {scene.__name__}"] = found["paid"]
            told.append(f"  {scene.__name__}: shown: {desk.shown}; told: {found['told']}; ends: {desk.ends}")
        bars = {unit: 1 for unit in figures if unit != "lines"} if name == "turnlog" else {}
        report.row(f"{package} {version(package, own)}", figures, at_most=bars, at_least=bars)
        for line in told:
            report.say(line)
