"""Modules of the standard library that take long to load and are seldom needed: each loads when it is first used. And
turnlog's logger, which is made of one of them.

Opening a session would take half as long again with them: `asyncio` alone loads `ssl`, `subprocess` and `logging`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any


class _Later:
    """What `load` returns, loaded when an attribute of it is first used."""

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load
        self._loaded: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._loaded is None:
            self._loaded = self._load()
        return getattr(self._loaded, name)


if TYPE_CHECKING:
    import asyncio as asyncio
    import difflib as difflib
    import html as html
    import inspect as inspect
    import logging as logging
    import shlex as shlex
    import socket as socket
    import tempfile as tempfile
    from concurrent import futures as futures

    LOG = logging.getLogger("turnlog")
else:
    asyncio = _Later(lambda: import_module("asyncio"))
    difflib = _Later(lambda: import_module("difflib"))
    futures = _Later(lambda: import_module("concurrent.futures"))
    html = _Later(lambda: import_module("html"))
    inspect = _Later(lambda: import_module("inspect"))
    logging = _Later(lambda: import_module("logging"))
    shlex = _Later(lambda: import_module("shlex"))
    socket = _Later(lambda: import_module("socket"))
    tempfile = _Later(lambda: import_module("tempfile"))
    LOG = _Later(lambda: import_module("logging").getLogger("turnlog"))


@contextmanager
def quiet_log() -> Iterator[None]:
    """Nothing that turnlog logs is printed meanwhile, unless a handler was given to its logger: for a program that
    shows it in its own words."""
    log = logging.getLogger("turnlog")
    before, log.propagate = log.propagate, False
    log.addHandler(silent := logging.NullHandler())
    try:
        yield
    finally:
        log.removeHandler(silent)
        log.propagate = before
