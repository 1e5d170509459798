"""Remove from a request what the Interactions API refuses, apart from the order of the conversation."""

from __future__ import annotations

from typing import Any

from ...log.messages import unchanged
from ...models.target import Target
from ..edits import Edits, Object, changed, sanitizer
from ..reading import inner
from ..schema import fit
from .sanitize_messages import finished, in_steps, mended
from .schema import BODY


@sanitizer(BODY.keys)
def sanitize(body: Object, target: Target, edits: Edits) -> Object:
    """The request as the API takes it; each change is an edit. Sanitizing again changes nothing."""
    body = in_steps(body, edits)
    body = changed(body, "input", "", lambda step, path: mended(step, path, edits))
    body = fit(body, BODY, "", edits)
    body = finished(body, edits)
    for step in (_told_apart, _calling, _cached, _stored):
        body = step(body, edits)
    if not body.get("model") and target.model:
        body = edits.put(body, "model", target.model, "model: Field required")
    return body


def _told_apart(body: Object, edits: Edits) -> Object:
    """The request without a second function of a name."""
    tools = body.get("tools") or []
    kept: list[Any] = []
    names: set[str] = set()
    for i, tool in enumerate(tools):
        name = tool["name"] if tool["type"] == "function" else ""
        if name in names:
            rule = f"Duplicate function declaration found: {name}"
            edits.add("tool", f"tools[{i}]", f"dropped: a second {name!r}", rule)
            continue
        names |= {name} if name else set()
        kept.append(tool)
    return body if unchanged(kept, tools) else {**body, "tools": kept}


def _calling(body: Object, edits: Edits) -> Object:
    """Forced calling requires tools, and may name only declared functions."""
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
        kept = [name for name in listed if name in names]
        rule = "allowed_tools: not declared in tools"
        if kept:
            choice = {**choice, "allowed_tools": {**allowed, "tools": kept}}
            config = edits.put(config, "tool_choice", choice, rule, path=path, detail="undeclared names dropped")
        else:
            config = edits.drop(config, "tool_choice", rule, path=path, reason="none is declared")
    else:
        return body
    return {**body, path: config} if config else {key: value for key, value in body.items() if key != path}


def _cached(body: Object, edits: Edits) -> Object:
    """Cached content brings its own instruction and tools."""
    for key in ("system_instruction", "tools") if body.get("cached_content") else ():
        if body.get(key):
            rule = "CachedContent can not be used with a request setting system_instruction, tools"
            body = edits.drop(body, key, rule, reason="the cached content brings its own")
    return body


def _stored(body: Object, edits: Edits) -> Object:
    """What runs in the background is stored."""
    if body.get("background") and body.get("store") is False:
        return edits.drop(body, "background", "background: requires `store` to be true", reason="nothing is stored")
    return body


def required_settings(target: Target) -> dict[str, Any]:
    """Nothing is stored at the provider: each request holds the whole conversation."""
    return {"store": False}
