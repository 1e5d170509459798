"""The default rendering of each canonical part, shared by parser and renderer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...log.messages import Media, Opaque, Reasoning, Text, ToolCall, ToolResult, media_kind
from ..gemini import arguments_of, base64_text, file_uri, mime_of, plain_mime
from ..protocol import BlobReader, Parsed
from ..spelling import string
from .form import FORMS, NAME
from .keys import DATA, camel, find
from .results import response_of
from .schema import TOOL

# -- known -----------------------------------------------------------------------------------------
#
# The parts and tool declarations that belong to Google.

_WHOLE = ("audioTranscription", "codeExecutionResult", "executableCode", "toolCall", "toolResponse")
"""Kinds of data without a canonical kind. A part with other data is kept whole only if it cannot be read."""


def knows(part: Opaque) -> bool:
    """Whether an opaque part has exactly one kind of data, which Google knows.

    A part without data is refused ("required oneof field 'data' must have one initialized field"), except for a single
    signature and single video metadata (recorded, 200).
    """
    if not isinstance(part.data, dict):
        return False
    given = {camel(key): value for key, value in part.data.items() if value is not None}
    data = [key for key in DATA if key in given]
    if not data:
        return bool(given.get("thoughtSignature")) or isinstance(given.get("videoMetadata"), dict)
    return len(data) == 1 and data[0] in _WHOLE and isinstance(given[data[0]], dict)


def unread_media(part: Opaque) -> str:
    """The kind of media that a part is, by its MIME type; "" for parts with other data."""
    if not isinstance(part.data, dict):
        return ""
    for key in ("inlineData", "fileData"):
        inner = part.data.get(find(part.data, key))
        if isinstance(inner, dict):
            return media_kind(plain_mime(string(inner, find(inner, "mimeType"))))
    return ""


def declares(tool: Mapping[str, Any]) -> bool:
    """Whether this is an object with function declarations or tools of Google."""
    return not TOOL.keys.keys().isdisjoint(tool)


def user_message(text: str) -> dict[str, Any]:
    """The message that carries a text of the user."""
    return {"role": "user", "parts": [{"text": text}]}


def billed_by(parsed: Parsed) -> str:
    """Vertex AI if a signature has the key that Google's SDK uses only for that service."""
    calls = (part for message in parsed.messages for part in message.parts if isinstance(part, ToolCall))
    spelled = any("thought_signature" in str(call.form.delta) for call in calls if call.form)
    return "google-vertex" if spelled else NAME


STAND_INS = frozenset(
    {
        "skip_thought_signature_validator",
        "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
        "context_engineering_is_the_way_to_go",
    }
)
"""Signatures that Google documents for calls that none of its models made, raw and in base64:
https://ai.google.dev/gemini-api/docs/thought-signatures"""


def text_part(part: Text) -> dict[str, Any]:
    """A text."""
    return {"text": part.text}


def reasoning_part(part: Reasoning) -> dict[str, Any]:
    """A thought, or just a signature (often the last chunk of a stream)."""
    if part.signature and not part.text:
        return {"thoughtSignature": part.signature}
    wire: dict[str, Any] = {"text": part.text, "thought": True}
    if part.signature:
        wire["thoughtSignature"] = part.signature
    return wire


def call_part(part: ToolCall) -> dict[str, Any]:
    """A call, with its signature if it is Google's or a documented stand-in."""
    inner: dict[str, Any] = {"name": part.name, "args": arguments_of(part, bare=FORMS.says(part.form, "bare"))}
    if part.id:
        inner = {"id": part.id, **inner}
    wire: dict[str, Any] = {"functionCall": inner}
    if part.signature and (part.provider in ("", NAME) or part.signature in STAND_INS):
        wire["thoughtSignature"] = part.signature
    return wire


def result_part(part: ToolResult, call_id: str, name: str, nested: list[dict[str, Any]]) -> dict[str, Any]:
    """A result, with the media parts inside it."""
    texts = [inner for inner in part.parts if isinstance(inner, Text)]
    shape = FORMS.shape(part.form)
    inner: dict[str, Any] = {"name": name}
    if texts or shape != "absent" or part.outcome != "ok":
        inner["response"] = response_of(texts, part.outcome, shape)
    if call_id:
        inner = {"id": call_id, **inner}
    if nested:
        inner["parts"] = nested
    return {"functionResponse": inner}


def media_part(part: Media, blob: BlobReader) -> dict[str, Any]:
    """Media: bytes inline, other media by URI. Raises BlobMissing."""
    if part.sha256:
        data = base64_text(part, FORMS, blob)
        return {"inlineData": {"mimeType": mime_of(part), "data": data}}
    return {"fileData": {"fileUri": file_uri(part.file_id) or part.url, "mimeType": mime_of(part)}}
