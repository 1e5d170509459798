"""ShareGPT conversations, as training data and trajectories of agents are shared: a list, JSON lines, or one.

A turn says who speaks (`from`) and what (`value`). Calls and results are turns with JSON, or stand between tags in a
text (`<tool_call>`, `<tool_response>`); thinking stands between `<think>` tags. Nothing has ids, so that results answer
the calls in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .._platform.lazy import lazy_pattern
from ..log.messages import Part
from ..providers.openai_chat import PROVIDER
from .conversations import read_conversations
from .fields import Fields, kind_of
from .framework_messages import parsed
from .json_values import without, word
from .parts import called, texts, thoughts
from .protocol import Imported, Origin, hashed_id
from .transcript import Transcript
from .writing import Handler, SessionWriter

_THINKING = lazy_pattern(r"\s*<think(?:ing)?>\s*(.*?)\s*</think(?:ing)?>\s*", re.DOTALL)
_CALL = lazy_pattern(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_RESULT = lazy_pattern(r"<tool_response>\s*(.*?)\s*(?:</tool_response>|\Z)", re.DOTALL)


def read(origin: Origin) -> Iterator[Imported]:
    """A session for each conversation, one after the other."""
    return read_conversations(origin, "conversations", list, _read_one, "give a file of ShareGPT conversations")


def _read_one(file: Transcript, conversation: dict[str, Any], number: int) -> Imported:
    writer = SessionWriter(file, "sharegpt", PROVIDER, agent="", envelope=("from", "role", "weight", "loss"))
    writer.id = hashed_id("sharegpt", conversation)
    rest = Fields(without(conversation, ("conversations",)))
    writer.at(rest.get("timestamp"))
    writer.model, system, tools = rest.text("model"), texts(rest.text("system")), rest.get("tools")
    for key in ("images", "videos", "audios"):
        if rest.value.get(key):
            writer.log.count(f"`{key}`, which are files of their own", number)
    writer.take(rest, number, "conversation", {"conversation": lambda *_: None})
    writer.facts("tools", {"tools": tools})
    writer.say("system", system, number)
    for place, turn in enumerate(conversation["conversations"], 1):
        entry = Fields(turn)
        if not entry.value:
            writer.log.unreadable(number, f"turn {place}", turn, "entry")
            continue
        writer.state["source"] = f"turn {place}"
        writer.take(entry, number, kind_of(entry, "from", "role"), _HANDLERS)
    return writer.done()


def _asked(writer: SessionWriter, entry: Fields, line: int) -> None:
    role = "system" if kind_of(entry, "from", "role") == "system" else "user"
    writer.say(role, texts(entry.text("value", "content")), line, source=writer.state["source"])


def _answered(writer: SessionWriter, entry: Fields, line: int) -> None:
    text = entry.text("value", "content")
    parts: list[Part] = []
    if thought := _THINKING.match(text):
        parts += thoughts(thought[1], PROVIDER.name)
        text = text[thought.end() :]
    if kind_of(entry, "from", "role") == "function_call":
        parts += _calls(text)
        text = ""
    before, *pieces = _CALL.split(text)
    parts += texts(before.strip() if pieces else before)
    for call, after in zip(pieces[::2], pieces[1::2], strict=True):
        parts += (*_calls(call), *texts(after.strip()))
    writer.say("assistant", parts, line, source=writer.state["source"])


def _calls(text: str) -> list[Part]:
    """The calls in a JSON object or a list of them; the text itself if it is something else."""
    value = parsed(text.strip())
    calls = [
        called("", call["name"], call.get("arguments", call.get("parameters")))
        for call in (value if isinstance(value, list) else [value])
        if isinstance(call, dict) and word(call.get("name")) and call.keys() <= _KEYS
    ]
    return [*calls] if calls and len(calls) == (len(value) if isinstance(value, list) else 1) else [*texts(text)]


def _returned(writer: SessionWriter, entry: Fields, line: int) -> None:
    text = entry.text("value", "content")
    for result in _RESULT.findall(text) or [text]:
        value = parsed(result.strip())
        is_named = isinstance(value, dict) and value.keys() <= _RESULT_KEYS and value.get("content") is not None
        content, name = (value["content"], word(value.get("name"))) if is_named else (result, "")
        writer.result("", content, line, name=name, source=writer.state["source"])


_KEYS = {"name", "arguments", "parameters", "id", "type"}
_RESULT_KEYS = {"name", "content", "tool_call_id"}
_HANDLERS: dict[str, Handler | None] = {
    **dict.fromkeys(("human", "user", "system"), _asked),
    **dict.fromkeys(("gpt", "assistant", "chatgpt", "bing", "bard", "model", "function_call"), _answered),
    **dict.fromkeys(("observation", "tool", "function_response", "function"), _returned),
}
