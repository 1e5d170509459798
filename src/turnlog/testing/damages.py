"""Damaged histories: conversations as real logs contain them after crashes, cuts and switches.

`damaged_history(random)` builds one from any `random.Random`; `turnlog.testing.strategies` has a Hypothesis strategy
for the same histories.
"""

from __future__ import annotations

import random as random_module

import msgspec

from ..log.messages import Media, Message, Part, Reasoning, Role, Text, ToolCall, ToolResult, Unknown
from .histories import PROVIDER_NAMES, History, HistoryWriter, own_item


class _Damager:
    """Damages a conversation in place. Each method applies one kind of damage and returns whether it found something to
    damage."""

    def __init__(self, random: random_module.Random, messages: list[Message], writer: HistoryWriter) -> None:
        self.random = random
        self.messages = messages
        self.writer = writer

    def do(self, name: str) -> bool:
        """Apply a damage; returns whether it found something to damage."""
        if len(self.messages) < _LEAST.get(name, 1):
            return False
        if name not in _DAMAGED:
            return bool(getattr(self, name)())
        position = self.pick(_DAMAGED[name])
        return position is not None and bool(getattr(self, name)(position))

    def where(self, kind: type) -> list[tuple[int, int]]:
        return [
            (i, j)
            for i, message in enumerate(self.messages)
            for j, part in enumerate(message.parts)
            if isinstance(part, kind)
        ]

    def pick(self, kind: type) -> tuple[int, int] | None:
        positions = self.where(kind)
        return self.random.choice(positions) if positions else None

    def put(self, at: tuple[int, int], *parts: Part) -> None:
        """Replace one part with `parts`; a message that loses all its parts is removed."""
        message = self.messages[at[0]]
        whole = (*message.parts[: at[1]], *parts, *message.parts[at[1] + 1 :])
        if whole:
            self.messages[at[0]] = msgspec.structs.replace(message, parts=whole)
        else:
            del self.messages[at[0]]

    def change(self, kind: type, /, **changes: object) -> bool:
        position = self.pick(kind)
        if position is None:
            return False
        self.put(position, msgspec.structs.replace(self.messages[position[0]].parts[position[1]], **changes))
        return True

    def insert(self, message: Message) -> bool:
        self.messages.insert(self.random.randint(0, len(self.messages)), message)
        return True

    # -- the damages -----------------------------------------------------------------------------

    def unanswered(self, at: tuple[int, int]) -> bool:
        self.put(at)
        return True

    def orphan(self) -> bool:
        result = ToolResult(f"nobody_{self.writer.count}", name="bash", parts=(Text(self.writer.unique("orphan")),))
        return self.insert(Message("user", (result,)))

    def duplicate(self, at: tuple[int, int]) -> bool:
        result = self.messages[at[0]].parts[at[1]]
        again = msgspec.structs.replace(result, parts=(Text(self.writer.unique("again")),))
        self.messages.insert(self.random.randint(at[0] + 1, len(self.messages)), Message("user", (again,)))
        return True

    def reused_id(self) -> bool:
        calls = self.where(ToolCall)
        if len(calls) < 2:
            return False
        (i, j), (k, m) = sorted(self.random.sample(calls, 2))
        first, second = self.messages[i].parts[j], self.messages[k].parts[m]
        assert isinstance(first, ToolCall) and isinstance(second, ToolCall)
        old = second.id
        self.put((k, m), msgspec.structs.replace(second, id=first.id))
        for r, s in self.where(ToolResult):
            result = self.messages[r].parts[s]
            if r > k and isinstance(result, ToolResult) and result.call_id == old:
                self.put((r, s), msgspec.structs.replace(result, call_id=first.id))
                break
        return True

    def foreign_signature(self) -> bool:
        others = [name for name in PROVIDER_NAMES if name != self.writer.home]
        thought = Reasoning(self.random.choice(others), text=self.writer.unique("foreign"), signature="Zm9yZWlnbg==")
        assistants = [i for i, message in enumerate(self.messages) if message.role == "assistant"]
        if not assistants:
            return False
        i = self.random.choice(assistants)
        self.messages[i] = msgspec.structs.replace(self.messages[i], parts=(thought, *self.messages[i].parts))
        return True

    def unsigned(self) -> bool:
        return self.change(Reasoning, signature="", encrypted="")

    def empty_text(self) -> bool:
        role: Role = self.random.choice(("user", "assistant", "system"))
        texts = (("",), (), ("  \n",), ("", self.writer.unique("beside")))
        return self.insert(Message(role, tuple(map(Text, self.random.choice(texts)))))

    def cut_front(self) -> bool:
        del self.messages[: self.random.randint(1, len(self.messages) - 1)]
        return True

    def cut_back(self) -> bool:
        del self.messages[self.random.randint(1, len(self.messages) - 1) :]
        return True

    def gone(self) -> bool:
        del self.messages[self.random.randrange(len(self.messages))]
        return True

    def moved(self, at: tuple[int, int]) -> bool:
        result = self.messages[at[0]].parts[at[1]]
        self.put(at)
        return self.insert(Message("user", (result,)))

    def between(self, at: tuple[int, int]) -> bool:
        """A user message between calls and their results."""
        self.messages.insert(at[0], Message("user", (Text(self.writer.unique("between")),)))
        return True

    def split(self) -> bool:
        """Parallel calls of one message split over several messages."""
        for i, message in enumerate(self.messages):
            calls = [part for part in message.parts if isinstance(part, ToolCall)]
            if len(calls) > 1:
                rest = tuple(part for part in message.parts if part is not calls[-1])
                self.messages[i : i + 1] = [
                    msgspec.structs.replace(message, parts=rest),
                    Message("assistant", (calls[-1],)),
                ]
                return True
        return False

    def surrogates(self) -> bool:
        word = self.writer.unique("sur\ud800rogate \x00")
        position = self.pick(ToolResult)
        if position is None:
            return self.insert(Message("user", (Text(word),)))
        result = self.messages[position[0]].parts[position[1]]
        assert isinstance(result, ToolResult)
        self.put(position, msgspec.structs.replace(result, parts=(*result.parts, Text(word))))
        return True

    def bad_arguments(self) -> bool:
        raw = self.random.choice(('{"path": "unclosed', "NaN", '{"x": NaN}', "[1, 2]", '"text"', ""))
        arguments = {"[1, 2]": [1, 2], '"text"': "text"}.get(raw)
        return self.change(ToolCall, arguments=arguments, raw=raw, kind="function", name="bash")

    def bad_name(self, at: tuple[int, int]) -> bool:
        """A tool under a name that not every provider accepts."""
        call = self.messages[at[0]].parts[at[1]]
        assert isinstance(call, ToolCall)
        name = self.random.choice(("mcp.server/tool", "a" * 90, "", "1tool", "naïve tool"))
        self.put(at, msgspec.structs.replace(call, name=name))
        for i, j in self.where(ToolResult):
            result = self.messages[i].parts[j]
            if i > at[0] and isinstance(result, ToolResult) and result.call_id == call.id:
                self.put((i, j), msgspec.structs.replace(result, name=name))
                break
        return True

    def bad_id(self, at: tuple[int, int]) -> bool:
        call = self.messages[at[0]].parts[at[1]]
        assert isinstance(call, ToolCall)
        new = self.random.choice(
            (f"fc:{self.writer.count}|a", f"toolu_{'x' * 80}{self.writer.count}", f"id {self.writer.count}", "")
        )
        self.put(at, msgspec.structs.replace(call, id=new))
        for i, j in self.where(ToolResult):
            result = self.messages[i].parts[j]
            if i > at[0] and isinstance(result, ToolResult) and result.call_id == call.id:
                self.put((i, j), msgspec.structs.replace(result, call_id=new))
                break
        return True

    def media(self) -> bool:
        part = self.random.choice(
            (
                Media("image", url=f"https://example.org/{self.writer.count}.png"),
                self.writer.media("image/tiff"),
                self.writer.media("audio/wav"),
                Media("document", file_id="file-123", provider="anthropic"),
                Media("video", url=f"https://example.org/{self.writer.count}.mp4"),
            )
        )
        role: Role = self.random.choice(("user", "user", "assistant", "system"))
        return self.insert(Message(role, (Text(self.writer.unique("see")), part)))

    def system(self) -> bool:
        return self.insert(Message("system", (Text(self.writer.unique("reminder")),)))

    def opaque(self) -> bool:
        self.writer.count += 1
        drawn = self.random.choice(PROVIDER_NAMES[1:])
        home = self.writer.home
        part: Part = own_item(drawn if home in PROVIDER_NAMES else home, self.writer.count)
        if self.random.random() < 0.3:
            part = Unknown("hologram", {"type": "hologram"})
        return self.insert(Message("assistant", (part, Text(self.writer.unique("beside")))))

    def trailing_space(self) -> bool:
        self.messages.append(Message("assistant", (Text(self.writer.unique("tail") + "  \n"),)))
        return True

    def misplaced(self) -> bool:
        """A call in a user message, or a result in an assistant message."""
        call = self.writer.call()
        if self.random.random() < 0.5:
            return self.insert(Message("user", (Text(self.writer.unique("odd")), call)))
        return self.insert(Message("assistant", (Text(self.writer.unique("odd")), self.writer.result(call))))


_LEAST = {"cut_back": 3, "cut_front": 3, "gone": 3}
"""The number of messages that a damage needs, if more than one."""

_DAMAGED: dict[str, type] = {
    "bad_id": ToolCall,
    "bad_name": ToolCall,
    "between": ToolResult,
    "duplicate": ToolResult,
    "moved": ToolResult,
    "unanswered": ToolResult,
}
"""The type of the part that a damage changes; the part is picked at random."""

DAMAGES: tuple[str, ...] = (
    "bad_arguments",
    "bad_id",
    "bad_name",
    "between",
    "cut_back",
    "cut_front",
    "duplicate",
    "empty_text",
    "foreign_signature",
    "gone",
    "media",
    "misplaced",
    "moved",
    "opaque",
    "orphan",
    "reused_id",
    "split",
    "surrogates",
    "system",
    "trailing_space",
    "unanswered",
    "unsigned",
)
"""The kinds of damage, by name."""


def damaged_history(random: random_module.Random, home: str = "") -> History:
    """A conversation with three to eight kinds of damage. `home` is the provider that answers; by default it is
    random."""
    writer = HistoryWriter(random, home)
    messages = writer.history()
    damager = _Damager(random, messages, writer)
    done = set()
    for name in random.sample(DAMAGES, random.randint(3, 8)):
        if damager.do(name):
            done.add(name)
    return History(tuple(messages), writer.blobs, frozenset(done))
