"""The events of an answer, the same for every provider, and an assembler that turns them into the answer.

A runner streams either the chunks of the request's provider, or these events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from ..errors import FormatError
from ..log.messages import Message, Part, Reasoning, Text, ToolCall
from ..log.usage import Usage
from .protocol import Delta, Provider, Reply, Stop

RunnerEventKind = Literal["text", "reasoning", "tool_call", "ran_tool", "usage", "done", "error"]


class RunnerEvent(Struct, frozen=True, repr_omit_defaults=True, kw_only=True):
    """An event of an answer, of one of these kinds:

    `text`, `reasoning`: `text` is the next piece of text or reasoning. `tool_call`: `call` is a call to run, sent when
    the answer is complete. `ran_tool`: `call` is a call that a program ran itself, which is not part of the answer.
    `usage`: `usage` is the bill. `done`: the answer has ended as `stop` says, see `turnlog.session.Answer.stop`.
    `error`: `text` says what went wrong, and `error` is the exception raised, None if the stream only broke off. The
    last event is `done` or `error`.
    """

    kind: RunnerEventKind
    text: str = ""
    call: ToolCall | None = None
    usage: Usage | None = None
    stop: Stop | None = None
    error: Exception | None = None


class AnswerAssembler:
    """Assembles a streamed answer: from the chunks of a provider, or from events.

    Reasoning from an event has no signature. It is recorded, and sent again to providers that require no signature.
    """

    def __init__(self, provider: Provider) -> None:
        self._provider = provider.name
        self._chunks = provider.assembler()
        self._stops = provider.stops
        self._parts: list[Part] = []
        self._open: Literal["text", "reasoning", ""] = ""
        self._pieces: list[str] = []
        self._usage: Usage | None = None
        self._stop = ""
        self._error = ""
        self._tells_events = False

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Process the next chunk or event. Returns the text that it adds. Raises FormatError."""
        if not isinstance(chunk, RunnerEvent):
            if self._tells_events:
                raise FormatError("expected another event of turnlog, found a chunk of a provider in the same stream")
            return self._chunks.feed(chunk)
        if chunk.kind == "ran_tool":
            return ()
        self._tells_events = True
        return self._take(chunk)

    def reply(self) -> Reply:
        """The answer so far, `complete` once its end has arrived."""
        if not self._tells_events:
            return self._chunks.reply()
        error = self._error or ("" if self._stop else "the stream ended before the answer was done")
        return Reply(
            message=Message("assistant", (*self._parts, *self._said())),
            usage=self._usage,
            stop=self._stop,
            complete=not error,
            error=error,
        )

    def _take(self, event: RunnerEvent) -> Sequence[Delta]:
        match event:
            case RunnerEvent(kind="text" | "reasoning" as kind, text=text):
                if not text:
                    return ()
                if kind != self._open:
                    self._close()
                    self._open = kind
                self._pieces.append(text)
                return (Delta(kind, text),)
            case RunnerEvent(kind="tool_call", call=ToolCall() as call):
                self._close()
                self._parts.append(call)
            case RunnerEvent(kind="usage", usage=usage):
                self._usage = usage
            case RunnerEvent(kind="done", stop=stop):
                self._stop = _word(stop or "end", self._stops)
            case RunnerEvent(kind="error", text=text, error=error):
                self._error = text or str(error) or "the answer failed"
        return ()

    def _close(self) -> None:
        self._parts += self._said()
        self._open, self._pieces = "", []

    def _said(self) -> list[Part]:
        """The text or reasoning that is still open."""
        text = "".join(self._pieces)
        if not text:
            return []
        return [Reasoning(self._provider, text) if self._open == "reasoning" else Text(text)]


def _word(stop: Stop, stops: Mapping[str, Stop]) -> str:
    """The provider's word for how an answer ended, as records have it, or turnlog's own if the provider has none."""
    return next((word for word, meaning in stops.items() if meaning == stop), stop)
