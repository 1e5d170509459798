"""Messages, arguments and results as attributes of spans: without secrets, and only if they are wanted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..log.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
    compact_json,
)
from ..redaction import Redactor

_REASON = 300
"""At most this many characters of a reason are kept."""


class Contents:
    """Writes contents for spans, redacted. Without `wanted`, only reasons of failures are written."""

    def __init__(self, redactor: Redactor, *, wanted: bool) -> None:
        self._redactor = redactor
        self.wanted = wanted

    def messages(self, messages: Iterable[Message]) -> str:
        """Messages as JSON in the shape of the conventions, which have a role of their own for results of tools."""
        entries = []
        for message in messages:
            results = bool(message.parts) and all(isinstance(part, ToolResult) for part in message.parts)
            role = "tool" if results else message.role
            entries.append({"role": role, "parts": [self._part(part) for part in message.parts]})
        return self._json(entries)

    def system(self, texts: Iterable[str]) -> str:
        """System text, as JSON."""
        return self._json([{"type": "text", "content": text} for text in texts])

    def definitions(self, tools: Iterable[Tool]) -> str:
        """The tools that a model may call, as JSON."""
        entries = []
        for tool in tools:
            entry: dict[str, Any] = {"type": tool.kind, "name": self.name(tool.name)}
            told = {"description": tool.description, "parameters": tool.parameters}
            entries.append(entry | {key: value for key, value in told.items() if value})
        return self._json(entries)

    def arguments(self, call: ToolCall) -> str:
        """The arguments of a call: as JSON, or as text if the tool takes text."""
        return self._json(_arguments(call), ids=False)

    def result(self, result: ToolResult) -> str:
        """The parts of a tool's result, as JSON."""
        return self._json([self._part(part) for part in result.parts])

    def reason(self, text: str) -> str:
        """The reason of a failure, on one line."""
        return utf8(" ".join(self._redactor.text(text)[0].split()))[:_REASON]

    def name(self, text: str) -> str:
        """The name of a tool, a model or a session."""
        return utf8(self._redactor.name(text)[0])

    def _json(self, value: Any, *, ids: bool = True) -> str:
        clean = self._redactor.value(value, {}, ids=ids)
        return utf8(clean if isinstance(clean, str) else compact_json(clean))

    def _part(self, part: Part) -> dict[str, Any]:
        match part:
            case Text(text=text):
                return {"type": "text", "content": text}
            case Reasoning(text=text, summary=summary):
                return {"type": "reasoning", "content": text or "\n".join(summary)}
            case ToolCall(id=call_id, name=name):
                return {"type": "tool_call", "id": call_id, "name": self.name(name), "arguments": _arguments(part)}
            case ToolResult(call_id=call_id, parts=parts):
                return {"type": "tool_call_response", "id": call_id, "response": [self._part(inner) for inner in parts]}
            case Media(kind=kind, mime=mime, sha256=sha256):
                return {"type": kind, "mime_type": self.name(mime), "sha256": sha256}
            case Opaque(kind=kind) | Unknown(kind=kind):
                return {"type": self.name(kind)}


def _arguments(call: ToolCall) -> Any:
    return call.raw if call.arguments is None and call.raw is not None else call.arguments


def utf8(text: str) -> str:
    """`text` with lone surrogates replaced, which no exporter can write."""
    return text.encode("utf-8", "replace").decode("utf-8")
