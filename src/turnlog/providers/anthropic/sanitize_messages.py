"""Blocks as the Messages API takes them, one by one: pairing, order and limits are repair's.

`mended` gives what is understood the form that the API wants, before the schema is applied; `finished` fills, after
it, what must not be empty.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

from ...log.messages import unchanged
from ...view.repair.sniff import image_type
from ...view.types import Edit
from .blocks import NO_OUTPUT, decoded, document_text

_Block = dict[str, Any]
_Edits = list[Edit]

_ONLY: dict[str, tuple[str, ...]] = {"image": ("transformations",), "document": ("title", "context", "citations")}
"""Keys of one of the two kinds of media blocks that the other does not have."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")


def mended(request: _Block, edits: _Edits) -> _Block:
    """The request with every block of its messages mended; itself if nothing had to change."""
    return _changed(request, _MEND, edits)


def finished(request: _Block, edits: _Edits) -> _Block:
    """The request without failed results that say nothing; itself if there are none."""
    return _changed(request, {"tool_result": _saying}, edits)


_Change = Callable[[_Block, str, _Edits], _Block]


def _changed(request: _Block, changes: dict[str, _Change], edits: _Edits) -> _Block:
    given = request.get("messages")
    if not isinstance(given, list):
        return request
    new = [
        _blocks(message, f"messages[{i}].content", changes, edits) if isinstance(message, dict) else message
        for i, message in enumerate(given)
    ]
    return request if unchanged(new, given) else {**request, "messages": new}


def _blocks(holder: _Block, path: str, changes: dict[str, _Change], edits: _Edits) -> _Block:
    """`holder` (a message, a tool result, a source) with every block in its content, which is at `path`, changed."""
    blocks = holder.get("content")
    if not isinstance(blocks, list):
        return holder
    new = [
        changes[block["type"]](block, f"{path}[{j}]", edits)
        if isinstance(block, dict) and isinstance(block.get("type"), str) and block["type"] in changes
        else block
        for j, block in enumerate(blocks)
    ]
    return holder if unchanged(new, blocks) else {**holder, "content": new}


def _set(block: _Block, key: str, value: Any, path: str, edits: _Edits) -> _Block:
    was = f"{key} was {block[key]!r:.40}" if key in block else f"there was no {key}"
    edits.append(Edit("value", f"set to {value!r:.40}: {was}", rule="Field required", path=f"{path}.{key}"))
    return {**block, key: value}


def _thinking(block: _Block, path: str, edits: _Edits) -> _Block:
    return block if isinstance(block.get("thinking"), str) else _set(block, "thinking", "", path, edits)


def _call(block: _Block, path: str, edits: _Edits) -> _Block:
    given = block.get("input")
    if isinstance(given, dict):
        return block
    return _set(block, "input", {} if given is None else {"input": given}, path, edits)


def _result(block: _Block, path: str, edits: _Edits) -> _Block:
    failed = block.get("is_error", False)
    if failed is not None and not isinstance(failed, bool):
        block = _set(block, "is_error", bool(failed), path, edits)
    return _blocks(block, f"{path}.content", _MEND, edits)


def _saying(block: _Block, path: str, edits: _Edits) -> _Block:
    return (
        _set(block, "content", NO_OUTPUT, path, edits) if block.get("is_error") and not block.get("content") else block
    )


def _media(block: _Block, path: str, edits: _Edits) -> _Block:
    """A medium in the block and the source that its type calls for."""
    source = block.get("source")
    if not isinstance(source, dict):
        return block
    if source.get("type") == "content":
        inner = _blocks(source, f"{path}.source.content", _MEND, edits)
        return block if inner is source else {**block, "source": inner}
    mime, data = source.get("media_type"), source.get("data")
    if source.get("type") == "text" and isinstance(data, str) and mime != "text/plain":
        return {**block, "source": _set(source, "media_type", "text/plain", f"{path}.source", edits)}
    if source.get("type") != "base64" or not isinstance(data, str):
        return block
    if not isinstance(mime, str):
        mime = image_type(decoded(data)[0]) or "application/pdf"
        source = _set(source, "media_type", mime, f"{path}.source", edits)
        block = {**block, "source": source}
    if mime.startswith("text/"):
        try:
            text = document_text(decoded(data)[0])
        except UnicodeDecodeError:
            detail = f"left out: {mime} in no encoding that is known"
            edits.append(Edit("media", detail, rule="application/pdf", path=path))
            return {"type": "text", "text": f"[document left out: {mime}]"}
        detail = f"sent as text: it was base64 of {mime}"
        edits.append(Edit("media", detail, rule="application/pdf", path=f"{path}.source"))
        source = {"type": "text", "media_type": "text/plain", "data": text}
        return _retyped({**block, "source": source}, "document", path, edits)
    if not _BASE64.fullmatch(data):
        edits.append(Edit("media", "encoded again", rule="invalid base64 data", path=f"{path}.source.data"))
        block = {**block, "source": {**source, "data": base64.b64encode(decoded(data)[0]).decode("ascii")}}
    return _retyped(block, "image" if mime.startswith("image/") else "document", path, edits)


def _retyped(block: _Block, kind: str, path: str, edits: _Edits) -> _Block:
    if block["type"] == kind:
        return block
    lost = [key for key in _ONLY[block["type"]] if block.get(key) is not None]
    detail = f"sent as {kind}, it was {block['type']}" + (f" with {', '.join(lost)}" if lost else "")
    edits.append(Edit("media", detail, rule="Input should be of another type", path=path))
    rest = {key: value for key, value in block.items() if key not in _ONLY[block["type"]]}
    return {**rest, "type": kind}


def _search_result(block: _Block, path: str, edits: _Edits) -> _Block:
    return _blocks(block, f"{path}.content", _MEND, edits)


_MEND: dict[str, _Change] = {
    "thinking": _thinking,
    "tool_use": _call,
    "tool_result": _result,
    "image": _media,
    "document": _media,
    "search_result": _search_result,
}
