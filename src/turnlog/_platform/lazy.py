"""What loads when it is first used: the public names of packages, patterns, and attributes.

So a command or a server that imports turnlog does not load packages that it never uses, nor compile their patterns.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property  # noqa: TID251
else:

    class cached_property:
        """As in `functools` from Python 3.12 on, without its lock: one for all objects of a class, which a process that
        is forked while another thread computes a value would wait for, for ever. Two threads may compute the same."""

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self._compute = compute
            self._name = compute.__name__
            self.__doc__ = compute.__doc__

        def __get__(self, of: Any, owner: type | None = None) -> Any:
            if of is None:
                return self
            value = of.__dict__[self._name] = self._compute(of)
            return value


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package. `modules` maps each module to its names, separated by spaces; the
    names under "" are subpackages.

    Type checkers do not understand this, so such a package also imports the same names under `TYPE_CHECKING`, and lists
    them in `__all__`; tests/test_house.py compares the three.
    """
    places = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not places[name]:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(f"{package}.{places[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *places})

    return load, names


class Later:
    """A module, or another object, that `load` returns when an attribute of it is first used."""

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load
        self._loaded: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._loaded is None:
            self._loaded = self._load()
        return getattr(self._loaded, name)


class _Pattern:
    """A pattern that is compiled when it is first used. From then on it has the methods that were used as its own
    attributes, so that using it costs nothing more."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text: Any = text
        self._flags = flags
        self._compiled: re.Pattern[Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if self._compiled is None:
            self._compiled = re.compile(self._text, self._flags)
        value = getattr(self._compiled, name)
        setattr(self, name, value)
        return value


@overload
def lazy_pattern(text: str, flags: int = 0) -> re.Pattern[str]: ...
@overload
def lazy_pattern(text: bytes, flags: int = 0) -> re.Pattern[bytes]: ...
def lazy_pattern(text: str | bytes, flags: int = 0) -> Any:
    """As `re.compile`, for the patterns of a module: hundreds of them take longer to compile than all else that opening
    a session needs. It is no `re.Pattern`: use its methods, not `re.sub(...)` with it."""
    return _Pattern(text, flags)
