"""Read what providers say about prompt-cache misses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .protocol import CacheMiss

NOTHING = frozenset({""})
"""What changed between two requests that do not differ."""


_CLAUDE = {
    "": NOTHING,
    "model_changed": frozenset({"", "settings"}),
    "system_changed": frozenset({"system"}),
    "tools_changed": frozenset({"tools"}),
    "messages_changed": frozenset({"messages"}),
}
"""What may have changed, by `cache_miss_reason` of Anthropic:
https://platform.claude.com/docs/en/build-with-claude/cache-diagnostics. A request to another model does not count as
the previous one here."""


_OPENAI = {
    "": frozenset({"", "system", "messages"}),
    "model_changed": frozenset({"", "settings"}),
    "tools_changed": frozenset({"tools"}),
    "context_compacted": frozenset({"messages"}),
    "input_changed": frozenset({"system", "messages"}),
    **dict.fromkeys(
        (
            "prompt_cache_key_changed",
            "text_format_changed",
            "reasoning_effort_changed",
            "verbosity_changed",
            "service_tier_changed",
        ),
        frozenset({"settings"}),
    ),
}
"""What may have changed, by the reason OpenAI gives:
https://developers.openai.com/api/docs/guides/prompt-caching/diagnostics. Even after a hit, only a part may have been
cached."""


def claude_miss(message: Mapping[str, Any]) -> CacheMiss | None:
    """The cache miss that a message of Anthropic's API reports; None if it says nothing about the cache."""
    diagnostics = message.get("diagnostics")
    if not isinstance(diagnostics, Mapping) or "cache_miss_reason" not in diagnostics:
        return None
    reason = diagnostics["cache_miss_reason"]
    return _miss(reason.get("type") if isinstance(reason, Mapping) else reason or "", _CLAUDE)


def openai_miss(response: Mapping[str, Any]) -> CacheMiss | None:
    """The cache miss that a response of OpenAI reports; None if it says nothing about the cache."""
    diagnostics = response.get("prompt_cache_diagnostics")
    if not isinstance(diagnostics, Mapping):
        return None
    kind = diagnostics.get("type")
    return _miss("" if kind == "cache_hit" else diagnostics.get("reason") if kind == "cache_miss" else kind, _OPENAI)


def _miss(reason: Any, means: Mapping[str, frozenset[str]]) -> CacheMiss | None:
    return CacheMiss(reason, means.get(reason, frozenset())) if isinstance(reason, str) else None
