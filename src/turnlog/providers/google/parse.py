"""Read a generateContent request body, Gemini API or Vertex."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...errors import FormatError
from ...log.messages import Form, Message, Part, Text, ToolResult
from ...log.records import Configuration
from ..protocol import Parsed
from ..schema.walk import check_types
from .form import FORMS, NAME
from .keys import camel_deep, check_json, find, role_of
from .parse_parts import PartReader
from .schema import BODY
from .tools import read_tools

_CONTENT = ("contents", "systemInstruction", "tools", "model")


def parse(body: Mapping[str, Any]) -> Parsed:
    """Read a request body. Raises FormatError with the path of the value that cannot be read."""
    if not isinstance(body, Mapping):
        raise FormatError("expected the body of a generateContent request, an object", path="body")
    check_json(dict(body))
    if body.get("contents") is None:
        raise FormatError("expected a list of contents, or one content", path="contents")
    check_types(body, BODY, "")
    reader = _Reader(body)
    return Parsed(messages=tuple(reader.messages()), configuration=reader.configuration(), blobs=reader.parts.blobs)


class _Reader:
    """Reads one body. `words` are its form words."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = body
        self.parts = PartReader()
        self.words: list[str] = []
        self.keys = {key: find(body, key) for key in _CONTENT}
        self.content_keys = {"contents"}

    def value(self, key: str) -> Any:
        return self.body.get(self.keys[key])

    def messages(self) -> list[Message]:
        messages = []
        system = self.value("systemInstruction")
        if system is not None:
            messages.append(self.system(system))
            self.content_keys.add("systemInstruction")
        contents = self.value("contents")
        if isinstance(contents, dict):
            self.words.append("content-object")
            contents = [contents]
        after_results = False
        for i, content in enumerate(contents):
            message = self.content(content, f"contents[{i}]", after_results)
            after_results = _only_results(message)
            messages.append(message)
        return messages

    def system(self, value: Any) -> Message:
        """The system instruction. The SDK also accepts a string or a list of strings; the form stores which it was."""
        path = "systemInstruction"
        if isinstance(value, str):
            return Message("system", (Text(value),), form=FORMS.shaped("string"))
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return Message("system", tuple(map(Text, value)), form=FORMS.shaped("strings"))
        if not isinstance(value, dict):
            raise FormatError('expected an object such as {"parts": [{"text": ...}]}', path=path)
        parts, shape = self.part_list(value, path)
        seen = {key: item for key, item in value.items() if key != "parts"}
        return Message("system", parts, form=FORMS.made({"role": "user"}, seen, shape))

    def content(self, content: dict[str, Any], path: str, after_results: bool) -> Message:
        """One content. The form word `apart` keeps results separate from the results before; `content` keeps a system
        message, which newer backends allow among the contents, out of the system instruction."""
        role = role_of(content.get("role"))
        if role == "assistant":
            self.parts.answering()
        else:
            self.parts.asking()
        parts, shape = self.part_list(content, path)
        words = [shape]
        if role == "system":
            words.append("content")
        message = Message(role, parts)
        if after_results and _only_results(message):
            words.append("apart")
        seen = {key: item for key, item in content.items() if key != "parts"}
        default = {"role": "model" if role == "assistant" else "user"}
        return msgspec.structs.replace(message, form=FORMS.made(default, seen, *words))

    def part_list(self, holder: dict[str, Any], path: str) -> tuple[tuple[Part, ...], str]:
        """The parts of a content, and the form word for their list."""
        parts = holder.get("parts")
        if isinstance(parts, dict):
            return (self.parts.read(parts),), "object"
        if parts is None:
            others = [key for key in holder if key not in ("parts", "role")]
            if others:
                raise FormatError(f"expected parts, found only {', '.join(others)}", path=path)
            return (), "null" if "parts" in holder else "absent"
        return tuple(map(self.parts.read, parts)), "" if parts else "empty"

    def configuration(self) -> Configuration:
        tools = self.value("tools")
        if isinstance(tools, dict):
            self.words.append("tools-object")
            tools = [tools]
        if tools:
            self.content_keys.add("tools")
        model = self.value("model")
        name = model if isinstance(model, str) else ""
        if name.startswith("models/"):
            self.words.append("models/")
            name = name.removeprefix("models/")
        elif name:
            self.words.append("model")
        settings, form = self.settings(keep_model=not isinstance(model, str))
        return Configuration(provider=NAME, model=name, settings=settings, tools=read_tools(tools or []), form=form)

    def settings(self, *, keep_model: bool) -> tuple[dict[str, Any], Form | None]:
        """All other keys in camelCase, and the form with the spelling of all keys. Values of content keys are not
        compared: both sides have `...` in their place."""
        taken = {spelling for key, spelling in self.keys.items() if not (keep_model and key == "model")}
        others = {key: value for key, value in self.body.items() if key not in taken}
        settings: dict[str, Any] = camel_deep(others)
        default = {**dict.fromkeys(sorted(self.content_keys), ...), **settings}
        seen = {
            self.keys[key]: ... if key in self.content_keys else self.body[self.keys[key]]
            for key in ("contents", "systemInstruction", "tools")
            if key in self.content_keys or self.keys[key] in self.body
        }
        return settings, FORMS.made(default, {**seen, **others}, *self.words)


def _only_results(message: Message) -> bool:
    return bool(message.parts) and all(isinstance(part, ToolResult) for part in message.parts)
