"""Keep what turnlog logs off the screen of a program that shows it in its own words."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


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
