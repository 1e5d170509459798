"""Read a whole response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import FormatError
from ...log.messages import Message, Opaque, Part, Reasoning, ToolCall
from ...log.usage import Usage, is_uncounted, tokens_billed
from ..error_bodies import answer_body, error_text
from ..protocol import Reply, Stop
from ..schema.walk import check_depth, check_types
from ..spelling import inner, string
from .form import NAME
from .schema import RESPONSE
from .steps import read_answer

ANSWER_KEYS = ("steps",)
"""Keys that make a body an answer, even if it contains an error too."""
STOPS: dict[str, Stop] = {"incomplete": "length", "budget_exceeded": "length"}
"""The values of `status`."""
_ENDED = frozenset({"completed", "requires_action", "incomplete", "budget_exceeded"})
"""Statuses of an answer that has ended. If a limit cut it off, `stop` says so."""


def parse_response(response: Any) -> Reply:
    """Read a whole response: an Interaction of the SDK, or its JSON. Raises FormatError, also for an error body.

    An interaction that failed or is still running is not complete. An interaction that a limit cut off is complete, and
    `stop` says so.
    """
    whole = answer_body(response, ANSWER_KEYS)
    if not isinstance(whole.get("status"), str) and not isinstance(whole.get("steps"), list):
        raise FormatError("expected a status and steps; is this an interaction?", path="response.steps")
    check_depth(whole)
    check_types(whole, RESPONSE, "response")
    return read_response(whole, whole.get("steps") or [])


def read_response(
    whole: Mapping[str, Any], steps: Sequence[Any], fragments: tuple[Part, ...] = (), error: str = ""
) -> Reply:
    """The reply of an interaction with these steps. `error`, if known, says why the interaction stopped early."""
    blobs: dict[str, bytes] = {}
    parts = read_answer([clean(step) for step in steps], blobs)
    stop = string(whole, "status")
    error = error or _failed(whole, steps)
    if not error and stop not in _ENDED:
        error = f"the interaction is {stop}" if stop else "nothing says that the interaction ended"
    usage = inner(whole, "usage")
    return Reply(
        message=Message("assistant", tuple(parts)),
        usage=_usage(usage) if usage else None,
        raw_usage=dict(usage) if usage else None,
        model=string(whole, "model"),
        stop=stop,
        response_id=string(whole, "id"),
        complete=not error,
        error=error,
        fragments=fragments,
        blobs=blobs,
    )


def clean(step: Any) -> Any:
    """A step that may be sent back: without the nulls of the SDK's objects, and without the error that ended it."""
    cleaned = _without_nulls(step)
    if isinstance(cleaned, dict) and cleaned.get("type") == "model_output":
        cleaned.pop("error", None)
    return cleaned


_USERS = frozenset({"arguments", "result"})
"""Keys whose values are the user's own JSON."""


def _without_nulls(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: item if key in _USERS else _without_nulls(item) for key, item in value.items() if item is not None}


def _failed(whole: Mapping[str, Any], steps: Sequence[Any]) -> str:
    """The errors of the interaction and of its outputs, as one text."""
    errors = [*(whole.get("errors") or ()), *(step.get("error") for step in steps if isinstance(step, dict))]
    return "; ".join(filter(None, map(error_text, errors)))


def fragment(step: Mapping[str, Any], arguments: str) -> Part:
    """The part for a step that is not complete. `arguments` is the text of a call's arguments so far."""
    kind = string(step, "type")
    if kind == "thought":
        summary = [content.get("text") for content in step.get("summary") or () if isinstance(content, dict)]
        return Reasoning(NAME, summary=tuple(text for text in summary if isinstance(text, str)))
    if kind == "function_call":
        return ToolCall(string(step, "id"), string(step, "name"), raw=arguments, provider=NAME)
    return Opaque(NAME, kind, dict(step))


def _usage(raw: Mapping[str, Any]) -> Usage:
    """Usage in common terms. The API's input tokens include cached tokens, its output tokens exclude thoughts, and the
    tokens that Google's tools put into the prompt are reported separately."""

    def count(key: str) -> int:
        return tokens_billed(raw.get(key))

    thoughts = count("total_thought_tokens")
    return Usage(
        input=count("total_input_tokens") + count("total_tool_use_tokens"),
        output=count("total_output_tokens") + thoughts,
        cached=count("total_cached_tokens"),
        reasoning=thoughts,
        incomplete=is_uncounted(*map(raw.get, ("total_input_tokens", "total_output_tokens", "total_thought_tokens"))),
    )
