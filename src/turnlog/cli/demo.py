"""`demo`: show what turnlog does, on a made-up conversation, in a temporary store.

The demo needs no network and no key: the built-in model says what is written in this file. Everything else is real,
including the killed process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

from .._platform.stdlib import quiet_log
from .._platform.texts import shorten
from ..agent import FunctionTool, Question, run
from ..errors import StoreError
from ..importers import read_file
from ..importers.sync.session import sync_session
from ..log.messages import ToolCall, compact_json, text_of
from ..log.store import Store
from ..models.makers import PROVIDER_ROWS, default_model
from ..models.target import target
from ..requests.request import Request
from ..requests.standalone import check
from ..runners import ScriptedRunner
from ..session.open import open as open_session
from ..session.session import Session
from ..stores import open_store
from ..view.types import Edit, Loss
from .arguments import add_command
from .show import lines
from .terminal import out

_TOOL_MODULE = "turnlog.cli.demo_tool"  # run as a program, so given by name

PUBLISH = "Run the tests and publish the fix."
"""What the user says before the process is killed, and again to the process that continues."""


class Bash:
    """The tool of the demo, which pretends to run commands. With `hang` it prints the command and waits to be
    killed."""

    def __init__(self, *, hang: bool = False) -> None:
        self._hang = hang

    def tool(self) -> FunctionTool:
        """The tool as an agent takes it."""
        return FunctionTool(self.run, name="Bash", needs_approval=True)

    def run(self, command: str) -> str:
        """Run a command.

        Args:
            command: The command.
        """
        if self._hang:
            print(command, flush=True)
            sys.stdin.read()  # the demo kills the process here; it ends by itself if the demo is gone
        return "money.py written; invoice.py imports CENT from it."


def call(number: int, command: str) -> ToolCall:
    """A call of the tool."""
    return ToolCall(f"toolu_demo_{number}", "Bash", {"command": command})


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    demo = add_command(commands, None, "demo")
    demo.set_defaults(run=_demo)


def _demo(arguments: Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="turnlog-demo-") as folder, quiet_log():
        run_demo(Path(folder))
    return 0


def run_demo(folder: Path) -> None:
    """Run the whole demo in an empty folder."""
    path = folder / "demo.db"
    store = open_store(path)
    sent: list[Request] = []
    try:
        session_id = _import(store, folder)
        with open_session(session_id, store=store, target=target("anthropic", default_model("anthropic"))) as session:
            _loop(session, sent)
            crashed = len(session.history())
        _crash(path, session_id)
        with open_session(session_id, store=store) as session:
            _go_on(session, crashed, sent)
            _compact(session)
            _switch(session, sent)
            _requests(session, sent)
        _nothing_lost(store, session_id)
    finally:
        store.close()


def _import(store: Store, folder: Path) -> str:
    _title("1. Import what another agent wrote")
    file = folder / "session.jsonl"
    file.write_bytes(resources.files(__package__).joinpath("data/demo_session.jsonl").read_bytes())
    imported = read_file(file)[0]
    synced = sync_session(store, imported)
    again = sync_session(store, imported)
    info = store.info(synced.session)
    out(f"A coding agent's transcript ({imported.format}), interrupted in the middle of a tool call:")
    out(f"    {info.id}: {info.messages} messages, {info.records} records, {len(imported.warnings)} warnings")
    out(f"Imported once more, it is {again.status}. What it says, from the failing test on:")
    shown = [record for record in store.read(info.id) if record.message is not None][-7:]
    _indented(lines(shown))
    return synced.session


def _loop(session: Session, sent: list[Request]) -> None:
    _title("2. Go on with it: the loop of an agent")
    model = ScriptedRunner(
        [["I'll move the constant.", call(6, "./move-constant CENT src/money.py")], "It is in money.py."]
    )
    run(session, "Yes, do that.", model, tools=[Bash().tool()], approve=lambda _: True)
    first = model.requests[0]
    out(f"The first request, for {first.target.model}, starts from a damaged history and is valid:")
    _indented(_change_lines(first.edits))
    out("The model's answers, the tool that ran and its result are on record as they happened:")
    _indented(lines([record for record in session.history() if record.message is not None][-4:]))
    sent += model.requests


def _crash(path: Path, session_id: str) -> None:
    _title("3. Crash in the middle of a tool")
    command = [sys.executable, "-m", _TOOL_MODULE, str(path), session_id]
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    try:
        first_line = child.stdout.readline().strip() if child.stdout else ""
    finally:
        child.kill()
        _, complaint = child.communicate()
    if not first_line:
        raise StoreError(f"the demo's second process ended before its tool began: {complaint.strip()}")
    out(f"Another process ran the loop; its model called a tool, which began to run ({first_line}).")
    out(f"It was killed there: exit status {child.returncode}.")


def _go_on(session: Session, before: int, sent: list[Request]) -> None:
    _title("4. Start it again")
    out("The log holds everything up to the kill, and opening it has closed the turn as failed:")
    _indented(lines([record for record in session.history()[before:] if record.message is not None]))
    model = ScriptedRunner(["The tests pass, and it is published: I looked before I did it again."])

    def approve(question: Question) -> str:
        out("The same words to the same loop, which goes on, and asks:")
        _indented([f"Run {question.call.name} again? {question.reason}."])
        return "Look first whether it was published."

    done = run(session, PUBLISH, model, tools=[Bash().tool()], approve=approve)
    out("No, is the answer, and the model is told so. It says:")
    _indented([done.text])
    same = compact_json(session.request().body) == compact_json(session.request().body)
    out(f"The same log gives the same bytes again: {'yes' if same else 'NO'}.")
    sent += model.requests


def _compact(session: Session) -> None:
    _title("5. Make requests smaller")
    done = session.compact(keep=1)
    out(f"All but the last turn become a summary: {done.before:,} tokens became {done.after:,}. It begins:")
    _indented(_summary(session))
    session.undo("compaction")
    out(f"Undone, requests have {session.window.tokens:,} tokens again.")


def _summary(session: Session) -> list[str]:
    """The first lines of the summary."""
    shown = next(shown for shown in session.view() if shown.treatment == "summarised")
    return text_of(shown.message).splitlines()[:8]


def _switch(session: Session, sent: list[Request]) -> None:
    _title("6. Switch to another provider")
    losses = session.switch(target("google", default_model("google")), reason="demonstration")
    out(f"From here on requests go to {default_model('google')}. What it cannot take is said, and stays in the log:")
    _indented(_change_lines(losses))
    model = ScriptedRunner(["You are welcome."])
    run(session, "Thanks!", model)
    sent += model.requests


def _requests(session: Session, sent: list[Request]) -> None:
    _title("7. One log, five wire formats")
    out("What was sent, to whom:")
    _indented(
        f"to {request.target.provider:<10}{len(request.view):>3} messages, {request.tokens:>6,} tokens"
        for request in sent
    )
    out("What the next request would be:")
    out(f"{'provider':<20}{'model':<20}{'messages':>8}{'bytes':>8}{'edits':>7}{'losses':>8}{'violations':>12}")
    for provider, row in PROVIDER_ROWS.items():
        prepared = session.request(target(provider, row.model))
        size = len(compact_json(prepared.body).encode("utf-8"))
        out(f"{provider:<20}{row.model:<20}{len(prepared.view):>8}{size:>8}{_figures(prepared)}")


def _figures(prepared: Request) -> str:
    violations = check(prepared.body, prepared.target.provider, model=prepared.target.model)
    return f"{len(prepared.edits):>7}{len(prepared.losses):>8}{len(violations):>12}"


def _nothing_lost(store: Store, session_id: str) -> None:
    _title("8. Nothing was rewritten")
    problems = store.verify()
    info = store.info(session_id)
    out(f"{info.records} records, every one as it was appended: {len(problems)} problems found.")
    out()
    out("That was a temporary store. Your own: `turnlog import ~/.claude/projects`, then `turnlog ls`.")


def _title(text: str) -> None:
    out(("" if text.startswith("1.") else "\n") + text)
    out("-" * len(text))


def _change_lines(changes: Iterable[Edit | Loss]) -> list[str]:
    """One line for each change; equal changes share a line."""
    records_by_line: dict[str, list[int]] = {}
    for change in changes:
        records_by_line.setdefault(f"{change.kind}: {change}", []).extend(change.records)
    return [
        text + (f" (record {', '.join(map(str, dict.fromkeys(records)))})" if records else "")
        for text, records in records_by_line.items()
    ] or ["nothing"]


def _indented(texts: Iterable[str]) -> None:
    for text in texts:
        out(f"    {shorten(text, characters=300)}")
