"""Read bodies that contain an error instead of an answer: sent with status 400 and above, by some gateways with 200."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..errors import FormatError
from ..redaction import Redactor
from .edits import brief
from .sdk_objects import plain
from .spelling import without

_REDACTOR = Redactor()
_KINDS = ("type", "status", "code")
"""Keys that name the kind of an error: `type` (OpenAI, Anthropic), `code` (OpenAI, Google), `status` (Google)."""
_SAID = ("message", "Message", "detail", "error_message", "errorMessage", "error_msg", "errorMsg", "msg", "status_msg")
"""Keys for the text of an error: `detail` (FastAPI), `Message` (AWS), the others of gateways. Bodies with one of them
may have no key `error`."""
_ERRORS = ("error", "errors", "Error", "err", "exception", "base_resp")
"""Keys for an error: a list under `errors` (Cloudflare, watsonx), `base_resp` (MiniMax, in answers too), the others of
gateways."""
_EXCEPTION = "Exception"
"""The end of the key under which an event of Bedrock has an exception."""
_OF_A_BODY = ("type", "object", "event_type")
"""Keys that name the kind of a body or an event."""


def answer_body(response: Any, answer_keys: Collection[str] = ()) -> dict[str, Any]:
    """A whole response as a dict; `answer_keys` are those of its `Provider`. Raises FormatError for anything else; for
    an error body, with the provider's message."""
    body = plain(response, "response")
    error = _error_in(body, answer_keys)
    if error is not None:
        raise FormatError(f"this is an error, not an answer: {error_text(error)}", path="response")
    return body


def is_error_body(answer: Any, answer_keys: Collection[str]) -> bool:
    """Whether this is a mapping with an error and no answer."""
    return isinstance(answer, Mapping) and _error_in(answer, answer_keys) is not None


def _error_in(body: Mapping[str, Any], answer_keys: Collection[str]) -> Any:
    """The error of a body without an answer, else None."""
    if any(body.get(key) for key in answer_keys):
        return None
    if error := named_error(body):
        return error
    if "error" in map(body.get, _OF_A_BODY):
        return {key: value for key, value in body.items() if value != "error"} or None  # vLLM does not wrap its error
    is_answer = any(isinstance(body.get(key), list) for key in answer_keys)  # without anything yet
    return None if is_answer or _is_of_another_kind(body) or not _says(body) else body


def named_error(body: Mapping[str, Any]) -> Any:
    """The error under a key for errors; None if there is none. `true` only says that the body is an error."""
    keys = [key for key in body if key in _ERRORS or (len(body) == 1 and str(key).endswith(_EXCEPTION))]
    for key in keys:
        error = body[key]
        if isinstance(error, list) and len(error) == 1:
            error = error[0]
        if error is True:
            error = without(body, key) if _says(body) else "error"
        if key == "base_resp" and isinstance(error, Mapping) and not error.get("status_code"):
            continue  # MiniMax adds it to each answer
        if error:
            return error
    return None


def _is_of_another_kind(body: Mapping[str, Any]) -> bool:
    """Whether a body or an event names a kind other than an error."""
    kinds = [body[key] for key in _OF_A_BODY if body.get(key) is not None]
    if "status" in body and "title" in body:
        return False  # RFC 9457: its `type` is a URI
    return any(not isinstance(kind, str) or "error" not in kind.lower() for kind in kinds) and "error" not in kinds


def error_chunk(chunk: Mapping[str, Any], answer_keys: Collection[str] = ()) -> str:
    """The error text of a stream's chunk; "" if the chunk is not an error."""
    if not _is_of_another_kind(chunk):
        error = _error_in(chunk, answer_keys)
    else:  # a chunk of an answer, with an error in place of the answer (MiniMax)
        error = None if any(chunk.get(key) for key in answer_keys) else named_error(chunk)
    return "" if error is None else error_text(error) or "error"


def error_text(error: Any) -> str:
    """The kind and the message of an error, for example `rate_limit_error: Slow down`; empty if there is no error. A
    key that the error quotes is replaced by a mark."""
    return _REDACTOR.text(_said_in(error))[0] if error else ""


def _said_in(error: Any) -> str:
    if not isinstance(error, Mapping):
        return error if isinstance(error, str) else brief(error)
    message = _says(error)
    if not message:
        return brief(error)
    kinds = [kind if isinstance(kind, str) else brief(kind) for key in _KINDS if (kind := error.get(key))]
    return f"{', '.join(dict.fromkeys(kinds))}: {message}" if kinds else message


def _says(error: Mapping[str, Any]) -> str:
    """The text of an error, "" if it has none. FastAPI lists what is wrong with a request under `detail`."""
    for key in _SAID:
        told = error.get(key)
        if isinstance(told, str) and told:
            return told
        if key == "detail" and isinstance(told, (list, Mapping)) and told:
            inner = [
                _says(entry) for entry in (told if isinstance(told, list) else [told]) if isinstance(entry, Mapping)
            ]
            return "; ".join(filter(None, inner)) or brief(told)
    return ""
