"""`demo`: show what turnlog does, on a made-up conversation, in a temporary store.

The demo needs no network and no key: the model's answers are written in this file. Everything else is real, including
the killed process.
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

from ..errors import StoreError
from ..importers import read_file
from ..importers.sync import sync_session
from ..log.messages import ToolResult, compact_json
from ..log.store import Store
from ..models.target import target
from ..requests.request import Request
from ..requests.standalone import check
from ..session.open import open as open_session
from ..session.session import Session
from ..stores import open_store
from ..view.types import Edit, Loss
from .arguments import add_command
from .show import lines
from .terminal import out, shorten

TARGETS = {
    "anthropic": "claude-sonnet-4-5",
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-5",
    "google": "gemini-2.5-pro",
    "google-interactions": "gemini-2.5-pro",
}
"""The models that the demo makes requests for, by provider."""

_TOOL_MODULE = "turnlog.cli.demo_tool"  # run as a program, so given by name


def _answer(message_id: str, text: str, call: dict[str, Any], read: int) -> dict[str, Any]:
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": [{"type": "text", "text": text}, {"type": "tool_use", **call}],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 40, "cache_read_input_tokens": read, "output_tokens": 70},
    }


ANSWER_EDIT = _answer(
    "msg_demo6",
    "I'll move the constant.",
    {"id": "toolu_demo_6", "name": "Bash", "input": {"command": "./move-constant CENT src/money.py"}},
    3350,
)
"""The model's first answer, as its API would send it."""

ANSWER_TESTS = _answer(
    "msg_demo7",
    "Now the tests, and then I'll publish the fix.",
    {"id": "toolu_demo_7", "name": "Bash", "input": {"command": "pytest -q && ./publish"}},
    3500,
)
"""Its second answer; the tool of this call never ends."""


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    demo = add_command(commands, None, "demo", "show what turnlog does, on a made-up conversation; takes a few seconds")
    demo.set_defaults(run=_demo)


def _demo(arguments: Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="turnlog-demo-") as folder:
        run_demo(Path(folder))
    return 0


def run_demo(folder: Path) -> None:
    """Run the whole demo in an empty folder."""
    path = folder / "demo.db"
    store = open_store(path)
    try:
        session_id = _import(store, folder)
        with open_session(session_id, store=store, target=target("anthropic", TARGETS["anthropic"])) as session:
            _record(session)
            crashed = len(session.history())
        _crash(path, session_id)
        with open_session(session_id, store=store) as session:
            _resume(session, crashed)
            _switch(session)
            _requests(session)
        _nothing_lost(store, session_id)
    finally:
        store.close()


def _import(store: Store, folder: Path) -> str:
    _title("1. Import what another agent wrote")
    file = folder / "session.jsonl"
    file.write_bytes(resources.files(__package__).joinpath("data/demo_session.jsonl").read_bytes())
    imported = read_file(file)[0]
    kept = sync_session(store, imported)
    again = sync_session(store, imported)
    info = store.info(kept.session)
    out(f"A coding agent's transcript ({imported.format}), interrupted in the middle of a tool call:")
    out(f"    {info.id}: {info.messages} messages, {info.records} records, {len(imported.warnings)} warnings")
    out(f"Imported once more, it is {again.status}. What it says, from the failing test on:")
    shown = [record for record in store.read(info.id) if record.message is not None][-7:]
    _indented(lines(shown))
    return kept.session


def _record(session: Session) -> None:
    _title("2. Go on with it")
    session.user("Yes, do that, and run the tests.")
    prepared = session.request()
    target = prepared.target
    out(f"The next request, for {target.model}, starts from a damaged history and is valid:")
    _indented(_change_lines(prepared.edits))
    answer = session.receive(ANSWER_EDIT)
    call = answer.tool_calls[0]
    session.tool_started(call)
    session.tool_finished(call, seconds=0.1)
    session.tool_result(call, "money.py written; invoice.py imports CENT from it.")
    out("The model's answer, its usage, the tool that ran and its result are recorded as they happen:")
    _indented(lines(session.history()[-6:]))


def _crash(path: Path, session_id: str) -> None:
    _title("3. Crash in the middle of a tool")
    command = [sys.executable, "-m", _TOOL_MODULE, str(path), session_id]
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    try:
        said = child.stdout.readline().strip() if child.stdout else ""
    finally:
        child.kill()
        _, complaint = child.communicate()
    if not said:
        raise StoreError(f"the demo's second process ended before its tool began: {complaint.strip()}")
    out(f"Another process opened the session, received a call and began to run it ({said}).")
    out(f"It was killed there: exit status {child.returncode}.")


def _resume(session: Session, before: int) -> None:
    _title("4. Resume")
    out("The log holds everything up to the kill:")
    _indented(lines(session.history()[before:]))
    prepared = session.request()
    results = [part for shown in prepared.view for part in shown.message.parts if isinstance(part, ToolResult)]
    out("The next request answers the open call and does not pretend to know how it ended:")
    _indented(getattr(part, "text", "") for part in results[-1].parts)
    same = compact_json(session.request().body) == compact_json(prepared.body)
    out(f"The same log gives the same bytes again: {'yes' if same else 'NO'}.")


def _switch(session: Session) -> None:
    _title("5. Switch to another provider")
    losses = session.switch(target("google", TARGETS["google"]), reason="demonstration")
    out(f"From here on requests go to {TARGETS['google']}. What it cannot take is said, and stays in the log:")
    _indented(_change_lines(losses))


def _requests(session: Session) -> None:
    _title("6. One log, five wire formats")
    out(f"{'provider':<20}{'model':<20}{'messages':>8}{'bytes':>8}{'edits':>7}{'losses':>8}{'violations':>12}")
    for provider, model in TARGETS.items():
        prepared = session.request(target(provider, model))
        size = len(compact_json(prepared.body).encode("utf-8"))
        out(f"{provider:<20}{model:<20}{len(prepared.view):>8}{size:>8}{_figures(prepared)}")


def _figures(prepared: Request) -> str:
    violations = check(prepared.body, prepared.target.provider, model=prepared.target.model)
    return f"{len(prepared.edits):>7}{len(prepared.losses):>8}{len(violations):>12}"


def _nothing_lost(store: Store, session_id: str) -> None:
    _title("7. Nothing was rewritten")
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
    found: dict[str, list[int]] = {}
    for change in changes:
        found.setdefault(f"{change.kind}: {change}", []).extend(change.records)
    return [
        text + (f" (record {', '.join(map(str, dict.fromkeys(records)))})" if records else "")
        for text, records in found.items()
    ] or ["nothing"]


def _indented(texts: Iterable[str]) -> None:
    for text in texts:
        out(f"    {shorten(text, characters=300)}")
