"""Request bodies and content blocks of the Messages API, read into canonical content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...errors import FormatError
from ...log.messages import (
    Form,
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
    sha256_hex,
)
from ...log.records import Configuration
from ..protocol import Parsed
from ..schema import Many, check_depth, check_types
from ..spelling import difference
from .blocks import (
    NAME,
    call_block,
    content_word,
    decoded,
    media_block,
    plain_content,
    reasoning_block,
    result_block,
    result_content,
    spelled,
    text_block,
)
from .schema import BLOCK, BODY

_NOT_SETTINGS = frozenset({"model", "messages", "system", "tools"})
_ROLES = ("user", "assistant", "system")


def parse(body: Mapping[str, Any]) -> Parsed:
    """Read a request body. Raises FormatError with the path of what cannot be read."""
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
    """The parts that content blocks hold, and the media bytes among them by hash."""
    check_types(blocks, Many(BLOCK), path)
    reader = _Reader()
    return reader.parts(blocks, path), reader.blobs


def _configuration(body: Mapping[str, Any]) -> Configuration:
    # Spelling of the body itself: a model that is not named, empty system text or tools.
    missing = [] if "model" in body else ["model"]
    hollow = {key: body[key] for key in ("system", "tools") if key in body and not body[key]}
    delta = {sign: entry for sign, entry in (("+", hollow), ("-", missing)) if entry}
    return Configuration(
        provider=NAME,
        model=_string(body, "model"),
        settings={key: value for key, value in body.items() if key not in _NOT_SETTINGS},
        tools=tuple(map(_tool, body.get("tools") or ())),
        form=Form(provider=NAME, delta=delta) if delta else None,
    )


def _tool(seen: Mapping[str, Any]) -> Tool:
    name = _string(seen, "name")
    if _string(seen, "type") not in ("", "custom"):
        return Tool(name=name, kind="hosted", provider=NAME, data=dict(seen))
    description, schema = _string(seen, "description"), seen.get("input_schema")
    default = {"name": name, "input_schema": schema or {"type": "object", "properties": {}}}
    if description:
        default["description"] = description
    return Tool(name=name, description=description, parameters=schema or None, form=_formed(default, seen))


def _string(holder: Mapping[str, Any], key: str) -> str:
    """The string at `key`, empty where there is none."""
    value = holder.get(key)
    return value if isinstance(value, str) else ""


def _formed(default: Mapping[str, Any], seen: Mapping[str, Any], shape: str = "") -> Form | None:
    """The form of a value whose default rendering is `default` and that was seen as `seen`."""
    delta = _difference(default, seen)
    return Form(NAME, shape, delta) if delta or shape else None


def _difference(default: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, Any] | None:
    """As `spelling.difference`, but this API has one spelling of each key: `toolUseId` is just unknown."""
    found = difference(default, seen)
    return None if found is None else _literally(found, seen)


def _literally(delta: dict[str, Any], seen: Mapping[str, Any]) -> dict[str, Any]:
    respelled = delta.get("=", {})
    nested = {key: _literally(inner, seen[key]) for key, inner in delta.get("~", {}).items() if key not in respelled}
    added = {**delta.get("+", {}), **{theirs: seen[theirs] for theirs in respelled.values()}}
    entries = {"+": added, "-": [*delta.get("-", ()), *respelled], "~": nested}
    return {sign: entry for sign, entry in entries.items() if entry}


def _without(holder: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in holder.items() if key not in keys}


def _inline(message: Message) -> Message:
    """System text that stood among the messages."""
    shape, delta = (message.form.shape, message.form.delta) if message.form is not None else ("", None)
    return msgspec.structs.replace(message, form=Form(NAME, f"inline {shape}".strip(), delta))


class _Reader:
    """Reads one body; collects the media bytes it meets in `blobs`."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def system(self, seen: Any) -> list[Message]:
        """The top-level system text as one message, a part a block."""
        if seen is None or seen in ("", []):
            return []
        return [self._message("system", {"role": "system", "content": seen}, "system")]

    def message(self, seen: Any, index: int) -> Message:
        path = f"messages[{index}]"
        if seen.get("role") not in _ROLES:
            raise FormatError(f"expected one of {', '.join(_ROLES)}, found {seen.get('role')!r}", path=f"{path}.role")
        message = self._message(seen["role"], seen, f"{path}.content")
        return _inline(message) if message.role == "system" else message

    def _message(self, role: Any, seen: Mapping[str, Any], path: str) -> Message:
        parts = self._content(seen.get("content"), path)
        blocks = [self._written(part) for part in parts]
        shape = content_word(seen, {"content": plain_content(blocks)})
        results_lead = sorted((isinstance(part, ToolResult) for part in parts), reverse=True)
        if results_lead != [isinstance(part, ToolResult) for part in parts]:
            shape = "mixed"
        form = _formed({"role": role}, _without(seen, "content"), shape)
        return Message(role=role, parts=parts, form=form)

    def _written(self, part: Part) -> dict[str, Any]:
        """As much of the default rendering as tells a plain text from everything else."""
        return spelled(text_block(part), part.form) if isinstance(part, Text) else {}

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
                text = _string(block, "text")
                return Text(text, form=_formed({"type": "text", "text": text}, block))
            case "thinking" | "redacted_thinking":
                return self._reasoning(block)
            case "tool_use":
                return self._call(block)
            case "tool_result":
                return self._result(block, path)
            case "image" | "document":
                return self._media(block) or self._opaque(block)
            case "search_result":
                return self._search_result(block) or self._opaque(block)
            case _:
                return self._opaque(block)

    def _opaque(self, block: Mapping[str, Any]) -> Opaque:
        return Opaque(provider=NAME, kind=str(block["type"]), data=dict(block))

    def _reasoning(self, block: Mapping[str, Any]) -> Reasoning:
        if block["type"] == "redacted_thinking":
            data = _string(block, "data")
            part = Reasoning(provider=NAME, encrypted=data)
            shape = "" if data else "redacted"
            default: dict[str, Any] = {"type": "redacted_thinking", "data": data}
        else:
            text = _string(block, "thinking")
            signature = _string(block, "signature")
            part = Reasoning(provider=NAME, text=text, signature=signature)
            shape = ""
            default = reasoning_block(part)
        return msgspec.structs.replace(part, form=_formed(default, block, shape))

    def _call(self, block: Mapping[str, Any]) -> ToolCall:
        arguments = block.get("input")
        if arguments is None:
            arguments = {}
        held = is_finite_json(arguments)
        shape = "" if isinstance(arguments, dict) or not held else "bare"
        call = ToolCall(
            id=_string(block, "id"),
            name=_string(block, "name"),
            arguments=arguments if held else None,
            raw=None if held else compact_json(arguments),
            form=Form(NAME, shape) if shape else None,
        )
        if not held:  # NaN is no JSON: it is kept as text, and never sent as it was
            block = {**block, "input": call_block(call)["input"]}
        return msgspec.structs.replace(call, form=_formed(call_block(call), block, shape))

    def _result(self, block: Mapping[str, Any], path: str) -> ToolResult:
        # What a result may hold has no calls or reasoning in it; a block that does is kept whole.
        failed = block.get("is_error")
        # An empty output is no text; in an error it would be refused, so there it counts as one.
        content = None if block.get("content") == "" and not failed else block.get("content")
        inner = tuple(
            part if isinstance(part, (Text, Media, Opaque)) else self._opaque(nested)
            for part, nested in self._nested(content, f"{path}.content")
        )
        result = ToolResult(
            call_id=_string(block, "tool_use_id"),
            parts=inner,
            outcome="failed" if failed else "ok",
        )
        default = result_content([self._written(part) for part in inner], result.outcome == "failed")
        shape = content_word(block, default)
        form = _formed(result_block(result), _without(block, "content"), shape)
        return msgspec.structs.replace(result, form=form)

    def _nested(self, content: Any, path: str) -> list[tuple[Part, Mapping[str, Any]]]:
        blocks = content if isinstance(content, (list, tuple)) else [{}]
        return list(zip(self._content(content, path), blocks, strict=False))

    def _search_result(self, block: Mapping[str, Any]) -> Text | None:
        """A search result that holds one plain text; others stay opaque."""
        content = block.get("content")
        if not isinstance(content, list) or len(content) != 1 or not isinstance(content[0], Mapping):
            return None
        inner = content[0]
        if inner.keys() != {"type", "text"} or inner["type"] != "text" or not isinstance(inner["text"], str):
            return None
        if not isinstance(block.get("source"), str) or not isinstance(block.get("title"), str):
            return None
        default = {"type": "search_result", "source": "", "title": ""}
        return Text(inner["text"], form=_formed(default, _without(block, "content"), "search_result"))

    def _media(self, block: Mapping[str, Any]) -> Media | None:
        """The media of an image or document block, or None for a source that is not of the known kinds."""
        source = block.get("source")
        if not isinstance(source, Mapping):
            return None
        payload = "content" if source.get("type") == "content" else "data"
        media = self._sourced(str(block["type"]), source, source.get(payload))
        if media is None:
            return None
        title = block.get("title")
        if media.kind == "document" and isinstance(title, str) and title:
            media = msgspec.structs.replace(media, name=title)
        default = media_block(media, "")
        if default is None or default["source"]["type"] != source["type"]:
            shape = str(source["type"])
            media = msgspec.structs.replace(media, form=Form(NAME, shape))
            default = media_block(media, "") or {}
        shape = media.form.shape if media.form is not None else ""
        # The payload itself stays out of the comparison: it is in the blobs.
        seen = {**block, "source": {**source, payload: ""}} if payload in source else block
        delta = _difference(default, seen)
        return msgspec.structs.replace(media, form=Form(NAME, shape, delta) if shape or delta else None)

    def _sourced(self, kind: Any, source: Mapping[str, Any], payload: Any) -> Media | None:
        mime = source.get("media_type", "")
        match source.get("type"):
            case "url" if isinstance(source.get("url"), str) and source["url"]:
                mime = "application/pdf" if kind == "document" else ""
                return Media(kind=kind, mime=mime, url=source["url"])
            case "file" if isinstance(source.get("file_id"), str) and source["file_id"]:
                return Media(kind=kind, file_id=source["file_id"], provider=NAME)
            case "base64" if isinstance(payload, str) and isinstance(mime, str):
                raw, exact = decoded(payload)
                literal = "" if exact else self._kept(payload.encode("utf-8", "surrogatepass"))
                form = Form(NAME, f"base64:{literal}") if literal else None
                return Media(kind=kind, mime=mime, sha256=self._kept(raw), size=len(raw), form=form)
            case "text" | "content" if kind == "document" and isinstance(payload, str) and isinstance(mime, str):
                raw = payload.encode("utf-8", "surrogatepass")
                return Media(kind=kind, mime=mime or "text/plain", sha256=self._kept(raw), size=len(raw))
            case _:
                return None

    def _kept(self, data: bytes) -> str:
        digest = sha256_hex(data)
        self.blobs[digest] = data
        return digest
