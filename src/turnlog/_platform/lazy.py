"""Packages whose public names load when they are first used.

So a command or a server that imports turnlog does not load packages that it never uses.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from threading import Lock
from typing import Any, TypeVar

import msgspec

# -- prepares types for msgspec before their first use, which two threads might begin at the sa ----

_T = TypeVar("_T")

_ALONE = Lock()


def ready(kind: _T) -> _T:
    """`kind` itself, prepared for decoding. msgspec examines a type's fields when it first decodes that type, and the
    process crashes if two threads do so at once. The types of its fields are prepared as well."""
    with _ALONE:
        msgspec.json.Decoder(kind)
    return kind


# -- keep what turnlog logs off the screen of a program that shows it in its own words -------------


@contextmanager
def quiet_log() -> Iterator[None]:
    """Nothing that turnlog logs is printed meanwhile, unless a handler was given to its logger."""
    log = logging.getLogger("turnlog")
    before, log.propagate = log.propagate, False
    log.addHandler(silent := logging.NullHandler())
    try:
        yield
    finally:
        log.removeHandler(silent)
        log.propagate = before


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
