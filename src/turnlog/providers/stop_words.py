"""What a provider's word for the end of an answer means, also a word that nobody knew when this was written."""

from __future__ import annotations

from collections.abc import Mapping

from .._platform.lazy import lazy_pattern
from .protocol import Stop

_FAILED = lazy_pattern(r"(?i)error|fail|malformed|abort|interrupt|cancel|time_?d?_?out|overload|unavailable")
"""Words of failures, such as `network_error` (Z.ai, opencode, hermes-agent#92161), `error` (OpenRouter),
`malformed_function_call` (Gemini behind a gateway, hermes-agent#83882) and `abort` (vLLM, SGLang)."""


def meaning(word: str, stops: Mapping[str, Stop]) -> Stop | None:
    """What a word for the end of an answer means, by the provider's table or as it says of itself that something
    failed; None if the parts of the answer decide."""
    known = stops.get(word)
    return "interrupted" if known is None and _FAILED.search(word) else known
