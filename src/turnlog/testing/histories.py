"""Sound histories: conversations of whole turns, with every kind of part.

Every text in a history is unique, so that a test can follow it.
"""

from __future__ import annotations

import base64
import random as random_module

from msgspec import Struct

from ..log.messages import (
    Media,
    Message,
    Opaque,
    Outcome,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    media_kind,
    sha256_hex,
)

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc000"
    "000301010018dd8db00000000049454e44ae426082"
)
"""A PNG of one pixel, the beginning of every image in a history."""

# Not all providers: another name would change the history of every seed.
PROVIDER_NAMES = ("openai-chat", "openai-responses", "anthropic", "google")
_NAMES = ("read_file", "bash", "search", "apply_patch", "get_weather")


class History(Struct, frozen=True):
    """Messages in order, the media bytes that they refer to, and the `DAMAGES` applied to them."""

    messages: tuple[Message, ...]
    blobs: dict[str, bytes]
    damages: frozenset[str]


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def own_item(provider: str, count: int) -> Opaque:
    """An item of a provider's own, as in real conversations: a search, a server tool, executed code."""
    if provider == "openai-responses":
        action = {"type": "search", "query": f"query {count}"}
        item = {"type": "web_search_call", "id": f"ws_{count}", "status": "completed", "action": action}
        return Opaque(provider, "web_search_call", item)
    if provider == "anthropic":
        block = {
            "type": "server_tool_use",
            "id": f"srvtoolu_{count}",
            "name": "web_search",
            "input": {"query": f"q {count}"},
        }
        return Opaque(provider, "server_tool_use", block)
    if provider == "google-interactions":
        step = {"type": "google_search_call", "id": f"search_{count}", "arguments": {"queries": [f"q {count}"]}}
        return Opaque(provider, "google_search_call", step)
    return Opaque(provider, "executableCode", {"executableCode": {"language": "PYTHON", "code": f"print({count})"}})


class HistoryWriter:
    """Writes a sound conversation of whole turns, as the provider `home` answers; by default one of four at random."""

    def __init__(self, random: random_module.Random, home: str = "") -> None:
        self.random = random
        self.count = 0
        drawn = random.choice(PROVIDER_NAMES)
        self.home = home or drawn
        self.blobs: dict[str, bytes] = {}

    def unique(self, what: str) -> str:
        """Text that occurs nowhere else."""
        self.count += 1
        filler = " ".join(self.random.choice(("so", "then", "the", "naïve", "数据", "🙂", "end")) for _ in range(3))
        return f"{what} {self.count}: {filler} #{self.count}"

    def media(self, mime: str = "image/png") -> Media:
        """A unique picture, or media declared as another type: the bytes of the pixel, followed by a number."""
        self.count += 1
        data = PIXEL + f"#{self.count}".encode()
        self.blobs[sha256_hex(data)] = data
        return Media(media_kind(mime), mime=mime, sha256=sha256_hex(data), size=len(data))

    def history(self) -> list[Message]:
        """A conversation."""
        messages: list[Message] = []
        if self.random.random() < 0.7:
            messages.append(Message("system", (Text(self.unique("system")),)))
        for _ in range(self.random.randint(1, 4)):
            messages += self.turn()
        if self.random.random() < 0.6:
            messages.append(self.user())
        return messages

    def user(self) -> Message:
        """A user message, sometimes with a picture."""
        parts: list[Part] = [Text(self.unique("question"))]
        if self.random.random() < 0.25:
            parts.insert(self.random.randint(0, 1), self.media())
        return Message("user", tuple(parts))

    def turn(self) -> list[Message]:
        """A user message, steps, and the answer."""
        messages = [self.user()]
        for _ in range(self.random.randint(0, 3)):
            messages += self.step()
        messages.append(Message("assistant", (*self.reasoning(), Text(self.unique("answer")))))
        return messages

    def reasoning(self) -> tuple[Part, ...]:
        """Reasoning of the home provider, or none."""
        if self.random.random() < 0.5:
            return ()
        word = self.unique("thought")
        if self.home == "openai-responses":
            return (Reasoning(self.home, summary=(word,), encrypted=_base64(f"enc{self.count}")),)
        if self.home == "google-interactions":
            return (Reasoning(self.home, summary=(word,), signature=_base64(f"sig{self.count}")),)
        return (Reasoning(self.home, text=word, signature=_base64(f"sig{self.count}")),)

    def step(self) -> list[Message]:
        """Calls and their results."""
        calls = [self.call() for _ in range(self.random.choice((1, 1, 1, 2, 3)))]
        words: tuple[Part, ...] = (Text(self.unique("says")),) if self.random.random() < 0.4 else ()
        results = [self.result(call) for call in calls]
        assistant = Message("assistant", (*self.reasoning(), *words, *calls))
        if self.random.random() < 0.5:
            return [assistant, Message("user", tuple(results))]
        return [assistant, *(Message("user", (result,)) for result in results)]

    def call(self) -> ToolCall:
        """A call of a random kind."""
        self.count += 1
        name = self.random.choice(_NAMES)
        kind = self.random.choice(("function",) * 8 + ("custom", "shell"))
        call_id = f"call_{self.count}abc"
        if kind == "custom":
            return ToolCall(call_id, name, raw=self.unique("patch"), kind="custom")
        if kind == "shell":
            action = {"type": "exec", "command": ["echo", self.unique("command")], "env": {}}
            return ToolCall(call_id, "local_shell", arguments=action, kind="shell", provider="openai-responses")
        signature = _base64(f"sig{self.count}") if self.home == "google" else ""
        arguments = {"path": self.unique("path"), "depth": self.random.randint(0, 9), "deep": {"list": [1, None, True]}}
        return ToolCall(call_id, name, arguments=arguments, signature=signature, provider=self.home)

    def result(self, call: ToolCall) -> ToolResult:
        """The result of a call."""
        parts: list[Text | Media | Opaque | Unknown] = [Text(self.unique("result"))]
        if self.random.random() < 0.12:
            parts.append(self.media())
        outcome: Outcome = "failed" if self.random.random() < 0.15 else "ok"
        return ToolResult(call.id, name=call.name, parts=tuple(parts), outcome=outcome, kind=call.kind)


def sound_history(random: random_module.Random, home: str = "") -> History:
    """A conversation without damage: whole turns, with a result after every call. `home` is the provider that answers;
    by default it is random."""
    writer = HistoryWriter(random, home)
    messages = writer.history()
    return History(tuple(messages), writer.blobs, frozenset())
