"""Read a whole response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..._platform.lazy import lazy_pattern
from ...errors import FormatError
from ...log.messages import Message, Opaque, Part, Text, ToolCall
from ..error_bodies import answer_body, error_text, named_error
from ..media_bytes import decode_base64, keep
from ..protocol import Reply, Stop, meaning
from ..schema.walk import check_types
from .form import FORMS, NAME
from .parse import MessageReader
from .schema import OPAQUE_FIELDS, REASONING_FIELDS, SPOKEN
from .usage import usage_in
from .usage import usage_of as usage_of

_ANSWER_KEYS = ("content", "refusal", "tool_calls", "function_call", *REASONING_FIELDS, *OPAQUE_FIELDS)
_PADDED = lazy_pattern("[^=]+=*")
STOPS: dict[str, Stop] = {
    "length": "length",
    "content_filter": "filtered",
    # Compatible servers: Mistral, Zhipu (also in its errors), DeepSeek.
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "sensitive": "filtered",
    "content_filtered": "filtered",
    "safety": "filtered",
    "max_output_tokens": "length",
    "insufficient_system_resource": "interrupted",
    # Gateways that pass on the words of Anthropic and Google.
    "max_tokens": "length",
    "MAX_TOKENS": "length",
    "refusal": "refusal",
    **dict.fromkeys(("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"), "filtered"),
}
"""The meaning of each value of `finish_reason`; `meaning` knows words of failures, too."""
ANSWER_KEYS = ("choices",)
REFUSALS = frozenset({"refusal", "refusal-field"})
"""The words in the form of a text that was a refusal."""
_CUT_SHORT = ("length", "filtered", "interrupted")
"""Ends of an answer after which the last call may be incomplete."""


def parse_response(response: Any) -> Reply:
    """Read a whole response: an SDK object or its JSON as a dict. Raises FormatError, also for an error body."""
    data = answer_body(response, ANSWER_KEYS)
    choice = first_choice(data)
    if choice is None:
        if "choices" not in data:
            raise FormatError("no choices; is this a Chat Completions response?", path="choices")
        wire: Any = {}
        error = error_text(named_error(data)) or "the response holds no answer"
    else:
        wire, error = choice.get("message") or {}, error_text(named_error(data)) or error_text(choice.get("error"))
    stop = str((choice or {}).get("finish_reason") or "")
    message, fragments, blobs = read_answer(wire, stop)
    raw = usage_in(data)
    return Reply(
        message=message,
        usage=usage_of(raw),
        raw_usage=raw,
        model=str(data.get("model") or ""),
        stop=stop,
        response_id=str(data.get("id") or ""),
        complete=not error,
        error=error,
        fragments=fragments,
        blobs=blobs,
    )


def first_choice(data: Mapping[str, Any]) -> dict[str, Any] | None:
    """The choice with index 0; with n > 1, the others are not part of the conversation. Choices without an index are
    parts of one answer: Copilot gives the text and the calls of Claude apart."""
    choices = data.get("choices")
    first: dict[str, Any] | None = None
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict) or choice.get("index"):
            continue
        if first is None:
            first = choice
        elif "index" not in choice and isinstance(choice.get("message"), Mapping):
            first = {**first, "message": {**(first.get("message") or {}), **_with_values(choice["message"])}}
    return first


def _with_values(message: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if value is not None}


def read_answer(wire: Any, stop: str) -> tuple[Message, tuple[Part, ...], dict[str, bytes]]:
    """The message of an answer, its incomplete calls, and its media bytes.

    Keys without a value are left out. Keys that requests do not have (annotations, ...) are kept in an `Opaque` of kind
    `response`, which is not sent back.
    """
    if not isinstance(wire, Mapping):
        raise FormatError("expected an object", path="choices[0].message")
    answer = {key: wire[key] for key in _ANSWER_KEYS if wire.get(key) not in (None, "", [])}
    rest = {
        key: value
        for key, value in wire.items()
        if key not in _ANSWER_KEYS and key != "role" and value not in (None, "", [], {})
    }
    audio = answer.pop("audio", None)
    check_types(audio, SPOKEN, "choices[0].message.audio")
    if isinstance(answer.get("tool_calls"), list):
        answer["tool_calls"] = [_without_noise(call) for call in answer["tool_calls"]]
    reader = MessageReader()
    read = reader.message({"role": "assistant", "content": None, **answer}, "choices[0].message")
    parts, fragments = _without_fragments(read.parts, finished=bool(stop) and meaning(stop, STOPS) not in _CUT_SHORT)
    blobs = reader.blobs
    calls_from = next((i for i, part in enumerate(parts) if isinstance(part, ToolCall)), len(parts))
    parts[calls_from:calls_from] = _audio(audio, blobs)
    if rest:
        parts.append(Opaque(NAME, "response", rest))
    return Message("assistant", tuple(parts)), tuple(fragments), blobs


def _without_noise(call: Any) -> Any:
    """A call in the shape of requests. Some servers leave a stream's `index` in whole answers, some omit the type."""
    if not isinstance(call, Mapping):
        return call
    request_call = {key: value for key, value in call.items() if key != "index" and value is not None}
    request_call.setdefault("type", "custom" if "custom" in request_call else "function")
    return request_call


def _without_fragments(parts: tuple[Part, ...], *, finished: bool) -> tuple[list[Part], list[Part]]:
    """`parts` without calls that may be incomplete, and those calls, with their arguments as text.

    Arguments that parse as an object are complete. Empty arguments are complete if another call follows.
    """
    newest = next((part for part in reversed(parts) if isinstance(part, ToolCall)), None)
    complete: list[Part] = []
    fragments: list[Part] = []
    for part in parts:
        if finished or not isinstance(part, ToolCall) or isinstance(part.arguments, dict):
            complete.append(part)
        elif part is not newest and (part.kind == "custom" or not part.raw_arguments):
            complete.append(part)
        else:
            fragments.append(msgspec.structs.replace(part, arguments=None, raw=part.raw_arguments, form=None))
    return complete, fragments


def _audio(wire: Any, blobs: dict[str, bytes]) -> list[Part]:
    """A spoken answer: a reference to send back, its bytes as a blob, and its transcript."""
    if not isinstance(wire, Mapping):
        return []
    reference = {key: value for key, value in wire.items() if key not in ("data", "transcript") and value is not None}
    # A stream encodes each chunk of audio separately, so padding may be anywhere.
    pieces = [decode_base64(piece) for piece in _PADDED.findall(wire.get("data") or "")]
    data = b"".join(piece for piece in pieces if piece)
    if data:
        reference["sha256"] = keep(data, blobs)
    parts: list[Part] = [Opaque(NAME, "audio", reference)] if reference.get("id") else []
    if isinstance(wire.get("transcript"), str) and wire["transcript"]:
        parts.append(Text(wire["transcript"], FORMS.shaped("transcript")))
    return parts
