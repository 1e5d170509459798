"""What the Messages API would refuse inside a message, mended or taken out.

Pairing, order and limits are repair's; what stands here is the block as such: keys that must be
there, values of the wrong kind, media under the wrong type.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

from ...log.messages import unchanged
from ...view.repair.sniff import image_type
from ...view.types import Edit
from ..values import misfit
from .blocks import NO_OUTPUT, decoded, document_text
from .cache_marks import with_sound_mark
from .known import misfit_inside
from .values import OPTIONAL

_Block = dict[str, Any]
_Edits = list[Edit]

_ONLY: dict[str, tuple[str, ...]] = {"image": ("transformations",), "document": ("title", "context", "citations")}
"""Keys of one of the two kinds of media blocks that the other does not have."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")


def sanitize_blocks(holder: _Block, key: str, path: str, edits: _Edits) -> _Block:
    """`holder` (a message, a tool result, a request) with every block in the list at `key` mended;
    itself if nothing had to change. `path` is that of the list."""
    blocks = holder.get(key)
    if not isinstance(blocks, list):
        return holder
    mended = [_block(block, f"{path}[{j}]", edits) for j, block in enumerate(blocks)]
    same = unchanged(mended, blocks)
    return holder if same else {**holder, key: mended}


def _block(block: Any, path: str, edits: _Edits) -> Any:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        return block
    mend = _MEND.get(block["type"])
    if mend is not None:
        block = mend(block, path, edits)
    block = with_sound_mark(block, path, edits)
    optional = OPTIONAL.get(block["type"], {})
    for key, why in [(key, misfit(block[key], optional[key])) for key in optional if key in block]:
        if why:
            block = _without(block, key, path, why, edits)
    return block


def _without(block: _Block, key: str, path: str, why: str, edits: _Edits) -> _Block:
    edits.append(Edit("unknown_value", f"dropped: {why}", rule="Input should be valid", path=f"{path}.{key}"))
    return {name: value for name, value in block.items() if name != key}


def _set(block: _Block, key: str, value: Any, path: str, edits: _Edits) -> _Block:
    was = f"it was {block[key]!r:.40}" if key in block else "there was none"
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
    if failed is None:
        block = _without(block, "is_error", path, "it was null", edits)
    elif not isinstance(failed, bool):
        block = _set(block, "is_error", bool(failed), path, edits)
    if "content" in block and block["content"] is None:
        block = _without(block, "content", path, "it was null", edits)
    block = sanitize_blocks(block, "content", f"{path}.content", edits)
    given = block.get("content")
    if not isinstance(given, list):
        return block
    wrong = [(j, why) for j, inner in enumerate(given) if (why := misfit_inside(inner))]
    if not wrong:
        return block
    for j, why in wrong:
        edits.append(Edit("opaque", f"left out: {why}", rule=why, path=f"{path}.content[{j}]"))
    left = [inner for j, inner in enumerate(given) if j not in {j for j, _ in wrong}]
    if not left and not block.get("is_error"):
        return {key: value for key, value in block.items() if key != "content"}
    return {**block, "content": left or NO_OUTPUT}


def _media(block: _Block, path: str, edits: _Edits) -> _Block:
    """A medium in the block and the source that its type calls for."""
    source = block.get("source")
    if not isinstance(source, dict):
        return block
    if source.get("type") == "content":
        mended = sanitize_blocks(source, "content", f"{path}.source.content", edits)
        return block if mended is source else {**block, "source": mended}
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
    edits.append(Edit("media", detail, rule="source.base64.media_type: Input should be of another type", path=path))
    rest = {key: value for key, value in block.items() if key not in _ONLY[block["type"]]}
    return {**rest, "type": kind}


def _search_result(block: _Block, path: str, edits: _Edits) -> _Block:
    return sanitize_blocks(block, "content", f"{path}.content", edits)


_MEND: dict[str, Callable[[_Block, str, _Edits], _Block]] = {
    "thinking": _thinking,
    "tool_use": _call,
    "tool_result": _result,
    "image": _media,
    "document": _media,
    "search_result": _search_result,
}
