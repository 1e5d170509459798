"""The model `scripted/demo`, a part of turnlog: for demonstrations, tests and documentation, without a network."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

from .._platform.given import list_given, number_given
from .._platform.lazy import lazy_pattern
from ..errors import InputError
from ..log.messages import Reasoning, Text, ToolCall, ToolResult, sha256_hex, text_of
from ..log.usage import Usage
from ..providers import provider
from ..providers.answer_events import RunnerEvent, RunnerEventKind
from ..requests.request import Request
from ..tokens.counters import counter_for
from ..view.types import Shown

DEMO_MODEL = "scripted/demo"
"""The name of the model; a target of any provider may have it."""

Piece = str | Text | Reasoning | ToolCall
Script = Piece | Sequence[Piece] | BaseException | Callable[[Request], Any]
"""One scripted answer: a text, a call, several of them, an error to raise, or a function of the request that returns
one of these."""

_CALL = lazy_pattern(r"^\s*CALL\s+(\S+)\s*(\{.*\})?\s*$", re.MULTILINE)
_PIECES = lazy_pattern(r"\S+\s*|\s+")
_SHOWN = 200
"""The most characters of a tool's result that the model repeats."""


class ScriptedRunner:
    """Answers with `answers` in order; after the last one, from the text of the request.

    Without a script it repeats what the user says. A user's line `CALL name {"key": "value"}` makes it call that tool,
    if the request declares it; after tool results it repeats their content. The same request always gets the same
    answer. `pause` is the number of seconds before each piece of an answer.
    """

    def __init__(self, answers: Iterable[Script] = (), *, pause: float = 0.0) -> None:
        self._answers = list_given("answers", answers, "answers")
        self._pause = number_given("pause", pause)
        self.requests: list[Request] = []
        """The requests that were sent, in order."""

    async def stream(self, request: Request) -> AsyncIterator[RunnerEvent]:
        """The events of the answer."""
        self.requests.append(request)
        answer = self._answers.pop(0) if self._answers else _answer_to(request)
        if not isinstance(answer, (str, Text, Reasoning, ToolCall, BaseException)) and callable(answer):
            answer = answer(request)
        if isinstance(answer, BaseException):
            raise answer
        target = request.target
        pieces = [answer] if isinstance(answer, (str, Text, Reasoning, ToolCall)) else list(answer)
        request_hash = sha256_hex(request.json())[:12]
        written = 0
        count = counter_for(target.provider, target.model).text
        for number, piece in enumerate(pieces):
            if isinstance(piece, ToolCall):
                call = ToolCall(piece.id or f"call_{request_hash}_{number}", piece.name, piece.arguments, piece.raw)
                told = [RunnerEvent(kind="tool_call", call=call)]
                written += count(piece.raw_arguments)
            else:
                text = _text(piece)
                kind: RunnerEventKind = "reasoning" if isinstance(piece, Reasoning) else "text"
                told = [RunnerEvent(kind=kind, text=word) for word in _PIECES.findall(text)]
                written += count(text)
            for event in told:
                await asyncio.sleep(self._pause)
                yield event
        yield RunnerEvent(kind="usage", usage=Usage(input=request.tokens, output=written))
        yield RunnerEvent(
            kind="done", stop="tool_calls" if any(isinstance(part, ToolCall) for part in pieces) else "end"
        )

    async def aclose(self) -> None:
        """Do nothing, as nothing is open."""


def _text(piece: Any) -> str:
    if isinstance(piece, (str, Text, Reasoning)):
        return piece if isinstance(piece, str) else piece.text
    raise InputError(f"a scripted answer consists of texts and calls, not {type(piece).__name__}")


def _answer_to(request: Request) -> list[Piece]:
    """What the model says without a script."""
    results = _newest_results(request.view)
    if results:
        return ["\n".join(f"{result.name or 'The tool'} says: {_held(result)}" for result in results)]
    asked = next((text_of(shown.message) for shown in reversed(request.view) if shown.message.role == "user"), "")
    declared = {tool.name for tool in provider(request.target.provider).parse(request.body).configuration.tools}
    calls: list[Piece] = []
    for name, arguments in _CALL.findall(asked):
        try:
            value = json.loads(arguments or "{}")
        except ValueError:
            continue
        if name in declared:
            calls.append(ToolCall("", name, value))
    return calls or [f"You said: {asked}"]


def _newest_results(view: Sequence[Shown]) -> list[ToolResult]:
    """The results at the very end of the conversation."""
    newest_results: list[ToolResult] = []
    for shown in reversed(view):
        results = [part for part in shown.message.parts if isinstance(part, ToolResult)]
        if shown.message.role != "user" or not results:
            break
        newest_results[:0] = results
    return newest_results


def _held(result: ToolResult) -> str:
    return "".join(part.text for part in result.parts if isinstance(part, Text))[:_SHOWN]
