"""What Google refuses inside a content, mended: roles, empty parts, data of the wrong kind.

Pairing, order and limits are repair's; what stands here is each content as such.
"""

from __future__ import annotations

import base64
import re
from typing import Any

from ...log.messages import unchanged
from ...view.repair.sniff import image_type
from ...view.types import Edit
from .keys import DATA, camel, find, role_of
from .media import decode, file_media, mime_of
from .values import drop_misfits
from .wire import STAND_INS

_Object = dict[str, Any]
_Edits = list[Edit]

_ROLES = ("user", "model", "function", None)
_STAND_IN = "skip_thought_signature_validator"
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_URLSAFE = str.maketrans("-_", "+/")


def sanitize_content(content: Any, path: str, edits: _Edits, *, signs: bool, role: bool = True) -> Any:
    """A content with parts that say something, under a role there is (`role`: it needs one); itself if
    nothing had to change. `signs` says that calls of this model must be signed."""
    if not isinstance(content, dict):
        return content
    if role and content.get("role") not in _ROLES:
        content = _with_role(content, path, edits)
    given = content.get("parts")
    if not given:
        edits.append(Edit("empty", "without parts sent as an empty text", rule="parts must not be empty.", path=path))
        return {**content, "parts": [{"text": ""}]}
    parts = given if isinstance(given, list) else [given]
    sanitized = [_part(part, f"{path}.parts[{j}]", edits, signs) for j, part in enumerate(parts)]
    if unchanged(sanitized, parts):
        return content
    return {**content, "parts": sanitized if isinstance(given, list) else sanitized[0]}


def _with_role(content: _Object, path: str, edits: _Edits) -> _Object:
    seen = content["role"]
    valid = "model" if isinstance(seen, str) and role_of(seen) == "assistant" else "user"
    detail = f"of role {seen!r:.40} sent as {valid}"
    edits.append(Edit("role", detail, rule="Please use a valid role: user, model.", path=path))
    return {**content, "role": valid}


def _part(part: Any, path: str, edits: _Edits, signs: bool) -> Any:
    if not isinstance(part, dict):
        return part
    part = drop_misfits(part, path, edits)
    part = _signed(part, path, edits, signs)
    present = {camel(key) for key, value in part.items() if value is not None}
    if not present & {*DATA, "videoMetadata", "thoughtSignature"}:
        edits.append(Edit("empty", "without data sent as an empty text", rule="required oneof field 'data'", path=path))
        return {**part, "text": ""}
    for key, mend in (
        ("functionCall", _call),
        ("functionResponse", _result),
        ("inlineData", _inline),
        ("fileData", _file),
    ):
        name = find(part, key)
        inner = part.get(name)
        if isinstance(inner, dict):
            mended = mend(inner, f"{path}.{name}", edits)
            part = part if mended is inner else {**part, name: mended}
    return part


def _signed(part: _Object, path: str, edits: _Edits, signs: bool) -> _Object:
    """A part whose signature, if any, can be decoded."""
    key = find(part, "thoughtSignature")
    signature = part.get(key)
    if signature is None or (isinstance(signature, str) and (signature in STAND_INS or _is_base64(signature))):
        return part
    rule, where = "Invalid value (TYPE_BYTES), Base64 decoding failed", f"{path}.{key}"
    rest = {name: value for name, value in part.items() if name != key}
    if signs and isinstance(part.get(find(part, "functionCall")), dict):
        edits.append(Edit("signature", "replaced by the documented stand-in: it is no base64", rule=rule, path=where))
        return {**rest, key: _STAND_IN}
    edits.append(Edit("signature", "dropped: it is no base64", rule=rule, path=where))
    return rest


def _is_base64(text: str) -> bool:
    """Whether `text` is base64 in either alphabet, padded or not, without stray bits at its end."""
    body = text.rstrip("=")
    unused = {0: 0, 2: 15, 3: 3}.get(len(body) % 4)
    if unused is None or not _BASE64.fullmatch(text):
        return False
    return not unused or not _DIGITS.index(body[-1].translate(_URLSAFE)) & unused


def _set(holder: _Object, key: str, value: Any, path: str, edits: _Edits) -> _Object:
    was = f"it was {holder[key]!r:.40}" if key in holder else "there was none"
    rule = "Invalid value, or required field is not set"
    edits.append(Edit("value", f"set to {value!r:.40}: {was}", rule=rule, path=f"{path}.{key}"))
    return {**holder, key: value}


def _call(call: _Object, path: str, edits: _Edits) -> _Object:
    given = call.get("args")
    return call if given is None or isinstance(given, dict) else _set(call, "args", {"input": given}, path, edits)


def _result(result: _Object, path: str, edits: _Edits) -> _Object:
    """A result whose response is an object; the media inside it are parts of their own."""
    given = result.get("response")
    if given is None:
        result = _set(result, "response", {}, path, edits)
    elif not isinstance(given, dict):
        result = _set(result, "response", {"output": given}, path, edits)
    nested = result.get("parts")
    if not isinstance(nested, list):
        return result
    mended = [_nested(entry, f"{path}.parts[{i}]", edits) for i, entry in enumerate(nested)]
    same = unchanged(mended, nested)
    return result if same else {**result, "parts": mended}


def _nested(entry: Any, path: str, edits: _Edits) -> Any:
    for key, mend in (("inlineData", _inline), ("fileData", _file)):
        name = find(entry, key) if isinstance(entry, dict) else key
        if isinstance(entry, dict) and isinstance(entry.get(name), dict):
            mended = mend(entry[name], f"{path}.{name}", edits)
            entry = entry if mended is entry[name] else {**entry, name: mended}
    return entry


def _inline(inline: _Object, path: str, edits: _Edits) -> _Object:
    """Bytes in base64, of a type."""
    data, key = inline.get("data"), find(inline, "mimeType")
    if not isinstance(data, str):
        return inline
    raw = decode(data)
    if raw is not None and not _is_base64(data):
        again = base64.b64encode(raw).decode("ascii")
        rule = "Invalid value (TYPE_BYTES), Base64 decoding failed"
        edits.append(Edit("media", "encoded again", rule=rule, path=f"{path}.data"))
        inline = {**inline, "data": again}
    found = "" if inline.get(key) or raw is None else image_type(raw)
    return _set(inline, key, found, path, edits) if found else inline


def _file(file: _Object, path: str, edits: _Edits) -> _Object:
    """A file of a type: what its address ends with, where none is given."""
    uri, key = file.get(find(file, "fileUri")), find(file, "mimeType")
    if file.get(key) or not isinstance(uri, str):
        return file
    media = file_media(uri, "")
    guess = "video/mp4" if media.kind == "video" else mime_of(media)
    return _set(file, key, guess, path, edits)
