"""What MCP servers say, in the words of the log: tools as declarations, results as content, questions for people."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .._platform.lazy import lazy_pattern
from ..errors import InputError
from ..log.messages import Media, Text, ToolResult, compact_json, json_or_text, sha256_hex
from .functions import LONGEST_NAME
from .schemas import misfits

_FOREIGN = lazy_pattern(r"[^A-Za-z0-9_-]")


def valid_name(name: str) -> str:
    """A name that every provider takes: other characters become `_`, and of a long one the end becomes its hash."""
    valid = str(_FOREIGN.sub("_", name))
    return valid if 0 < len(valid) <= LONGEST_NAME else f"{valid[: LONGEST_NAME - 9]}_{sha256_hex(name.encode())[:8]}"


def result_of(result: Any, call_id: str, name: str, media: Callable[..., Media]) -> ToolResult:
    """The result of a call, of an `mcp.types.CallToolResult`. `media(data, mime, name=...)` keeps the bytes of images,
    sound and files. What the log has no part for is said in a line."""
    parts = [part for block in result.content for part in _parts(block, media)]
    structured = result.structured_content
    if structured is not None and not _says(parts, structured):
        parts.append(Text(compact_json(structured)))
    return ToolResult(call_id, name, tuple(parts), "failed" if result.is_error else "ok")


def _parts(block: Any, media: Callable[..., Media]) -> Iterator[Text | Media]:
    match block.type:
        case "text":
            yield Text(block.text)
        case "image" | "audio":
            yield _media(block.data, block.mime_type, "", media)
        case "resource_link":
            said = filter(None, (block.title or block.name, block.mime_type, block.description))
            yield Text(f"[resource {block.uri}: {', '.join(said)}]")
        case "resource":
            held = block.resource
            yield Text(f"[resource {held.uri}]")
            if (text := getattr(held, "text", None)) is not None:
                yield Text(text)
            else:
                yield _media(held.blob, held.mime_type or "application/octet-stream", held.uri, media)
        case other:  # of a newer protocol
            yield Text(f"[content of the kind {other!r}, which cannot be shown]")


def _media(data: str, mime: str, name: str, media: Callable[..., Media]) -> Text | Media:
    try:
        return media(base64.b64decode(data, validate=True), mime, name=name)
    except (binascii.Error, ValueError) as error:
        return Text(f"[{mime}: the server sent bytes that cannot be read: {error}]")


def _says(parts: list[Text | Media], structured: Any) -> bool:
    """Whether the texts say the same as the structured content: in one text, or each item of a list in its own. A value
    that is no object is in the field `result`."""
    texts = [json_or_text(part.text) for part in parts if isinstance(part, Text)]
    wrapped = isinstance(structured, dict) and structured.keys() == {"result"}
    values = [structured, structured["result"]] if wrapped else [structured]
    return any(value in texts or str(value) in texts or value == (texts or None) for value in values)


def question_of(params: Any) -> tuple[str, dict[str, Any]]:
    """What a server asks the user, and the JSON schema of the fields that it wants filled in: {} if it wants none."""
    if params.mode == "url":
        return f"{params.message} {params.url}", {}
    schema = params.requested_schema
    return params.message, schema if schema.get("properties") else {}


def answer_to(decision: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The answer for the server: `accept` with the fields, or `decline`. True fills in the schema's defaults. Raises
    InputError if that does not fit the schema, and if nobody decided (None)."""
    if decision is None:
        raise InputError("a server waits for it, and there is no approve, or it said LATER")
    if decision is not True and not isinstance(decision, Mapping):
        return {"action": "decline"}
    given = {} if decision is True else dict(decision)
    properties = fields.get("properties", {})
    content = {name: one["default"] for name, one in properties.items() if "default" in one} | given
    if wrong := next(misfits(fields, content, fields), ""):
        raise InputError(f"approve: {wrong}: return a dict that fits the question's fields")
    return {"action": "accept", "content": content} if fields else {"action": "accept"}
