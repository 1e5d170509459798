"""What the prompt caches of providers hold of a session, as far as its requests tell."""

from __future__ import annotations

from collections.abc import Mapping

from ..log.records import Decision
from ..models.target import Target
from ..requests.prompt_cache import Sent, use_of
from ..requests.request import CacheUse

_REMEMBERED = 3
"""The number of targets whose last request is remembered."""


class Caches:
    """The last request to each of the last few targets."""

    def __init__(self) -> None:
        self._sent: dict[tuple[str, str], Sent] = {}

    def last(self, target: Target) -> Sent | None:
        """The last request to the model of a target."""
        return self._sent.get((target.provider, target.model))

    def use(self, now: Sent, decisions: Mapping[int, Decision]) -> CacheUse | None:
        """How much of the last request to the same model the request `now` repeats; None if there was none."""
        before = self.last(now.plan.target)
        return None if before is None else use_of(now, before, decisions)

    def sent(self, now: Sent) -> None:
        """Remember a request that is going to be sent."""
        name = now.plan.target.provider, now.plan.target.model
        others = [item for item in self._sent.items() if item[0] != name]
        self._sent = {name: now, **dict(others[: _REMEMBERED - 1])}
