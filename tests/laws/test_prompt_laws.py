"""Laws of the system prompt in sections: valid requests, a prefix that holds, the same bytes from the same log."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import turnlog
from draws import examples
from judging import errors_of
from turnlog.errors import BudgetError, InputError
from turnlog.log.messages import ToolCall
from turnlog.log.records import Configuration, Decision
from turnlog.prompt import Section, When
from turnlog.stores import MemoryStore

TARGETS = (
    turnlog.target("openai-chat", "gpt-4o"),
    turnlog.target("openai-responses", "gpt-5"),
    turnlog.target("anthropic", "claude-sonnet-4-5", max_tokens=99),
    turnlog.target("anthropic", "claude-opus-5-5", max_tokens=99),
    turnlog.target("google", "gemini-2.5-pro"),
    turnlog.target("google-interactions", "gemini-2.5-pro"),
)
TOOLS = [{"name": name, "parameters": {"type": "object", "properties": {}}} for name in ("git", "shell")]
CONDITIONS = (
    When(),
    When(tool="git"),
    When(used="shell", turns=2),
    When(provider="anthropic"),
    When(label="slides"),
)
STEPS = (
    "turn",
    "call",
    "static",
    "change",
    "remove",
    "label",
    "tools",
    "switch",
    "compact",
    "rewind",
    "limit",
    "reopen",
)
LOOKS = ("turn", "call", "static", "remove", "label", "limit")
"""Steps at which the session looks at its sections."""

_steps = st.lists(st.tuples(st.sampled_from(("turn", "turn", *STEPS)), st.integers(0, 99)), min_size=4, max_size=14)


class Life:
    """A session whose sections change; `static` are those that may not move the prefix."""

    def __init__(self, oracle: ModuleType, first: int) -> None:
        self.oracle = oracle
        self.store = MemoryStore()
        self.texts = {"start": "0", "late": "0"}
        self.static = {"base": "Contract."}
        self.session = turnlog.open("s", store=self.store, target=TARGETS[first % len(TARGETS)], tools=TOOLS)
        self.session.configure(budget=turnlog.Budget(max_tokens=2_500))
        self.define()
        self.last = 0
        self.settled = True

    def define(self) -> None:
        """The sections, as a program adds them at each start."""
        self.session.prompt.add(
            *(Section(name, text) for name, text in self.static.items()),
            *(Section(f"if {n}", f"Under {n}.", when=when, priority=n) for n, when in enumerate(CONDITIONS[1:])),
            Section("branch", lambda: self.texts["start"], cap=50, priority=9),
            Section("files", lambda: self.texts["late"], place="late", cap=200, priority=8),
            Section("late if", "Late.", place="late", when=CONDITIONS[2]),
        )

    def look(self, *, sent: bool = False) -> None:
        """A request, judged. Of those that are sent, each begins with the one before it, unless something decided
        otherwise."""
        session = self.session
        try:
            request = session.request() if sent else session.preview()
        except BudgetError:
            return
        target = session.target
        assert target is not None
        assert errors_of(self.oracle, target, request.body) == []
        if not sent:
            return
        with turnlog.open("s", store=self.store, read_only=True) as other:
            assert other.request().json() == request.json()
        since, self.last = list(session.log.records(self.last + 1)), session.history()[-1].n
        if request.cache is not None and not any(isinstance(r.body, (Configuration, Decision)) for r in since):
            assert request.cache.shared == request.cache.previous

    def look_at_head(self) -> None:
        """The system text that counts, which begins with the static sections; after a rewind, once sections are looked
        at again: it takes back system text, but no sections, and until then requests show what the log shows."""
        if not self.settled:
            return
        try:
            view = self.session.preview().view
        except BudgetError:
            return
        said = [part.text for shown in view for part in shown.message.parts if isinstance(part, turnlog.Text)]
        anew = [text.split("\n\n", 1)[1] for text in said if text.startswith("[From here on, this replaces")]
        assert [*said[:1], *anew][-1].startswith("\n\n".join(self.static.values()))

    def step(self, kind: str, n: int) -> None:
        """One thing that happens."""
        session = self.session
        looks = kind in LOOKS and (kind != "call" or session.configuration.tools)
        self.settled = self.settled or looks or (kind == "reopen" and n % 2 == 1)
        match kind:
            case "turn":
                session.user(f"Turn {n}. " + "word " * (n * 3))
                self.look(sent=True)
                session.assistant("Done." + " Yes." * n)
            case "call":
                if not session.configuration.tools:
                    return  # else the tools declared would be those that were called, which changes with each new one
                session.user("Call.")
                session.add(turnlog.Message("assistant", (ToolCall(f"c{n}", "shell", {}),)))
                session.tool_result(f"c{n}", "output " * n)
                self.look(sent=True)
                session.assistant("Done.")
            case "static":
                self.static[f"more {n % 3}"] = f"More {n}."
                self.define()
            case "change":
                self.texts = {"start": f"branch {n % 4}", "late": "file.py " * (n % 5 * 40)}
            case "remove":
                self.static.pop(f"more {n % 3}", None)
                there = [section.name for section in session.prompt.sections]
                session.prompt.remove(*(name for name in (f"more {n % 3}",) if name in there))
            case "label":
                (session.prompt.label if n % 2 else session.prompt.unlabel)("slides")
            case "tools":
                session.configure(tools=TOOLS[: n % 3])
            case "switch":
                session.switch(TARGETS[n % len(TARGETS)])
            case "compact":
                session.compact(keep=1)
            case "rewind":
                try:
                    session.rewind(turns=1 + n % 2)
                except InputError:
                    return
                self.settled = False
            case "limit":
                session.prompt.limit((0, 40, 300)[n % 3])
            case "reopen":
                session.close()
                self.session = turnlog.open("s", store=self.store)
                if n % 2:
                    self.define()
        self.look()


@pytest.mark.slow
@given(steps=_steps, first=st.integers(0, 5))
@example(steps=[("turn", 0), ("static", 0), ("rewind", 0), ("change", 0)], first=0)  # no turn since the rewind
@settings(max_examples=examples(30, 1_000))
def test_sections_make_valid_requests_with_a_prefix_that_holds(
    oracle: ModuleType, steps: list[tuple[str, int]], first: int
) -> None:
    """A section in a place that a provider refuses, a prefix that moves without a decision, a static section that a
    condition, a function, a cap or a switch moves from the beginning, a request that another process makes
    otherwise."""
    life = Life(oracle, first)
    for kind, n in steps:
        life.step(kind, n)
        life.look_at_head()


_PROGRAM = """
import sys, turnlog
from turnlog.prompt import Section
with turnlog.open("s", store=sys.argv[1]) as session:
    session.prompt.add(Section("base", "Contract."), Section("files", lambda: "never called", place="late"))
    sys.stdout.buffer.write(session.request().json())
"""


def test_another_process_on_another_day_makes_the_same_bytes(tmp_path: Path) -> None:
    """A request that depends on the clock, the order of a set, or what this process has in memory."""
    place, texts = tmp_path / "s.db", iter(["a", "b", "b"])
    with turnlog.open("s", store=place, target=TARGETS[3], tools=TOOLS) as session:
        session.prompt.add(Section("base", "Contract."), Section("files", lambda: next(texts), place="late"))
        for n in range(3):
            session.user(f"Turn {n}")
            session.assistant("Done.")
        session.compact(keep=1)
        session.add(turnlog.Message("user", (turnlog.Text("More"),)))
        mine = session.request().json()
    environment: dict[str, Any] = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    command = [sys.executable, "-c", _PROGRAM, str(place)]
    assert subprocess.run(command, env=environment, capture_output=True, check=True).stdout == mine
