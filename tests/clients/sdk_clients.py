"""The official SDKs, pointed at a server on this machine: one way to ask each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import anthropic
import httpx2
import openai
from google import genai
from google.genai._gaos.lib.compat_errors import GeminiNextGenAPIClientError  # of `client.interactions`

from turnlog.providers.google import sdk_arguments

__all__ = ["Ask", "ERRORS", "SdkClient", "close_clients", "sdk_client", "sdk_clients"]

ERRORS: tuple[type[Exception], ...] = (
    openai.OpenAIError,
    anthropic.AnthropicError,
    genai.errors.APIError,
    GeminiNextGenAPIClientError,
    httpx2.HTTPError,
)
"""What the SDKs raise themselves, and what their transport raises when a connection breaks."""

Ask = Callable[[dict[str, Any], str], Any]
"""Sends a request to a model."""


@dataclass(frozen=True)
class SdkClient:
    """Sends a turnlog request through one SDK: `send` for a response object, `stream` for an iterable
    of chunks, `helper` for the SDK's own stream helper, which mixes its own events among the API's."""

    send: Ask
    stream: Ask
    helper: Ask | None = None


def _through(helper: Callable[..., Any], **settings: Any) -> Ask:
    def events(request: dict[str, Any], model: str) -> Iterator[Any]:
        with helper(**request, **settings) as stream:
            yield from stream

    return events


def _openai_chat(url: str) -> SdkClient:
    completions: Any = openai.OpenAI(base_url=url + "/v1", api_key="k", max_retries=0).chat.completions
    usage = {"include_usage": True}
    return SdkClient(
        send=lambda request, model: completions.create(**request),
        stream=lambda request, model: completions.create(**request, stream=True, stream_options=usage),
        helper=_through(completions.stream, stream_options=usage),
    )


def _openai_responses(url: str) -> SdkClient:
    responses: Any = openai.OpenAI(base_url=url + "/v1", api_key="k", max_retries=0).responses
    return SdkClient(
        send=lambda request, model: responses.create(**request),
        stream=lambda request, model: responses.create(**request, stream=True),
        helper=_through(responses.stream),
    )


def _anthropic(url: str) -> SdkClient:
    messages: Any = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0).messages
    return SdkClient(
        send=lambda request, model: messages.create(**request),
        stream=lambda request, model: messages.create(**request, stream=True),
        helper=_through(messages.stream),
    )


_OPEN: list[Callable[[], None]] = []


def close_clients() -> None:
    """Close the clients that do not close themselves in time."""
    while _OPEN:
        _OPEN.pop()()


def _google(url: str) -> SdkClient:
    client: Any = genai.Client(api_key="k", http_options={"base_url": url})
    _OPEN.append(client.close)  # by itself it closes when it is collected, which may be after its socket was
    return SdkClient(
        send=lambda request, model: client.models.generate_content(**sdk_arguments(request, model)),
        stream=lambda request, model: client.models.generate_content_stream(**sdk_arguments(request, model)),
    )


def _google_interactions(url: str) -> SdkClient:
    client: Any = genai.Client(api_key="k", http_options={"base_url": url})
    _OPEN.append(client.close)
    return SdkClient(
        send=lambda request, model: client.interactions.create(**request),
        stream=lambda request, model: client.interactions.create(**request, stream=True),
    )


_MAKERS = {
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "google": _google,
    "google-interactions": _google_interactions,
}


def sdk_client(provider: str, url: str) -> SdkClient:
    """A client of one provider that talks to `url` and never tries twice."""
    return _MAKERS[provider](url)


def sdk_clients(url: str) -> dict[str, SdkClient]:
    """A client for each provider, by its name."""
    return {provider: sdk_client(provider, url) for provider in _MAKERS}
