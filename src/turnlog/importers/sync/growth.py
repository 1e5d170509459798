"""Whether a transcript only grew since it was imported: it contains everything that the session has of it, and more.

A session is replaced only if every record that would be deleted came from the transcript. A message came from it if the
message has a `source`; messages recorded by turnlog have none. Any other record came from it if the transcript has the
same record at the same time. If the transcript has no times, all records of one import have the clock time of the
store, so a record with the time of an imported message came from it.
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
    """Whether the transcript contains everything that the records `kept` contain, and all of them came from it.

    The first `shared` of its drafts precede `kept`. `times` are the times of these drafts, or of their import; the last
    records of a transcript can have the time of the record before them. Records that closed a turn because it was open
    when the session was opened are ignored: the transcript has the real end of that turn.
    """
    times = {*times, *(one.time for one in kept if has_source(one))}
    older = [one for one in kept if not closes_left_open(one.body)]
    return _Newer(imported.drafts[shared:], imported.echoes, times).contains_all(older)


def says_less(imported: Imported, shared: int, kept: Sequence[Record]) -> bool:
    """Whether `kept` contains everything that the transcript contains after draft `shared`: then the transcript is an
    older copy."""
    return _Newer(kept, imported.echoes, ("",)).contains_all(imported.drafts[shared:])


def has_source(one: Record) -> bool:
    """Whether this is a message from a transcript."""
    return isinstance(one.body, MessageRecord) and bool(one.body.source)


class _Newer(Struct, dict=True, frozen=True):
    """Records or drafts that may contain everything that older ones contain, and more. A record whose time is in
    `times` has the time of its import, so its time may differ here."""

    entries: Sequence[Record | Draft]
    echoes: Mapping[tuple[str, str], str]
    times: Container[str]

    def contains_all(self, older: Iterable[Record | Draft]) -> bool:
        """Whether each of the `older` records is contained, the messages in their order."""
        messages = iter(self._messages)
        message = next(messages, None)
        for one in older:
            if isinstance(one.body, (MessageRecord, PartialAnswer)):
                while message is not None and not self._grew(one, message):
                    message = next(messages, None)
                if message is None:  # one message may contain several older ones, so the next is tried with it too
                    return False
            elif not self._repeats(one) and not self._echoes(one):
                return False
        return True

    def _grew(self, one: Record | Draft, other: Record | Draft) -> bool:
        """Whether the message `other` is a later version of `one`."""
        old, new = one.body, other.body
        if not isinstance(old, (MessageRecord, PartialAnswer)) or not isinstance(new, (MessageRecord, PartialAnswer)):
            return False
        if not self._same_time(one, other) or not all(_is_foreign(body) for body in (old, new)):
            return False
        parts = iter(new.message.parts)
        return old.message.role == new.message.role and all(part in parts for part in old.message.parts)

    def _same_time(self, one: Record | Draft, other: Record | Draft) -> bool:
        return one.time == other.time or one.time in self.times

    def _repeats(self, one: Record | Draft) -> bool:
        """Whether this record is contained, possibly with more in it."""
        same = self._kinds.get(_kind(one.body))
        if same is None:
            return False
        for at in chain(range(same.next, len(same.entries)), range(same.next)):
            other = same.entries[at]
            if self._same_time(one, other) and _is_update(one.body, other.body):
                same.next = at + 1  # usually the next record to look for follows this one
                return True
        return False

    def _echoes(self, one: Record | Draft) -> bool:
        """Whether this is a note that repeats a message before it that is contained now."""
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
    """Records of one kind, and the index at which to look next."""

    entries: list[Record | Draft]
    next: int = 0


def _kind(body: Body) -> object:
    return (type(body), body.topic if isinstance(body, Note) else "")


def _is_foreign(body: MessageRecord | PartialAnswer) -> bool:
    """Whether a message may come from a transcript. A partial answer has no source, so only its time is compared."""
    return isinstance(body, PartialAnswer) or bool(body.source)


def _summaries(message: Message) -> list[str]:
    return [text for part in message.parts if isinstance(part, Reasoning) for text in part.summary]


def _is_update(old: Body, new: Body) -> bool:
    """Whether `new` is a later version of `old`: the usage of an answer grows while it is written; a note gets more
    data, or loses what a message contains by then; and references to record numbers differ after a record that an older
    turnlog did not make from the transcript."""
    if unnumbered(old) == unnumbered(new):
        return True
    if isinstance(old, UsageRecord) and isinstance(new, UsageRecord):
        fields = [name for name in type(old.usage).__struct_fields__ if name != "incomplete"]
        grew = all(getattr(new.usage, name) >= getattr(old.usage, name) for name in fields)
        return grew and (old.provider, old.model) == (new.provider, new.model)
    if isinstance(old, Note) and isinstance(new, Note):
        return (old.topic, old.text) == (new.topic, new.text) and _agree(old.data, new.data)
    return False


def _agree(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal, except for keys and items that only one of them has."""
    if isinstance(one, dict) and isinstance(other, dict):
        common = one.keys() & other.keys()
        return bool(common) and all(_agree(one[key], other[key]) for key in common)
    if isinstance(one, list) and isinstance(other, list):
        few, many = sorted((one, other), key=len)
        rest = iter(many)
        return all(any(_agree(item, found) for found in rest) for item in few)
    return type(one) is type(other) and bool(one == other)
