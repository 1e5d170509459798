"""Tool results: convert `functionResponse.response`, an object, to and from parts and outcome.

`{"output": text}` is the default, `{"error": text}` the default for a failed tool, as in the SDK's docstring of
`FunctionResponse.response`. For objects that wrap one text with another usual key, the form of the text stores the key;
any other object becomes a text with its compact JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...log.messages import Outcome, Text, compact_json
from .form import FORMS

_WRAPPERS = frozenset({"output", "error", "result", "return_value"})
"""Keys that only wrap the answer; pydantic-ai sends `return_value`."""

BARE = frozenset({"empty", "null"})
"""Form words of a result without text: the response was `{}` or null."""


def read_response(response: Any) -> tuple[tuple[Text, ...], Outcome, str]:
    """The texts and the outcome in `response`, and the form word of a result without text."""
    if response is None:
        return (), "ok", "null"
    if isinstance(response, str):
        return (Text(response, FORMS.shaped("string")),), "ok", ""
    if not isinstance(response, dict):
        return (Text(compact_json(response), FORMS.shaped("value")),), "ok", ""
    if not response:
        return (), "ok", "empty"
    failed = "error" in response and (bool(response["error"]) or response == {"error": ""})
    outcome: Outcome = "failed" if failed else "ok"
    if len(response) == 1:
        (key, value), *_ = response.items()
        texts = _wrapped(value) if key in _WRAPPERS and (key == "error") == failed else None
        if texts is not None:
            default = "error" if failed else "output"
            shape = "" if key == default else key
            return (Text(texts[0], FORMS.shaped(shape)), *map(Text, texts[1:])), outcome, ""
    return (Text(compact_json(response), FORMS.shaped("json")),), outcome, ""


def _wrapped(value: Any) -> list[str] | None:
    """The texts in a wrapper: a single text, or a list of at least two."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and len(value) > 1 and all(isinstance(item, str) for item in value):
        return value
    return None


def response_of(texts: Sequence[Text], outcome: Outcome, bare: str = "") -> Any:
    """The response for `texts`; several texts become a list. `bare` is the form word of a result without text.

    If a text no longer fits its form (it was cut or masked), the default is used.
    """
    if not texts:
        if bare in BARE and outcome == "ok":
            return {} if bare == "empty" else None
        return {"error" if outcome != "ok" else "output": ""}
    shape = FORMS.shape(texts[0].form)
    if len(texts) == 1 and shape == "string" and outcome == "ok":
        return texts[0].text
    if len(texts) == 1 and shape in ("json", "value"):
        is_json, value = _json(texts[0].text)
        if is_json and isinstance(value, dict) == (shape == "json") and (outcome == "ok" or shape == "json"):
            return value
    key = shape if shape in _WRAPPERS else "output"
    if outcome != "ok":
        key = "error"
    return {key: texts[0].text if len(texts) == 1 else [text.text for text in texts]}


def _json(text: str) -> tuple[bool, Any]:
    try:
        return True, json.loads(text)
    except (ValueError, RecursionError):
        return False, None
