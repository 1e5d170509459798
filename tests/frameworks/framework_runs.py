"""Runs of programs of frameworks against the fake server, and what the server and the log say of each."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from acting_model import ActingModel
from recording_proxy import Exchange, RecordingProxy

import turnlog
from turnlog.log.messages import text_of
from turnlog.log.usage import Usage
from turnlog.session.reader import SessionLog
from turnlog.stores.places import open_store

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"
WINDOW = 16_000
ENDS = {"final_answer"}
"""Calls with which a program ends, without a result."""


@dataclass
class Run:
    """What one run of a program left: what it printed, what the server saw, what was on the wire."""

    told: dict[str, Any]
    requests: list[Any] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def refused(self) -> list[str]:
        """Requests that the server refused for what they said."""
        return [request.errors[0] for request in self.requests if request.errors and request.errors != ["context"]]

    @property
    def overflows(self) -> int:
        """Requests that were too long."""
        return sum(request.errors == ["context"] for request in self.requests)

    @property
    def answered(self) -> list[Any]:
        """Requests that got an answer."""
        return [request for request in self.requests if request.status == 200 and request.reply is not None]


class _Newest(list[Any]):
    """The prompts that the server compares a new one with, letter by letter: here the last two, which is enough."""

    def append(self, prompt: Any) -> None:
        super().append(prompt)
        del self[:-2]


class Bench:
    """A server behind a proxy, and programs that talk to it. `start` starts a server."""

    def __init__(self, start: Callable[..., Any]) -> None:
        self._start = start
        self.proxy = RecordingProxy().start()
        self.server: Any = None

    def serve(self, **options: Any) -> None:
        """A new server, which the proxy asks from now on."""
        model = ActingModel()
        self.server = self._start(extra_checks=model.look, **options)
        model.view = sys.modules[type(self.server).__module__].view
        self.server._script, self.server._prefixes = model, _Newest()
        self.proxy.forward(self.server.port)

    def close(self) -> None:
        """Stop the proxy."""
        self.proxy.stop()

    def run(self, python: Path, program: str, form: str, store: Path, *, mode: str, **sizes: int) -> Run:
        """Run a program to its end. Raises AssertionError with what it wrote if it broke."""
        out = store.with_name(f"{mode}.json")
        out.unlink(missing_ok=True)
        words = [str(python), str(PROGRAMS / f"{program}.py"), form, self.proxy.url, str(store), str(out)]
        options = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
        self.proxy.taken()
        done = subprocess.run(
            [*words, "--mode", mode, *options],
            capture_output=True, text=True, check=False, timeout=300,
            env={"PATH": "/usr/bin:/bin", "HOME": str(store.parent), "PYTHONPATH": str(ROOT / "src")},
        )  # fmt: skip
        assert out.exists(), f"{program} {form} broke:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        requests, self.server.requests = self.server.requests, []
        return Run(json.loads(out.read_text("utf-8")), requests, self.proxy.taken())


def bill(run: Run) -> Usage:
    """What the server charged, in turnlog's terms."""
    figures = [request.usage for request in run.answered]
    return Usage(
        input=sum(each["input"] for each in figures),
        output=sum(each["output"] + each["thinking"] for each in figures),
        cached=sum(each["read"] for each in figures),
        cache_write=sum(each["write"] for each in figures),
        reasoning=sum(each.usage["thinking"] for each in run.answered if each.provider != "anthropic"),  # it says none
    )


def findings(store: Path, run: Run) -> list[str]:
    """What is wrong with the log of a run: empty if each call and answer is on record, and the usage is the bill."""
    found = [f"a request that was sent: {words}" for request in run.requests for words in map(str, _checked(request))]
    logs = sessions(store)
    said = {text_of(record.message) for log in logs for record in log.records() if record.message is not None}
    calls = {call.call.id: call for log in logs for call in log.calls()}
    for log in logs:
        found += [f"{log.id}: {wrong}" for wrong in log.validate()]
        open_calls = [call.call for call in log.unfinished() if call.call.name not in ENDS]
        found += [f"{log.id}: no result of {call.name} {call.id}" for call in open_calls]
    for request in run.answered:
        if (text := request.reply.get("text")) and text not in said:
            found.append(f"an answer that is not on record: {text}")
    made = sum(len(request.reply.get("tool_calls", ())) for request in run.answered)
    if made != len(calls):
        found.append(f"{made} calls were made, and {len(calls)} are on record")
    charged, kept = bill(run), total(logs)
    for name in ("input", "output", "cached", "cache_write", "reasoning"):
        if getattr(charged, name) != getattr(kept, name):
            found.append(f"usage: {name} is {getattr(kept, name)}, and the bill says {getattr(charged, name)}")
    return found


def _checked(request: Any) -> list[Any]:
    body = (
        request.body
        if "model" in request.body
        else {**request.body, "model": request.path.split("/")[-1].split(":")[0]}
    )
    return turnlog.check(body)


def sessions(store: Path) -> list[SessionLog]:
    """The sessions of a store, as they were recorded."""
    opened = open_store(store)
    return [SessionLog(opened, info.id) for info in opened.sessions()]


def moves(run: Run) -> int:
    """How often the beginning of a request was not the request before it, as a prompt cache sees them: wherever cache
    marks stand, and however the SDK spells a key."""
    sent = [_conversation(json.loads(each.body)) for each in run.exchanges]
    return sum(before != after[: len(before)] for before, after in pairwise(sent))


def _conversation(body: dict[str, Any]) -> list[Any]:
    return [_unmarked(body.get(key)) for key in ("system", "instructions", "systemInstruction", "tools")] + [
        _unmarked(message) for key in ("messages", "input", "contents") for message in body.get(key, ())
    ]


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(each) for key, each in value.items() if key != "cache_control"}
    return [_unmarked(each) for each in value] if isinstance(value, list) else value


def decisions(store: Path) -> int:
    """How often turnlog decided to leave something out."""
    kept = [record.body for log in sessions(store) for record in log.of_kinds("decision")]
    return sum(decision.detail.get("by") != "program" for decision in kept)


def total(logs: list[SessionLog]) -> Usage:
    """The usage of all sessions."""
    names = ("input", "output", "cached", "cache_write", "reasoning")
    kept = [record.body.usage for log in logs for record in log.of_kinds("usage")]
    return Usage(**{name: sum(getattr(each, name) for each in kept) for name in names})
