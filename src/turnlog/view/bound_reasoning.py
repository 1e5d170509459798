"""Decide which reasoning a view may still show: some is bound to the content before it.

Some models seal their reasoning together with everything that they were sent before it: tools, system text, messages.
If the reasoning is sent again after other content, the provider refuses it. Each recorded answer has a `Binding`, which
says what its reasoning is bound to; this module compares it with the content that a view now puts before the answer.

The rule, from the Messages API's pages about preserved thinking and prefix checks (read in November 2026): reasoning is
accepted if the tools, the system text and all messages before it are the same as when it was made, and if the earlier
reasoning shown is the same as well; the oldest of this earlier reasoning may be left out, but none in between. A model
reads its own reasoning and that of some other models, and ignores reasoning that it cannot read.

A compaction that the provider made on request stands for the messages that it replaces. Reasoning that was written
after these messages, but before they were replaced, stays valid while the messages with it, the tools and the system
text are the same, and the first of these messages has another role than the last one replaced (see `resumed`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import compress, count, takewhile
from operator import is_not

import msgspec

from ..log.messages import Message, Reasoning, Tool
from ..log.records import Binding, MessageBody, Record
from .provider_compaction import Prefix
from .types import Shown

_VERSION = b"2"
"""Version of the digest and of how requests write messages. A new version makes all recorded bindings invalid."""

_DIGEST_BYTES = 12

Bound = Binding | Prefix
"""What reasoning is bound to, for the record of an answer; what a compaction stands for, for the record of its
decision."""


def beginning(tools: Iterable[Tool]) -> bytes:
    """The digest of everything before the first message in a request. The order of tools does not matter."""
    declared = sorted(map(_encoded, tools))
    return _digest(b"\0".join((_VERSION, *declared)))


class Prefixes:
    """Digests of the content before each message of a view. Digests of the previous view are reused."""

    def __init__(self) -> None:
        self._view: Sequence[Shown] = ()
        self._digests: list[bytes] = []

    def of(self, begin: bytes, view: Sequence[Shown]) -> list[bytes]:
        """One digest of the content before each message, and one of the whole view."""
        same = 0
        if self._digests[:1] == [begin]:
            shorter = min(len(view), len(self._view))
            same = next(compress(count(), map(is_not, view, self._view)), shorter)
        digests = [*self._digests[: same + 1]] if same else [begin]
        for shown in view[same:]:
            digests.append(_digest_after(digests[-1], shown.message))
        self._view, self._digests = view, digests
        return digests


def _digest_after(before: bytes, message: Message) -> bytes:
    """The digest of the content up to the end of a message; `before` is the digest up to its beginning. Reasoning in
    the message is left out: the `Binding` of later reasoning names earlier reasoning separately."""
    if any(isinstance(part, Reasoning) for part in message.parts):
        parts = tuple(part for part in message.parts if not isinstance(part, Reasoning))
        if not parts:
            return before
        message = msgspec.structs.replace(message, parts=parts)
    return _digest(before + _encoded(message))


def _encoded(value: Message | Tool) -> bytes:
    try:
        return msgspec.msgpack.encode(value)
    except (OverflowError, UnicodeError):  # a number beyond 64 bits, or half of a character
        return repr(value).encode("utf-8", "surrogatepass")


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=_DIGEST_BYTES).digest()


def bindings_of(records: Iterable[Record]) -> Iterator[tuple[int, Binding]]:
    """The record number and the binding of each answer whose reasoning is bound."""
    for record in records:
        if isinstance(record.body, MessageBody) and record.body.binding is not None:
            yield record.n, record.body.binding


def bindings_as_given(view: Sequence[Shown], begin: bytes, provider: str) -> dict[int, Binding]:
    """The bindings of all answers in `view`, if each answer was made after exactly the content that `view` shows before
    it."""
    bindings: dict[int, Binding] = {}
    after = first = 0
    for shown, digest in zip(view, Prefixes().of(begin, view), strict=False):
        if has_reasoning(shown.message, provider):
            n = shown.records[0]
            bindings[n] = Binding(digest.hex(), after, first)
            after, first = n, first or n
    return bindings


def has_reasoning(message: Message, provider: str) -> bool:
    """Whether a message contains reasoning that `provider` made."""
    return any(isinstance(part, Reasoning) and part.provider == provider for part in message.parts)


def without_reasoning(shown: Shown, provider: str) -> Shown:
    """The message without the reasoning that `provider` made."""
    parts = (part for part in shown.message.parts if not (isinstance(part, Reasoning) and part.provider == provider))
    return Shown(msgspec.structs.replace(shown.message, parts=tuple(parts)), shown.records, "repaired")


def compacted(
    view: Sequence[Shown], tools: Iterable[Tool], model: str, window: Sequence[Message]
) -> tuple[Prefix, Binding]:
    """What a compaction of a view stands for, and the binding of a model's reasoning after it, if `window` replaces
    everything except the leading system text."""
    head = [*takewhile(lambda shown: shown.message.role == "system", view)]
    begin, role = beginning(tools), view[-1].message.role if view else ""
    whole = Prefixes().of(begin, view)[-1]
    after = Prefixes().of(begin, [*head, *(Shown(message, (0,)) for message in window)])
    return Prefix(after[len(head)].hex(), whole.hex(), role), Binding(after[-1].hex(), model=model)


def resumed(view: Sequence[Shown], digests: Sequence[bytes], bindings: Mapping[int, Bound]) -> dict[int, str]:
    """For each message after a compaction that was recorded before it, by record number: the digest of the content
    before the message, as it was before the compaction replaced a part of it."""
    earlier_digests: dict[int, str] = {}
    summary_index = max((i for i, shown in enumerate(view) if shown.treatment == "summarised"), default=-1)
    n = view[summary_index].records[0] if summary_index >= 0 else 0
    prefix = bindings.get(n)
    if summary_index + 1 >= len(view) or not isinstance(prefix, Prefix):
        return earlier_digests
    begin = next(i for i, shown in enumerate(view) if shown.records[:1] == (n,))
    role = view[summary_index + 1].message.role
    if digests[begin].hex() != prefix.before or role in ("system", prefix.role):
        return earlier_digests
    digest = bytes.fromhex(prefix.all)
    for shown in view[summary_index + 1 :]:
        if not shown.records or shown.records[0] > n:
            break
        earlier_digests[shown.records[0]] = digest.hex()
        digest = _digest_after(digest, shown.message)
    return earlier_digests


def standing(
    view: Sequence[Shown],
    digests: Sequence[bytes],
    bindings: Mapping[int, Bound],
    held: Collection[int],
    reads: Callable[[str], bool],
    also: Mapping[int, str] | None = None,
) -> list[int]:
    """The records of a view whose reasoning may be shown, oldest first. `held` are the records that contain reasoning,
    `reads` tells whether the model reads the reasoning of another model, `also` is what `resumed` returns. Reasoning
    without a binding may not be shown, as it is not known what it is bound to."""
    allowed: list[int] = []
    wanted, first = None, 0
    for n, digest in reversed([*_answers(view, digests, held)]):
        binding = bindings.get(n)
        if not isinstance(binding, Binding) or n < first or (wanted is not None and n != wanted):
            continue
        if binding.prefix not in (digest.hex(), (also or {}).get(n)):
            continue
        if not reads(binding.model):
            continue
        allowed.append(n)
        wanted, first = binding.after, max(first, binding.first)
    return allowed[::-1]


def _answers(view: Sequence[Shown], digests: Sequence[bytes], held: Collection[int]) -> Iterator[tuple[int, bytes]]:
    for shown, digest in zip(view, digests, strict=False):
        if shown.message.role == "assistant" and shown.records[0] in held:
            yield shown.records[0], digest
