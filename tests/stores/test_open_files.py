"""A process that may open no more files is told so, and how to raise the limit."""

from __future__ import annotations

import gc
import os
import resource
from pathlib import Path

import pytest

import turnlog
from turnlog.errors import StoreError

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")


def descriptors() -> int:
    """How many files this process has open."""
    return len(os.listdir("/proc/self/fd"))


@needs_proc
@pytest.mark.parametrize("name", ["s.db", "{}.db"])
def test_the_error_at_the_limit_says_how_to_raise_it(tmp_path: Path, name: str) -> None:
    """Too many open files look like damage, or like a permission that is missing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + 30, hard))
    try:
        with pytest.raises(StoreError, match="ulimit -n"):
            [turnlog.open(f"s{n}", store=tmp_path / name.format(n)) for n in range(100)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        gc.collect()
