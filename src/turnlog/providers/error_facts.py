"""What the body of an error says, wherever a server puts it: words, kinds, sizes, and how long to wait.

Servers that imitate OpenAI have an error of their own shape: a text or an object under `error`, no such key at all
(Cerebras, older vLLM), a list (Gemini), `detail` (FastAPI), the error of the server behind a gateway as JSON in a text
(`metadata.raw` of OpenRouter).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from .._platform.lazy import lazy_pattern

_TEXTS = (
    *("message", "Message", "msg", "detail", "error_message", "errorMessage", "error_msg", "errorMsg", "status_msg"),
    *(
        "error",
        "errors",
        "Error",
        "err",
        "exception",
        "base_resp",
        "details",
        "metadata",
        "raw",
        "reason",
        "innererror",
    ),
)
"""Keys under which an error has its words, or another error that has them."""
_KINDS = ("type", "code", "status", "error_type", "error_code", "status_code", "http_code")
"""Keys that name the kind of an error, or its HTTP status."""
_TOKENS, _LIMITS = ("n_prompt_tokens",), ("n_ctx",)
"""Keys of sizes in tokens (llama.cpp#19774)."""
_WAITS = {"retryDelay": 1.0, "retry_after": 1.0, "retry_after_seconds": 1.0, "retry_after_ms": 0.001}
"""Keys of a time to wait, and their unit in seconds: the first is in `google.rpc.RetryInfo`, as `34s`."""
_MOST = 8
"""Levels of errors in errors."""
_SHOWN = 4_000
"""Characters of a text that are read."""
_TITLE = lazy_pattern(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_TAG = lazy_pattern(r"<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>", re.IGNORECASE | re.DOTALL)


class ErrorFacts(Struct, frozen=True):
    """What an error says. `kinds` are its types, codes and statuses, as texts. `tokens` and `limit` are the sizes of a
    request that is too long, 0 if it does not say them; `wait` is in seconds."""

    words: str = ""
    kinds: tuple[str, ...] = ()
    tokens: int = 0
    limit: int = 0
    wait: float | None = None

    @property
    def status(self) -> int | None:
        """The HTTP status among the kinds of an error that came without one, in a stream."""
        codes = (int(kind) for kind in self.kinds if len(kind) == 3 and kind.isdigit())
        return next((code for code in codes if 400 <= code < 600), None)


def error_facts(body: Any) -> ErrorFacts:
    """What a body says of an error: JSON, or a text, which may be JSON, or an HTML page."""
    texts: dict[str, None] = {}
    values: dict[str, list[Any]] = {}
    for key, value in _said(body, _MOST):
        if key:
            values.setdefault(key, []).append(value)
        else:
            texts[value] = None
    kinds = (str(kind) for key in _KINDS for kind in values.get(key, ()) if isinstance(kind, (str, int)))
    waits = (_number(value, unit) for key, unit in _WAITS.items() for value in values.get(key, ()))
    return ErrorFacts(
        words="; ".join(texts),
        kinds=tuple(kind for kind in dict.fromkeys(kinds) if kind and kind != "error"),
        tokens=_size(values, _TOKENS),
        limit=_size(values, _LIMITS),
        wait=next((wait for wait in waits if wait is not None), None),
    )


def page_text(text: str) -> str:
    """The title of an HTML page, or its text without tags; any other text as it is."""
    if not re.match(r"\s*<(?:!doctype|html|head|body)", text, re.IGNORECASE):
        return text
    title = _TITLE.search(text)
    return " ".join((title[1] if title else _TAG.sub(" ", text)).split())


def _said(value: Any, levels: int) -> Iterator[tuple[str, Any]]:
    """The texts of an error, under "", and the values under its other keys."""
    if isinstance(value, str):
        inner = _json(value) if levels else None
        if inner is not None:
            yield from _said(inner, levels - 1)
        elif text := page_text(value[:_SHOWN]).strip():
            yield "", text
    elif isinstance(value, list) and levels:
        for item in value[:20]:
            yield from _said(item, levels - 1)
    elif isinstance(value, Mapping) and levels:
        for key in (*_KINDS, *_TOKENS, *_LIMITS, *_WAITS):
            if value.get(key) is not None:
                yield key, value[key]
        for key in _TEXTS:
            if value.get(key):
                yield from _said(value[key], levels - 1)


def _json(text: str) -> Any:
    """The JSON object or list that a text is; None for any other text."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list)) else None


def _number(value: Any, unit: float) -> float | None:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)s?", str(value))
    return None if match is None else float(match[1]) * unit


def _size(values: Mapping[str, list[Any]], keys: tuple[str, ...]) -> int:
    sizes = (size for key in keys for size in values.get(key, ()))
    return next((size for size in sizes if type(size) is int and size > 0), 0)
