"""When a request that a server did not take is sent again: after which errors and how long, and only if nobody was
shown anything of an answer."""

from __future__ import annotations

import random  # noqa: TID251 - of waits, which are in no request
from collections.abc import Callable
from typing import Any

from .._platform.lazy import lazy_pattern
from ..errors import FormatError, RateLimited, RunnerError, RunnerFailed
from ..models.target import Target
from ..providers import provider
from ..providers.answer_events import AnswerAssembler, RunnerEvent

MOST_TRIES = 5
"""How often one request is sent at most. The last round of a runner that sends again by itself may add to it."""

LONGEST = 60.0
"""Seconds of the longest wait. If a provider asks for a longer one, its error is raised."""

_FIRST = 1.0
"""Seconds of the first wait if the provider does not say how long; each further one is twice as long, and each up to
half longer or shorter, so that many clients do not come back at once."""

chance = random.random
"""The numbers from 0 to 1 that vary the waits."""

_FAILED = frozenset((500, 502, 520, 521, 522, 523, 524))
"""HTTP statuses of servers that failed at this request, and may answer the next (5xx above 502: Cloudflare's)."""


class Waits:
    """How long to wait before each further try of one request. `chance` gives numbers from 0 to 1."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self._tries = 0
        self._untold = 0

    def after(self, error: RunnerError, longest: float = LONGEST) -> float | None:
        """The seconds to wait before the request is sent again; None if it is not to be: the error is of another kind,
        it was sent often enough, the wait would be longer than `longest`, or credit is used up."""
        self._tries += error.tries
        told = error.retry_after if isinstance(error, RateLimited) else None
        most = MOST_TRIES if _passes(error) else min(MOST_TRIES, 1 + error.again)
        if self._tries >= most or (told or 0.0) > longest:
            return None
        if told is not None:
            return told
        self._untold += 1
        return _FIRST * 2.0 ** (self._untold - 1) * (0.5 + self._chance())


def _passes(error: RunnerError) -> bool:
    """Whether a server may take the same request a little later."""
    if isinstance(error, RateLimited):
        return not error.exhausted
    return isinstance(error, RunnerFailed) and error.status in _FAILED


# -- openings --------------------------------------------------------------------------------------
#
# The beginning of an answer, held back until it says something: what nobody was shown can be asked for again.

_BROKE_OFF = lazy_pattern(r"(?i)network|overload|unavailable|insufficient_system_resource|^error$")
"""Words for the end of an answer with which a server says that it failed, and not the model (Z.ai, DeepSeek,
OpenRouter; hermes-agent#92161 of streams that end so before anything was said)."""


class Opening:
    """The chunks of one answer. `held` are those that nobody was given yet, `has_begun` tells that one of them said
    something. A server can fail after the chunk that only names the model and the role, and before any text."""

    def __init__(self, target: Target) -> None:
        self._speaker = provider(target.provider)
        self._assembler = AnswerAssembler(self._speaker)
        self.held: list[Any] = []
        self.has_begun = False

    def take(self, chunk: Any) -> list[Any]:
        """The chunks to give to the reader after one more has come."""
        if self.has_begun:
            return [chunk]
        self.held.append(chunk)
        self.has_begun = isinstance(chunk, RunnerEvent) or self._says(chunk)
        if not self.has_begun:
            return []
        held, self.held = self.held, []
        return held

    def _says(self, chunk: Any) -> bool:
        try:
            told = self._assembler.feed(chunk)
            reply = self._assembler.reply()
        except FormatError:  # it is told where the answer is recorded
            return True
        return bool(told or reply.message.parts or reply.fragments)

    def failure(self) -> RateLimited | None:
        """After the last chunk, the error for an answer that ended before it began, with a word for a server that
        failed; else None."""
        if self.has_begun or not self.held:
            return None
        stop = self._assembler.reply().stop
        if not _BROKE_OFF.search(stop):
            return None
        return RateLimited(self._speaker.row.maker.name, f"the server ended the answer with {stop}")
