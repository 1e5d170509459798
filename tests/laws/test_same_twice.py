"""A request that is asked for twice, or by a session that is opened again, is the same: bytes, edits and losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import turnlog
from judging import TARGETS
from thinking_sessions import BETAS, TOOLS
from turnlog.errors import BudgetError, InputError
from turnlog.log.budget import PRESETS
from turnlog.log.messages import Message, Part, Reasoning, ToolCall
from turnlog.models.target import Target
from turnlog.requests.request import Request
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

AIMS: tuple[Target, ...] = (
    *TARGETS,
    turnlog.target("openai-responses", "gpt-5.6"),  # its prompt cache has breakpoints
    turnlog.target("anthropic", "claude-fable-5-1", max_tokens=4_000),  # is told of system text in mid-conversation
    turnlog.target("anthropic", "claude-fable-5-1", max_tokens=4_000, betas=[*BETAS]),  # and of tools
    turnlog.target("anthropic", "claude-opus-5-5", max_tokens=4_000, thinking={"type": "adaptive"}, betas=[*BETAS]),
)
STEPS = {
    "user": 4,
    "assistant": 3,
    "answer": 4,
    "calls": 3,
    "result": 5,
    "more system text": 1,
    "system text": 4,
    "tools": 2,
    "pin": 1,
    "rewind": 1,
    "compact": 1,
    "undo": 1,
    "budget": 1,
    "strategy": 1,
    "setting": 1,
    "target": 1,
    "turn": 1,
    "clear": 1,
    "open anew": 1,
}
"""What may happen, and how often beside the others."""


class Life:
    """A session in which anything may happen."""

    def __init__(self, aim: Target) -> None:
        self.store = MemoryStore()
        self.session: Session = turnlog.open("s", store=self.store, target=aim)
        self.calls: list[str] = []
        self.n = 0

    def step(self, kind: str, number: int) -> None:
        """One step; `number` picks what it is about. What is refused with a reason changes nothing."""
        self.n += 1
        try:
            self._step(kind, number)
        except (InputError, BudgetError):
            return

    def _step(self, kind: str, number: int) -> None:
        session, text = self.session, f"word {self.n} " * (1, 40, 400)[number % 3]
        match kind:
            case "user":
                session.user(text)
            case "assistant":
                session.assistant(text)
            case "answer":
                self.answer(text)
            case "calls":
                self.call(number)
            case "result" if self.calls:
                session.tool_result(self.calls.pop(number % len(self.calls)), text)
            case "more system text":
                session.system(text)
            case "system text":
                session.system(f"Rule {number % 5}. " * (1, 300)[number % 2], replace=True)
            case "tools":
                session.configure(tools=[tool for i, tool in enumerate(TOOLS) if number & 1 << i])
            case "pin":
                session.pin(1 + number % session.history()[-1].n)
            case "rewind":
                session.rewind(turns=1 + number % 2)
            case "compact":
                session.compact(keep=(None, 1, 2)[number % 3])
            case "undo":
                session.undo()
            case "budget":
                session.configure(budget=(600, 3_000, 12_000, 100_000)[number % 4])
            case "strategy":
                session.configure(strategy=sorted(PRESETS)[number % len(PRESETS)])
            case "setting":
                session.configure(temperature=1.0)
            case "target":
                session.switch(AIMS[number % len(AIMS)])
            case "turn":
                with session.turn(text):
                    session.assistant(text)
            case "clear":
                session.clear()
            case "open anew":
                session.close()
                self.session = turnlog.open("s", store=self.store)

    def answer(self, text: str) -> None:
        """An answer of the model, with a thought and a bill, where its format is Anthropic's; else only its text."""
        target = self.session.target
        assert target is not None
        if target.provider != "anthropic":
            self.session.assistant(text)
            return
        size = self.session.request().tokens
        thought = {"type": "thinking", "thinking": f"Hm {self.n}.", "signature": f"s{self.n}"}
        usage = {
            "input_tokens": 10,
            "output_tokens": 9,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": size,
        }
        head = {"id": f"msg_{self.n}", "type": "message", "role": "assistant", "model": target.model, "usage": usage}
        self.session.receive({**head, "stop_reason": "end_turn", "content": [thought, {"type": "text", "text": text}]})

    def call(self, number: int) -> None:
        """An answer of one to three calls, some behind a thought."""
        target = self.session.target
        assert target is not None
        made = [f"call_{self.n}_{i}" for i in range(1 + number % 3)]
        self.calls += made
        parts: list[Part] = [ToolCall(call, ("read", "write", "other")[number % 3], {"p": call}) for call in made]
        if number % 4 == 0:
            parts.insert(0, Reasoning(target.provider, "hm", signature=f"s{self.n}"))
        self.session.add(Message("assistant", tuple(parts)))

    def check(self) -> None:
        """The request is the same however it is asked for."""
        other = Session(self.store, self.store.info("s"))
        ways: list[Callable[[], Request]] = [self.session.request] * 2
        ways += [self.session.preview, other.request, other.preview, self.session.request]
        said = [_said(way) for way in ways]
        assert said == said[:1] * len(said)


def _said(way: Callable[[], Request]) -> tuple[Any, ...]:
    """What a request says; nothing if not even the least fits."""
    try:
        made = way()
    except BudgetError:
        return ()
    return made.json(), made.edits, made.losses


_KINDS = [kind for kind, often in STEPS.items() for _ in range(often)]
_LIVES = st.lists(st.tuples(st.sampled_from(_KINDS), st.integers(0, 999)), min_size=1, max_size=25)


@pytest.mark.slow
@given(aim=st.sampled_from(AIMS), steps=_LIVES)
@example(  # without tools, a later configuration moved the system text to the beginning, and the cache mark with it
    aim=AIMS[-2],
    steps=[
        *(("system text", 1), ("user", 0), ("assistant", 0), ("system text", 1), ("system text", 2)),
        *(("budget", 3), ("user", 1)),
    ],
)
def test_a_request_is_the_same_however_often_it_is_asked_for(aim: Target, steps: list[tuple[str, int]]) -> None:
    """What a retry sends, or a process that takes over, would miss the prompt cache, and lose thinking that is bound to
    what was sent before."""
    life = Life(aim)
    for kind, number in steps:
        life.step(kind, number)
        life.check()
