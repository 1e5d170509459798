"""A program that keeps its conversation itself, sends it whole each time, and does what programs do to their past."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import turnlog
from turnlog.log.messages import ToolCall, text_of
from turnlog.providers import provider
from turnlog.runners import ScriptedRunner
from turnlog.session.absorbing import units_of
from turnlog.stores import MemoryStore

__all__ = ["MODELS", "STEPS", "Program", "said"]

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
        self.send(self.body(), answer)
        text = " ".join(part for part in answer if isinstance(part, str))
        calls = [part for part in answer if isinstance(part, ToolCall)]
        message: dict[str, Any] = {"role": "assistant", "content": text + "\n" if text else None}
        if calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": "{ }"}}
                for call in calls
            ]
        self.history.append(message)

    def send(self, body: dict[str, Any], answer: Sequence[str | ToolCall]) -> None:
        """Give a body to the session, and the answer that it gets."""
        request = self.session.absorb(body, turnlog.target(self.provider, MODELS[self.provider]))
        assert said(self.provider, request.body) == said(self.provider, body)
        asyncio.run(self.session.areceive(ScriptedRunner([list(answer)]).stream(request), request))

    def restart(self) -> None:
        """Go on in a new process, as it were."""
        self.session.close()
        self.session = turnlog.open("s", store=self.store, settings=turnlog.Settings(budget=0))

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
                self.restart()


def said(name: str, body: dict[str, Any]) -> tuple[list[bytes], list[str], list[tuple[str, str]]]:
    """What a body says, and its tools."""
    parsed = provider(name).parse(body)
    texts_of = [
        (message.role, text_of(message).strip() if message.role == "assistant" else text_of(message))
        for message in parsed.messages
    ]
    says = [digest for digest, _ in units_of(parsed.messages)]
    return says, [tool.name for tool in parsed.configuration.tools], [one for one in texts_of if one[1]]
