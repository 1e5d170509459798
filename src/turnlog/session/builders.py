"""The builders of a session's requests, one for each way in which requests are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from ..log.messages import Tool
from ..log.records import Configuration, Record
from ..models.target import Target
from ..providers.protocol import BlobReader
from ..requests.build import Builder
from ..requests.carried import are_carried
from ..requests.size import Sizing
from ..requests.translate import plan
from ..tokens.counters import counter_for
from ..tokens.protocol import Counter
from ..view.bound_reasoning import Bound

_KEPT = 3
"""So many builders are kept. Each remembers what it built last."""


class Builders:
    """The last builders of a session; `bindings` are those of its answers and compactions, by record."""

    def __init__(
        self, blob: BlobReader, sizing: Callable[[Counter], Sizing], records: Callable[[], Iterable[Record]]
    ) -> None:
        self.bindings: dict[int, Bound] = {}
        self._records = records
        self._blob = blob
        self._sizing = sizing
        self._made: list[tuple[Target, tuple[Tool, ...], Builder]] = []

    def of(self, configuration: Configuration, aim: Target, tools: tuple[Tool, ...]) -> Builder:
        """The builder of requests for a target that declare these tools at their beginning."""
        for target, declared, builder in self._made:
            if target == aim and declared == tools:
                return builder
        sizing = self._sizing(counter_for(aim.provider, aim.model))
        said = (record.message for record in (self._records() if are_carried(tools, aim.provider) else ()))
        messages = (message for message in said if message is not None)
        ways = plan(msgspec.structs.replace(configuration, tools=tools), aim, messages=messages)
        made = Builder(ways, self._blob, sizing, self.bindings)
        self._made = [(aim, tools, made), *self._made[: _KEPT - 1]]
        return made

    def clear(self) -> None:
        """Drop all of them: the configuration changed."""
        self._made.clear()
