"""The wire formats, one folder each: parse, render, sanitize, stream, rules.

`provider(name)` returns a provider. All providers share the modules beside the folders. Imported by `requests` and the
packages above it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from ..errors import UnknownProvider
from .protocol import Provider

__all__ = ["CONVERSATIONS", "PROVIDERS", "provider"]

_FOLDERS = {
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",
    "anthropic": "anthropic",
    "google": "google",
    "google-interactions": "google_interactions",
}

CONVERSATIONS = {
    "openai-chat": "messages",
    "openai-responses": "input",
    "anthropic": "messages",
    "google": "contents",
    "google-interactions": "input",
}
"""The key of the conversation in each provider's requests: by it, no folder is loaded that a body is not for."""


class _Providers(Mapping[str, Provider]):
    """Loads the folder of a provider at its first use: a session usually needs only one."""

    def __getitem__(self, name: str) -> Provider:
        found: Provider = import_module(f".{_FOLDERS[name]}", __name__).PROVIDER
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_FOLDERS)

    def __len__(self) -> int:
        return len(_FOLDERS)


PROVIDERS: Mapping[str, Provider] = _Providers()
"""All providers, by name."""


def provider(name: str) -> Provider:
    """The provider with that name. Raises UnknownProvider, which lists the known names."""
    if not isinstance(name, str) or name not in _FOLDERS:
        raise UnknownProvider(f"unknown provider {name!r}; use one of {', '.join(PROVIDERS)}")
    return PROVIDERS[name]
