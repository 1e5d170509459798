"""What Google refuses inside a content, mended: roles, empty parts, data of the wrong kind.

Pairing, order and limits are repair's; what stands here is each content as such.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

from ...view.repair.sniff import image_type
from ...view.types import Edit
from .keys import DATA, camel, changed, find, role_of
from .media import decode, file_media, mime_of
from .sanitize_ids import sanitize_ids
from .wire import STAND_INS

_Object = dict[str, Any]
_Edits = list[Edit]

_ROLES = ("user", "model", "function", None)
_STAND_IN = "skip_thought_signature_validator"
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_URLSAFE = str.maketrans("-_", "+/")


def mended(body: _Object, edits: _Edits, *, signs: bool) -> _Object:
    """The body with the roles and the data of its contents as Google has them; itself if nothing had to change.
    `signs` says that calls of this model must be signed."""

    def part(wire: _Object, path: str) -> _Object:
        return _part(wire, path, edits, signs)

    def content(wire: _Object, path: str) -> _Object:
        known = wire.get("role") in _ROLES or not path.startswith("contents")
        return changed(wire if known else _with_role(wire, path, edits), "parts", path, part)

    return changed(changed(body, "systemInstruction", "", content), "contents", "", content)


def finished(body: _Object, edits: _Edits) -> _Object:
    """The body with contents and parts that say something, and results that go by the ids of their calls; itself if
    nothing had to change."""

    def part(wire: _Object, path: str) -> _Object:
        present = {camel(key) for key, value in wire.items() if value is not None}
        if present & {*DATA, "videoMetadata", "thoughtSignature"}:
            return wire
        edits.append(Edit("empty", "without data sent as an empty text", rule="required oneof field 'data'", path=path))
        return {**wire, "text": ""}

    def content(wire: _Object, path: str) -> _Object:
        if wire.get("parts"):
            return changed(wire, "parts", path, part)
        edits.append(Edit("empty", "without parts sent as an empty text", rule="parts must not be empty.", path=path))
        return {**wire, "parts": [{"text": ""}]}

    body = changed(changed(body, "systemInstruction", "", content), "contents", "", content)
    key = find(body, "contents")
    return {**body, key: sanitize_ids(body[key], edits)} if isinstance(body.get(key), list) else body


def _with_role(content: _Object, path: str, edits: _Edits) -> _Object:
    seen = content["role"]
    valid = "model" if isinstance(seen, str) and role_of(seen) == "assistant" else "user"
    detail = f"of role {seen!r:.40} sent as {valid}"
    edits.append(Edit("role", detail, rule="Please use a valid role: user, model.", path=path))
    return {**content, "role": valid}


def _part(part: _Object, path: str, edits: _Edits, signs: bool) -> _Object:
    part = _signed(part, path, edits, signs)
    for key, mend in _MEND:
        name = find(part, key)
        inner = part.get(name)
        if isinstance(inner, dict):
            new = mend(inner, f"{path}.{name}", edits)
            part = part if new is inner else {**part, name: new}
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
    return changed(result, "parts", path, lambda part, where: _part(part, where, edits, signs=False))


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
    typed = isinstance(inline.get(key), str) and inline[key]
    found = "" if typed or raw is None else image_type(raw)
    return _set(inline, key, found, path, edits) if found else inline


def _file(file: _Object, path: str, edits: _Edits) -> _Object:
    """A file of a type: what its address ends with, where none is given."""
    uri, key = file.get(find(file, "fileUri")), find(file, "mimeType")
    if (isinstance(file.get(key), str) and file[key]) or not isinstance(uri, str):
        return file
    media = file_media(uri, "")
    guess = "video/mp4" if media.kind == "video" else mime_of(media)
    return _set(file, key, guess, path, edits)


_MEND: tuple[tuple[str, Callable[[_Object, str, _Edits], _Object]], ...] = (
    ("functionCall", _call),
    ("functionResponse", _result),
    ("inlineData", _inline),
    ("fileData", _file),
)
