"""Remove from a request what Google refuses, apart from the order of the conversation."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

from ...log.messages import unchanged
from ...models.target import Target
from ...tokens.dimensions import image_type
from ..edits import Edits, Object, at, changed, sanitizer
from ..gemini import file_media, is_base64, mime_of
from ..media_bytes import decode_base64, encode_base64
from ..schema.shapes import TYPES
from ..schema.walk import fit
from .enums import MODES, enum_name
from .keys import DATA, camel, find, role_of
from .parts import STAND_INS
from .schema import BODY, SCHEMA
from .tools import lower_types

# -- sanitize messages -----------------------------------------------------------------------------
#
# Sanitize single contents for Google; `repair` handles pairing, order and limits.
#
# Before the schema is applied, `mended` puts understood contents into the documented form; afterwards, `finished`
# fills values that must not be empty.

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
    """The content, each part of which has data."""
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
    """The part with its bytes under `inlineData` if they were under `fileData`, which may contain only an address."""
    key = find(part, "fileData")
    file = part.get(key)
    if not isinstance(file, dict) or file.get(find(file, "fileUri")) or not isinstance(file.get("data"), str):
        return part
    if part.get(find(part, "inlineData")) is not None:
        return part
    edits.add("media", f"{path}.{key}", "sent as inlineData: it has no address", "file_uri: required field is not set")
    return {"inlineData" if name == key else name: value for name, value in part.items()}


def _signed(part: Object, path: str, edits: Edits, signs: bool) -> Object:
    """The part, without a signature that is not base64."""
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
    """A result with an object as its response; media inside the result are corrected like parts."""
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
    mime = "" if typed or raw is None else image_type(raw)
    return _set(inline, key, mime, path, edits) if mime else inline


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


# -- sanitize ids ----------------------------------------------------------------------------------
#
# Match the ids of results with those of their calls.

_At = tuple[int, int]


def with_matching_ids(body: Object, edits: Edits) -> Object:
    """The request, in which either all results of a turn have the ids of their calls, or none has an id. Results are
    matched by id, else by name, in order."""
    key = find(body, "contents")
    contents = body.get(key)
    if not isinstance(contents, list):
        return body
    calls: list[Object] = []
    changed: dict[_At, str] = {}
    for model, group in groupby(enumerate(contents), key=lambda entry: _role(entry[1]) == "model"):
        turn = list(group)
        if model:
            calls = [call for _, call in _entries(turn, "functionCall")]
        else:
            changed |= _mismatched(calls, _entries(turn, "functionResponse"))
    for (i, j), call_id in changed.items():
        detail = (f"set to {call_id!r}" if call_id else "dropped") + ", as its call has it"
        rule = "functionResponse.id must be that of a functionCall"
        edits.add("id", f"contents[{i}].parts[{j}].functionResponse.id", detail, rule)
        contents = [*contents[:i], _with_id(contents[i], j, call_id), *contents[i + 1 :]]
    return {**body, key: contents} if changed else body


def _role(content: Any) -> Any:
    return content.get("role") if isinstance(content, dict) else None


def _entries(turn: list[tuple[int, Any]], key: str) -> list[tuple[_At, Object]]:
    """The calls or results of a turn, with their positions."""
    entries: list[tuple[_At, Object]] = []
    for i, content in turn:
        parts = content.get("parts") if isinstance(content, dict) else None
        for j, part in enumerate(parts if isinstance(parts, list) else [parts]):
            inner = part.get(find(part, key)) if isinstance(part, dict) else None
            if isinstance(inner, dict):
                entries.append(((i, j), inner))
    return entries


def _mismatched(calls: list[Object], results: list[tuple[_At, Object]]) -> dict[_At, str]:
    """Results that need another id or no id, by position."""
    called = [call["id"] for call in calls if isinstance(call.get("id"), str) and call["id"]]
    result_ids = [result["id"] for _, result in results if isinstance(result.get("id"), str) and result["id"]]
    if not called or not result_ids or sorted(called) == sorted(result_ids):
        return {}
    waiting = [(call.get("name"), call.get("id") or "") for call in calls]
    changed: dict[_At, str] = {}
    for place, result in sorted(results, key=lambda entry: entry[1].get("id") not in called):
        name, given = result.get("name"), result.get("id") or ""
        exact = [call for call in waiting if given and call[1] == given]
        call = next(iter(exact or [call for call in waiting if call[0] == name]), (name, ""))
        if call in waiting:
            waiting.remove(call)
        if call[1] != given:
            changed[place] = call[1]
    return changed


def _with_id(content: Object, j: int, call_id: str) -> Object:
    single = not isinstance(content["parts"], list)
    parts = [content["parts"]] if single else list(content["parts"])
    key = find(parts[j], "functionResponse")
    inner = {name: value for name, value in parts[j][key].items() if name != "id"}
    parts[j] = {**parts[j], key: {"id": call_id, **inner} if call_id else inner}
    return {**content, "parts": parts[0] if single else parts}


@sanitizer(BODY.keys)
def sanitize(body: Object, target: Target, edits: Edits) -> Object:
    """The request in the form that the API accepts; each change is an edit. Sanitizing again changes nothing."""
    signs = target.abilities.signed_calls
    body = _schemas(_system(body, edits), edits)
    for key in ("systemInstruction", "contents"):
        body = changed(body, find(body, key), "", lambda content, path: mended(content, path, edits, signs=signs))
    body = fit(body, BODY, "", edits)
    for key in ("systemInstruction", "contents"):
        body = changed(body, find(body, key), "", lambda content, path: finished(content, path, edits))
    body = with_matching_ids(body, edits)
    body = _without_duplicates(body, edits)
    body = _calling(body, edits)
    body = _cached(body, edits)
    return _thinking(body, target, edits)


def _object(holder: Object, key: str) -> tuple[str, Object]:
    """The spelling of a key, and the object at that key; empty if there is no object."""
    name = find(holder, key)
    value = holder.get(name)
    return name, value if isinstance(value, dict) else {}


def _system(body: Object, edits: Edits) -> Object:
    """The system instruction in the documented form, if it has a form that only the SDK accepts."""
    key = find(body, "systemInstruction")
    value = body.get(key)
    texts = [value] if isinstance(value, str) else value
    if texts and isinstance(texts, list) and all(isinstance(text, str) for text in texts):
        content = {"parts": [{"text": text} for text in texts]}
        return edits.put(body, key, content, "Invalid value", detail="sent as a content")
    if value == [] or (isinstance(value, dict) and not value.get("parts")):
        return edits.drop(body, key, "parts must not be empty.", reason="it has no parts")
    return body


def _schemas(body: Object, edits: Edits) -> Object:
    """Move JSON schemas that a typed field does not accept to the field that accepts any."""

    def declaration(function: Object, path: str) -> Object:
        function = _untyped(function, "parameters", "parametersJsonSchema", path, edits)
        return _untyped(function, "response", "responseJsonSchema", path, edits)

    def tool(declared: Object, path: str) -> Object:
        return changed(declared, find(declared, "functionDeclarations"), path, declaration)

    def schema(value: Object, path: str) -> Object:
        mended: Object = fit(value, TYPES["schema"], path, edits)
        return mended

    def text(format: Object, path: str) -> Object:
        return changed(format, "schema", path, schema)

    def generation(config: Object, path: str) -> Object:
        key = find(config, "responseFormat")
        config = changed(config, key, path, lambda format, where: changed(format, "text", where, text))
        return _untyped(config, "responseSchema", "responseJsonSchema", path, edits)

    body = changed(body, find(body, "tools"), "", tool)
    return changed(body, find(body, "generationConfig"), "", generation)


def _untyped(holder: Object, typed: str, free: str, path: str, edits: Edits) -> Object:
    key, other = find(holder, typed), find(holder, free)
    schema = holder.get(key)
    if schema is None:
        return holder
    if holder.get(other) is not None:
        return edits.drop(holder, key, "mutually exclusive", path=path, reason=f"{other} stands beside it")
    if SCHEMA.takes(schema):
        return holder
    if not isinstance(schema, dict):
        return edits.drop(holder, key, "Invalid value", path=path, reason="it is not a schema")
    edits.add("setting", at(path, key), f"sent as {free}, which takes any schema", "Unknown name")
    rest = {name: value for name, value in holder.items() if name != key}
    return {**rest, free: lower_types(schema)}


def _without_duplicates(body: Object, edits: Edits) -> Object:
    """Remove repeated declarations of a function."""
    key = find(body, "tools")
    tools = body.get(key)
    if not isinstance(tools, list):
        return body
    seen: set[str] = set()
    kept_tools: list[Any] = []
    for tool in tools:
        name = find(tool, "functionDeclarations")
        declared = tool.get(name)
        if not isinstance(declared, list):
            kept_tools.append(tool)
            continue
        fresh: list[Any] = []
        for function in declared:
            called = function.get("name")
            if called in seen:
                rule = f"Duplicate function declaration found: {called}"
                edits.add("tool", key, f"second declaration of {called!r} dropped", rule)
                continue
            fresh.append(function)
            if called is not None:
                seen.add(called)
        if fresh or not declared:
            kept_tools.append(tool if len(fresh) == len(declared) else {**tool, name: fresh})
    return body if unchanged(kept_tools, tools) else {**body, key: kept_tools}


def _declared(body: Object) -> set[str]:
    """The names of the declared functions."""
    names: set[str] = set()
    for tool in _listed(body, "tools"):
        names |= {function["name"] for function in _listed(tool, "functionDeclarations") if function.get("name")}
    return names


def _listed(holder: Object, key: str) -> list[Any]:
    """The objects at `key`, which may be a single object instead of a list."""
    value = holder.get(find(holder, key)) or []
    return value if isinstance(value, list) else [value]


def _calling(body: Object, edits: Edits) -> Object:
    """Forced calling requires declarations, and may name only declared functions."""
    key, config = _object(body, "toolConfig")
    inner, calling = _object(config, "functionCallingConfig")
    names, allowed_key = _declared(body), find(calling, "allowedFunctionNames")
    allowed = calling.get(allowed_key) or []
    if enum_name(calling.get("mode"), MODES) not in (None, "NONE", "AUTO") and not body.get(find(body, "tools")):
        rule = "Function calling config is set without function_declarations."
        config = edits.drop(config, inner, rule, path=key, reason="no function is declared")
    elif names and not names.issuperset(allowed):
        declared, where = [name for name in allowed if name in names], f"{key}.{inner}"
        rule = "allowed_function_names: not declared in function_declarations"
        if declared:
            calling = edits.put(calling, allowed_key, declared, rule, path=where, detail="undeclared names dropped")
        else:
            calling = edits.drop(calling, allowed_key, rule, path=where, reason="none is declared")
        config = {**config, inner: calling}
    else:
        return body
    return {**body, key: config} if config else {name: value for name, value in body.items() if name != key}


def _cached(body: Object, edits: Edits) -> Object:
    """Drop instruction and tools if the request has cached content, which includes its own."""
    for key in ("systemInstruction", "tools", "toolConfig") if body.get(find(body, "cachedContent")) else ():
        name = find(body, key)
        if body.get(name):
            rule = "CachedContent can not be used with GenerateContent request setting system_instruction, tools"
            body = edits.drop(body, name, rule, reason="the cached content brings its own")
    return body


def _thinking(body: Object, target: Target, edits: Edits) -> Object:
    """Allow either a thinking budget or a thinking level."""
    key, config = _object(body, "generationConfig")
    inner, thinking = _object(config, "thinkingConfig")
    budget, level = find(thinking, "thinkingBudget"), find(thinking, "thinkingLevel")
    if thinking.get(budget) is None or thinking.get(level) is None:
        return body
    rule = "You can only set only one of thinking budget and thinking level."
    surplus = budget if target.abilities.signed_calls else level
    thinking = edits.drop(thinking, surplus, rule, path=f"{key}.{inner}", reason="given twice")
    return {**body, key: {**config, inner: thinking}}
