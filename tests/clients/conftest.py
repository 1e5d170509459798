"""What SDK clients leave behind is cleared away behind each test, so that no other test pays for it."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from sdk_clients import close_clients


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The collector may come by in the midst of a test, too, and then the warning is told of whatever line runs."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.fixture(autouse=True)
def _cleared() -> Iterator[None]:
    """Google's client leaves sockets of cut streams to the garbage collector: that is its way, not our leak."""
    yield
    close_clients()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
