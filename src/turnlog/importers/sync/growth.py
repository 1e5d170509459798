"""Whether a transcript only grew since it was imported: whether it says all that the session has of it, and more.

A session is made again only if all that would go came out of the transcript. A message did if it names its place there,
which nothing that was said in turnlog does. Any other record did if the transcript has it at the same time; where it
tells no times, all that one import appended has the store's clock, so what has the time of an imported message did.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

from msgspec import Struct

from ...log.messages import Message, Reasoning
from ...log.records import Body, MessageRecord, Note, PartialAnswer, Record, UsageRecord
from ...log.store import Draft
from .. import Imported
from ..repeats import texts_of
from .own_records import closes_left_open, unnumbered


def says_more(imported: Imported, shared: int, kept: Sequence[Record], times: Iterable[str]) -> bool:
    """Whether the transcript says all that the records `kept` do, and nobody else made any of those.

    The first `shared` of its drafts stand ahead of `kept`; `times` are theirs, or those at which they were
    imported: what is told at the end of a transcript has the time of what it stood behind. The end of a turn that was
    found open when somebody opened the session is no record of anybody's: the transcript tells how the turn ended.
    """
    times = {*times, *(one.time for one in kept if names_its_place(one))}
    begun = [one for one in kept if not closes_left_open(one.body)]
    return _Whole(imported.drafts[shared:], imported.echoes, times).says_all(begun)


def says_less(imported: Imported, shared: int, kept: Sequence[Record]) -> bool:
    """Whether `kept` says all that the transcript does from the draft after number `shared` on: it is an older copy."""
    return _Whole(kept, imported.echoes, ("",)).says_all(imported.drafts[shared:])


def names_its_place(one: Record) -> bool:
    """Whether this is a message out of a transcript."""
    return isinstance(one.body, MessageRecord) and bool(one.body.source)


class _Whole(Struct, dict=True, frozen=True):
    """What may say more than something that was begun. What has any of `times` may have another time here: it has the
    time at which it was imported."""

    entries: Sequence[Record | Draft]
    echoes: Mapping[tuple[str, str], str]
    times: Container[str]

    def says_all(self, begun: Iterable[Record | Draft]) -> bool:
        """Whether it says each of these, and the messages in their order."""
        messages = iter(self._messages)
        message = next(messages, None)
        for one in begun:
            if isinstance(one.body, (MessageRecord, PartialAnswer)):
                while message is not None and not self._grew(one, message):
                    message = next(messages, None)
                if message is None:  # a message may say what several did: the next may be in it, too
                    return False
            elif not self._repeats(one) and not self._echoes(one):
                return False
        return True

    def _grew(self, one: Record | Draft, other: Record | Draft) -> bool:
        """Whether the message `other` is `one` by now."""
        old, new = one.body, other.body
        if not isinstance(old, (MessageRecord, PartialAnswer)) or not isinstance(new, (MessageRecord, PartialAnswer)):
            return False
        if not self._is_of_the_time(one, other) or not all(_is_foreign(body) for body in (old, new)):
            return False
        parts = iter(new.message.parts)
        return old.message.role == new.message.role and all(part in parts for part in old.message.parts)

    def _is_of_the_time(self, one: Record | Draft, other: Record | Draft) -> bool:
        return one.time == other.time or one.time in self.times

    def _repeats(self, one: Record | Draft) -> bool:
        """Whether it has this record, by now perhaps with more in it."""
        same = self._kinds.get(_kind(one.body))
        if same is None:
            return False
        for at in chain(range(same.next, len(same.entries)), range(same.next)):
            other = same.entries[at]
            if self._is_of_the_time(one, other) and _is_again(one.body, other.body):
                same.next = at + 1  # the one after that is mostly the next that is looked for
                return True
        return False

    def _echoes(self, one: Record | Draft) -> bool:
        """Whether this is a note that repeats a message ahead of it, which it has by now."""
        body = one.body
        if not isinstance(body, Note) or body.text or not isinstance(body.data, dict):
            return False
        text = body.data.get(self.echoes.get((one.time, body.topic), ""))
        return isinstance(text, str) and any(text.strip() in said for said in self._texts)

    @cached_property
    def _messages(self) -> list[Record | Draft]:
        return [one for one in self.entries if isinstance(one.body, (MessageRecord, PartialAnswer))]

    @cached_property
    def _kinds(self) -> dict[object, _Kind]:
        kinds: dict[object, _Kind] = {}
        for one in self.entries:
            kinds.setdefault(_kind(one.body), _Kind([])).entries.append(one)
        return kinds

    @cached_property
    def _texts(self) -> list[str]:
        bodies = (one.body for one in self._messages)
        messages = [body.message for body in bodies if isinstance(body, (MessageRecord, PartialAnswer))]
        return [text for message in messages for text in (*texts_of(message), *_summaries(message))]


class _Kind(Struct):
    """Records of a kind, and the place in them at which to look next."""

    entries: list[Record | Draft]
    next: int = 0


def _kind(body: Body) -> object:
    return (type(body), body.topic if isinstance(body, Note) else "")


def _is_foreign(body: MessageRecord | PartialAnswer) -> bool:
    """Whether it may come from a transcript. What was cut off names no place, so its time alone has to tell."""
    return isinstance(body, PartialAnswer) or bool(body.source)


def _summaries(message: Message) -> list[str]:
    return [text for part in message.parts if isinstance(part, Reasoning) for text in part.summary]


def _is_again(old: Body, new: Body) -> bool:
    """Whether `new` is what `old` says by now: what an answer costs is told while it grows; a note gathers more, or
    leaves out what a message says by then; and the records that they name have other numbers behind one that an older
    turnlog did not make of the transcript."""
    if unnumbered(old) == unnumbered(new):
        return True
    if isinstance(old, UsageRecord) and isinstance(new, UsageRecord):
        fields = type(old.usage).__struct_fields__
        grew = all(getattr(new.usage, name) >= getattr(old.usage, name) for name in fields)
        return grew and (old.provider, old.model) == (new.provider, new.model)
    if isinstance(old, Note) and isinstance(new, Note):
        return (old.topic, old.text) == (new.topic, new.text) and _agree(old.data, new.data)
    return False


def _agree(one: Any, other: Any) -> bool:
    """Whether two JSON values say the same, but for keys and items that only one of them has."""
    if isinstance(one, dict) and isinstance(other, dict):
        common = one.keys() & other.keys()
        return bool(common) and all(_agree(one[key], other[key]) for key in common)
    if isinstance(one, list) and isinstance(other, list):
        few, many = sorted((one, other), key=len)
        rest = iter(many)
        return all(any(_agree(item, found) for found in rest) for item in few)
    return type(one) is type(other) and bool(one == other)
