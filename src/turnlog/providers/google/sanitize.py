"""Drop from a request what Google refuses whatever the conversation: unknown keys, and settings that
exclude each other."""

from __future__ import annotations

from typing import Any

from ...errors import FormatError
from ...models.target import Target
from ...view.types import Edit
from ..protocol import Rendered
from ..schema import fit
from .keys import changed, find
from .rules import is_gemini_3
from .sanitize_contents import finished, mended
from .schema import BODY, SCHEMA
from .tools import lower_types

_CACHED = ("systemInstruction", "tools", "toolConfig")


def sanitize(request: dict[str, Any], target: Target) -> Rendered:
    """`request` without what would be refused, each change an edit. A request that is fine comes
    back equal, with no edit; doing it twice changes nothing more. Raises FormatError for one that is
    nested too deeply to be looked at."""
    edits: list[Edit] = []
    try:
        return Rendered(body=_sanitized(request, target, edits), edits=tuple(edits))
    except RecursionError:
        raise FormatError("nested too deeply", path="body") from None


def _sanitized(request: dict[str, Any], target: Target, edits: list[Edit]) -> dict[str, Any]:
    body = dict(request)
    _system(body, edits)
    _schemas(body, edits)
    body = mended(body, edits, signs=is_gemini_3(target.model))
    body = dict(fit(body, BODY, "", edits))
    body = finished(body, edits)
    _tools(body, edits)
    _calling(body, edits)
    _cached(body, edits)
    _thinking(body, target, edits)
    return body


def _drop(holder: dict[str, Any], key: str, why: str, rule: str, edits: list[Edit]) -> None:
    del holder[key]
    edits.append(Edit("setting", f"dropped: {why}", rule=rule, path=key))


def _object(holder: dict[str, Any], key: str) -> tuple[str, dict[str, Any] | None]:
    """The spelling of a key whose value is an object, and a copy of that, or None."""
    name = find(holder, key)
    value = holder.get(name)
    return name, dict(value) if isinstance(value, dict) else None


def _system(body: dict[str, Any], edits: list[Edit]) -> None:
    """A system instruction given as the SDK takes it, but REST does not."""
    key = find(body, "systemInstruction")
    value = body.get(key)
    texts = [value] if isinstance(value, str) else value
    if texts and isinstance(texts, list) and all(isinstance(text, str) for text in texts):
        body[key] = {"parts": [{"text": text} for text in texts]}
        edits.append(Edit("setting", "sent as a content", rule="Invalid value", path=key))
    elif value == [] or (isinstance(value, dict) and not value.get("parts")):
        _drop(body, key, "it has no parts", "parts must not be empty.", edits)


def _schemas(body: dict[str, Any], edits: list[Edit]) -> None:
    """JSON schemas that a typed field does not take, moved to the field that takes any."""

    def moved(one: dict[str, Any], path: str) -> dict[str, Any]:
        one = _untyped(one, "parameters", "parametersJsonSchema", path, edits)
        return _untyped(one, "response", "responseJsonSchema", path, edits)

    def declared(tool: dict[str, Any], path: str) -> dict[str, Any]:
        return changed(tool, "functionDeclarations", path, moved)

    body.update(changed(body, "tools", "", declared))
    key, config = _object(body, "generationConfig")
    if config is not None:
        body[key] = _untyped(config, "responseSchema", "responseJsonSchema", key, edits)


def _untyped(holder: dict[str, Any], typed: str, free: str, path: str, edits: list[Edit]) -> dict[str, Any]:
    key, other = find(holder, typed), find(holder, free)
    schema = holder.get(key)
    if schema is None:
        return holder
    rest = {name: value for name, value in holder.items() if name != key}
    if holder.get(other) is not None:
        edits.append(Edit("setting", f"dropped beside {other}", rule="mutually exclusive", path=f"{path}.{key}"))
        return rest
    if not isinstance(schema, dict):
        edits.append(Edit("setting", "dropped: it is no schema", rule="Invalid value", path=f"{path}.{key}"))
        return rest
    if SCHEMA.takes(schema):
        return holder
    edits.append(Edit("setting", f"sent as {free}, which takes any schema", rule="Unknown name", path=f"{path}.{key}"))
    return {**rest, free: lower_types(schema)}


def _tools(body: dict[str, Any], edits: list[Edit]) -> None:
    """No function declared twice; the first declaration stays."""
    key = find(body, "tools")
    tools = body.get(key)
    if not isinstance(tools, list):
        return
    seen: set[Any] = set()
    kept_tools: list[Any] = []
    for tool in tools:
        name = find(tool, "functionDeclarations") if isinstance(tool, dict) else ""
        declared = tool.get(name) if name else None
        if not isinstance(declared, list):
            kept_tools.append(tool)
            continue
        kept = []
        for one in declared:
            called = one.get("name") if isinstance(one, dict) else None
            if isinstance(called, str) and called in seen:
                rule = f"Duplicate function declaration found: {called}"
                edits.append(Edit("tool", f"second declaration of {called!r} dropped", rule=rule, path=key))
                continue
            seen.add(called if isinstance(called, str) else "")
            kept.append(one)
        if kept or not declared:
            kept_tools.append(tool if len(kept) == len(declared) else {**tool, name: kept})
    body[key] = kept_tools


def _declared(body: dict[str, Any]) -> set[str]:
    tools = body.get(find(body, "tools")) or []
    names: set[str] = set()
    for tool in tools if isinstance(tools, list) else [tools]:
        declared = tool.get(find(tool, "functionDeclarations")) if isinstance(tool, dict) else None
        for one in declared if isinstance(declared, list) else [declared]:
            if isinstance(one, dict) and isinstance(one.get("name"), str):
                names.add(one["name"])
    return names


def _calling(body: dict[str, Any], edits: list[Edit]) -> None:
    """Forced calling needs declarations, and may only name declared functions."""
    key, config = _object(body, "toolConfig")
    if config is None:
        return
    inner_key, calling = _object(config, "functionCallingConfig")
    if calling is None:
        return
    names = _declared(body)
    allowed_key = find(calling, "allowedFunctionNames")
    allowed = calling.get(allowed_key)
    if calling.get("mode") not in (None, "NONE", "AUTO") and not body.get(find(body, "tools")):
        rule = "Function calling config is set without function_declarations."
        _drop(config, inner_key, "no function is declared", rule, edits)
    elif names and isinstance(allowed, list) and not names.issuperset(allowed):
        kept = [name for name in allowed if name in names]
        rule = "allowed_function_names: not declared in function_declarations"
        edits.append(Edit("setting", "undeclared names dropped", rule=rule, path=allowed_key))
        calling = {name: value for name, value in calling.items() if name != allowed_key}
        config[inner_key] = {**calling, allowed_key: kept} if kept else calling
    else:
        return
    if config:
        body[key] = config
    else:
        del body[key]


def _cached(body: dict[str, Any], edits: list[Edit]) -> None:
    """Cached content brings its own instruction and tools."""
    if not body.get(find(body, "cachedContent")):
        return
    for key in _CACHED:
        name = find(body, key)
        if body.get(name):
            rule = "CachedContent can not be used with GenerateContent request setting system_instruction, tools"
            _drop(body, name, "the cached content brings its own", rule, edits)


def _thinking(body: dict[str, Any], target: Target, edits: list[Edit]) -> None:
    """A budget for thinking or a level, not both."""
    key, config = _object(body, "generationConfig")
    name, thinking = _object(config or {}, "thinkingConfig")
    if config is None or thinking is None:
        return
    budget, level = find(thinking, "thinkingBudget"), find(thinking, "thinkingLevel")
    if thinking.get(budget) is not None and thinking.get(level) is not None:
        rule = "You can only set only one of thinking budget and thinking level."
        _drop(thinking, budget if is_gemini_3(target.model) else level, "given twice", rule, edits)
        body[key] = {**config, name: thinking}
