"""What SDK clients leave behind is cleared away behind each test, so that no other test pays for it."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import pytest
from sdk_clients import close_clients


@pytest.fixture(autouse=True)
def _cleared() -> Iterator[None]:
    """Google's client leaves sockets of cut streams to the garbage collector: that is its way, not our leak."""
    yield
    close_clients()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
