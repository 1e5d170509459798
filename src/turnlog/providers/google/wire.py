"""The default rendering of each canonical part: what parsing measures a spelling against, and what
rendering writes."""

from __future__ import annotations

from typing import Any

from ...log.messages import Form, Media, Reasoning, Text, ToolCall, ToolResult
from ..protocol import BlobReader
from ..spelling import spell
from .keys import NAME
from .media import base64_text, file_uri, mime_of
from .results import response_of

STAND_INS = frozenset(
    {
        "skip_thought_signature_validator",
        "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
        "context_engineering_is_the_way_to_go",
    }
)
"""Signatures that Google documents for calls which none of its models made, raw and in base64:
https://ai.google.dev/gemini-api/docs/thought-signatures"""


def own(form: Form | None) -> Form | None:
    """`form` if it is ours to read."""
    return form if form is not None and form.provider == NAME else None


def shape_of(form: Form | None) -> str:
    """The shape in our own form, else nothing."""
    mine = own(form)
    return mine.shape if mine else ""


def spelled(default: dict[str, Any], form: Form | None) -> dict[str, Any]:
    """`default` as our own form spells it.

    Ids are optional here: one that was not on the wire is of our own making and stays off it. A
    signature that was not on the wire is repair's and stays.
    """
    mine = own(form)
    if mine is None or mine.delta is None:
        return default
    for key, delta in mine.delta.get("~", {}).items():
        if "id" in delta.get("-", ()) or "id" in delta.get("+", {}):
            default = {**default, key: {name: item for name, item in default[key].items() if name != "id"}}
    added = mine.delta.get("+", {})
    if "thoughtSignature" not in default or any(added.get(key) for key in _SIGNATURE):
        return spell(default, mine.delta)
    shown = {
        "+": {key: value for key, value in added.items() if key not in _SIGNATURE},
        "-": [key for key in mine.delta.get("-", ()) if key != "thoughtSignature"],
    }
    return spell(default, {**mine.delta, **shown})


_SIGNATURE = ("thoughtSignature", "thought_signature")


def reasoning(part: Reasoning) -> dict[str, Any]:
    """A thought, or a signature that stands alone (the last piece of a stream often does)."""
    if part.signature and not part.text:
        return {"thoughtSignature": part.signature}
    wire: dict[str, Any] = {"text": part.text, "thought": True}
    if part.signature:
        wire["thoughtSignature"] = part.signature
    return wire


def arguments_of(part: ToolCall) -> Any:
    """The arguments as an object: free text and what is no object go under `input`."""
    if isinstance(part.arguments, dict):
        return part.arguments
    if shape_of(part.form) == "bare":
        return part.arguments
    if part.raw is not None and (part.arguments is None or part.kind == "custom"):
        return {"input": part.raw}
    return {} if part.arguments is None else {"input": part.arguments}


def call(part: ToolCall) -> dict[str, Any]:
    """A call; signed if the signature is Google's, nobody else's, or the documented stand-in."""
    inner: dict[str, Any] = {"name": part.name, "args": arguments_of(part)}
    if part.id:
        inner = {"id": part.id, **inner}
    wire: dict[str, Any] = {"functionCall": inner}
    if part.signature and (part.provider in ("", NAME) or part.signature in STAND_INS):
        wire["thoughtSignature"] = part.signature
    return wire


def result(part: ToolResult, call_id: str, name: str, nested: list[dict[str, Any]]) -> dict[str, Any]:
    """A result, with the parts (media) that stand inside it."""
    texts = [inner for inner in part.parts if isinstance(inner, Text)]
    shape = shape_of(part.form)
    inner: dict[str, Any] = {"name": name}
    if texts or shape != "absent" or part.outcome != "ok":
        inner["response"] = response_of(texts, part.outcome, shape)
    if call_id:
        inner = {"id": call_id, **inner}
    if nested:
        inner["parts"] = nested
    return {"functionResponse": inner}


def media(part: Media, blob: BlobReader) -> dict[str, Any]:
    """A medium: bytes inline, anything else by URI. Raises BlobMissing."""
    if part.sha256:
        data = base64_text(part, shape_of(part.form), blob)
        return {"inlineData": {"mimeType": mime_of(part), "data": data}}
    return {"fileData": {"fileUri": file_uri(part.file_id) or part.url, "mimeType": mime_of(part)}}
