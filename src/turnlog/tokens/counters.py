"""Which counter counts for a model, and the counts that sessions keep."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ..content import Message, Tool
from ..records import Count
from .counted import BlobReader, Choice, Counter
from .factored import FactoredCounter
from .families import claude_family, gemini_family, openai_family, unknown_family
from .openai import OpenAICounter

__all__ = ["count_frame", "count_message", "count_tools", "counter_for"]


@cache
def counter_for(provider: str, model: str = "") -> Counter:
    """The counter for a model, by its name first and the provider's second.

    `provider` is a turnlog provider's name, or `google-vertex`, whose framing is its own. The model may
    carry a region or a vendor before its name. Making a counter loads no vocabulary: the first count does.
    """
    name = model.lower().rsplit("/", 1)[-1]
    if "claude" in name:
        return FactoredCounter(claude_family(name))
    if "gemini" in name:
        return FactoredCounter(gemini_family(name, vertex=provider == "google-vertex"))
    family = openai_family(name or ("gpt-5" if provider.startswith("openai") else ""))
    if family is not None and not provider.startswith(("anthropic", "google")):
        return OpenAICounter(family, "responses" if provider == "openai-responses" else "chat")
    if not name and provider == "anthropic":
        return FactoredCounter(claude_family(name))
    if not name and provider.startswith("google"):
        return FactoredCounter(gemini_family(name))
    return FactoredCounter(unknown_family(name))


def count_message(message: Message, counter: Counter, blob: BlobReader | None = None) -> Count:
    """A message's count as its record keeps it, its framing included.

    `blob` reads media bytes for their size in pixels or pages.
    """
    tally = counter.messages((message,), blob)
    return Count(tally.tokens, counter.id, tally.certainty)


def count_tools(tools: Sequence[Tool], counter: Counter, choice: Choice = "auto") -> Count:
    """The count of all tool declarations of a request."""
    tally = counter.tools(tools, choice)
    return Count(tally.tokens, counter.id, tally.certainty)


def count_frame(counter: Counter, *, system: bool, tools: bool) -> Count:
    """The count of what a request costs beside its messages and tools."""
    tally = counter.frame(system=system, tools=tools)
    return Count(tally.tokens, counter.id, tally.certainty)
