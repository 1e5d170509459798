"""A request body as keyword arguments of the official SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def sdk_arguments(request: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Keyword arguments with which `Client.models.generate_content` (or `generate_content_stream`) of google-genai
    sends `request` unchanged.

    The SDK's own configuration does not have every REST field, and writes bytes in another alphabet (which changes
    signatures). `HttpOptions.extra_body` is its documented way to send a custom body: it is merged over the body that
    the SDK builds.
    """
    return {
        "model": model,
        "contents": request["contents"],
        "config": {"http_options": {"extra_body": dict(request)}},
    }
