"""Remove from a request what Google refuses, apart from the order of the conversation."""

from __future__ import annotations

from typing import Any

from ...log.messages import unchanged
from ...models.target import Target
from ..edits import Edits, Object, at, changed, sanitizer
from ..schema import TYPES, fit
from .enums import MODES, enum_name
from .keys import find
from .sanitize_ids import with_matching_ids
from .sanitize_messages import finished, mended
from .schema import BODY, SCHEMA
from .tools import lower_types


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
    """Correct a system instruction in a form that only the SDK accepts."""
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

    def declaration(one: Object, path: str) -> Object:
        one = _untyped(one, "parameters", "parametersJsonSchema", path, edits)
        return _untyped(one, "response", "responseJsonSchema", path, edits)

    def tool(one: Object, path: str) -> Object:
        return changed(one, find(one, "functionDeclarations"), path, declaration)

    def schema(one: Object, path: str) -> Object:
        mended: Object = fit(one, TYPES["schema"], path, edits)
        return mended

    def text(one: Object, path: str) -> Object:
        return changed(one, "schema", path, schema)

    def generation(one: Object, path: str) -> Object:
        key = find(one, "responseFormat")
        one = changed(one, key, path, lambda format, where: changed(format, "text", where, text))
        return _untyped(one, "responseSchema", "responseJsonSchema", path, edits)

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
    kept: list[Any] = []
    for tool in tools:
        name = find(tool, "functionDeclarations")
        declared = tool.get(name)
        if not isinstance(declared, list):
            kept.append(tool)
            continue
        fresh: list[Any] = []
        for one in declared:
            called = one.get("name")
            if called in seen:
                rule = f"Duplicate function declaration found: {called}"
                edits.add("tool", key, f"second declaration of {called!r} dropped", rule)
                continue
            fresh.append(one)
            if called is not None:
                seen.add(called)
        if fresh or not declared:
            kept.append(tool if len(fresh) == len(declared) else {**tool, name: fresh})
    return body if unchanged(kept, tools) else {**body, key: kept}


def _declared(body: Object) -> set[str]:
    """The names of the declared functions."""
    names: set[str] = set()
    for tool in _listed(body, "tools"):
        names |= {one["name"] for one in _listed(tool, "functionDeclarations") if one.get("name")}
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
        kept, where = [name for name in allowed if name in names], f"{key}.{inner}"
        rule = "allowed_function_names: not declared in function_declarations"
        if kept:
            calling = edits.put(calling, allowed_key, kept, rule, path=where, detail="undeclared names dropped")
        else:
            calling = edits.drop(calling, allowed_key, rule, path=where, reason="none is declared")
        config = {**config, inner: calling}
    else:
        return body
    return {**body, key: config} if config else {name: value for name, value in body.items() if name != key}


def _cached(body: Object, edits: Edits) -> Object:
    """Cached content includes its own instruction and tools."""
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
