"""Divide the tokens of a conversation by kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
_ORDER: tuple[Kind, ...] = get_args(Kind)


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


def shares_of(
    view: Sequence[Shown], sizes: Sequence[int], declared: Tally, around: Tally, counter: Counter, blob: BlobReader
) -> tuple[tuple[Share, ...], Certainty]:
    """The tokens of a conversation as it is sent, by kind, the largest tools first; and how far to trust them.

    `declared`: the tokens of the tools' declarations. `around`: the tokens of the framing. `sizes`: the tokens of each
    message within the request. If this differs from the size of the message by itself, the difference is added to the
    message's kind.
    """
    tally = declared + around
    sums: dict[tuple[Kind, str], int] = {("tools", ""): declared.tokens, ("framing", ""): tally.framing}
    names: dict[str, str] = {}
    for shown, size in zip(view, sizes, strict=True):
        for part in shown.message.parts:
            if isinstance(part, ToolCall):
                names[part.id] = part.name
        message_tally = counter.messages((shown.message,), blob)
        tally += message_tally
        for key, tokens in _split(shown, message_tally.parts, names, counter).items():
            sums[key] = sums.get(key, 0) + tokens
        if size != message_tally.tokens:
            key = _kind_of(shown, names)
            sums[key] = sums.get(key, 0) + size - message_tally.tokens
    content_tokens = sum(tokens for key, tokens in sums.items() if key[0] != "framing")
    sums["framing", ""] = declared.tokens + around.tokens + sum(sizes) - content_tokens
    shares = [Share(kind, tokens, name) for (kind, name), tokens in sums.items() if tokens]
    shares.sort(key=lambda share: (_ORDER.index(share.kind), -share.tokens, share.name))
    return tuple(shares), tally.certainty


def _kind_of(shown: Shown, names: Mapping[str, str]) -> tuple[Kind, str]:
    """The kind of a message as a whole."""
    result = next((part for part in shown.message.parts if isinstance(part, ToolResult)), None)
    if result is not None:
        return "tool results", _tool_of(result, names)
    return ("summary" if shown.stands_in else _KINDS[shown.message.role]), ""


def _tool_of(result: ToolResult, names: Mapping[str, str]) -> str:
    return result.name or names.get(result.call_id) or "unknown"


def _split(shown: Shown, parts: dict[str, int], names: dict[str, str], counter: Counter) -> dict[tuple[Kind, str], int]:
    """The tokens of one message by kind, without framing."""
    sums: dict[tuple[Kind, str], int] = {}
    for name, kind in _KINDS.items():
        key: tuple[Kind, str] = ("summary" if shown.stands_in else kind, "")
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
