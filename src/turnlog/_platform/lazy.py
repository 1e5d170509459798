"""Packages whose public names load when they are first used.

So a command or a server that imports turnlog does not load packages that it never uses.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


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
