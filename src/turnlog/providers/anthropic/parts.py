"""The default rendering of canonical parts as content blocks.

The parser compares the blocks that it reads with these and stores only the difference; the renderer starts with these
and applies the difference. Block types: Messages API reference and the `*BlockParam` types of the anthropic SDK 2.12.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...log.messages import Opaque, Reasoning, Text, Tool, ToolCall, ToolResult, free_text
from ..schema.walk import fits
from .form import FORMS
from .schema import BLOCK, IN_RESULT
from .schema_tools import TOOL

# -- known -----------------------------------------------------------------------------------------
#
# The blocks and tool declarations that belong to the Messages API.

_READ = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "tool_result"})
"""Types of blocks that the parser reads into parts. If a block of such a type was kept whole, it could not be read and
cannot be sent."""


def is_block(data: Any) -> bool:
    """Whether the API knows blocks of that type ("Input tag 'x' does not match any of the expected tags")."""
    kind = data.get("type") if isinstance(data, dict) else None
    return isinstance(kind, str) and (kind in BLOCK.shapes or kind in IN_RESULT.shapes or BLOCK.leaves(kind))


def knows(part: Opaque) -> bool:
    """Whether an opaque block has a type that messages may contain, and all the keys that the type requires."""
    data = part.data
    if not is_block(data) or data["type"] in _READ:
        return False
    if BLOCK.leaves(data["type"]) and data["type"] not in BLOCK.shapes:
        return isinstance(data.get("id") or data.get("tool_use_id"), str)
    return fits(data, BLOCK)


def unread_media(part: Opaque) -> str:
    """The kind of media that a block is, by its type; "" for other blocks."""
    return part.kind if part.kind in ("image", "document") else ""


def declares(tool: Mapping[str, Any]) -> bool:
    """Whether this is a tool declaration of the Messages API."""
    kind = tool.get("type")
    if "input_schema" in tool:
        return True
    return isinstance(kind, str) and kind != "custom" and (kind in TOOL.shapes or TOOL.leaves(kind))


NO_OUTPUT = "[no output]"
"""The content of a failed result without text, because the API refuses an error without content ("content cannot be
empty if `is_error` is true"; known from use, not among the recorded refusals)."""


def text_block(part: Text) -> dict[str, Any]:
    """A text block, or the search result block that contains the text (shape `search_result`)."""
    text = {"type": "text", "text": part.text}
    if FORMS.says(part.form, "search_result"):
        return {"type": "search_result", "source": "", "title": "", "content": [text]}
    return text


def reasoning_block(part: Reasoning) -> dict[str, Any]:
    """Thinking with its signature, or redacted thinking if there is only encrypted data."""
    hidden = part.encrypted and not part.signature and not part.text
    if hidden or FORMS.says(part.form, "redacted"):
        return {"type": "redacted_thinking", "data": part.encrypted}
    return {"type": "thinking", "thinking": part.text, "signature": part.signature}


def call_block(part: ToolCall) -> dict[str, Any]:
    """A call. The API accepts only objects as input: anything else is wrapped as `{"input": ...}`, unless its form has
    the word `bare`."""
    given: Any = part.arguments
    if isinstance(given, dict) or FORMS.says(part.form, "bare"):
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
    """The default content of a result, as `{"content": ...}`; `{}` if there is none."""
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
    """The form word for how `holder` spells its content; "" if that is the spelling of `default`."""
    seen, ours = (_word(side) for side in (holder, default))
    return "" if seen == ours else seen


def _word(holder: Mapping[str, Any]) -> str:
    if "content" not in holder:
        return "absent"
    content = holder["content"]
    if isinstance(content, Mapping):
        return "object"
    return "null" if content is None else "string" if isinstance(content, str) else "list"


def tool_block(tool: Tool) -> dict[str, Any]:
    """A function. A free-text tool becomes a function with one text argument."""
    schema = free_text() if tool.kind == "custom" else tool.parameters
    block: dict[str, Any] = {"name": tool.name, "input_schema": schema or {"type": "object", "properties": {}}}
    return {**block, "description": tool.description} if tool.description else block
