"""turnlog without a session: check, repair or convert one request body.

Bodies are plain dicts as they go to the provider's API. Edits and losses count messages from 1, a
system text that stands outside the messages included as the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from .errors import BlobMissing, FormatError, InputError
from .models import Target, target
from .providers import provider
from .providers.protocol import Parsed
from .providers.values import check_depth
from .request import Prepared, prepare
from .view.shown import Edit, Shown

__all__ = ["Violation", "aimed", "check", "convert", "detect", "repair", "shown_messages"]


class Violation(Struct, frozen=True):
    """Something the provider would refuse: a stable `kind`, a sentence, the messages concerned."""

    kind: str
    detail: str
    messages: tuple[int, ...] = ()


def check(body: Mapping[str, Any], provider: str, *, model: str = "") -> list[Violation]:
    """What is wrong with a request body, as values; `[]` if the provider would accept it.

    `model` defaults to the body's own. Violations are what `repair` would have to change.
    """
    try:
        prepared = repair(body, provider, model=model)
    except FormatError as error:
        return [Violation("format", str(error))]
    return [
        Violation(edit.kind, edit.rule or edit.detail, edit.records) for edit in (*prepared.edits, *_broken(prepared))
    ]


def _broken(prepared: Prepared) -> list[Edit]:
    """What had to leave a provider's own request is a violation of its rules."""
    left = ("media", "opaque", "reasoning", "unknown")
    return [Edit(loss.kind, loss.detail, loss.records) for loss in prepared.losses if loss.kind in left]


def repair(body: Mapping[str, Any], provider: str, *, model: str = "") -> Prepared:
    """The same request, made valid; an undamaged one comes back equal. Raises FormatError where `body`
    is no request of that provider at all."""
    return convert(body, to=provider, model=model, source=provider)


def convert(body: Mapping[str, Any], *, to: str, model: str = "", source: str = "") -> Prepared:
    """The request for another provider, valid there. `source` is told from the body if not given."""
    speaker = provider(source or detect(body))
    _check_body(body)
    parsed = speaker.parse(body)
    aim = aimed(parsed, to, model)

    def blob(sha256: str) -> bytes:
        if sha256 not in parsed.blobs:
            raise BlobMissing(f"no media with hash {sha256} in this request")
        return parsed.blobs[sha256]

    foreign = parsed.configuration.provider != to
    return prepare(shown_messages(parsed), parsed.configuration, aim, blob, complete=foreign)


def _check_body(body: Mapping[str, Any]) -> None:
    """Raises FormatError for what is no JSON object, or nested so deeply that nobody means it."""
    if not isinstance(body, Mapping):
        raise FormatError(f"a request body is an object (a dict), this is {type(body).__name__}")
    check_depth(body)


def aimed(parsed: Parsed, to: str, model: str) -> Target:
    """The target of a conversion; the body's own model serves within one provider."""
    own = parsed.configuration.model if parsed.configuration.provider == to else ""
    return target(to, model or own or _DEFAULT_MODEL.get(to, ""))


# Only for bodies that name no model and callers who do not either: a widely available one each.
_DEFAULT_MODEL = {
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-5",
    "anthropic": "claude-sonnet-4-5",
    "google": "gemini-2.5-pro",
}


def shown_messages(parsed: Parsed) -> list[Shown]:
    """The messages of a body, numbered from 1."""
    return [Shown(message, (n,)) for n, message in enumerate(parsed.messages, start=1)]


_ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"})


def detect(body: Mapping[str, Any]) -> str:
    """Whose request a body is. Raises InputError if it is none of the four."""
    if not isinstance(body, Mapping):
        raise InputError(f"a request body is an object (a dict), this is {type(body).__name__}")
    if "contents" in body:
        return "google"
    if "input" in body:
        return "openai-responses"
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise InputError("no request body: it has neither 'messages' nor 'input' nor 'contents'")
    if "system" in body or "anthropic_version" in body or "stop_sequences" in body:
        return "anthropic"
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        if message.get("role") in ("tool", "developer", "function", "system") or "tool_calls" in message:
            return "openai-chat"
        content = message.get("content")
        if isinstance(content, list) and any(
            isinstance(block, Mapping) and block.get("type") in _ANTHROPIC_BLOCKS for block in content
        ):
            return "anthropic"
    model = str(body.get("model") or "")
    return "anthropic" if model.startswith("claude") else "openai-chat"
