"""Sessions whose records have the times that a test gives them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord, UsageRecord
from turnlog.log.store import Draft
from turnlog.log.usage import Usage
from turnlog.models.target import Target
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

START = datetime(2026, 3, 1, 9, tzinfo=UTC)


class Clock:
    """A session whose records have the times that a test gives them."""

    def __init__(self, aim: Target) -> None:
        self.store = MemoryStore()
        self.store.create("s")
        self.aim = aim
        self.session = Session(self.store, self.store.info("s"))
        self.session.switch(aim)
        self.now = START

    def put(self, body: Any, after: float = 0.0) -> None:
        self.now += timedelta(seconds=after)
        self.store.append("s", [Draft(body, self.now.isoformat(timespec="milliseconds"))])

    def say(self, text: str, after: float = 10.0, role: Any = "user") -> None:
        self.put(MessageRecord(Message(role, (Text(text),))), after)

    def answer(self, **usage: int) -> None:
        self.say("It is so.", 2.0, "assistant")
        self.put(UsageRecord(self.aim.provider, self.aim.model, Usage(**usage)))

    def expected(self) -> int:
        return self.session.request().expected_cache_read
