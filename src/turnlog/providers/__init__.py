"""The wire formats, one folder each: parse, render, sanitize, stream, rules.

`provider(name)` returns one. Modules beside the folders are shared by all. Imported by `requests` and above.
"""

from __future__ import annotations

from ..errors import UnknownProvider
from .anthropic import PROVIDER as _anthropic
from .google import PROVIDER as _google
from .openai_chat import PROVIDER as _openai_chat
from .openai_responses import PROVIDER as _openai_responses
from .protocol import Provider

__all__ = ["PROVIDERS", "provider"]

PROVIDERS: dict[str, Provider] = {each.name: each for each in (_openai_chat, _openai_responses, _anthropic, _google)}
"""All providers, by name."""


def provider(name: str) -> Provider:
    """The provider of that name. Raises UnknownProvider, which lists the known ones."""
    if not isinstance(name, str) or name not in PROVIDERS:
        raise UnknownProvider(f"unknown provider {name!r}; use one of {', '.join(PROVIDERS)}")
    return PROVIDERS[name]
