"""Requests before an independent judge: which targets, and what the judge says of a request."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any

from turnlog.log.messages import Message
from turnlog.models.target import Target, target
from turnlog.testing.histories import History
from turnlog.view.types import Shown

TARGETS: tuple[Target, ...] = (
    target("openai-chat", "gpt-4o"),
    target("openai-chat", "o3-mini"),  # takes no images
    target("openai-responses", "gpt-5", store=False, include=["reasoning.encrypted_content"]),
    target("anthropic", "claude-sonnet-4-5", max_tokens=8000, thinking={"type": "enabled", "budget_tokens": 2000}),
    target("anthropic", "claude-opus-4-8"),  # takes no prefill
    target("google", "gemini-2.5-pro"),
    target("google", "gemini-3-pro"),  # wants signatures
    target("google-interactions", "gemini-3-pro"),
)
"""One target for each habit that bites."""


def errors_of(oracle: ModuleType, aim: Target, request: dict[str, Any]) -> list[str]:
    """What the oracle would answer to `request`."""
    if aim.provider == "openai-chat":
        return list(oracle.check_openai_chat(request))
    if aim.provider == "openai-responses":
        return list(oracle.check_openai_responses(request))
    if aim.provider == "anthropic":
        return list(oracle.check_anthropic(request))
    if aim.provider == "google-interactions":
        return list(oracle.check_interactions(request))
    return list(oracle.check_gemini(request, model=aim.model))


def shown(history: History) -> list[Shown]:
    """The messages of a history, numbered from 1."""
    return numbered(history.messages)


def numbered(messages: Iterable[Message]) -> list[Shown]:
    """Messages of records 1, 2, 3."""
    return [Shown(message, (n,)) for n, message in enumerate(messages, start=1)]
