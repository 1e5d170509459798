"""The protocol of runners: a prepared request in, the chunks of the answer out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

from ..providers.answer_events import RunnerEvent as RunnerEvent
from ..requests.request import Request


class Runner(Protocol):
    """Sends requests to a model."""

    def stream(self, request: Request) -> AsyncIterator[Any]:
        """Send a request. Yields the chunks of the answer as the provider's SDK streams them, or the answer as
        `RunnerEvent`s: for `Session.areceive`, which records them, or for `events`. Raises a RunnerError."""
        ...

    async def aclose(self) -> None:
        """Close what this runner has opened, but nothing that was given to it."""
        ...
