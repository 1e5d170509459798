"""turnlog on the shared speed bench: one turn at 1,000 to 50,000 messages within a token window.

The bench calls this adapter; messages are OpenAI-chat dicts. Appends are SQLite, synchronous NORMAL.
"""

from __future__ import annotations

from turnlog.log.messages import Message
from turnlog.models.target import target
from turnlog.providers import provider
from turnlog.requests.request import Request
from turnlog.session.session import Session as TurnlogSession
from turnlog.stores import open_store
from turnlog.tokens import counter_for

CHAT = provider("openai-chat")
counter_for("openai-chat", "gpt-4o").text("warm")  # the vocabulary is not the session's memory


class Session:
    """One session of one store."""

    def __init__(self, budget: int, window: int, folder: str) -> None:
        self.path = f"{folder}/turnlog.db"
        self.aim = target("openai-chat", "gpt-4o")
        self.store = open_store(self.path)
        self.session = TurnlogSession(self.store, self.store.create("bench"))
        self.session.switch(self.aim)
        self.session.configure(budget=budget)

    def read(self, message: dict) -> Message:
        return CHAT.parse({"model": "gpt-4o", "messages": [message]}).messages[0]

    def fill(self, messages: list[dict]) -> None:
        for at in range(0, len(messages), 500):
            read = [self.read(message) for message in messages[at : at + 500]]
            self.session.extend(read)
        self.session.request()

    def add(self, message: dict) -> None:
        self.session.add(self.read(message))

    def request(self) -> Request:
        return self.session.request()

    def body(self, view: Request) -> bytes:
        return view.json()

    def neutral(self, view: Request) -> list[dict]:
        return view.body["messages"]

    def reload(self) -> bytes:
        store = open_store(self.path)
        try:
            return TurnlogSession(store, store.info("bench")).request(self.aim).json()
        finally:
            store.close()
