"""What a count is made of, and what every counter can do."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from ..errors import InputError
from ..log.messages import Message, Tool, ToolResult

Certainty = Literal["exact", "calibrated", "estimated"]
"""`exact`: what the provider bills, as far as was ever seen. `calibrated`: an estimate corrected by
what was billed before. `estimated`: neither."""

BlobReader = Callable[[str], bytes]
"""Media bytes by hex SHA-256; raises BlobMissing."""

Choice = Literal["auto", "required", "named", "none"]
"""What a request says of its tools: some providers bill a forced call differently."""


class Tally(Struct, frozen=True, gc=False, kw_only=True):
    """Tokens by kind, and how far to trust them.

    `user` and `assistant` are what was said (an assistant's calls and reasoning included), `images`
    all media, `framing` what a provider puts around messages and requests.
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
        """All of them."""
        said = self.system + self.user + self.assistant
        return said + self.tools + self.tool_results + self.images + self.framing

    @property
    def parts(self) -> dict[str, int]:
        """Tokens by kind, in the order in which providers take them."""
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


def tokens_said(said: Any, wanted: str) -> int:
    """What a counter returned, if it is a number of tokens; else InputError, which says what is `wanted`."""
    try:
        tokens = operator.index(said)
    except TypeError:
        tokens = -1
    if tokens < 0:
        raise InputError(f"{wanted}; this one returned {said!r}, where a whole number from 0 on is wanted")
    return tokens


def last_turn(messages: Sequence[Message]) -> int:
    """Where the last turn begins: the index after the last message in which a user speaks.

    Results of tools do not end a turn. Reasoning from before it is dropped by providers that bill
    reasoning at all, so it counts for nothing.
    """
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "user" and not any(isinstance(part, ToolResult) for part in message.parts):
            return index + 1
    return 0


def _weaker(left: Certainty, right: Certainty) -> Certainty:
    return left if left == right else max(left, right, key=CERTAINTIES.index)


CERTAINTIES: tuple[Certainty, ...] = ("exact", "calibrated", "estimated")
"""How far counts can be trusted, the most first."""


class Counter(Protocol):
    """Counts for one provider and model. Plug in a better one by giving it these five things.

    A counter is pure: the same content gives the same count, and `id` changes when that does.
    """

    @property
    def id(self) -> str:
        """Name and version, as stored with every count."""

    def text(self, text: str) -> int:
        """Tokens of a text by itself. Raises nothing, whatever the text."""

    def messages(self, messages: Sequence[Message], blob: BlobReader | None = None) -> Tally:
        """Messages as part of a request, what frames each included.

        Parallel calls and their results are counted best together; one message by itself is counted
        as if nothing else were there. Without `blob`, media are taken to be of common size.
        """

    def tools(self, tools: Sequence[Tool], choice: Choice = "auto") -> Tally:
        """Tool declarations, with whatever a provider adds to a request that has any."""

    def frame(self, *, system: bool, tools: bool) -> Tally:
        """What a request costs beside its messages and tools: whether it has system text or tools
        changes it."""
