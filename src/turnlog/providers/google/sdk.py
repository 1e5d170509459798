"""A request body as keyword arguments of the official SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def sdk_arguments(request: Mapping[str, Any], model: str) -> dict[str, Any]:
    """What to splat into `Client.models.generate_content` (or `generate_content_stream`) of
    google-genai so that it sends `request`, unchanged.

    The SDK's own configuration cannot hold every REST field and spells bytes anew (signatures come
    out in another alphabet). Its documented way for a body of one's own is
    `HttpOptions.extra_body`, which it lays over the body it builds.
    """
    return {
        "model": model,
        "contents": request["contents"],
        "config": {"http_options": {"extra_body": dict(request)}},
    }
