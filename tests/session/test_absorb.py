"""Bodies of a program that keeps its conversation itself: what is new is recorded once, what it changed is a decision,
and requests say what the body said."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

import turnlog
from turnlog.log.messages import ToolCall, text_of
from turnlog.log.records import Decision, MessageRecord
from turnlog.providers import provider
from turnlog.runners import ScriptedRunner
from turnlog.session.absorbing import units_of
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

MODELS = {
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-4o",
    "anthropic": "claude-3-5-haiku-latest",
    "google": "gemini-2.0-flash",
    "google-interactions": "gemini-2.5-flash",
}
"""Models that are told of another system text at the beginning, as the bodies tell it."""
STEPS = (
    "say",
    "say",
    "work",
    "retry",
    "trim",
    "summarise",
    "rewind",
    "insert",
    "system",
    "restart",
    "tools",
    "drop",
    "mute",
    "remind",
    "indent",
)


class Program:
    """A program with a conversation of its own, in the form of OpenAI Chat, sent in the form of a provider."""

    def __init__(self, name: str) -> None:
        self.provider = name
        self.store = MemoryStore()
        self.session = turnlog.open("s", store=self.store, settings=turnlog.Settings(budget=0))
        self.system = "Be brief."
        self.history: list[dict[str, Any]] = []
        self.tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
        self.number = 0

    def body(self) -> dict[str, Any]:
        """The next request of the program."""
        chat = {
            "model": MODELS[self.provider],
            "messages": [*([{"role": "system", "content": self.system}] if self.system else []), *self.history],
            "tools": self.tools,
        }
        if self.provider == "openai-chat":
            return chat
        return turnlog.convert(chat, "openai-chat", to=self.provider, model=MODELS[self.provider]).body

    def ask(self, *answer: str | ToolCall) -> None:
        """Send a request, and take the answer as the program spells it."""
        body = self.body()
        request = self.session.absorb(body, turnlog.target(self.provider, MODELS[self.provider]))
        assert said(self.provider, request.body) == said(self.provider, body)
        asyncio.run(self.session.areceive(ScriptedRunner([list(answer)]).stream(request), request))
        text = " ".join(part for part in answer if isinstance(part, str))
        calls = [part for part in answer if isinstance(part, ToolCall)]
        message: dict[str, Any] = {"role": "assistant", "content": text + "\n" if text else None}
        if calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": "{ }"}}
                for call in calls
            ]
        self.history.append(message)

    def step(self, kind: str) -> None:
        """One thing that programs do."""
        self.number += 1
        turns = [i for i, message in enumerate(self.history) if message["role"] == "user"]
        match kind:
            case "say":
                self.history.append({"role": "user", "content": f"Question {self.number}"})
                self.ask(f"Answer {self.number}")
            case "work":
                self.history.append({"role": "user", "content": f"Task {self.number}"})
                calls = [ToolCall(f"c{self.number}{letter}", "look", {}) for letter in "ab"]
                self.ask("I look.", *calls)
                self.history += [
                    {"role": "tool", "tool_call_id": call.id, "content": f"seen {call.id}"} for call in calls
                ]
                self.ask(f"Done {self.number}")
            case "retry" if self.history:
                self.history.pop()
                if self.history and self.history[-1]["role"] != "assistant":
                    self.ask(f"Again {self.number}")
            case "trim" if len(turns) > 1:
                del self.history[: turns[1]]
            case "summarise" if len(turns) > 2:
                self.history[: turns[2]] = [{"role": "user", "content": f"Summary {self.number}"}]
            case "drop" if len(turns) > 2:
                del self.history[turns[1] : turns[2]]
            case "rewind" if turns:
                del self.history[turns[-1] :]
            case "insert" if len(turns) > 1:
                self.history.insert(turns[1], {"role": "user", "content": f"Note {self.number}"})
            case "system":
                self.system = f"Be brief {self.number}."
            case "tools":
                self.tools = [
                    *self.tools,
                    {"type": "function", "function": {"name": f"t{self.number}", "parameters": {"type": "object"}}},
                ]
            case "mute":
                self.system = "" if self.system else f"Be brief {self.number}."
            case "remind" if turns:
                self.history = [message for message in self.history if message["role"] != "system"]
                last = max(i for i, message in enumerate(self.history) if message["role"] == "user")
                self.history.insert(last + 1, {"role": "system", "content": f"It is {self.number} o'clock."})
            case "indent" if turns:
                message = self.history[turns[0]]
                message["content"] = "  " + message["content"]
            case "restart":
                self.session.close()
                self.session = turnlog.open("s", store=self.store, settings=turnlog.Settings(budget=0))


def said(name: str, body: dict[str, Any]) -> tuple[list[bytes], list[str], list[tuple[str, str]]]:
    """What a body says, and its tools."""
    parsed = provider(name).parse(body)
    texts_of = [
        (message.role, text_of(message).strip() if message.role == "assistant" else text_of(message))
        for message in parsed.messages
    ]
    says = [digest for digest, _ in units_of(parsed.messages)]
    return says, [tool.name for tool in parsed.configuration.tools], [one for one in texts_of if one[1]]


@pytest.mark.parametrize("name", MODELS)
@given(steps=st.lists(st.sampled_from(STEPS), max_size=14))
def test_requests_say_what_the_bodies_said(name: str, steps: list[str]) -> None:
    """A message that is lost, doubled, out of place, or of a past that the program has taken back."""
    program = Program(name)
    for step in steps:
        program.step(step)
    program.step("say")
    assert program.session.log.validate() == []
    program.session.close()


def test_only_what_is_new_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long conversation that is read whole at each request: every turn costs more than the one before."""
    program, read = Program("openai-chat"), list[int]()
    chat = provider("openai-chat")

    def parse(body: Any) -> Any:
        read.append(len(body["messages"]))
        return chat.parse(body)

    counting = structs.replace(chat, parse=parse)
    monkeypatch.setattr("turnlog.session.absorbing.provider", lambda name: counting)
    for _ in range(20):
        program.step("say")
    assert (max(read[2:]), sum(read)) == (
        2,
        2 + 19 * 2,
    )


def test_retries_and_restarts_record_nothing_twice() -> None:
    """A program that sends the same body again, or is started again: its question stands in the log twice."""
    program = Program("openai-chat")
    program.step("work")
    program.step("say")
    before = texts(program.session)
    for step in ("restart", "say", "restart"):
        program.step(step)
    assert texts(program.session) == [*before, "Question 4", "Answer 4"]
    program.history.append({"role": "user", "content": "Once?"})
    for _ in range(3):
        program.session.absorb(program.body())
    assert texts(program.session) == [*before, "Question 4", "Answer 4", "Once?"]


def test_system_text_of_the_session_stays() -> None:
    """A session with instructions of its own under a program that has none: an edit of the program takes them away."""
    with turnlog.open(
        "s", store=":memory:", target=turnlog.target("openai-chat", "gpt-4o"), system="Be kind."
    ) as session:
        history = [{"role": "user", "content": f"Question {n}"} for n in range(4)]
        for kept in (history, history[1:], history[2:]):
            request = session.absorb({"model": "gpt-4o", "messages": kept})
            assert request.body["messages"] == [{"role": "system", "content": "Be kind."}, *kept]


def test_what_the_program_left_out_is_a_decision_of_its_own() -> None:
    """Who reads the log does not learn that the program dropped turns, or takes it for a compaction of turnlog."""
    program = Program("anthropic")
    for step in ("say", "say", "say", "trim", "say"):
        program.step(step)
    decisions = [record.body for record in program.session.history() if isinstance(record.body, Decision)]
    assert [(decision.action, decision.why, decision.detail["by"]) for decision in decisions] == [
        ("compact", "the program left out 2 messages", "program")
    ]
    assert texts(program.session)[:2] == ["Be brief.", "Question 1"]  # the log has all of it


def test_secrets_are_compared_as_they_are_kept() -> None:
    """A message with a key is another one on record, so that each request records it anew."""
    program = Program("openai-chat")
    program.session.close()
    program.session = turnlog.open("s", store=program.store, settings=turnlog.Settings(redact=True, budget=0))
    secret = "sk-proj-" + "a1B2c3D4" * 6
    program.history.append({"role": "user", "content": f"My key is {secret}."})
    program.ask("Noted.")
    program.session.close()
    program.session = turnlog.open("s", store=program.store, settings=turnlog.Settings(redact=True, budget=0))
    program.history.append({"role": "user", "content": "And now?"})
    program.session.absorb(program.body())
    said_texts = texts(program.session)
    assert (len(said_texts), said_texts[-1]) == (4, "And now?")


def test_a_budget_holds_and_the_prefix_with_it() -> None:
    """A framework that sends everything: its requests grow past the budget, or begin otherwise each time."""
    program = Program("openai-chat")
    program.session.close()
    program.session = turnlog.open(
        "t", store=program.store, target=turnlog.target("openai-chat", "gpt-4o"), budget=1_200
    )
    sent: list[list[Any]] = []
    for number in range(40):
        program.history.append({"role": "user", "content": f"Question {number} " + "word " * 40})
        request = program.session.absorb(program.body())
        assert request.tokens <= 1_200
        sent.append(request.body["messages"])
        asyncio.run(program.session.areceive(ScriptedRunner([f"Answer {number}"]).stream(request), request))
        program.history.append({"role": "assistant", "content": f"Answer {number}"})
    moved = sum(later[: len(earlier)] != earlier for earlier, later in pairwise(sent))
    decisions = [record for record in program.session.history() if isinstance(record.body, Decision)]
    assert 0 < moved <= len(decisions) < 20


def texts(session: Session) -> list[str]:
    """The text of each message on record."""
    messages = (record.body.message for record in session.history() if isinstance(record.body, MessageRecord))
    return [text_of(message) for message in messages]
