"""What the page of a past request says is what the session sent then: body, size, changes, and what became of each
message."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

import turnlog
from turnlog.display.past_request import body_of, past_request, requests_of
from turnlog.errors import BudgetError, InputError
from turnlog.log.messages import Message, ToolResult
from turnlog.requests.request import Request
from turnlog.stores import MemoryStore
from turnlog.testing.histories import HistoryWriter
from turnlog.view.explain import Account

TARGETS = (
    turnlog.target("openai-chat", "gpt-4o"),
    turnlog.target("openai-responses", "gpt-5"),
    turnlog.target("anthropic", "claude-sonnet-4-5", max_tokens=99),
    turnlog.target("google", "gemini-2.5-pro"),
)
STEPS = ("say", "say", "say", "tool", "tool", "compact", "rewind", "undo", "pin", "switch", "small", "exclude")
_steps = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 99)), min_size=3, max_size=16)


class Sent(Struct):
    """What a session sent, and the record of the answer to it."""

    n: int
    made: Request
    body: bytes
    accounts: dict[int, Account]


class Talker:
    """A session that says and asks what a test draws, and remembers each request."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.words = HistoryWriter(self.random, "anthropic")
        self.store = MemoryStore()
        self.session = turnlog.open("s", store=self.store, target=self.random.choice(TARGETS), system="Be brief.")
        self.sent: list[Sent] = []

    def ask(self) -> None:
        """Send a request, and record an answer to it, with a bill or without one."""
        made = self.session.request()
        target = self.session.target
        assert target is not None
        kept = made, made.json(), self.session.explain(target=target).accounts
        if self.random.random() < 0.5:
            message = Message("assistant", (turnlog.Text(self.words.unique("answer")),))
            n = self.session.add(message, model=target.model).n
        else:
            n = self.session.receive(_answer(target.provider, self.words.unique("answer"))).record.n
        self.sent.append(Sent(n, *kept))

    def step(self, step: str, number: int) -> None:
        """Do what a step names."""
        session = self.session
        match step:
            case "say":
                session.add(self._stored(self.words.user()))
                self.ask()
            case "tool":
                session.add(self._stored(self.words.user()))
                for message in self.words.step():
                    if message.role == "assistant":
                        made = session.request()
                        kept = made, made.json(), session.explain(target=session.target).accounts
                        self.sent.append(Sent(session.add(message, model=made.target.model).n, *kept))
                    else:
                        session.add(self._stored(_longer(message, number)))
                self.ask()
            case "compact":
                session.compact(keep=1 + number % 2)
            case "rewind":
                session.rewind(turns=1)
            case "undo":
                session.undo()
            case "pin":
                session.pin(1 + number % session.log.message_count)
            case "exclude":
                session.exclude(1 + number % session.log.message_count)
            case "switch":
                session.switch(TARGETS[number % len(TARGETS)])
            case "small":
                session.configure(budget=600 + 20 * number)

    def _stored(self, message: Message) -> Message:
        for data in self.words.blobs.values():
            self.store.put_blob(data)
        return message


def _longer(message: Message, number: int) -> Message:
    """The message with results long enough to be curated or cut."""
    text = turnlog.Text("\n".join(f"line {i} of a long output, number {number}" for i in range(number)) or "nothing")
    parts = (
        ToolResult(part.call_id, part.name, (*part.parts, text), part.outcome) if isinstance(part, ToolResult) else part
        for part in message.parts
    )
    return Message(message.role, tuple(parts))


def _answer(provider: str, words: str) -> dict[str, Any]:
    """An answer as the provider's API returns it, with a bill."""
    if provider == "openai-chat":
        usage = {"prompt_tokens": 90, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 40}}
        return {
            "choices": [{"message": {"role": "assistant", "content": words}, "finish_reason": "stop"}],
            "usage": usage,
        }
    if provider == "openai-responses":
        content = [{"type": "output_text", "text": words, "annotations": []}]
        item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}
        return {"output": [item], "status": "completed", "usage": {"input_tokens": 90, "output_tokens": 9}}
    if provider == "google":
        usage = {"promptTokenCount": 90, "candidatesTokenCount": 9}
        content = {"role": "model", "parts": [{"text": words}]}
        return {"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage}
    usage = {"input_tokens": 50, "cache_read_input_tokens": 40, "output_tokens": 9}
    return {
        "role": "assistant",
        "content": [{"type": "text", "text": words}],
        "stop_reason": "end_turn",
        "usage": usage,
    }


def talked(steps: list[tuple[str, int]], seed: int) -> Talker:
    """A session after these steps; what a session refuses is not done."""
    talker = Talker(seed)
    for step, number in steps:
        try:
            talker.step(step, number)
        except (InputError, BudgetError):
            continue
    return talker


@given(steps=_steps, seed=st.integers(0, 10_000))
def test_a_past_request_is_the_one_that_was_sent(steps: list[tuple[str, int]], seed: int) -> None:
    """A request made again from a log that went on since, which differs from the one that was sent, fails here."""
    talker = talked(steps, seed)
    listed = requests_of(talker.store, "s")
    assert [request.n for request in listed.requests] == [sent.n for sent in talker.sent]
    for sent in talker.sent:
        past = past_request(talker.store, "s", sent.n)
        assert past.request.json() == sent.body == body_of(talker.store, "s", sent.n)
        assert past.target == sent.made.target
        assert past.request.tokens == sent.made.tokens
        assert past.request.edits == sent.made.edits
        assert past.request.losses == sent.made.losses
        assert past.session.explain(target=past.target).accounts == sent.accounts
