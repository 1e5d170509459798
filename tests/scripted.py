"""Summarizers that do as they are told, for tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import SummaryRecord
from turnlog.summarize import Material
from turnlog.summarize.ledger import Ledger
from turnlog.view.types import Shown

__all__ = ["PATIENCE", "Blocked", "Scripted", "a_run", "material", "said", "states", "words"]

PATIENCE = 60.0
"""Seconds that a test waits for what is sure to come."""


def words(text: str) -> int:
    """A count of tokens that is easy to foresee."""
    return len(text.split())


class Scripted:
    """Answers with what `answer` says, or raises it; keeps what it was given."""

    def __init__(self, answer: str | BaseException | Callable[[Material], str], name: str = "model/1") -> None:
        self.id = name
        self.asked: list[Material] = []
        self._answer = answer

    def summarize(self, material: Material, /) -> str:
        """The next answer."""
        self.asked.append(material)
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer if isinstance(self._answer, str) else self._answer(material)


class Blocked(Scripted):
    """Does not answer before it is let."""

    def __init__(self, answer: str | BaseException, name: str = "model/1") -> None:
        super().__init__(answer, name)
        self.let = threading.Event()

    def summarize(self, material: Material, /) -> str:
        """The answer, once it may."""
        self.let.wait()
        return super().summarize(material)


def said(n: int, role: str, text: str) -> Shown:
    """A message of record `n`."""
    return Shown(Message(role, (Text(text),)), (n,))  # type: ignore[arg-type]


def a_run() -> tuple[Shown, ...]:
    """A short conversation with a tool, records 1 to 4."""
    call = ToolCall("c1", "shell", {"command": "pytest -q"})
    return (
        said(1, "user", "Make the tests of invoice.py pass and do not touch the database."),
        Shown(Message("assistant", (Text("I run them."), call)), (2,)),
        Shown(Message("user", (ToolResult("c1", "shell", (Text("3 failed, 41 passed, see log " * 20),)),)), (3,)),
        said(4, "assistant", "Three tests fail because of rounding."),
    )


def material(messages: Sequence[Shown] | None = None, *, target: int = 20, previous: str = "") -> Material:
    """What is to be summarised, counted in words."""
    shown = a_run() if messages is None else tuple(messages)
    return Material(messages=shown, target=target, count=words, previous=previous)


def states(ledger: Ledger, key: str) -> list[tuple[str, str]]:
    """What the ledger says of a key: states, with text or reason."""
    return [(body.state, body.text or body.reason) for _, body in ledger.find(key) if isinstance(body, SummaryRecord)]
