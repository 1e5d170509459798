"""Metrics of what a session records: how long answers, tool runs and turns took, and the tokens of answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.metrics import Meter

from ..log.usage import Usage
from . import names

_SECONDS = tuple(0.01 * 2**n for n in range(14))
_TURN_SECONDS = tuple(0.1 * 2**n for n in range(13))
_TOKENS = tuple(4**n for n in range(14))
"""Boundaries of buckets, as the conventions have them."""


class Measures:
    """The instruments of one meter. Metrics have the attributes that the conventions name, not a session's id or a
    record's number: each value of an attribute is a series of its own."""

    def __init__(self, meter: Meter) -> None:
        self._seconds = {
            operation: meter.create_histogram(name, "s", told, explicit_bucket_boundaries_advisory=bounds)
            for operation, name, told, bounds in (
                (names.CHAT, names.CHAT_SECONDS, "Seconds until an answer was whole or broke off.", _SECONDS),
                (names.EXECUTE_TOOL, names.TOOL_SECONDS, "Seconds that a tool ran.", _SECONDS),
                (names.INVOKE_AGENT, names.TURN_SECONDS, "Seconds that a turn took.", _TURN_SECONDS),
            )
        }
        self._sizes = [
            meter.create_histogram(name, "{token}", told, explicit_bucket_boundaries_advisory=_TOKENS)
            for name, told in (
                (names.INPUT_SIZES, "Tokens that a model read for one answer."),
                (names.OUTPUT_SIZES, "Tokens that a model wrote for one answer."),
            )
        ]
        self._spent = [
            (meter.create_counter(name, "{token}", told), field)
            for name, field, told in (
                (names.INPUT_SPENT, "input", "Tokens read, cached ones included."),
                (names.OUTPUT_SPENT, "output", "Tokens written, reasoning included."),
                (names.CACHE_READ_SPENT, "cached", "Tokens read from a cache."),
                (names.CACHE_WRITE_SPENT, "cache_write", "Tokens written to a cache."),
                (names.REASONING_SPENT, "reasoning", "Tokens of reasoning."),
            )
        ]

    def ended(self, operation: str, attributes: Mapping[str, Any], begun: int | None, ended: int | None) -> None:
        """An answer, a tool run or a turn ended. Times are in nanoseconds, None if they are not known."""
        if begun is not None and ended is not None:
            chosen = _chosen(attributes, names.MEASURED[operation])
            self._seconds[operation].record(max(0, ended - begun) / 1e9, chosen)

    def billed(self, attributes: Mapping[str, Any], usage: Usage | None) -> None:
        """The tokens of an answer: 0 of one without a bill, as the conventions ask. Bills do not tell text from images
        in a way that all providers have."""
        usage = usage or Usage()
        chosen = _chosen(attributes, names.MEASURED[names.CHAT])
        for histogram, tokens in zip(self._sizes, (usage.input, usage.output), strict=True):
            histogram.record(tokens, chosen)
        chosen.pop(names.ERROR_TYPE, None)
        for counter, field in self._spent:
            counter.add(getattr(usage, field), {**chosen, names.MODALITY: "unknown"})


def _chosen(attributes: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: attributes[key] for key in keys if key in attributes}
