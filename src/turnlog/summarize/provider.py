"""Summaries that the provider of the conversation's own model makes, instead of a summarizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._platform.given import is_async
from ..errors import InputError
from .model import Complete, as_ladder
from .protocol import Summarizer

PROVIDER = "provider"
"""The setting `summarizer` for a program that sends requests for a compaction itself (see `Request.compaction`)."""


class ProviderSummarizer:
    """Has the provider of a session's model compact the conversation, if the model can be asked to.

        def send(request):
            return client.beta.messages.create(**request.body, betas=["compact-2026-09-04"])

        settings = turnlog.load_settings(summarizer=ProviderSummarizer(send))

    `send` gets a Request and returns the answer; it runs in a thread of its own and may raise any exception.
    `otherwise` is the summarizer for all other cases: models that cannot compact, and compactions that failed or came
    too late.
    """

    def __init__(self, send: Callable[[Any], Any], *, otherwise: Summarizer | Complete | None = None) -> None:
        """Raises InputError if `send` is asynchronous or not a function, or if `otherwise` is no summarizer."""
        if not callable(send) or is_async(send):
            raise InputError("send must be a function that takes a Request and returns the answer, not asynchronous")
        self.ladder = as_ladder(otherwise)
        self.send = send


Summarizing = Summarizer | Complete | ProviderSummarizer | str | None
"""What a session takes as summarizer; the only text is "provider"."""


def ladder_of(given: Summarizing) -> tuple[Summarizer, ...]:
    """The summarizers that turnlog asks itself, in order. Raises InputError as `as_ladder`."""
    if isinstance(given, ProviderSummarizer):
        return given.ladder
    if isinstance(given, str):
        if given != PROVIDER:
            raise InputError(f'summarizer: the only text is "{PROVIDER}", not {given!r}')
        return ()
    return as_ladder(given)
