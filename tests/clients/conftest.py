"""Tests with real SDK clients against a server: marked `clients`, and cleaned up after each one."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from sdk_clients import close_clients

_CLOSING = "Exception ignored in. <async_generator object \\w+[.](aiter_raw|__aiter__)"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them as `clients`. The collector may also run in the middle of a test, so its warning is ignored there, and
    that of a stream of an SDK that it meets while the SDK closes it."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.clients)
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings(f"ignore:{_CLOSING}:pytest.PytestUnraisableExceptionWarning"))
    items.sort(key=lambda item: item.path.name != "test_wheel.py")  # the longest first


@pytest.fixture(autouse=True)
def _cleared() -> Iterator[None]:
    """Google's client leaves sockets of cut streams to the garbage collector: that is its way, not our leak."""
    yield
    close_clients()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
