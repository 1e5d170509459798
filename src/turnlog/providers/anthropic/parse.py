"""Request bodies and content blocks of the Messages API, read into canonical content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import FormatError
from ...log.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    compact_json,
    is_finite_json,
)
from ...log.records import Configuration
from ..protocol import Parsed
from ..schema.shapes import Many
from ..schema.walk import check_depth, check_types
from ..spelling import string, without
from .form import FORMS, NAME
from .media import read_media
from .parts import (
    call_block,
    content_word,
    plain_content,
    reasoning_block,
    result_block,
    result_content,
    text_block,
    tool_block,
)
from .schema import BLOCK, BODY

_NOT_SETTINGS = frozenset({"model", "messages", "system", "tools"})
_ROLES = ("user", "assistant", "system")


def parse(body: Mapping[str, Any]) -> Parsed:
    """Read a request body. Raises FormatError with the path of the value that cannot be read."""
    if not isinstance(body, Mapping):
        raise FormatError("a request body is a JSON object", path="body")
    check_depth(body)
    listed = body.get("messages")
    if listed is None:
        raise FormatError("expected a list of messages", path="messages")
    check_types(body, BODY, "")
    reader = _Reader()
    messages = [*reader.system(body.get("system")), *map(reader.message, listed, range(len(listed)))]
    return Parsed(messages=tuple(messages), configuration=_configuration(body), blobs=reader.blobs)


def read_blocks(blocks: Sequence[Any], path: str) -> tuple[tuple[Part, ...], dict[str, bytes]]:
    """The parts of content blocks, and their media bytes by hash."""
    check_types(blocks, Many(BLOCK), path)
    reader = _Reader()
    return reader.parts(blocks, path), reader.blobs


def _configuration(body: Mapping[str, Any]) -> Configuration:
    # How the body was spelled: no model, empty system text, empty tools.
    seen = {key: body[key] for key in ("system", "tools") if key in body and not body[key]}
    named = {"model": ""} if body.get("model") else {}
    return Configuration(
        provider=NAME,
        model=string(body, "model"),
        settings={key: value for key, value in body.items() if key not in _NOT_SETTINGS},
        tools=tuple(map(read_tool, body.get("tools") or ())),
        form=FORMS.made({"model": ""}, {**named, **seen}),
    )


def read_tool(seen: Mapping[str, Any]) -> Tool:
    """A tool's declaration, whose types the schema has checked."""
    name = string(seen, "name")
    if string(seen, "type") not in ("", "custom"):
        return Tool(name=name, kind="hosted", provider=NAME, data=dict(seen))
    tool = Tool(name=name, description=string(seen, "description"), parameters=seen.get("input_schema") or None)
    return FORMS.formed(tool, tool_block, seen)


class _Reader:
    """Reads one body; collects its media bytes in `blobs`."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def system(self, seen: Any) -> list[Message]:
        """The top-level system text as one message, with one part per block."""
        if seen is None or seen in ("", []):
            return []
        return [self._message("system", {"role": "system", "content": seen}, "system")]

    def message(self, seen: Any, index: int) -> Message:
        path = f"messages[{index}]"
        if seen.get("role") not in _ROLES:
            raise FormatError(f"expected one of {', '.join(_ROLES)}, found {seen.get('role')!r}", path=f"{path}.role")
        return self._message(seen["role"], seen, f"{path}.content", "inline" if seen["role"] == "system" else "")

    def _message(self, role: Any, seen: Mapping[str, Any], path: str, *place: str) -> Message:
        parts = self._content(seen.get("content"), path)
        blocks = [self._written(part) for part in parts]
        shape = content_word(seen, {"content": plain_content(blocks)})
        results_lead = sorted((isinstance(part, ToolResult) for part in parts), reverse=True)
        if results_lead != [isinstance(part, ToolResult) for part in parts]:
            shape = "mixed"
        form = FORMS.made({"role": role}, without(seen, "content"), *place, shape)
        return Message(role=role, parts=parts, form=form)

    def _written(self, part: Part) -> dict[str, Any]:
        """The default rendering of a text, and an empty block for anything else: enough to recognise a plain text."""
        return FORMS.spelled(text_block(part), part.form) if isinstance(part, Text) else {}

    def _content(self, content: Any, path: str) -> tuple[Part, ...]:
        if content is None:
            return ()
        return (Text(content),) if isinstance(content, str) else self.parts(content, path)

    def parts(self, blocks: Sequence[Any], path: str) -> tuple[Part, ...]:
        return tuple(self.part(block, f"{path}[{i}]") for i, block in enumerate(blocks))

    def part(self, block: Any, path: str) -> Part:
        kind = block.get("type")
        if not isinstance(kind, str):
            raise FormatError(f"expected the type of a content block, found {kind!r}", path=f"{path}.type")
        match kind:
            case "text":
                text = string(block, "text")
                return Text(text, form=FORMS.made({"type": "text", "text": text}, block))
            case "thinking" | "redacted_thinking":
                return self._reasoning(block)
            case "tool_use":
                return self._call(block)
            case "tool_result":
                return self._result(block, path)
            case "image" | "document":
                return read_media(block, self.blobs) or self._opaque(block)
            case "search_result":
                return self._search_result(block) or self._opaque(block)
            case _:
                return self._opaque(block)

    def _opaque(self, block: Mapping[str, Any]) -> Opaque:
        return Opaque(provider=NAME, kind=str(block["type"]), data=dict(block))

    def _reasoning(self, block: Mapping[str, Any]) -> Reasoning:
        if block["type"] == "redacted_thinking":
            part = Reasoning(provider=NAME, encrypted=string(block, "data"))
            return FORMS.formed(part, reasoning_block, block, "" if part.encrypted else "redacted")
        part = Reasoning(provider=NAME, text=string(block, "thinking"), signature=string(block, "signature"))
        return FORMS.formed(part, reasoning_block, block)

    def _call(self, block: Mapping[str, Any]) -> ToolCall:
        arguments = block.get("input")
        if arguments is None:
            arguments = {}
        finite = is_finite_json(arguments)
        call = ToolCall(
            id=string(block, "id"),
            name=string(block, "name"),
            arguments=arguments if finite else None,
            raw=None if finite else compact_json(arguments),
        )
        if not finite:  # NaN is not JSON: keep the input as text and send it wrapped
            block = {**block, "input": call_block(call)["input"]}
        return FORMS.formed(call, call_block, block, "" if isinstance(arguments, dict) or not finite else "bare")

    def _result(self, block: Mapping[str, Any], path: str) -> ToolResult:
        # A result cannot contain calls or reasoning: such blocks are kept whole.
        failed = block.get("is_error")
        # An empty output has no text part. In an error it would be refused, so there it becomes an empty text.
        content = None if block.get("content") == "" and not failed else block.get("content")
        if isinstance(content, Mapping):  # what a tool returned, as JSON
            content = compact_json(content)
        inner = tuple(
            part if isinstance(part, (Text, Media, Opaque)) else self._opaque(nested)
            for part, nested in self._nested(content, f"{path}.content")
        )
        result = ToolResult(
            call_id=string(block, "tool_use_id"),
            parts=inner,
            outcome="failed" if failed else "ok",
        )
        default = result_content([self._written(part) for part in inner], result.outcome == "failed")
        return FORMS.formed(result, result_block, without(block, "content"), content_word(block, default))

    def _nested(self, content: Any, path: str) -> list[tuple[Part, Mapping[str, Any]]]:
        blocks = content if isinstance(content, (list, tuple)) else [{}]
        return list(zip(self._content(content, path), blocks, strict=False))

    def _search_result(self, block: Mapping[str, Any]) -> Text | None:
        """A search result with a single plain text; others stay opaque."""
        content = block.get("content")
        if not isinstance(content, list) or len(content) != 1 or not isinstance(content[0], Mapping):
            return None
        inner = content[0]
        if inner.keys() != {"type", "text"} or inner["type"] != "text" or not isinstance(inner["text"], str):
            return None
        if not isinstance(block.get("source"), str) or not isinstance(block.get("title"), str):
            return None
        default = {"type": "search_result", "source": "", "title": ""}
        return Text(inner["text"], form=FORMS.made(default, without(block, "content"), "search_result"))
