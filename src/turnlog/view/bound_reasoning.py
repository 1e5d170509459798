"""Reasoning that is bound to what stood ahead of it: which of it a view may still show.

Some models seal their reasoning together with all that they were sent before it: tools, system text, messages. Sent
again behind anything else, it is refused. Each answer on record says what its reasoning is bound to (`Binding`); here
that is compared with what a view puts ahead of the answer now.

The rule, from the Messages API's pages about preserved thinking and prefix checks (read in November 2026): reasoning
stands if the tools, the system text and all messages ahead of it are the same, and if the reasoning shown before it is
that which was shown before it when it was made; of that, the oldest may be left out, but none in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import compress, count
from operator import is_not

import msgspec

from ..log.messages import Message, Reasoning, Tool
from ..log.records import Binding, MessageRecord, PartialAnswer, Record
from .types import Shown

_VERSION = b"1"
"""Of the digest, and of how messages are written in requests: with another version, nothing stands any more."""

_DIGEST_BYTES = 12


def beginning(model: str, tools: Iterable[Tool]) -> bytes:
    """The digest of what stands ahead of all messages in a request to a model. The order of tools makes no
    difference."""
    declared = sorted(map(_encoded, tools))
    return _digest(b"\0".join((_VERSION, model.encode(), *declared)))


class Prefixes:
    """Digests of what stands ahead of each message of a view. Those of the view before are used again."""

    def __init__(self) -> None:
        self._view: Sequence[Shown] = ()
        self._digests: list[bytes] = []

    def of(self, begin: bytes, view: Sequence[Shown]) -> list[bytes]:
        """One for each message, and one for what stands behind the last."""
        same = 0
        if self._digests[:1] == [begin]:
            shorter = min(len(view), len(self._view))
            same = next(compress(count(), map(is_not, view, self._view)), shorter)
        digests = [*self._digests[: same + 1]] if same else [begin]
        for shown in view[same:]:
            digests.append(_behind(digests[-1], shown.message))
        self._view, self._digests = view, digests
        return digests


def _behind(ahead: bytes, message: Message) -> bytes:
    """The digest of what stands behind a message. Its reasoning is no part of it: the reasoning that follows names
    that by itself."""
    if any(isinstance(part, Reasoning) for part in message.parts):
        parts = tuple(part for part in message.parts if not isinstance(part, Reasoning))
        if not parts:
            return ahead
        message = msgspec.structs.replace(message, parts=parts)
    return _digest(ahead + _encoded(message))


def _encoded(value: Message | Tool) -> bytes:
    try:
        return msgspec.msgpack.encode(value)
    except (OverflowError, UnicodeError):  # a number beyond 64 bits, or half of a character
        return repr(value).encode("utf-8", "surrogatepass")


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=_DIGEST_BYTES).digest()


def bindings_of(records: Iterable[Record]) -> Iterator[tuple[int, Binding]]:
    """The numbers of records with an answer whose reasoning is bound, and what to."""
    for record in records:
        if isinstance(record.body, (MessageRecord, PartialAnswer)) and record.body.binding is not None:
            yield record.n, record.body.binding


def bindings_as_given(view: Sequence[Shown], begin: bytes, provider: str) -> dict[int, Binding]:
    """What the reasoning of each answer is bound to, if each was made behind just what stands ahead of it in `view`."""
    made: dict[int, Binding] = {}
    after = first = 0
    for shown, digest in zip(view, Prefixes().of(begin, view), strict=False):
        if has_reasoning(shown.message, provider):
            n = shown.records[0]
            made[n] = Binding(digest.hex(), after, first)
            after, first = n, first or n
    return made


def has_reasoning(message: Message, provider: str) -> bool:
    """Whether it holds reasoning that `provider` made."""
    return any(isinstance(part, Reasoning) and part.provider == provider for part in message.parts)


def without_reasoning(shown: Shown, provider: str) -> Shown:
    """The message without the reasoning that `provider` made."""
    kept = (part for part in shown.message.parts if not (isinstance(part, Reasoning) and part.provider == provider))
    return Shown(msgspec.structs.replace(shown.message, parts=tuple(kept)), shown.records, "repaired")


def standing(
    view: Sequence[Shown], digests: Sequence[bytes], bindings: Mapping[int, Binding], held: Collection[int]
) -> list[int]:
    """The records of a view whose reasoning may be shown, oldest first. `held` are those that have any; a record
    without a binding is bound to something that nobody knows."""
    kept: list[int] = []
    wanted, first = None, 0
    for n, digest in reversed([*_answers(view, digests, held)]):
        binding = bindings.get(n)
        if binding is None or binding.prefix != digest.hex() or n < first or (wanted is not None and n != wanted):
            continue
        kept.append(n)
        wanted, first = binding.after, max(first, binding.first)
    return kept[::-1]


def _answers(view: Sequence[Shown], digests: Sequence[bytes], held: Collection[int]) -> Iterator[tuple[int, bytes]]:
    for shown, digest in zip(view, digests, strict=False):
        if shown.message.role == "assistant" and shown.records[0] in held:
            yield shown.records[0], digest
