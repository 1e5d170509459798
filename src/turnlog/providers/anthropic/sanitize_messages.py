"""Sanitize single blocks for the Messages API; `repair` handles pairing, order and limits.

Before the schema is applied, `mended` puts understood blocks into the documented form; afterwards, `finished` fills
values that must not be empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...log.messages import compact_json
from ...tokens.dimensions import image_type
from ..edits import Edits, Object, changed
from ..media_bytes import encode_base64
from .media import decoded, document_text
from .parts import NO_OUTPUT

_ONLY: dict[str, tuple[str, ...]] = {"image": ("transformations",), "document": ("title", "context", "citations")}
"""Keys that only one of the two media blocks has."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")


def mended(message: Object, path: str, edits: Edits) -> Object:
    """The message with every block in its documented form."""
    return changed(message, "content", path, lambda block, where: _block(block, where, edits))


def _block(block: Object, path: str, edits: Edits) -> Object:
    kind = block.get("type")
    mend = _MEND.get(kind) if isinstance(kind, str) else None
    return block if mend is None else mend(block, path, edits)


def finished(message: Object, path: str, edits: Edits) -> Object:
    """The message without failed results that have no content."""
    return changed(message, "content", path, lambda block, where: _with_content(block, where, edits))


def _with_content(block: Object, path: str, edits: Edits) -> Object:
    if block.get("type") != "tool_result" or not block.get("is_error") or block.get("content"):
        return block
    return _set(block, "content", NO_OUTPUT, path, edits)


def _set(block: Object, key: str, value: Any, path: str, edits: Edits) -> Object:
    return edits.put(block, key, value, "Field required", path=path, kind="value")


def _thinking(block: Object, path: str, edits: Edits) -> Object:
    return block if isinstance(block.get("thinking"), str) else _set(block, "thinking", "", path, edits)


def _call(block: Object, path: str, edits: Edits) -> Object:
    given = block.get("input")
    if isinstance(given, dict):
        return block
    return _set(block, "input", {} if given is None else {"input": given}, path, edits)


def _result(block: Object, path: str, edits: Edits) -> Object:
    failed = block.get("is_error")
    if failed is not None and not isinstance(failed, bool):
        block = _set(block, "is_error", bool(failed), path, edits)
    content = block.get("content")
    if isinstance(content, dict):
        rule, detail = "Input should be a valid string", "sent as text"
        block = edits.put(block, "content", compact_json(content), rule, path=path, detail=detail, kind="value")
    return mended(block, path, edits)


def _media(block: Object, path: str, edits: Edits) -> Object:
    """Media whose block and source fit its MIME type."""
    source = block.get("source")
    if not isinstance(source, dict):
        return block
    if source.get("type") == "content":
        return changed(block, "source", path, lambda source, where: mended(source, where, edits))
    mime, data = source.get("media_type"), source.get("data")
    if source.get("type") == "text" and isinstance(data, str) and mime != "text/plain":
        return {**block, "source": _set(source, "media_type", "text/plain", f"{path}.source", edits)}
    if source.get("type") != "base64" or not isinstance(data, str):
        return block
    if not isinstance(mime, str):
        mime = image_type(decoded(data)) or "application/pdf"
        source = _set(source, "media_type", mime, f"{path}.source", edits)
        block = {**block, "source": source}
    if mime.startswith("text/"):
        try:
            text = document_text(decoded(data))
        except UnicodeDecodeError:
            edits.add("media", path, f"left out: {mime} in no encoding that is known", "application/pdf")
            return {"type": "text", "text": f"[document left out: {mime}]"}
        edits.add("media", f"{path}.source", f"sent as text: it was base64 of {mime}", "application/pdf")
        source = {"type": "text", "media_type": "text/plain", "data": text}
        return _retyped({**block, "source": source}, "document", path, edits)
    if not _BASE64.fullmatch(data):
        again, rule = encode_base64(decoded(data)), "invalid base64 data"
        source = edits.put(source, "data", again, rule, path=f"{path}.source", detail="encoded again", kind="media")
        block = {**block, "source": source}
    return _retyped(block, "image" if mime.startswith("image/") else "document", path, edits)


def _retyped(block: Object, kind: str, path: str, edits: Edits) -> Object:
    if block["type"] == kind:
        return block
    lost = [key for key in _ONLY[block["type"]] if block.get(key) is not None]
    detail = f"sent as {kind}, it was {block['type']}" + (f" with {', '.join(lost)}" if lost else "")
    edits.add("media", path, detail, "Input should be of another type")
    rest = {key: value for key, value in block.items() if key not in _ONLY[block["type"]]}
    return {**rest, "type": kind}


_MEND: dict[str, Callable[[Object, str, Edits], Object]] = {
    "thinking": _thinking,
    "tool_use": _call,
    "tool_result": _result,
    "image": _media,
    "document": _media,
    "search_result": mended,
}
