"""Remove from a request what the Interactions API refuses, apart from the order of the conversation."""

from __future__ import annotations

from typing import Any

from ...log.messages import compact_json, unchanged
from ...models.target import Target
from ...view.repair.clean import BLANK
from ..edits import Edits, Object, changed, sanitizer
from ..gemini import is_base64
from ..media_bytes import decode_base64, encode_base64
from ..schema.shapes import TYPES
from ..schema.walk import fit
from ..spelling import inner, string
from .schema import BODY, CONTENTS, MEDIA

# -- sanitize messages -----------------------------------------------------------------------------
#
# Steps as the Interactions API accepts them, one by one; `repair` corrects their order.
#
# Before the schema is applied, `mended` puts steps into the documented form; after that, `finished` removes or fills
# empty steps.

_REQUIRED = "Field required"
_NO_BASE64 = "Invalid value, Base64 decoding failed"


def mended(step: Object, path: str, edits: Edits) -> Object:
    """The step with its contents, arguments and result in the documented form."""
    kind = string(step, "type")
    if kind in CONTENTS:
        return _content(step, path, edits)
    if kind in ("user_input", "model_output"):
        return _said(step, path, edits)
    if kind == "thought":
        signature = step.get("signature")
        if isinstance(signature, str) and not is_base64(signature):
            step = edits.drop(step, "signature", _NO_BASE64, path=path, reason="it is not base64", kind="signature")
    elif kind == "function_call":
        given = step.get("arguments")
        if not isinstance(given, dict):
            sent = {} if given is None else {"input": given}
            step = edits.put(step, "arguments", sent, "Input should be an object", path=path, kind="arguments")
    elif kind == "function_result":
        given = step.get("result")
        if not isinstance(given, (str, list, dict)):
            text = "" if given is None else compact_json(given)
            step = edits.put(step, "result", text, _REQUIRED, path=path, kind="value")
        step = changed_list(step, "result", path, edits)
    return step


def _said(step: Object, path: str, edits: Edits) -> Object:
    content = step.get("content")
    if isinstance(content, (str, dict)):
        listed = [{"type": "text", "text": content}] if isinstance(content, str) else [content]
        rule = "Input should be a list of contents"
        step = edits.put(step, "content", listed, rule, path=path, detail="sent as a list", kind="value")
    return changed_list(step, "content", path, edits)


def changed_list(step: Object, key: str, path: str, edits: Edits) -> Object:
    """The step with each content of the list at `key` in the documented form."""
    if not isinstance(step.get(key), list):
        return step
    return changed(step, key, path, lambda content, where: _content(content, where, edits))


def _content(content: Object, path: str, edits: Edits) -> Object:
    """The content, with media bytes encoded again if they are not valid base64."""
    data = content.get("data")
    if string(content, "type") not in MEDIA or not isinstance(data, str) or is_base64(data):
        return content
    raw = decode_base64(data)
    if raw is None:
        return content
    again = encode_base64(raw)
    return edits.put(content, "data", again, _NO_BASE64, path=path, detail="encoded again", kind="media")


def in_steps(body: Object, edits: Edits) -> Object:
    """The request, with contents between steps as `user_input` steps. Contents without any steps are allowed."""
    steps = body.get("input")
    if not isinstance(steps, list) or all(_is_content(step) for step in steps):
        return body
    sent_steps: list[Any] = []
    for i, step in enumerate(steps):
        if _is_content(step):
            edits.add("value", f"input[{i}]", "sent as a user_input step", "contents and steps cannot be mixed")
            step = {"type": "user_input", "content": [step]}
        sent_steps.append(step)
    return {**body, "input": sent_steps} if any(map(_is_content, steps)) else body


def _is_content(step: Any) -> bool:
    return isinstance(step, dict) and string(step, "type") in CONTENTS


def finished(body: Object, edits: Edits) -> Object:
    """The request without empty outputs, and with a placeholder in empty steps of the user."""
    steps = body.get("input")
    if steps == "":
        return edits.put(body, "input", BLANK, "input: Field required", detail="sent as a placeholder", kind="empty")
    if not isinstance(steps, list):
        return body
    sent_steps: list[Any] = []
    for i, step in enumerate(steps):
        says = step.get("content") or step.get("error")
        if step["type"] == "user_input" and not says:
            edits.add("empty", f"input[{i}].content", "sent as a placeholder", "content must not be empty")
            step = {**step, "content": [{"type": "text", "text": BLANK}]}
        elif step["type"] == "model_output" and not says:
            edits.add("empty", f"input[{i}]", "dropped: it is empty", "content must not be empty")
            continue
        sent_steps.append(step)
    return body if unchanged(sent_steps, steps) else {**body, "input": sent_steps}


@sanitizer(BODY.keys)
def sanitize(body: Object, target: Target, edits: Edits) -> Object:
    """The request as the API accepts it; each change is an edit. Sanitizing again changes nothing."""
    body = changed(body, "response_format", "", lambda format, path: _format(format, path, edits))
    body = in_steps(body, edits)
    body = changed(body, "input", "", lambda step, path: mended(step, path, edits))
    body = fit(body, BODY, "", edits)
    body = finished(body, edits)
    for step in (_unique_functions, _possible_choice, _drop_beside_cache, _stored_background):
        body = step(body, edits)
    if not body.get("model") and target.model:
        body = edits.put(body, "model", target.model, "model: Field required")
    return body


def _format(format: Object, path: str, edits: Edits) -> Object:
    """A format of the answer (or the bare JSON schema of one), whose references all lead somewhere."""

    def schema(value: Object, where: str) -> Object:
        mended: Object = fit(value, TYPES["schema"], where, edits)
        return mended

    return changed(format, "schema", path, schema) if "schema" in format else schema(format, path)


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
