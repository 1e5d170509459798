"""Remove from a request what the Interactions API refuses, apart from the order of the conversation."""

from __future__ import annotations

from typing import Any

from ...log.messages import unchanged
from ...models.target import Target
from ..edits import Edits, Object, changed, sanitizer
from ..reading import inner
from ..schema import TYPES, fit
from .sanitize_messages import finished, in_steps, mended
from .schema import BODY


@sanitizer(BODY.keys)
def sanitize(body: Object, target: Target, edits: Edits) -> Object:
    """The request as the API accepts it; each change is an edit. Sanitizing again changes nothing."""
    body = changed(body, "response_format", "", lambda one, path: _format(one, path, edits))
    body = in_steps(body, edits)
    body = changed(body, "input", "", lambda step, path: mended(step, path, edits))
    body = fit(body, BODY, "", edits)
    body = finished(body, edits)
    for step in (_unique_functions, _possible_choice, _drop_beside_cache, _stored_background):
        body = step(body, edits)
    if not body.get("model") and target.model:
        body = edits.put(body, "model", target.model, "model: Field required")
    return body


def _format(one: Object, path: str, edits: Edits) -> Object:
    """A format of the answer whose JSON schema has only references that lead somewhere; it may be such a schema by
    itself."""

    def schema(found: Object, where: str) -> Object:
        mended: Object = fit(found, TYPES["schema"], where, edits)
        return mended

    return changed(one, "schema", path, schema) if "schema" in one else schema(one, path)


def _unique_functions(body: Object, edits: Edits) -> Object:
    """The request with at most one function of each name."""
    tools = body.get("tools") or []
    declared: list[Any] = []
    names: set[str] = set()
    for i, tool in enumerate(tools):
        name = tool["name"] if tool["type"] == "function" else ""
        if name in names:
            rule = f"Duplicate function declaration found: {name}"
            edits.add("tool", f"tools[{i}]", f"dropped: a second {name!r}", rule)
            continue
        names |= {name} if name else set()
        declared.append(tool)
    return body if unchanged(declared, tools) else {**body, "tools": declared}


def _possible_choice(body: Object, edits: Edits) -> Object:
    """The request without a forced call if no tools are declared, and without undeclared names in its tool choice."""
    config = body.get("generation_config")
    if not isinstance(config, dict) or config.get("tool_choice") is None:
        return body
    choice, path = config["tool_choice"], "generation_config"
    allowed = inner(choice, "allowed_tools") if isinstance(choice, dict) else {"mode": choice}
    names = {tool.get("name") for tool in body.get("tools") or () if tool["type"] in ("function", "mcp_server")}
    listed = allowed.get("tools") or []
    elsewhere = body.get("tools") or body.get("previous_interaction_id") or body.get("cached_content")
    if not elsewhere and allowed.get("mode") not in ("auto", "none"):
        rule = "Function calling config is set without function_declarations."
        config = edits.drop(config, "tool_choice", rule, path=path, reason="no tool is declared")
    elif names and not names.issuperset(listed):
        declared = [name for name in listed if name in names]
        rule = "allowed_tools: not declared in tools"
        if declared:
            choice = {**choice, "allowed_tools": {**allowed, "tools": declared}}
            config = edits.put(config, "tool_choice", choice, rule, path=path, detail="undeclared names dropped")
        else:
            config = edits.drop(config, "tool_choice", rule, path=path, reason="none is declared")
    else:
        return body
    return {**body, path: config} if config else {key: value for key, value in body.items() if key != path}


def _drop_beside_cache(body: Object, edits: Edits) -> Object:
    """The request without instruction and tools if it has cached content, which contains its own."""
    for key in ("system_instruction", "tools") if body.get("cached_content") else ():
        if body.get(key):
            rule = "CachedContent can not be used with a request setting system_instruction, tools"
            body = edits.drop(body, key, rule, reason="the cached content contains its own")
    return body


def _stored_background(body: Object, edits: Edits) -> Object:
    """The request without `background` if `store` is false: what runs in the background must be stored."""
    if body.get("background") and body.get("store") is False:
        return edits.drop(body, "background", "background: requires `store` to be true", reason="nothing is stored")
    return body


def required_settings(target: Target) -> dict[str, Any]:
    """`store` is false: each request contains the whole conversation, so the provider need not store it."""
    return {"store": False}
