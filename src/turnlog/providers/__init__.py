"""The wire formats, one folder each: parse, render, sanitize, stream, rules.

`provider(name)` returns a provider. All providers share the modules beside the folders. `requests` and the packages
above it import this package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from ..errors import UnknownProvider
from ..models.makers import PROVIDER_ROWS
from .protocol import Provider

__all__ = ["PROVIDERS", "provider"]


class _Providers(Mapping[str, Provider]):
    """Loads the folder of a provider at its first use: a session usually needs only one."""

    def __init__(self) -> None:
        self._loaded: dict[str, Provider] = {}

    def __getitem__(self, name: str) -> Provider:
        if name not in self._loaded:
            module = PROVIDER_ROWS[name].module or f".{name.replace('-', '_')}"
            self._loaded[name] = import_module(module, __name__).PROVIDER
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(PROVIDER_ROWS)

    def __len__(self) -> int:
        return len(PROVIDER_ROWS)


PROVIDERS: Mapping[str, Provider] = _Providers()
"""All providers, by name."""


def provider(name: str) -> Provider:
    """The provider with that name. Raises UnknownProvider, which lists the known names."""
    if not isinstance(name, str) or name not in PROVIDER_ROWS:
        raise UnknownProvider(f"unknown provider {name!r}; use one of {', '.join(PROVIDERS)}")
    return PROVIDERS[name]
