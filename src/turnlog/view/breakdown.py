"""Divide the tokens of a conversation by kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from msgspec import Struct

from ..log.budget import Budget, Thresholds
from ..log.messages import Message, ToolCall, ToolResult
from ..tokens.protocol import BlobReader, Certainty, Counter, Tally
from .types import Shown

Kind = Literal["system", "tools", "summary", "user", "assistant", "tool results", "images", "framing"]
"""`tools`: the declarations of tools. `tool results`: the results of one tool. `images`: all media. `framing`: the
tokens that a provider adds to a request."""

_KINDS: dict[str, Kind] = {"system": "system", "user": "user", "assistant": "assistant", "images": "images"}
KINDS: tuple[Kind, ...] = get_args(Kind)
"""All kinds, in the order of a request."""

_Key = tuple[Kind, str]  # the kind, and the tool's name


class Share(Struct, frozen=True):
    """Tokens of one kind; `name` is the tool's name if the kind is `tool results`, else empty."""

    kind: Kind
    tokens: int
    name: str = ""


class Breakdown(Struct, frozen=True):
    """The tokens of a conversation by kind, and its budget.

    `shares`: the tokens of each kind. `marks`: limit, trigger and goal of `budget` in counted tokens; if counts are
    estimates, a margin has been subtracted. `certainty` and `counter`: how far to trust the counts, as in
    `turnlog.count`. `curated`: the tokens that curation saved, by kind of tool output (`kind` of `turnlog.curate`), the
    largest first.
    """

    provider: str
    model: str
    strategy: str
    budget: Budget
    marks: Thresholds
    shares: tuple[Share, ...]
    certainty: Certainty
    counter: str
    curated: tuple[tuple[str, int], ...] = ()

    def __repr__(self) -> str:
        shares = ", ".join(
            f"{share.kind}{share.name and f' of {share.name}'} {share.tokens:,}" for share in self.shares
        )
        return f"Breakdown({self.provider} {self.model}, {self.tokens:,} of {self.marks.limit:,} tokens: {shares})"

    @property
    def tokens(self) -> int:
        """The tokens of a whole request."""
        return sum(share.tokens for share in self.shares)

    @property
    def free(self) -> int:
        """The tokens left up to the limit; 0 if the conversation exceeds it."""
        return max(0, self.marks.limit - self.tokens)


class Splitter:
    """Divides the tokens of messages by kind, each message once: of many views of one session, what they have in common
    is counted once."""

    def __init__(self, counter: Counter, blob: BlobReader) -> None:
        self.counter = counter
        self._blob = blob
        self._divided: dict[int, tuple[Message, Tally, dict[_Key, int]]] = {}  # by the identity of the message

    def divided(self, shown: Shown, names: Mapping[str, str]) -> tuple[Tally, dict[_Key, int]]:
        """The tokens of a message, in all and by kind; `names` are those of the tools by the ids of their calls."""
        found = self._divided.get(id(shown.message))
        if found is None:
            tally = self.counter.messages((shown.message,), self._blob)
            found = shown.message, tally, _split(shown, tally.parts, names, self.counter)
            self._divided[id(shown.message)] = found
        return found[1:]

    def keep(self, view: Iterable[Shown]) -> None:
        """Let go of all messages but those of a view."""
        kept = {id(shown.message) for shown in view}
        self._divided = {key: found for key, found in self._divided.items() if key in kept}


def shares_of(
    view: Sequence[Shown], sizes: Sequence[int], declared: Tally, around: Tally, splitter: Splitter
) -> tuple[tuple[Share, ...], Certainty]:
    """The tokens of a conversation as it is sent, by kind, the largest tools first; and how far to trust them.

    `declared`: the tokens of the tools' declarations. `around`: the tokens of the framing. `sizes`: the tokens of each
    message within the request. If this differs from the size of the message by itself, the difference is added to the
    message's kind.
    """
    tally = declared + around
    sums: dict[_Key, int] = {("tools", ""): declared.tokens, ("framing", ""): tally.framing}
    names: dict[str, str] = {}
    for shown, size in zip(view, sizes, strict=True):
        for part in shown.message.parts:
            if isinstance(part, ToolCall):
                names[part.id] = part.name
        message_tally, divided = splitter.divided(shown, names)
        tally += message_tally
        for key, tokens in divided.items():
            sums[key] = sums.get(key, 0) + tokens
        if size != message_tally.tokens:
            key = _kind_of(shown, names)
            sums[key] = sums.get(key, 0) + size - message_tally.tokens
    content_tokens = sum(tokens for key, tokens in sums.items() if key[0] != "framing")
    sums["framing", ""] = declared.tokens + around.tokens + sum(sizes) - content_tokens
    shares = [Share(kind, tokens, name) for (kind, name), tokens in sums.items() if tokens]
    shares.sort(key=lambda share: (KINDS.index(share.kind), -share.tokens, share.name))
    return tuple(shares), tally.certainty


def _kind_of(shown: Shown, names: Mapping[str, str]) -> _Key:
    """The kind of a message as a whole."""
    result = next((part for part in shown.message.parts if isinstance(part, ToolResult)), None)
    if result is not None:
        return "tool results", _tool_of(result, names)
    return ("summary" if shown.stands_in else _KINDS[shown.message.role]), ""


def _tool_of(result: ToolResult, names: Mapping[str, str]) -> str:
    return result.name or names.get(result.call_id) or "unknown"


def _split(shown: Shown, parts: dict[str, int], names: Mapping[str, str], counter: Counter) -> dict[_Key, int]:
    """The tokens of one message by kind, without framing."""
    sums: dict[_Key, int] = {}
    for name, kind in _KINDS.items():
        key: _Key = ("summary" if shown.stands_in else kind, "")
        sums[key] = sums.get(key, 0) + parts[name]
    left = parts["tool_results"]
    results = [part for part in shown.message.parts if isinstance(part, ToolResult)]
    for i, result in enumerate(results):
        alone = counter.messages((Message(shown.message.role, (result,)),)).tool_results
        tokens = left if i == len(results) - 1 else min(left, alone)
        left -= tokens
        tool = _tool_of(result, names)
        sums["tool results", tool] = sums.get(("tool results", tool), 0) + tokens
    return sums
