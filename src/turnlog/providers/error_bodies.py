"""Bodies that contain an error instead of an answer: sent with status 400 and above, by some gateways with 200."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import FormatError
from ..redaction import Redactor
from .edits import brief
from .sdk_objects import plain

_ANSWERS = ("choices", "candidates", "promptFeedback", "prompt_feedback", "content")
"""Keys of answers. A body with one of these keys and an error is an answer that was interrupted."""

_REDACTOR = Redactor()
_KINDS = ("type", "status", "code")
"""Keys that name the kind of an error: `type` (OpenAI, Anthropic), `code` (OpenAI, Google), `status` (Google)."""


def answer_body(response: Any) -> dict[str, Any]:
    """A whole response as a dict. Raises FormatError for anything else; for an error body, with the provider's
    message."""
    body = plain(response, "response")
    error = _error_in(body)
    if error is not None:
        raise FormatError(f"this is an error, not an answer: {error_text(error)}", path="response")
    return body


def is_error_body(answer: Any) -> bool:
    """Whether this is a mapping with an error and no answer."""
    return isinstance(answer, Mapping) and _error_in(answer) is not None


def _error_in(body: Mapping[str, Any]) -> Any:
    """The error of a body without an answer, else None. A failed response of the Responses API counts as an answer."""
    if isinstance(body.get("output"), list) or any(body.get(key) for key in _ANSWERS):
        return None
    error = body.get("error")
    if not error and "error" in (body.get("type"), body.get("object")):
        error = {key: value for key, value in body.items() if value != "error"}  # vLLM does not wrap its error
    return error or None


def error_text(error: Any) -> str:
    """The kind and the message of an error, for example `rate_limit_error: Slow down`; empty if there is no error. A
    key that the error quotes is replaced by a mark."""
    return _REDACTOR.text(_said_in(error))[0] if error else ""


def _said_in(error: Any) -> str:
    if not isinstance(error, Mapping):
        return error if isinstance(error, str) else brief(error)
    message = error.get("message")
    if not isinstance(message, str) or not message:
        return brief(error)
    kinds = [kind if isinstance(kind, str) else brief(kind) for key in _KINDS if (kind := error.get(key))]
    return f"{', '.join(dict.fromkeys(kinds))}: {message}" if kinds else message
