"""The protocol of counters, and the tallies that they return."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from ..errors import InputError
from ..log.messages import Message, Tool, ToolResult

Certainty = Literal["exact", "calibrated", "estimated"]
"""`exact`: all recorded bills are equal to the count. `calibrated`: an estimate corrected by earlier bills.
`estimated`: neither."""

BlobReader = Callable[[str], bytes]
"""Media bytes by hex SHA-256; raises BlobMissing."""

Choice = Literal["auto", "required", "named", "none"]
"""The tool choice of a request: some providers bill a forced call differently."""


class Tally(Struct, frozen=True, gc=False, kw_only=True):
    """Tokens by kind, and their certainty.

    `user` and `assistant` are messages (including an assistant's calls and reasoning), `images` all media, `framing`
    the tokens that a provider adds around messages and requests.
    """

    system: int = 0
    tools: int = 0
    user: int = 0
    assistant: int = 0
    tool_results: int = 0
    images: int = 0
    framing: int = 0
    certainty: Certainty = "exact"

    @property
    def tokens(self) -> int:
        """The sum of all kinds."""
        in_messages = self.system + self.user + self.assistant
        return in_messages + self.tools + self.tool_results + self.images + self.framing

    @property
    def parts(self) -> dict[str, int]:
        """Tokens by kind, in the order of a request."""
        return {name: getattr(self, name) for name in self.__struct_fields__ if name != "certainty"}

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            system=self.system + other.system,
            tools=self.tools + other.tools,
            user=self.user + other.user,
            assistant=self.assistant + other.assistant,
            tool_results=self.tool_results + other.tool_results,
            images=self.images + other.images,
            framing=self.framing + other.framing,
            certainty=_weaker(self.certainty, other.certainty),
        )


def tokens_said(said: Any, call: str) -> int:
    """Check a number of tokens that `call`, a function given by the user, returned. Raises InputError."""
    try:
        tokens = operator.index(said)
    except TypeError:
        tokens = -1
    if tokens < 0:
        raise InputError(f"{call} returned {said!r}; it must return a whole number, at least 0")
    return tokens


def last_turn(messages: Sequence[Message]) -> int:
    """The index after the last user message that contains no tool results: the model's last turn begins there.

    Providers that bill reasoning drop the reasoning of earlier turns, so it is not counted.
    """
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "user" and not any(isinstance(part, ToolResult) for part in message.parts):
            return index + 1
    return 0


def _weaker(left: Certainty, right: Certainty) -> Certainty:
    return left if left == right else max(left, right, key=CERTAINTIES.index)


CERTAINTIES: tuple[Certainty, ...] = ("exact", "calibrated", "estimated")
"""All certainties, the most certain first."""


class Counter(Protocol):
    """Counts for one provider and model. Any object with these five members can replace the built-in one.

    A counter is pure: the same content gives the same count, and `id` changes whenever counts do.
    """

    @property
    def id(self) -> str:
        """Name and version, as stored with every count."""

    def text(self, text: str) -> int:
        """Tokens of a text by itself. Never raises."""

    def messages(self, messages: Sequence[Message], blob: BlobReader | None = None) -> Tally:
        """Messages as part of a request, with their framing.

        Parallel calls and their results are best counted together; a single message is counted as if there were no
        others.
        Without `blob`, media are assumed to have a common size.
        """

    def tools(self, tools: Sequence[Tool], choice: Choice = "auto") -> Tally:
        """Tool declarations, with the tokens that a provider adds to a request with tools."""

    def frame(self, *, system: bool, tools: bool) -> Tally:
        """The tokens of a request except its messages and tools. They depend on whether it has system text and
        tools."""
