"""Small parts that the tests of stores are made of."""

from __future__ import annotations

from collections.abc import Iterable

from turnlog.log.messages import Message, Text, text_of
from turnlog.log.records import MessageRecord, Record
from turnlog.log.store import Draft, Store

__all__ = ["filled", "said", "texts"]


def said(text: str) -> Draft:
    """A user's message."""
    return Draft(MessageRecord(Message("user", (Text(text),))))


def texts(records: Iterable[Record]) -> list[str]:
    """The texts of the messages among `records`."""
    return [text_of(record.message) for record in records if record.message]


def filled(store: Store, session: str, count: int) -> None:
    """A new session of `count` messages "1" to "count"."""
    store.create(session)
    store.append(session, [said(str(n)) for n in range(1, count + 1)])
