"""Steps as the Interactions API accepts them, one by one; `repair` corrects their order.

Before the schema is applied, `mended` puts steps into the documented form; after that, `finished` removes or fills
empty steps.
"""

from __future__ import annotations

from typing import Any

from ...log.messages import compact_json, unchanged
from ...view.repair.clean import BLANK
from ..edits import Edits, Object, changed
from ..gemini import is_base64
from ..media_bytes import decode_base64, encode_base64
from ..reading import string
from .schema import CONTENTS, MEDIA

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
    """The step with each content of the list at `key` mended."""
    if not isinstance(step.get(key), list):
        return step
    return changed(step, key, path, lambda content, where: _content(content, where, edits))


def _content(content: Object, path: str, edits: Edits) -> Object:
    """The content; media bytes that are not valid base64 are encoded again."""
    data = content.get("data")
    if string(content, "type") not in MEDIA or not isinstance(data, str) or is_base64(data):
        return content
    raw = decode_base64(data)
    if raw is None:
        return content
    again = encode_base64(raw)
    return edits.put(content, "data", again, _NO_BASE64, path=path, detail="encoded again", kind="media")


def in_steps(body: Object, edits: Edits) -> Object:
    """The request with contents among steps as `user_input` steps. Contents without any steps are allowed."""
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
