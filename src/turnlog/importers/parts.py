"""Parts of messages, from what programs write: texts, thinking, calls, results and media of any shape."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..log.messages import Media, Reasoning, Text, ToolCall, compact_json, is_finite_json, media_kind
from ..providers.media_bytes import decode_base64, is_data_url
from .json_values import mapping, word
from .repeats import is_empty

Shown = Text | Media


def texts(*values: Any) -> tuple[Text, ...]:
    """A text part for each of the values that is a text and not empty."""
    return tuple(Text(value) for value in values if isinstance(value, str) and value)


def thoughts(text: str, provider: str, *, signature: str = "", encrypted: str = "") -> tuple[Reasoning, ...]:
    """Thinking as a part; none if there is nothing of it."""
    part = Reasoning(provider=provider, text=text, signature=signature, encrypted=encrypted)
    return (part,) if text or signature or encrypted else ()


def called(call_id: str, name: str, arguments: Any) -> ToolCall:
    """A call with its arguments: an object, or JSON text. Text that is no JSON object is kept as the model wrote it."""
    if isinstance(arguments, str):
        try:
            value = json.loads(arguments)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict) or not is_finite_json(value):
            return ToolCall(call_id, name, raw=arguments)
        return ToolCall(call_id, name, value, raw=None if compact_json(value) == arguments else arguments)
    if not is_finite_json(arguments):
        return ToolCall(call_id, name, raw=compact_json(arguments))
    return ToolCall(call_id, name, {} if arguments is None else arguments)


def shown(content: Any, blob: Callable[[bytes], str]) -> tuple[Shown, ...]:
    """The content of a result or a message, as parts: a text, a list of blocks (text and image blocks of MCP and of the
    APIs), or any other JSON, which becomes text. `blob` stores bytes."""
    if content is None:
        return ()
    if isinstance(content, str):
        return texts(content)
    blocks = content if isinstance(content, list) else [content]
    parts = [_block(block, blob) for block in blocks]
    if blocks and None not in parts:
        return tuple(part for part in parts if part is not None)
    return () if is_empty(content) else (Text(compact_json(content)),)


def _block(block: Any, blob: Callable[[bytes], str]) -> Shown | None:
    """A block as a part; None if it is of no known shape."""
    if isinstance(block, str):
        return Text(block)
    if not isinstance(block, dict):
        return None
    if isinstance(block.get("text"), str) and block.get("type", "text") in ("text", "input_text", "output_text"):
        return Text(block["text"])
    source = mapping(block.get("source")) or mapping(block.get("image")) or block
    url = block.get("image_url", source.get("url"))
    data = word(source.get("data")) or word(source.get("base64")) or word(mapping(url).get("url")) or word(url)
    mime = next((source[key] for key in ("mimeType", "media_type", "mime", "mime_type") if word(source.get(key))), "")
    return media(data, mime, blob, word(block.get("filename"))) if data and block.get("type") != "text" else None


def media(data: str, mime: str, blob: Callable[[bytes], str], name: str = "") -> Media | None:
    """Media from base64 (`mime` is its type), from a data URL, or at another URL; None if it is nothing of these."""
    if is_data_url(data):
        head, _, data = data.partition(",")
        mime = head[5:].partition(";")[0] or mime
    elif "://" in data[:20]:
        return Media(media_kind(mime) if mime else "image", mime=mime, url=data, name=name)
    content = decode_base64(data) if data else None
    if content is None or not mime:
        return None
    return Media(media_kind(mime), mime=mime, sha256=blob(content), size=len(content), name=name)
