"""Find request bodies in the JSON values of a file; `providers.recognise` says which API they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import InputError
from ..providers import CONVERSATIONS
from ..providers.recognise import is_message, provider_of
from .json_values import word

WRAPPERS = ("request", "body", "params")
"""Keys under which recorded requests and lines of batches have the body: `params` in batches of Anthropic."""

_URLS = ("url", "endpoint")
"""Keys of a wrapper for the URL that the request went to."""


def is_body(value: Any) -> bool:
    """Whether a JSON value looks like a request body.

    A file may hold any JSON: an `input` that is only text, or one value, is taken for a body if a model is named with
    it.
    """
    if not isinstance(value, dict):
        return False
    try:
        key = CONVERSATIONS[provider_of(value)]
    except InputError:
        return False
    given = value[key]
    if isinstance(given, list):
        return bool(given) or key != "input" or isinstance(value.get("model"), str)
    return is_message(given) or isinstance(value.get("model"), str)


def wrapped(value: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The request bodies inside a wrapper: its key for each, the body, and the URL that the request went to ("" if the
    wrapper does not say)."""
    url = next(filter(None, (word(value.get(key)) for key in _URLS)), "")
    for key in WRAPPERS:
        if is_body(value.get(key)):
            yield key, value[key], url
