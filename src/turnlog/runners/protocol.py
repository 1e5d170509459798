"""The protocol of runners: a prepared request in, the chunks of the answer out; and the events that these chunks mean,
the same for every provider."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Literal, Protocol

from ..errors import RunnerError
from ..log.messages import Reasoning, Text, ToolCall
from ..models.target import Target
from ..providers import provider
from ..providers.answer_events import AnswerAssembler
from ..providers.answer_events import RunnerEvent as RunnerEvent
from ..providers.protocol import Reply
from ..requests.request import Request
from ..session.answer import stop_of, told_apart
from ..session.inputs import to_run


class Runner(Protocol):
    """Sends requests to a model."""

    def stream(self, request: Request) -> AsyncIterator[Any]:
        """Send a request. Yields the chunks of the answer as the provider's SDK streams them, or the answer as
        `RunnerEvent`s: for `Session.areceive`, which records them, or for `events`. Raises a RunnerError."""
        ...

    async def aclose(self) -> None:
        """Close what this runner has opened, but nothing that was given to it."""
        ...


# -- events: text, reasoning, tool calls, usage, and the end of an answer --------------------------


class EventReader:
    """Makes the events of one answer from its chunks, for `target`."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._assembler = AnswerAssembler(provider(target.provider))
        self._told: dict[str, list[str]] = {"text": [], "reasoning": []}

    def feed(self, chunk: Any) -> list[RunnerEvent]:
        """The events of the next chunk. Raises FormatError for a chunk that is not the provider's."""
        if isinstance(chunk, RunnerEvent) and chunk.kind == "ran_tool":
            return [chunk]
        return self._pieces((delta.kind, delta.text) for delta in self._assembler.feed(chunk))

    def end(self, error: Exception | None = None) -> list[RunnerEvent]:
        """The events after the last chunk, or after the `error` that ended the stream."""
        reply = told_apart(self._assembler.reply())
        last_events = self._pieces(self._untold(reply))
        reason = str(error) if error is not None else "" if reply.complete else reply.error
        if not (error or reason):
            calls = [part for part in reply.message.parts if isinstance(part, ToolCall)]
            last_events += [RunnerEvent(kind="tool_call", call=to_run(call)) for call in calls]
        if reply.usage is not None:
            last_events.append(RunnerEvent(kind="usage", usage=reply.usage))
        if error or reason:
            return [*last_events, RunnerEvent(kind="error", text=reason, error=error)]
        return [*last_events, RunnerEvent(kind="done", stop=stop_of(reply, self._target))]

    def _pieces(self, pieces: Iterable[tuple[Literal["text", "reasoning"], str]]) -> list[RunnerEvent]:
        piece_events = []
        for kind, text in pieces:
            self._told[kind].append(text)
            piece_events.append(RunnerEvent(kind=kind, text=text))
        return piece_events

    def _untold(self, reply: Reply) -> list[tuple[Literal["text", "reasoning"], str]]:
        """The text and reasoning of the answer that did not come piece by piece."""
        parts = [*reply.message.parts, *reply.fragments]
        thoughts = [part.text or "".join(part.summary) for part in parts if isinstance(part, Reasoning)]
        texts = [part.text for part in parts if isinstance(part, Text)]
        missing_texts: list[tuple[Literal["text", "reasoning"], str]] = []
        for kind, whole in (("reasoning", "".join(thoughts)), ("text", "".join(texts))):
            told = "".join(self._told[kind])
            if len(whole) > len(told) and whole.startswith(told):
                missing_texts.append((kind, whole[len(told) :]))  # type: ignore[arg-type]
        return missing_texts


async def events(runner: Runner, request: Request) -> AsyncIterator[RunnerEvent]:
    """Send a request and yield the events of the answer. Errors of the runner become events; cancellation and
    programming errors are raised. Nothing is recorded: `Session.areceive(runner.stream(request), request)` does
    that."""
    reader = EventReader(request.target)
    failed: RunnerError | None = None
    chunks = runner.stream(request)
    try:
        async for chunk in chunks:
            for event in reader.feed(chunk):
                yield event
    except RunnerError as error:
        failed = error
    finally:
        await closed(chunks)  # if nobody reads on, what the runner has started ends now
    for event in reader.end(failed):
        yield event


async def closed(chunks: Any) -> None:
    """Close a stream of chunks, if it can be closed."""
    if hasattr(chunks, "aclose"):
        await chunks.aclose()
