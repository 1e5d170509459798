"""Read usage: what OpenAI reports, and what the servers report that imitate its Chat API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...log.usage import Usage, charge_of, is_uncounted, tokens_billed
from ..spelling import inner

_MOST = 10
_MAIN = ("prompt_tokens", "completion_tokens", "total_tokens")


def usage_of(raw: Any) -> Usage | None:
    """Usage in common terms. `prompt_tokens` includes cached tokens, `completion_tokens` includes reasoning, except
    where the total says otherwise."""
    if not isinstance(raw, Mapping):
        return None
    details, answered = inner(raw, "prompt_tokens_details"), inner(raw, "completion_tokens_details")
    output, reasoning = tokens_billed(raw.get("completion_tokens")), tokens_billed(answered.get("reasoning_tokens"))
    outside = _outside(raw, answered.get("reasoning_tokens"))
    # Kimi and DeepSeek report their cache beside the details.
    read = (details.get("cached_tokens"), raw.get("cached_tokens"), raw.get("prompt_cache_hit_tokens"))
    return Usage(
        input=tokens_billed(raw.get("prompt_tokens")),
        output=output + outside,
        cached=next(filter(None, map(tokens_billed, read)), 0),
        cache_write=tokens_billed(details.get("cache_write_tokens")),
        reasoning=reasoning or outside,
        incomplete=is_uncounted(raw.get("prompt_tokens"), raw.get("completion_tokens")),
        charged=charge_of(raw),
    )


def usage_in(data: Mapping[str, Any]) -> Any:
    """The usage object in an answer or a chunk, as the server wrote it: at the top, in `x_groq` (Groq), or in a choice
    (Kimi's streams); None if there is none."""
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    places = (data, inner(data, "x_groq"), first if isinstance(first, Mapping) else {})
    return next((place["usage"] for place in places if place.get("usage") is not None), None)


def is_complete(raw: Any) -> bool:
    """Whether a usage object has figures for both the prompt and the answer."""
    if not isinstance(raw, Mapping):
        return False
    prompt, completion = raw.get("prompt_tokens"), raw.get("completion_tokens")
    return None not in (prompt, completion) and not is_uncounted(prompt, completion) and bool(prompt or completion)


def _outside(raw: Mapping[str, Any], told: Any) -> int:
    """The tokens of reasoning that are not in `completion_tokens`, but in the total only.

    xAI counts them apart: its total is the sum of prompt, completion and `reasoning_tokens`. Gemini does not even name
    them. Elsewhere the total has nothing more than prompt and completion, whatever `reasoning_tokens` is: LiteLLM's
    estimate of it may be more than the completion (recorded). A larger total is reasoning only if nothing else can be
    meant: it is exactly the named reasoning; or, if no reasoning is named, not even as 0, no other figure of the object
    (a cache beside the prompt, citations, prompts of tools) comes to the rest, alone or with others.
    """
    figures = [raw.get(key) for key in _MAIN]
    if None in figures or is_uncounted(*figures):
        return 0
    prompt, completion, total = map(tokens_billed, figures)
    rest = total - prompt - completion
    if rest <= 0:
        return 0
    if told is not None:
        return rest if not is_uncounted(told) and rest == told else 0
    return 0 if _comes_to(rest, {*_others(raw)} - {0}) else rest


def _comes_to(rest: int, figures: set[int]) -> bool:
    """Whether some of these figures have this sum, or may have it, as there are too many to try."""
    if len(figures) > _MOST:
        return True
    sums = {0}
    for figure in figures:
        sums |= {found + figure for found in sums if found + figure <= rest}
    return rest in sums


def _others(raw: Mapping[str, Any]) -> Iterator[int]:
    """The figures of a usage object beside the main ones, those in its details included, which count tokens."""
    for key, value in raw.items():
        if isinstance(value, Mapping):
            yield from _others(value)
        elif key not in _MAIN and key.endswith("_tokens"):
            yield tokens_billed(value)
