"""How a canonical part is written as a content block by default.

The parser compares what it saw with these blocks and keeps only the difference; the renderer
starts from them and lays that difference back over. Block types: Messages API reference and the
`*BlockParam` types of the anthropic SDK 2.12.0.
"""

from __future__ import annotations

import base64
import binascii
import codecs
from collections.abc import Mapping, Sequence
from typing import Any

from ...log.messages import Form, Media, Reasoning, Text, ToolCall, ToolResult
from ..spelling import spell

NAME = "anthropic"

NO_OUTPUT = "[no output]"
"""What a failed result without text says: the API refuses an error without content
("content cannot be empty if `is_error` is true"; known from use, not among the recorded refusals)."""


def own_shape(form: Form | None) -> str:
    """The shape word of a form of this provider, empty for any other."""
    return form.shape if form is not None and form.provider == NAME else ""


def content_shape(form: Form | None) -> str:
    """How a message spelled its content: the shape word of its form but for `inline`."""
    return own_shape(form).removeprefix("inline").strip()


def is_inline(form: Form | None) -> bool:
    """Whether a system message stood among the messages."""
    return own_shape(form).startswith("inline")


def spelled(default: dict[str, Any], form: Form | None) -> dict[str, Any]:
    """`default` as this provider's `form` spells it."""
    return spell(default, form.delta) if form is not None and form.provider == NAME else default


def text_block(part: Text) -> dict[str, Any]:
    """A text; or the search result whose only text it is (shape `search_result`)."""
    text = {"type": "text", "text": part.text}
    if own_shape(part.form) == "search_result":
        return {"type": "search_result", "source": "", "title": "", "content": [text]}
    return text


def reasoning_block(part: Reasoning) -> dict[str, Any]:
    """Thinking with its signature, or redacted thinking where there is only the encrypted form."""
    hidden = part.encrypted and not part.signature and not part.text
    if hidden or own_shape(part.form) == "redacted":
        return {"type": "redacted_thinking", "data": part.encrypted}
    return {"type": "thinking", "thinking": part.text, "signature": part.signature}


def call_block(part: ToolCall) -> dict[str, Any]:
    """A call. The API takes objects only, so anything else is wrapped as `{"input": ...}`, unless
    the call was seen bare."""
    given: Any = part.arguments
    if isinstance(given, dict) or own_shape(part.form) == "bare":
        arguments = given
    elif part.raw is not None:
        arguments = {"input": part.raw}
    else:
        arguments = {} if given is None else {"input": given}
    return {"type": "tool_use", "id": part.id, "name": part.name, "input": arguments}


def result_block(part: ToolResult) -> dict[str, Any]:
    """A result without its content."""
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": part.call_id}
    if part.outcome != "ok":
        block["is_error"] = True
    return block


def result_content(blocks: Sequence[dict[str, Any]], failed: bool) -> dict[str, Any]:
    """The content of a result by default, as `{"content": ...}` or, for nothing, `{}`."""
    if not blocks:
        return {"content": NO_OUTPUT} if failed else {}
    return {"content": plain_content(blocks)}


def plain_content(blocks: Sequence[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """A single plain text as a string, anything else as a list of blocks."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} and blocks[0]["type"] == "text":
        text = blocks[0]["text"]
        if isinstance(text, str):
            return text
    return list(blocks)


def content_word(holder: Mapping[str, Any], default: Mapping[str, Any]) -> str:
    """The shape word that says how `holder` spells its content, empty if as `default` does."""
    seen, ours = (_word(side) for side in (holder, default))
    return "" if seen == ours else seen


def _word(holder: Mapping[str, Any]) -> str:
    if "content" not in holder:
        return "absent"
    content = holder["content"]
    return "null" if content is None else "string" if isinstance(content, str) else "list"


def decoded(text: str) -> tuple[bytes, bool]:
    """The bytes of base64 text, none if it is no base64, and whether encoding them again gives that
    text. Line breaks, the URL alphabet, missing padding and the head of a data URL do not matter."""
    try:
        raw = binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        head, comma, tail = text.partition(",")
        plain = "".join((tail if comma and head.startswith("data:") else text).split()).rstrip("=")
        plain = plain.replace("-", "+").replace("_", "/")
        try:
            raw = binascii.a2b_base64(plain + "=" * (-len(plain) % 4), strict_mode=True)
        except (binascii.Error, ValueError):
            raw = b""
    return raw, base64.b64encode(raw).decode("ascii") == text


# UTF-32 first: its mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def document_text(data: bytes) -> str:
    """The text of a plain-text document, in UTF-8 or in what its byte-order mark says. Raises UnicodeDecodeError."""
    encoding = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "")
    return data.decode(encoding) if encoding else data.decode("utf-8", "surrogatepass")


def media_block(part: Media, data: str) -> dict[str, Any] | None:
    """An image or document, or None where there is no block for it.

    `data` is the payload as the source holds it: base64, or the text of a plain-text document.
    """
    if part.kind in ("audio", "video"):
        return None
    kind = "image" if part.kind == "image" or part.mime.startswith("image/") else "document"
    source = _source(part, kind, data)
    if source is None:
        return None
    titled = {"title": part.name} if part.name and kind == "document" else {}
    return {"type": kind, "source": source, **titled}


def _source(part: Media, kind: str, data: str) -> dict[str, Any] | None:
    if part.file_id:
        return {"type": "file", "file_id": part.file_id} if part.provider in ("", NAME) else None
    if part.url:
        # A document by URL is a PDF (BetaURLPDFSourceParam).
        readable = kind == "image" or part.mime in ("", "application/pdf")
        return {"type": "url", "url": part.url} if readable else None
    shape = own_shape(part.form).partition(":")[0]
    if not shape:
        base64 = kind == "image" or part.mime == "application/pdf"
        shape = "base64" if base64 else "text" if part.mime.startswith("text/") else ""
    match shape:
        case "base64":
            return {"type": "base64", "media_type": part.mime, "data": data}
        case "text":
            return {"type": "text", "media_type": "text/plain", "data": data}
        case "content":
            return {"type": "content", "content": data}
        case _:
            return None
