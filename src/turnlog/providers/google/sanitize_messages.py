"""Sanitize single contents for Google; `repair` handles pairing, order and limits.

Before the schema is applied, `mended` puts understood contents into the documented form; afterwards, `finished` fills
values that must not be empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...tokens.dimensions import image_type
from ..edits import Edits, Object, changed
from ..gemini import file_media, is_base64, mime_of
from ..media_bytes import decode_base64, encode_base64
from .keys import DATA, camel, find, role_of
from .parts import STAND_INS

_ROLES = ("user", "model", "function", None)
_STAND_IN = "skip_thought_signature_validator"
_REQUIRED = frozenset({*DATA, "videoMetadata", "thoughtSignature"})
"""A part must have one of these keys."""
_NO_BASE64 = "Invalid value (TYPE_BYTES), Base64 decoding failed"


def mended(content: Object, path: str, edits: Edits, *, signs: bool) -> Object:
    """The content with its role and data in the documented form. `signs`: calls of this model must be signed."""
    role = content.get("role")
    if role not in _ROLES and path.startswith("contents"):
        valid = "model" if isinstance(role, str) and role_of(role) == "assistant" else "user"
        content = edits.put(content, "role", valid, "Please use a valid role: user, model.", path=path, kind="role")
    return changed(content, "parts", path, lambda part, where: _part(part, where, edits, signs))


def finished(content: Object, path: str, edits: Edits) -> Object:
    """The content with parts that have data."""
    if content.get("parts"):
        return changed(content, "parts", path, lambda part, where: _finished(part, where, edits))
    edits.add("empty", path, "without parts sent as an empty text", "parts must not be empty.")
    return {**content, "parts": [{"text": ""}]}


def _finished(part: Object, path: str, edits: Edits) -> Object:
    if any(value is not None and camel(key) in _REQUIRED for key, value in part.items()):
        return part
    edits.add("empty", path, "without data sent as an empty text", "required oneof field 'data'")
    return {**part, "text": ""}


def _part(part: Object, path: str, edits: Edits, signs: bool) -> Object:
    part = _with_bytes_inline(_signed(part, path, edits, signs), path, edits)
    for key, mend in _MEND.items():
        name = find(part, key)
        inner = part.get(name)
        if isinstance(inner, dict):
            new = mend(inner, f"{path}.{name}", edits)
            part = part if new is inner else {**part, name: new}
    return part


def _with_bytes_inline(part: Object, path: str, edits: Edits) -> Object:
    """The part with bytes under `inlineData` if they are under `fileData`, where only an address may be."""
    key = find(part, "fileData")
    file = part.get(key)
    if not isinstance(file, dict) or file.get(find(file, "fileUri")) or not isinstance(file.get("data"), str):
        return part
    if part.get(find(part, "inlineData")) is not None:
        return part
    edits.add("media", f"{path}.{key}", "sent as inlineData: it has no address", "file_uri: required field is not set")
    return {"inlineData" if name == key else name: value for name, value in part.items()}


def _signed(part: Object, path: str, edits: Edits, signs: bool) -> Object:
    """The part without a signature that is not base64."""
    key = find(part, "thoughtSignature")
    signature = part.get(key)
    if signature is None or (isinstance(signature, str) and (signature in STAND_INS or is_base64(signature))):
        return part
    if signs and isinstance(part.get(find(part, "functionCall")), dict):
        detail = "replaced by the documented stand-in: it is not base64"
        return edits.put(part, key, _STAND_IN, _NO_BASE64, path=path, detail=detail, kind="signature")
    return edits.drop(part, key, _NO_BASE64, path=path, reason="it is not base64", kind="signature")


def _set(holder: Object, key: str, value: Any, path: str, edits: Edits) -> Object:
    return edits.put(holder, key, value, "Invalid value, or required field is not set", path=path, kind="value")


def _call(call: Object, path: str, edits: Edits) -> Object:
    given = call.get("args")
    return call if given is None or isinstance(given, dict) else _set(call, "args", {"input": given}, path, edits)


def _result(result: Object, path: str, edits: Edits) -> Object:
    """A result with an object as its response; media inside it are corrected like parts."""
    given = result.get("response")
    if given is None:
        result = _set(result, "response", {}, path, edits)
    elif not isinstance(given, dict):
        result = _set(result, "response", {"output": given}, path, edits)
    return changed(result, "parts", path, lambda part, where: _part(part, where, edits, signs=False))


def _inline(inline: Object, path: str, edits: Edits) -> Object:
    """Inline bytes in valid base64, with a MIME type."""
    data, key = inline.get("data"), find(inline, "mimeType")
    if not isinstance(data, str):
        return inline
    raw = decode_base64(data)
    if raw is not None and not is_base64(data):
        again = encode_base64(raw)
        inline = edits.put(inline, "data", again, _NO_BASE64, path=path, detail="encoded again", kind="media")
    typed = isinstance(inline.get(key), str) and inline[key]
    found = "" if typed or raw is None else image_type(raw)
    return _set(inline, key, found, path, edits) if found else inline


def _file(file: Object, path: str, edits: Edits) -> Object:
    """A file with a MIME type, determined by its extension if none is given."""
    uri, key = file.get(find(file, "fileUri")), find(file, "mimeType")
    if (isinstance(file.get(key), str) and file[key]) or not isinstance(uri, str):
        return file
    media = file_media(uri, "")
    guess = "video/mp4" if media.kind == "video" else mime_of(media)
    return _set(file, key, guess, path, edits)


_MEND: dict[str, Callable[[Object, str, Edits], Object]] = {
    "functionCall": _call,
    "functionResponse": _result,
    "inlineData": _inline,
    "fileData": _file,
}
