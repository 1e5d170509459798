"""Modules of the standard library that take long to load and are seldom needed: each loads when it is first used. And
turnlog's logger, which is made of one of them.

Opening a session would take half as long again with them: `asyncio` alone loads `ssl`, `subprocess` and `logging`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from .lazy import Later

if TYPE_CHECKING:
    import asyncio as asyncio
    import difflib as difflib
    import html as html
    import inspect as inspect
    import logging as logging
    import shlex as shlex
    import socket as socket
    import subprocess as subprocess
    import tempfile as tempfile
    from concurrent import futures as futures

    LOG = logging.getLogger("turnlog")
else:
    asyncio = Later(lambda: import_module("asyncio"))
    difflib = Later(lambda: import_module("difflib"))
    futures = Later(lambda: import_module("concurrent.futures"))
    html = Later(lambda: import_module("html"))
    inspect = Later(lambda: import_module("inspect"))
    logging = Later(lambda: import_module("logging"))
    shlex = Later(lambda: import_module("shlex"))
    socket = Later(lambda: import_module("socket"))
    subprocess = Later(lambda: import_module("subprocess"))
    tempfile = Later(lambda: import_module("tempfile"))
    LOG = Later(lambda: import_module("logging").getLogger("turnlog"))


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
